"""Follows a job in a separate process: polled on a timer, cancelled, ended."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QTimer, Signal

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.jobs.messages import Counted, Message, Outcome, StageProgress, Warned
    from inspector.jobs.process import Worker
    from inspector.jobs.run import JobRun

KEPT_LINES = 2000  # a log that prints endlessly must not fill the memory
_POLL_MS = 50  # 20 updates a second


@dataclass(frozen=True, slots=True)
class JobProgress:
    """State of a job.

    Attributes:
        job: the request
        about: its subject, such as the id of a session
        target: folder or file it writes, may be empty
        folder: of its worker's files, or None
        state: of its supervisor, or None
        stages: completed ones, and the running one, without a time
        counted: progress of the stage, or None
        seconds: since it was started
        stage_seconds: since the stage that runs began
        warnings: its warnings
        last: the last message of a type that only this job has, None before
        outcome: None while it runs
        cancelling: whether cancelling was requested
    """

    job: Any
    about: Any = None
    target: str = ""
    folder: Path | None = None
    state: Any = None
    stages: tuple[StageProgress, ...] = ()
    counted: Counted | None = None
    seconds: float = 0.0
    stage_seconds: float = 0.0
    warnings: tuple[Warned, ...] = ()
    last: Message | None = None
    outcome: Outcome | None = None
    cancelling: bool = False

    @property
    def running(self) -> bool:
        """Return whether it is still running."""
        return self.outcome is None

    @property
    def stage(self) -> str:
        """Return the name of the stage that runs or ran last."""
        return self.stages[-1].stage if self.stages else "starting"

    @property
    def finished(self) -> bool:
        """Return whether it has ended."""
        return self.outcome is not None and not self.error

    @property
    def error(self) -> str:
        """Return why it failed, empty without an error."""
        from inspector.jobs.messages import Ended

        wrong = self.outcome is not None and self.outcome.ended is not Ended.FINISHED
        return self.outcome.sentence or self.outcome.ended.value if wrong and self.outcome else ""


class JobFollower(QObject):
    """Follows one job at a time, of any kind.

    The process is polled on a timer, so that a flood of messages does not block the window.

    Signals:
        changed(): ``current`` has changed
        printed(lines): the code of the user printed something
        ended(progress): the job has ended in any way; sent before ``changed``
        finished(progress): the job has finished and its files are in place; sent after ``changed``
        known(ready): a worker that was started ahead reports available names
        began(progress): a job was started
        received(messages): its messages
        dropped(progress): the job was ended without an outcome, for a newer one or with the window

    Attributes:
        lines: the newest printed lines
    """

    changed = Signal()
    printed = Signal(object)
    ended = Signal(object)
    finished = Signal(object)
    known = Signal(object)
    began = Signal(object)
    received = Signal(object)
    dropped = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._current: JobProgress | None = None
        self._run: JobRun | None = None
        self._kept: JobRun | None = None  # has ended, but its temporary folder is looked at
        self._ahead: Worker | None = None
        self._reported = False  # whether the names of the worker ahead are known
        self._began = self._stage_began = 0.0
        self._timer: QTimer | None = None  # created on first use: there may be no application yet

    @property
    def current(self) -> JobProgress | None:
        """Return the job that runs or ran last, None before the first."""
        return self._current

    @property
    def running(self) -> bool:
        """Return whether a job is running."""
        return self._run is not None and self._current is not None and self._current.running

    @property
    def pid(self) -> int:
        """Return the id of the worker's process, or 0."""
        return self._run.pid if self._run is not None else 0

    # ---- starting
    def start(
        self,
        job: object,
        target: str = "",
        *,
        about: object = None,
        force: bool = False,
        replace_running: bool = False,
        worker: Worker | None = None,
        **options: Any,  # noqa: ANN401 - JSON
    ) -> str:
        """Start a job; return one sentence if it cannot be started.

        Args:
            job: a request of the table of jobs
            target: folder or file for its files
            about: its subject
            force: replace existing files in the target
            replace_running: end a running job; otherwise the new one is refused
            worker: idle worker started ahead
            options: for the worker, in addition to the request
        """
        from inspector.jobs.messages import Ended, Outcome
        from inspector.jobs.run import JobRun
        from inspector.jobs.table import kind_of

        if replace_running:
            self.end_run()
        elif self.running:
            return f"{kind_of(job).label.capitalize()} already: cancel it first."
        place = Path(target) if target else None
        ahead, self._ahead = self._ahead, None
        try:
            run = JobRun(job, place, force=force, worker=worker or ahead, **options)
        except (OSError, ValueError) as error:
            self._ahead = ahead
            sentence = f"{error}."
            if replace_running:
                self._current = JobProgress(
                    job, about, target, outcome=Outcome(Ended.FAILED, sentence)
                )
                self.changed.emit()
            return sentence
        self.follow(run, about, target)
        return ""

    def follow(self, run: JobRun, about: object = None, target: str = "") -> None:
        """Follow a job that was started."""
        from inspector.jobs.messages import StageProgress

        self._run = run
        self._began = self._stage_began = time.monotonic()
        self.lines.clear()
        self._current = JobProgress(
            run.job, about, target, run.scratch, run.state, (StageProgress("starting"),)
        )
        self._watch()
        self.began.emit(self._current)
        self.changed.emit()

    def warm(self) -> None:
        """Start a worker that compiles ahead: it loads torch while the user fills in a dialog."""
        from inspector.jobs.process import Worker

        if self._ahead is None and self._run is None:
            try:
                self._ahead = Worker()
            except OSError:
                return  # the job itself will say so
            self._reported = False
            self._watch()

    def cool(self) -> None:
        """End an unused worker that was started ahead."""
        worker, self._ahead = self._ahead, None
        if worker is not None:
            worker.close()

    def send(self, command: dict[str, Any]) -> None:
        """Send a command to the job, if it waits for one."""
        if self._run is not None and self._current is not None and self._run.send(command):
            self._current = replace(self._current, state=self._run.state)
            self.changed.emit()

    # ---- ending
    def cancel(self) -> None:
        """Cancel the job; it ends within seconds."""
        if self._run is not None and self._current is not None and self._current.running:
            self._run.cancel()
            self._current = replace(self._current, cancelling=True)
            self.changed.emit()

    def shut_down(self) -> None:
        """End all jobs; called before the window closes."""
        if self._timer is not None:
            self._timer.stop()
        self.cool()
        self.end_run()

    def end_run(self) -> None:
        """End the job now and release it; without further messages."""
        dropped = self._current if self.running else None
        for run in (self._run, self._kept):
            if run is not None:
                run.close()
        self._run = self._kept = None
        if dropped is not None:
            self.dropped.emit(dropped)

    # ---- on the timer
    def _watch(self) -> None:
        if self._timer is None:
            self._timer = QTimer(self)
            self._timer.timeout.connect(self._poll)
        self._timer.start(_POLL_MS)

    def _poll(self) -> None:
        if self._ahead is not None:
            self._ahead.take()
            self._report_names(self._ahead.ready)
        if self._run is not None and self._current is not None:
            self._poll_run(self._run, self._current)
        waits = self._ahead is not None and not self._reported
        if self._timer is not None and not self.running and not waits:
            self._timer.stop()

    def _report_names(self, ready: object) -> None:
        if ready is not None and not self._reported:
            self._reported = True
            self.known.emit(ready)

    def _poll_run(self, run: JobRun, current: JobProgress) -> None:
        outcome = run.outcome  # before the messages, of which there are no more afterwards
        messages = run.take()
        current = self._with(current, messages)
        now = time.monotonic()
        self._current = current = replace(
            current,
            seconds=now - self._began,
            stage_seconds=now - self._stage_began,
            outcome=outcome,
            state=run.state,
        )
        if messages:
            self.received.emit(messages)
        if outcome is not None:
            self._run = None
            if run.scratch is None:
                run.close()
            else:  # its files are looked at until the next job
                self._kept = run
            self.ended.emit(current)
        self.changed.emit()
        if current.finished:
            self.finished.emit(current)

    def _with(self, current: JobProgress, messages: list[Message]) -> JobProgress:
        """Return the progress updated by messages."""
        from inspector.jobs.messages import Counted, Log, Ready, StageProgress, Warned

        lines: list[str] = []
        for message in messages:
            if isinstance(message, Log):  # those of libraries are in the log of the window
                lines += [] if message.logger else [message.text]
            elif isinstance(message, StageProgress):
                ended = tuple(one for one in current.stages if one.seconds is not None)
                current = replace(current, stages=(*ended, message), counted=None)
                self._stage_began = time.monotonic()
            elif isinstance(message, Counted):
                current = replace(current, counted=message)
            elif isinstance(message, Warned):
                current = replace(current, warnings=(*current.warnings, message))
            elif isinstance(message, Ready):
                self._reported = False
                self._report_names(message)
            else:
                current = replace(current, last=message)
        if lines:
            self.lines.extend(lines)
            self.printed.emit(lines)
        return current
