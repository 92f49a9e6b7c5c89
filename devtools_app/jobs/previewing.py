"""Previews of recipe edits by a warm worker, the newest request first."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import PurePath
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from devtools_app.state.trusted_code import untrusted_code

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.jobs.compile_server import CompileServer
    from inspector.jobs.preview import Preview
    from inspector.jobs.run import JobRun
    from inspector.jobs.suggestions import Suggestions
    from inspector.recipes.compile_job import CompileJob

_POLL_MS = 20  # a preview follows the pointer in a menu
_KEPT = 64  # previews
_WAITING = "Previewing the effect on the partitions…"
_SUPERSEDED = "replaced by a newer request"


def refusal(job: CompileJob) -> str:
    """Return why a recipe must not be previewed, empty if it may: it runs untrusted code."""
    from inspector.toolchain.table import toolchain_named

    if not toolchain_named(job.toolchain).is_warm:
        return "Partitioners of the other toolchain run in a compile only"
    names = " and ".join(PurePath(path).name for path in untrusted_code(job))
    return f"A preview would run the code in {names}: recompile once to allow it" if names else ""


class Previews(QObject):
    """Keeps previews by recipe; a worker that caches the exported program computes new ones.

    Signals:
        changed(): a preview, or suggestions, are available
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._known: OrderedDict[CompileJob, Preview | str] = OrderedDict()
        self._queue: list[CompileJob] = []
        self._run: JobRun | None = None
        self._suggest: JobRun | None = None
        self._suggested: tuple[CompileJob, Suggestions | str] | None = None
        self._server: CompileServer | None = None
        self._timer: QTimer | None = None  # created on first use

    @property
    def server(self) -> CompileServer:
        """Return the compile server, created when first used."""
        from inspector.jobs.compile_server import CompileServer

        if self._server is None:
            self._server = CompileServer()
        return self._server

    @property
    def busy(self) -> bool:
        """Return whether an answer is pending."""
        return self._run is not None or self._suggest is not None or bool(self._queue)

    def ask(self, job: CompileJob, base: CompileJob) -> None:
        """Preview a recipe and its baseline; older requests are dropped."""
        if refusal(job):
            return
        requested = [one for one in (base, job) if one not in self._known]
        at_work = self._run.job.compile if self._run is not None else None
        self._queue = [one for one in requested if one != at_work]
        self._next()

    def effect(self, job: CompileJob, base: CompileJob) -> str:
        """Return the effect of a recipe on the partitions of another one, as text."""
        reason = refusal(job)
        if reason:
            return reason
        one, two = self._known.get(base), self._known.get(job)
        if isinstance(two, str) or isinstance(one, str):
            return two if isinstance(two, str) else str(one)
        if one is None or two is None:
            return _WAITING
        found = two.against(one)
        text = [
            f"{method}: {each.words}" if len(found) > 1 else each.words
            for method, each in found.items()
        ]
        return "; ".join((*text, *two.warnings))

    def preview(self, job: CompileJob) -> Preview | None:
        """Return the preview of a recipe, None while unknown."""
        found = self._known.get(job)
        return None if isinstance(found, str) else found

    def suggest(self, job: CompileJob) -> None:
        """Search recipe changes that reduce boundaries."""
        reason = refusal(job)
        if reason:
            self._suggested = (job, reason)
            self.changed.emit()
            return
        self._suggested = None
        self._suggest = self.server.start_suggestions(job)
        self._watch()
        self.changed.emit()

    def suggestions(self, job: CompileJob) -> Suggestions | str | None:
        """Return the suggestions for a recipe, or an error; None while unknown."""
        found = self._suggested
        return found[1] if found is not None and found[0] == job else None

    @property
    def suggesting(self) -> bool:
        """Return whether a search is running."""
        return self._suggest is not None

    def forget(self) -> None:
        """Drop all previews: the source may have changed."""
        self._known.clear()

    def rest(self) -> None:
        """Release the worker: no session is open."""
        self.forget()
        if self._server is not None:
            self.shut_down()
            self._server = None

    def shut_down(self) -> None:
        """End all jobs; called before the window closes."""
        self._rest()
        self._queue, self._run, self._suggest = [], None, None
        if self._server is not None:
            self._server.close()

    def _next(self) -> None:
        if self._run is None and self._queue:
            self._run = self.server.start_preview(self._queue.pop(0))
        if self.busy:
            self._watch()

    def _watch(self) -> None:
        if self._timer is None:
            self._timer = QTimer(self)
            self._timer.timeout.connect(self._poll)
        self._timer.start(_POLL_MS)

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.stop()

    def _keep(self, job: CompileJob, found: Preview | str) -> None:
        self._known[job] = found
        self._known.move_to_end(job)
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)

    def _poll(self) -> None:
        news = self._poll_preview()
        news = self._poll_suggestions() or news
        self._next()
        if not self.busy:
            self._rest()
        if news:
            self.changed.emit()

    def _poll_preview(self) -> bool:
        run = self._run
        outcome = run.outcome if run is not None else None
        if run is None or outcome is None:
            return False
        self._run = None
        if run.result is not None:
            self._keep(run.job.compile, run.result)
        elif outcome.sentence != _SUPERSEDED:
            self._keep(run.job.compile, f"Not previewed: {outcome.sentence}")
        return True

    def _poll_suggestions(self) -> bool:
        run = self._suggest
        outcome = run.outcome if run is not None else None
        if run is None or outcome is None:
            return False
        self._suggest = None
        found = outcome.sentence if run.result is None else run.result
        self._suggested = (run.job.compile, found)
        return True
