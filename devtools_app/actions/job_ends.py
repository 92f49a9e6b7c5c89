"""Reports the end of a job to a user who went elsewhere, and offers its result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from devtools_app.actions.job_restart import view_of
from devtools_app.state.requests import Notice, ShowSession, ShowView

if TYPE_CHECKING:
    from devtools_app.actions.host import CommandHost, Services
    from inspector.jobs.history import JobEntry

# those whose result a view shows; compiles and runs offer their files
_NOUNS: Mapping[str, str] = {
    "verify": "verification",
    "gap": "comparison of values",
    "generate": "generation",
    "bisect": "bisection",
    "evaluate": "evaluation",
    "backend_plan": "plan of backends",
    "calibrate": "calibration",
    "sweep": "sweep",
}
_OF_NO_SESSION = ("calibrate", "sweep")


class JobEnds:
    """Knows from where each running job was started."""

    def __init__(self, services: Services, window: CommandHost) -> None:
        """Follow the jobs of a window.

        Args:
            services: with the jobs and the open sessions
            window: shows the messages
        """
        self._store = services.store
        self._window = window
        self._from: dict[str, str] = {}
        services.jobs.history.began.connect(self._began)
        services.jobs.history.ended.connect(self._ended)

    def _began(self, entry: JobEntry) -> None:
        if entry.kind in _NOUNS:
            self._from[entry.id] = self._store.state.current

    def _ended(self, entry: JobEntry) -> None:
        from inspector.jobs.messages import Ended

        session, view = self._from.pop(entry.id, None), view_of(entry.kind)
        if session is None or entry.ended is Ended.CANCELLED:
            return
        state = self._store.state
        free = entry.kind in _OF_NO_SESSION
        if state.view == view and (free or state.current == session):
            return
        words = f"The {_NOUNS[entry.kind]} of {entry.subject}"
        is_open = any(one.id == session for one in state.sessions)
        request = ShowView(view) if free else ShowSession(session, view)
        offers = (("Open", request),) if free or is_open else ()
        if entry.ended is Ended.FINISHED:
            self._window.notice(Notice(f"{words} has finished.", offers=offers))
        else:
            why = entry.sentence.rstrip(".") or entry.state
            self._window.notice(Notice(f"{words} failed: {why}.", "error", offers=offers))
