"""The runs, verifications and bundlings of the window: started, watched and cancelled."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from devtools_app.run_form import RunForm

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.jobs.executing import ExecutingJob
    from inspector.jobs.messages import Counted, Message, Outcome, Stage
    from inspector.jobs.run import ExecutingRun

KEPT_LINES = 500
_POLL_MS = 50


@dataclass(frozen=True, slots=True)
class Execution:
    """A job as it stands.

    Attributes:
        job: what is done
        session: id of the session it was started from
        target: folder or file it writes, empty for none
        stages: those that ended, and the one that runs, which has no time yet
        counted: how far the stage is, None where nobody counts
        seconds: since it was started
        stage_seconds: since the stage that runs began
        warnings: what was warned of
        outcome: how it ended, None while it runs
        cancelling: whether it was asked to end
    """

    job: ExecutingJob
    session: str
    target: str
    stages: tuple[Stage, ...]
    counted: Counted | None = None
    seconds: float = 0.0
    stage_seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    outcome: Outcome | None = None
    cancelling: bool = False

    @property
    def running(self) -> bool:
        """Return whether it is still at work."""
        return self.outcome is None


class Running(QObject):
    """Does one job at a time in a process of its own and tells how it goes.

    Signals:
        changed(): there is another ``current``
        finished(execution): a job has finished, its files are there

    Attributes:
        lines: what was printed, the newest lines
        form: what the panel asks for
    """

    changed = Signal()
    finished = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)
        self.form = RunForm()
        self._current: Execution | None = None
        self._run: ExecutingRun | None = None
        self._began = self._stage_began = 0.0
        self._timer: QTimer | None = None  # made when first wanted: there may be no application yet

    @property
    def current(self) -> Execution | None:
        """Return the job that runs or ran last, None before the first."""
        return self._current

    @property
    def running(self) -> bool:
        """Return whether a job is at work."""
        return self._run is not None

    def start(self, job: ExecutingJob, session: str, target: str = "") -> str:
        """Do a job; return one sentence if it cannot be started.

        Args:
            job: what to do
            session: id of the session it is about
            target: folder or file, whose content is replaced
        """
        from inspector.jobs.messages import Stage
        from inspector.jobs.output_folder import FolderError
        from inspector.jobs.run import ExecutingRun

        if self._run is not None:
            return "Something runs already; cancel it first."
        place = Path(target) if target else None
        try:
            self._run = ExecutingRun(job, place, force=True)
        except FolderError as error:
            return f"{error}."
        self._began = self._stage_began = time.monotonic()
        self.lines.clear()
        self._current = Execution(job, session, target, (Stage("start"),))
        if self._timer is None:
            self._timer = QTimer(self)
            self._timer.timeout.connect(self._poll)
        self._timer.start(_POLL_MS)
        self.changed.emit()
        return ""

    def cancel(self) -> None:
        """Ask the job to end; it does within seconds, whatever a kernel does."""
        if self._run is not None and self._current is not None:
            self._run.cancel()
            self._current = replace(self._current, cancelling=True)
            self.changed.emit()

    def shut_down(self) -> None:
        """End everything; called before the window goes away."""
        if self._timer is not None:
            self._timer.stop()
        run, self._run = self._run, None
        if run is not None:
            run.close()

    def _poll(self) -> None:
        from inspector.jobs.messages import Ended

        run, current = self._run, self._current
        if run is None or current is None:
            return
        outcome = run.outcome  # before the messages, of which there are no more afterwards
        current = self._heard(current, run.take())
        now = time.monotonic()
        current = replace(
            current,
            seconds=now - self._began,
            stage_seconds=now - self._stage_began,
            outcome=outcome,
        )
        self._current = current
        if outcome is not None:
            self._run = None
            run.close()
            if self._timer is not None:
                self._timer.stop()
        self.changed.emit()
        if outcome is not None and outcome.ended is Ended.FINISHED:
            self.finished.emit(current)

    def _heard(self, current: Execution, messages: list[Message]) -> Execution:
        from inspector.jobs.messages import Counted, Log, Stage, Warned

        for message in messages:
            if isinstance(message, Stage):
                ended = tuple(one for one in current.stages if one.seconds is not None)
                current = replace(current, stages=(*ended, message), counted=None)
                self._stage_began = time.monotonic()
            elif isinstance(message, Counted):
                current = replace(current, counted=message)
            elif isinstance(message, Warned):
                current = replace(current, warnings=(*current.warnings, message.text))
            elif isinstance(message, Log):
                self.lines.append(message.text)
        return current
