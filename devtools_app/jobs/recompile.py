"""Ctrl+R as one sequence: compile, run, open, compare. No Qt here.

``recompile`` yields the next step and is sent its result; ``StepSequence`` drives it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from devtools_app.state.run_form import LEVELS, RunForm, Runnable
from devtools_app.state.variant_places import RUN_FOLDER

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.jobs.executing import RunJob
    from inspector.jobs.messages import Outcome
    from inspector.recipes.compile_job import CompileJob


class Phase(str, Enum):
    """Phases of a recompile."""

    COMPILE = "compile"
    RUN = "run"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RecompileJob:
    """One variant being built.

    Attributes:
        parent: id of the parent variant
        job: its job
        folder: of its files
        form: inputs and options of its run
        base: the run of its parent
        phase: its progress
        files: its output
        outcome: of a failed job, else None
    """

    parent: int
    job: CompileJob
    folder: str
    form: RunForm
    base: Runnable
    phase: Phase = Phase.COMPILE
    files: tuple[str, ...] = ()
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class RecompileStep:
    """A step of a recompile.

    Attributes:
        of: the current state
    """

    of: RecompileJob


class Compile(RecompileStep):
    """Compile into its folder; answered by the outcome."""


@dataclass(frozen=True, slots=True)
class Run(RecompileStep):
    """Run the compiled program; answered by the outcome.

    Attributes:
        job: the run
        target: folder for its files
    """

    job: RunJob
    target: str


class Failed(RecompileStep):
    """Report that no program was built; the last step."""


class Open(RecompileStep):
    """Open the files as a variant; answered when it is shown."""


class Compare(RecompileStep):
    """Show the variant next to its parent and measure both; answered immediately."""


Steps: TypeAlias = Generator[RecompileStep, Any, None]


def recompile(requested: RecompileJob) -> Steps:
    """Yield the steps for a variant in order.

    A program that cannot be run is still opened, with the outcome of the run.
    """
    from inspector.jobs.messages import Ended

    outcome: Outcome = yield Compile(requested)
    if outcome.ended is not Ended.FINISHED:
        yield Failed(replace(requested, phase=Phase.FAILED, outcome=outcome))
        return
    result = replace(requested, phase=Phase.RUN, files=output_files(requested.folder, outcome))
    target = str(Path(result.folder) / RUN_FOLDER)
    outcome = yield Run(result, run_job(result), target)
    if outcome.ended is Ended.FINISHED:
        result = replace(result, phase=Phase.DONE, files=(*result.files, *traces(target, outcome)))
    else:
        result = replace(result, phase=Phase.DONE, outcome=outcome)
    yield Open(result)
    yield Compare(result)


class StepSequence:
    """Drives one sequence; an answered step is followed by the next.

    Attributes:
        step: the current one, None before the first and after the last
    """

    def __init__(self, steps: Steps, perform: Callable[[RecompileStep], object]) -> None:
        """Prepare.

        Args:
            steps: to perform
            perform: begins a step; ``answer`` is called when it has ended, possibly immediately
        """
        self._steps = steps
        self._perform = perform
        self.step: RecompileStep | None = None

    def start(self) -> None:
        """Begin the first step."""
        self.answer(None)

    def answer(self, value: object) -> None:
        """Accept the result of the step, and begin the next."""
        try:
            self.step = self._steps.send(value)
        except StopIteration:
            self.step = None
        else:
            self._perform(self.step)

    def stop(self) -> None:
        """Stop the sequence."""
        self._steps.close()
        self.step = None


def output_files(folder: str, outcome: Outcome) -> tuple[str, ...]:
    """Return the files of a compile that are opened together."""
    from inspector.recipes.compile_job import PROGRAM, RECORD

    result = [str(file["path"]) for file in outcome.result["files"]]
    data = sorted(name for name in result if name.endswith(".ptd"))
    return tuple(str(Path(folder).absolute() / name) for name in (PROGRAM, RECORD, *data))


def run_job(one: RecompileJob) -> RunJob:
    """Return the run of the program of a recompile, on the inputs of its parent."""
    from inspector.recipes.compile_job import PROGRAM, RECORD

    own = {Path(path).name: path for path in one.files}
    form = replace(one.form, level=LEVELS[0])  # values are logged where one asks for them
    job = form.job(one.base)
    return replace(
        job,
        program=own[PROGRAM],
        record=own.get(RECORD, ""),
        bundle=one.base.program if job.case is not None else "",
        data_files=tuple(path for name, path in own.items() if name.endswith(".ptd")),
        sweep_threads=False,
        libraries=tuple(dict.fromkeys((*one.job.libraries, *job.libraries))),
    )


def traces(target: str, outcome: Outcome) -> tuple[str, ...]:
    """Return the files a run has recorded."""
    from inspector.jobs.executing import trace_files

    return trace_files(target, outcome.result)
