"""Ctrl+R in the window: follows the jobs; a new request replaces the running one."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from devtools_app.jobs.follower import JobFollower, JobProgress
from devtools_app.jobs.recompile import (
    Compile,
    Phase,
    RecompileJob,
    RecompileStep,
    Run,
    StepSequence,
    recompile,
)

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.jobs.compile_server import CompileServer


class Recompiling(QObject):
    """Builds one variant at a time; a new request ends the previous one.

    Signals:
        changed(): ``current`` or its progress have changed
        step_requested(step): a step performed elsewhere: ``Failed``, ``Open``, ``Compare``;
            ``answer`` is called when it has finished

    Attributes:
        follower: of its compile, then of its run
    """

    changed = Signal()
    step_requested = Signal(object)

    def __init__(self, server: Callable[[], CompileServer], parent: QObject | None = None) -> None:
        """Initialize without a job.

        Args:
            server: returns the compile server
            parent: owner
        """
        super().__init__(parent)
        self._server = server
        self.follower = JobFollower(self)
        self._current: RecompileJob | None = None
        self._sequence: StepSequence | None = None
        self._problem = ""
        self.follower.changed.connect(self.changed)
        self.follower.ended.connect(self._ended)

    @property
    def current(self) -> RecompileJob | None:
        """Return the running recompile or the last one, None before the first."""
        return self._current

    @property
    def busy(self) -> bool:
        """Return whether a program is compiled or run."""
        one = self._current
        return one is not None and one.phase in (Phase.COMPILE, Phase.RUN)

    @property
    def at_work(self) -> str:
        """Return the folder of the running recompile, empty if none."""
        one = self._current
        return os.path.abspath(one.folder) if one is not None and self.busy else ""

    @property
    def progress(self) -> JobProgress | None:
        """Return the progress of its job."""
        return self.follower.current if self._current is not None else None

    def start(self, job: RecompileJob) -> str:
        """Build a variant; return one sentence if it cannot be started.

        A running recompile is cancelled.
        """
        self.give_up()
        self._problem = ""
        self._sequence = StepSequence(recompile(job), self._perform)
        self._sequence.start()
        return self._problem

    def answer(self) -> None:
        """Continue: the step requested by ``step_requested`` has finished.

        That of a former recompile is ignored: its program may open while the next is compiled.
        """
        if self._sequence is not None and not self.busy:
            self._sequence.answer(None)

    def give_up(self) -> None:
        """Cancel the running recompile and delete its files."""
        one = self._current
        if one is not None and self.busy:
            self._stop()
            _remove(Path(one.folder))
            self.changed.emit()

    def cancel(self) -> None:
        """Cancel the running recompile; its outcome is `cancelled`."""
        self.follower.cancel()

    def shut_down(self) -> None:
        """End all jobs; called before the window closes."""
        self._stop()
        self.follower.shut_down()

    def _stop(self) -> None:
        self._current = None
        if self._sequence is not None:
            self._sequence.stop()
            self._sequence = None
        self.follower.end_run()

    def _perform(self, step: RecompileStep) -> None:
        """Begin a step of the sequence."""
        was_busy, self._current = self.busy, step.of
        if isinstance(step, Compile):
            self._compile(step.of)
        elif isinstance(step, Run):
            self._run(step)
        else:
            if was_busy and step.of.phase is Phase.DONE:
                self._server().runner.start()  # for the next one: now it disturbs no run
            if was_busy:
                self.changed.emit()
            self.step_requested.emit(step)

    def _compile(self, job: RecompileJob) -> None:
        try:
            run = self._server().start_compile(job.job, Path(job.folder), stages=True)
        except OSError as error:
            self._problem = f"{error}."
            self._stop()
            return
        self.follower.follow(run, target=job.folder)

    def _run(self, step: Run) -> None:
        from inspector.jobs.messages import Ended, Outcome

        worker = self._server().runner.take()
        sentence = self.follower.start(step.job, step.target, force=True, worker=worker)
        if sentence and self._sequence is not None:
            self._sequence.answer(Outcome(Ended.NOT_STARTED, sentence))

    def _ended(self, progress: JobProgress) -> None:
        if self._sequence is not None and self.busy:
            self._sequence.answer(progress.outcome)


def _remove(folder: Path) -> None:
    """Remove the files of a recompile: it will never be opened."""
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):  # not empty: there are other variants
        folder.parent.rmdir()
