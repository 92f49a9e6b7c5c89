"""Running jobs for the status bar: every job of the window by a label, and Ctrl+R."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

from PySide6.QtCore import QObject

from devtools_app.jobs.history import JobHistory
from devtools_app.jobs.recompile import Phase
from devtools_app.jobs.recompiling import Recompiling
from devtools_app.jobs.window_jobs import WindowJobs
from devtools_app.sessions.opening import Opener
from devtools_app.shell.fold_bar import FoldBar
from devtools_app.widgets.busy import Busy


class JobLine(QObject):
    """Reports which jobs are running, whenever one begins or ends."""

    def __init__(
        self, report: Callable[[str], None], jobs: WindowJobs, parent: QObject | None = None
    ) -> None:
        """Watch the jobs of a window.

        Args:
            report: called with the running jobs, may be empty
            jobs: to watch
            parent: owner
        """
        super().__init__(parent)
        self._report = report
        self._jobs = jobs
        self._files = ""
        self._reported = ""
        jobs.changed.connect(self.look)

    def opening(self, what: str) -> None:
        """Report files that are read; empty when they have been."""
        self._files = what
        self.look()

    def look(self) -> None:
        """Report if the running jobs have changed; a released job sends no signal."""
        labels = [self._files] if self._files else []
        text = ", ".join(dict.fromkeys((*labels, *self._jobs.labels())))
        if text != self._reported:
            self._reported = text
            self._report(text)


def follow_recompiling(recompiling: Recompiling, busy: Busy, started: Callable[[], None]) -> None:
    """Show the progress of a recompile and call `started` when one begins; Cancel ends it."""

    def follow() -> None:
        one, found = recompiling.current, recompiling.progress
        if not recompiling.busy or one is None:
            busy.stop()
            return
        source = one.job.source
        name = PurePath(source.path).name + (f":{source.function}" if source.function else "")
        if not busy.running:
            busy.start(f"Recompiling {name}")
            started()
        if found is not None:
            verb = "Running" if one.phase is Phase.RUN else "Recompiling"
            word = "Cancelling" if found.cancelling else verb
            busy.progress(f"{word} {name} · {found.stage}", -1.0)

    recompiling.changed.connect(follow)
    busy.cancelled.connect(recompiling.cancel)


def follow_opening(opener: Opener, busy: Busy, line: JobLine) -> None:
    """Show the progress of files that are opened; Cancel ends it."""
    opener.started.connect(busy.start)
    opener.started.connect(line.opening)
    opener.progressed.connect(busy.progress)
    opener.ended.connect(busy.stop)
    opener.ended.connect(lambda: line.opening(""))
    busy.cancelled.connect(opener.cancel)


def count_running(history: JobHistory, bar: FoldBar) -> None:
    """Show the number of running jobs beside the title of their panel."""

    def count() -> None:
        running = history.running
        bar.show_fact("jobs", f"· {running} running" if running else "")

    history.changed.connect(count)
