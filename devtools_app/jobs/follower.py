"""A job in a process of its own as the window follows it: asked on a timer, cancelled, ended."""

from __future__ import annotations

import logging
import time
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from PySide6.QtCore import QObject, QTimer, Signal

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.jobs.messages import Counted, Message, Outcome, Stage, Warned

KEPT_LINES = 2000
_POLL_MS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How a job stands.

    Attributes:
        stages: those that ended, and the one that runs, which has no time yet
        counted: how far the stage is, None where nobody counts
        seconds: since it was started
        stage_seconds: since the stage that runs began
        warnings: what was warned of
        outcome: how it ended, None while it runs
        cancelling: whether it was asked to end
    """

    stages: tuple[Stage, ...] = ()
    counted: Counted | None = None
    seconds: float = 0.0
    stage_seconds: float = 0.0
    warnings: tuple[Warned, ...] = ()
    outcome: Outcome | None = None
    cancelling: bool = False

    @property
    def running(self) -> bool:
        """Return whether it is still at work."""
        return self.outcome is None

    @property
    def stage(self) -> str:
        """Return the name of the stage that runs or ran last."""
        return self.stages[-1].stage if self.stages else "starting"


class Followed(Protocol):
    """A job in a process of its own."""

    @property
    def outcome(self) -> Outcome | None:
        """Return how it ended, None while it runs."""
        ...

    def take(self, timeout: float = 0.0) -> list[Message]:
        """Return what was said since the last call."""
        ...

    def cancel(self) -> None:
        """Ask it to end."""
        ...

    def close(self) -> None:
        """End it if it runs, and let go of it."""
        ...


_Job = TypeVar("_Job", bound=Progress)


class Follower(QObject, Generic[_Job]):
    """Follows one job at a time and tells how it goes.

    The process is asked on a timer, so that a flood of messages costs the window nothing.

    Signals:
        changed(): there is another ``current``
        printed(lines): the code of the user printed something
        finished(result): the job has finished, its files are there

    Attributes:
        lines: what was printed, the newest lines
    """

    changed = Signal()
    printed = Signal(object)
    finished = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._current: _Job | None = None
        self._run: Followed | None = None
        self._began = self._stage_began = 0.0
        self._timer: QTimer | None = None  # made when first wanted: there may be no application yet

    @property
    def current(self) -> _Job | None:
        """Return the job that runs or ran last, None before the first."""
        return self._current

    @property
    def running(self) -> bool:
        """Return whether a job is at work."""
        return self._run is not None and self._current is not None and self._current.running

    def cancel(self) -> None:
        """Ask the job to end; it does within seconds, whatever it is busy with."""
        if self._run is not None and self._current is not None and self._current.running:
            self._run.cancel()
            self._current = replace(self._current, cancelling=True)
            self.changed.emit()

    def shut_down(self) -> None:
        """End everything; called before the window goes away."""
        self._rest()
        self.end_run()

    def end_run(self) -> None:
        """End the run now and let go of it; nothing more is told of it."""
        run, self._run = self._run, None
        if run is not None:
            run.close()

    def _follow(self, run: Followed, current: _Job) -> None:
        """Follow a run that was started."""
        from inspector.jobs.messages import Stage

        self._run = run
        self._began = self._stage_began = time.monotonic()
        self.lines.clear()
        self._current = replace(current, stages=(Stage("starting"),))
        self._watch()
        self.changed.emit()

    def _watch(self) -> None:
        if self._timer is None:
            self._timer = QTimer(self)
            self._timer.timeout.connect(self._poll)
        self._timer.start(_POLL_MS)

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.stop()

    def _poll(self) -> None:
        if self._run is not None and self._current is not None:
            self._poll_run(self._run, self._current)
        if not self._wanted():
            self._rest()

    def _wanted(self) -> bool:
        """Return whether there is anything to ask."""
        return self.running

    def _poll_run(self, run: Followed, current: _Job) -> None:
        from inspector.jobs.messages import Ended

        outcome = run.outcome  # before the messages, of which there are no more afterwards
        current = self._heard(current, run.take())
        now = time.monotonic()
        seconds, stage_seconds = now - self._began, now - self._stage_began
        current = replace(current, seconds=seconds, stage_seconds=stage_seconds, outcome=outcome)
        if outcome is not None:
            current = self._settled(run, current)
        self._current = current
        self.changed.emit()
        if outcome is not None and outcome.ended is Ended.FINISHED:
            self.finished.emit(self._result(current))

    def _settled(self, run: Followed, current: _Job) -> _Job:
        """Let go of a run that has ended; return what is to be known of it."""
        self._run = None
        run.close()
        return current

    def _result(self, current: _Job) -> Any:  # noqa: ANN401 - each job has a result of its own
        """Return what is told of a job that has finished."""
        return current

    def _heard(self, current: _Job, messages: list[Message]) -> _Job:
        from inspector.jobs.messages import Counted, Log, Stage, Warned

        lines: list[str] = []
        for message in messages:
            if isinstance(message, Log) and message.logger:
                logging.getLogger(message.logger).log(message.level, message.text)
            elif isinstance(message, Log):
                lines.append(message.text)
            elif isinstance(message, Stage):
                stages = _with_stage(current.stages, message)
                current = replace(current, stages=stages, counted=None)
                self._stage_began = time.monotonic()
            elif isinstance(message, Counted):
                current = replace(current, counted=message)
            elif isinstance(message, Warned):
                current = replace(current, warnings=(*current.warnings, message))
        if lines:
            self.lines.extend(lines)
            self.printed.emit(lines)
        return current


def _with_stage(stages: tuple[Stage, ...], stage: Stage) -> tuple[Stage, ...]:
    """Return the stages with one that begins or has ended; the start is over with the first."""
    ended = tuple(one for one in stages if one.seconds is not None)
    return (*ended, stage)
