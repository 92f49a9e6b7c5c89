"""The compile that the window runs: started, watched and cancelled; the work is in a worker."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from devtools_app.compile_form import CompileForm

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.jobs.description import CompileJob
    from inspector.jobs.messages import Message, Outcome, Ready, Stage, Warned
    from inspector.jobs.process import Worker
    from inspector.jobs.run import CompileRun

KEPT_LINES = 2000
_POLL_MS = 50


@dataclass(frozen=True, slots=True)
class Compile:
    """A compile as it stands.

    Attributes:
        job: what is compiled
        folder: where the files go
        stages: those that ended, and the one that runs, which has no time yet
        seconds: since it was started
        stage_seconds: since the stage that runs began
        warnings: what was warned of
        outcome: how it ended, None while it runs
        cancelling: whether it was asked to end
    """

    job: CompileJob
    folder: str
    stages: tuple[Stage, ...]
    seconds: float = 0.0
    stage_seconds: float = 0.0
    warnings: tuple[Warned, ...] = ()
    outcome: Outcome | None = None
    cancelling: bool = False

    @property
    def running(self) -> bool:
        """Return whether it is still at work."""
        return self.outcome is None


class Compiling(QObject):
    """Runs one compile at a time in a process of its own and tells how it goes.

    The process is asked on a timer, so that a flood of messages costs the window nothing.

    Signals:
        changed(): there is another ``current``
        printed(lines): the code of the user printed something
        known(ready): a worker says which names there are
        finished(paths): the files are there

    Attributes:
        lines: what was printed, the newest lines
    """

    changed = Signal()
    printed = Signal(object)
    known = Signal(object)
    finished = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._current: Compile | None = None
        self._run: CompileRun | None = None
        self._warm: Worker | None = None
        self._told = False
        self._began = self._stage_began = 0.0
        self._timer: QTimer | None = None  # made when first wanted: there may be no application yet

    @property
    def current(self) -> Compile | None:
        """Return the compile that runs or ran last, None before the first."""
        return self._current

    @property
    def running(self) -> bool:
        """Return whether a compile is at work."""
        return self._run is not None

    def warm(self) -> None:
        """Start a worker ahead: it loads torch while the user fills in the dialog."""
        from inspector.jobs.process import Worker

        if self._warm is None and self._run is None:
            try:
                self._warm = Worker()
            except OSError:
                return  # the compile itself will say so
            self._told = False
            self._watch()

    def cool(self) -> None:
        """End a worker that was started ahead and is not wanted."""
        worker, self._warm = self._warm, None
        if worker is not None:
            worker.close()

    def start(self, form: CompileForm) -> str:
        """Compile; return one sentence if it cannot be started.

        Args:
            form: source, options and folder
        """
        from inspector.jobs.messages import Stage
        from inspector.jobs.output_folder import FolderError
        from inspector.jobs.run import CompileRun

        if self._run is not None:
            return "A compile is running; cancel it first."
        worker, self._warm = self._warm, None
        try:
            self._run = CompileRun(form.job(), Path(form.folder), force=form.replace, worker=worker)
        except FolderError as error:
            self._warm = worker
            return f"{error}."
        self._began = self._stage_began = time.monotonic()
        self.lines.clear()
        self._current = Compile(form.job(), form.folder, (Stage("start"),))
        self._watch()
        self.changed.emit()
        return ""

    def cancel(self) -> None:
        """Ask the compile to end; it does within seconds, whatever the user's code does."""
        if self._run is not None and self._current is not None:
            self._run.cancel()
            self._current = replace(self._current, cancelling=True)
            self.changed.emit()

    def shut_down(self) -> None:
        """End everything; called before the window goes away."""
        if self._timer is not None:
            self._timer.stop()
        self.cool()
        run, self._run = self._run, None
        if run is not None:
            run.close()

    def _watch(self) -> None:
        if self._timer is None:
            self._timer = QTimer(self)
            self._timer.timeout.connect(self._poll)
        self._timer.start(_POLL_MS)

    def _poll(self) -> None:
        if self._warm is not None:
            self._warm.take()
            self._tell_names(self._warm.ready)
        if self._run is not None and self._current is not None:
            self._poll_run(self._run, self._current)
        if self._run is None and (self._warm is None or self._told) and self._timer is not None:
            self._timer.stop()

    def _tell_names(self, ready: Ready | None) -> None:
        if ready is not None and not self._told:
            self._told = True
            self.known.emit(ready)

    def _poll_run(self, run: CompileRun, current: Compile) -> None:
        from inspector.jobs.messages import Ended

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
        self.changed.emit()
        if outcome is not None and outcome.ended is Ended.FINISHED:
            self.finished.emit(_files(current.folder, outcome))

    def _heard(self, current: Compile, messages: list[Message]) -> Compile:
        from inspector.jobs.messages import Log, Ready, Stage, Warned

        lines = [message.text for message in messages if isinstance(message, Log)]
        for message in messages:
            if isinstance(message, Stage):
                current = replace(current, stages=_with_stage(current.stages, message))
                self._stage_began = time.monotonic()
            elif isinstance(message, Warned):
                current = replace(current, warnings=(*current.warnings, message))
            elif isinstance(message, Ready):
                self._told = False
                self._tell_names(message)
        if lines:
            self.lines.extend(lines)
            self.printed.emit(lines)
        return current


def _with_stage(stages: tuple[Stage, ...], stage: Stage) -> tuple[Stage, ...]:
    """Return the stages with one that begins or has ended; the start is over with the first."""
    ended = tuple(one for one in stages if one.seconds is not None)
    return (*ended, stage)


def _files(folder: str, outcome: Outcome) -> tuple[str, ...]:
    """Return the files to open together."""
    from inspector.jobs.description import PROGRAM, RECORD

    made = [str(file["path"]) for file in outcome.result["files"]]
    data = sorted(name for name in made if name.endswith(".ptd"))
    return tuple(str(Path(folder).absolute() / name) for name in (PROGRAM, RECORD, *data))
