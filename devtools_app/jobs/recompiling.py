"""Ctrl+R: a variant is compiled by its recipe and run; the newest wish wins, nothing else waits."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from devtools_app.dialogs.run_form import RunForm, Runnable
from devtools_app.jobs.compiling import Compile, Compiling
from devtools_app.jobs.running import Execution, Running
from devtools_app.state.variant_places import RUN_FOLDER

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.jobs.compile_server import CompileServer
    from inspector.jobs.executing import RunJob
    from inspector.jobs.messages import Outcome
    from inspector.recipes.compile_job import CompileJob

_LEAST_RUNS, _LEAST_WARMUP = 3, 1  # a first run is not like the others


class Phase(str, Enum):
    """How far a recompile is."""

    COMPILE = "compile"
    RUN = "run"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RecompileJob:
    """One variant on its way.

    Attributes:
        parent: number of the variant it is changed from
        job: how it is made
        folder: where its files go
        form: on which inputs it is run
        base: what the variant it came from ran
        phase: how far it is
        files: what was made
        outcome: of the job that failed, None while nothing has
    """

    parent: int
    job: CompileJob
    folder: str
    form: RunForm
    base: Runnable
    phase: Phase = Phase.COMPILE
    files: tuple[str, ...] = ()
    outcome: Outcome | None = None


class Recompiling(QObject):
    """Makes one variant at a time; a new wish ends the one before it.

    Signals:
        changed(): there is another ``current``, or it got further
        made(job): the program is there, and it ran or it is said why not
        failed(job): there is no program; its outcome says why

    Attributes:
        compiling: the compile of the recompile
        running: its run
    """

    changed = Signal()
    made = Signal(object)
    failed = Signal(object)

    def __init__(self, server: Callable[[], CompileServer], parent: QObject | None = None) -> None:
        """Follow nothing yet.

        Args:
            server: returns what keeps the warm worker
            parent: owner
        """
        super().__init__(parent)
        self._server = server
        self.compiling = Compiling(self)
        self.running = Running(self)
        self._current: RecompileJob | None = None
        self.compiling.changed.connect(self._compile_changed)
        self.compiling.finished.connect(self._compiled)
        self.running.changed.connect(self._run_changed)
        self.running.finished.connect(self._ran)

    @property
    def current(self) -> RecompileJob | None:
        """Return the recompile at work or the last one, None before the first."""
        return self._current

    @property
    def busy(self) -> bool:
        """Return whether a recompile is at work."""
        one = self._current
        return one is not None and one.phase in (Phase.COMPILE, Phase.RUN)

    @property
    def at_work(self) -> str:
        """Return the folder of the recompile at work, empty when there is none."""
        one = self._current
        return os.path.abspath(one.folder) if one is not None and self.busy else ""

    @property
    def progress(self) -> Compile | Execution | None:
        """Return how the job of the recompile stands."""
        one = self._current
        if one is None:
            return None
        return self.running.current if one.phase is Phase.RUN else self.compiling.current

    def start(self, wish: RecompileJob) -> str:
        """Make a variant; return one sentence if it cannot be started.

        A recompile at work is given up.
        """
        self.give_up()
        sentence = self.compiling.start_in(self._server(), wish.job, wish.folder)
        if sentence:
            return sentence
        self._current = wish
        self.changed.emit()
        return ""

    def give_up(self) -> None:
        """End the recompile at work, if there is one; it leaves nothing behind."""
        one = self._current
        if one is not None and self.busy:
            self._current = None
            self.compiling.end_run()
            self.running.end_run()
            _remove(Path(one.folder))
            self.changed.emit()

    def cancel(self) -> None:
        """Ask the recompile at work to end; its outcome says so."""
        self.compiling.cancel()
        self.running.cancel()

    def shut_down(self) -> None:
        """End everything; called before the window goes away."""
        self._current = None
        self.compiling.shut_down()
        self.running.shut_down()

    def _compile_changed(self) -> None:
        from inspector.jobs.messages import Ended

        one, found = self._current, self.compiling.current
        if one is None or one.phase is not Phase.COMPILE or found is None:
            return
        outcome = found.outcome
        if outcome is not None and outcome.ended is not Ended.FINISHED:
            self._current = replace(one, phase=Phase.FAILED, outcome=outcome)
            self.changed.emit()
            self.failed.emit(self._current)
        else:
            self.changed.emit()

    def _compiled(self, files: tuple[str, ...]) -> None:
        one = self._current
        if one is None or one.phase is not Phase.COMPILE:
            return
        one = replace(one, phase=Phase.RUN, files=files)
        self._current = one
        target, worker = str(Path(one.folder) / RUN_FOLDER), self._server().runner.take()
        sentence = self.running.start(run_job(one), "", target, worker=worker)
        if sentence:
            self._without_run(sentence)
        else:
            self.changed.emit()

    def _without_run(self, sentence: str) -> None:
        from inspector.jobs.messages import Ended, Outcome

        self._end(Outcome(Ended.NOT_STARTED, sentence))

    def _run_changed(self) -> None:
        from inspector.jobs.messages import Ended

        one, found = self._current, self.running.current
        if one is None or one.phase is not Phase.RUN or found is None:
            return
        if found.outcome is not None and found.outcome.ended is not Ended.FINISHED:
            self._end(found.outcome)
        else:
            self.changed.emit()

    def _ran(self, execution: Execution) -> None:
        one = self._current
        if one is None or one.phase is not Phase.RUN:
            return
        self._current = replace(one, files=(*one.files, *traces(execution)))
        self._end(None)

    def _end(self, outcome: Outcome | None) -> None:
        assert self._current is not None
        self._server().runner.start()  # for the next one: not before, it would disturb this run
        self._current = replace(self._current, phase=Phase.DONE, outcome=outcome)
        self.changed.emit()
        self.made.emit(self._current)


def _remove(folder: Path) -> None:
    """Remove what a recompile has made: nobody will ever open it."""
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):  # not empty: there are other variants
        folder.parent.rmdir()


def run_job(one: RecompileJob) -> RunJob:
    """Return the run of the program of a recompile, on the inputs of the one it came from."""
    from inspector.recipes.compile_job import PROGRAM, RECORD

    own = {Path(path).name: path for path in one.files}
    job = one.form.job(one.base)
    return replace(
        job,
        program=own[PROGRAM],
        record=own.get(RECORD, ""),
        bundle=one.base.program if job.case is not None else "",
        data_files=tuple(path for name, path in own.items() if name.endswith(".ptd")),
        libraries=tuple(dict.fromkeys((*one.job.libraries, *job.libraries))),
        runs=max(job.runs, _LEAST_RUNS),
        warmup=max(job.warmup, _LEAST_WARMUP),
    )


def traces(execution: Execution) -> tuple[str, ...]:
    """Return the files a run has recorded."""
    from inspector.jobs.executing import BUFFER, TRACE

    assert execution.outcome is not None
    trace = execution.outcome.result["trace"]
    names = (TRACE, BUFFER) if trace["debug_bytes"] else (TRACE,)
    folder = Path(execution.target)
    return tuple(str(folder / name) for name in names) if trace["recorded"] else ()
