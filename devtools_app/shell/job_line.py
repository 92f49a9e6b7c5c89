"""What is being done, for the status bar: every job of the window by a label."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject

from devtools_app.jobs.window_jobs import WindowJobs


class JobLine(QObject):
    """Reports which jobs are running, whenever one begins or ends."""

    def __init__(
        self, report: Callable[[str], None], jobs: WindowJobs, parent: QObject | None = None
    ) -> None:
        """Watch the jobs of a window.

        Args:
            report: called with the running jobs, empty without any
            jobs: that are watched
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
        """Report if the running jobs have changed; a released job sends nothing."""
        labels = [self._files] if self._files else []
        text = ", ".join(dict.fromkeys((*labels, *self._jobs.labels())))
        if text != self._reported:
            self._reported = text
            self._report(text)
