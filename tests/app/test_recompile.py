"""Ctrl+R without a window: compile, run, open, compare, in this order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from devtools_app.jobs.recompile import (
    Phase,
    RecompileJob,
    RecompileStep,
    Run,
    StepSequence,
    recompile,
)
from devtools_app.state.run_form import RunForm, Runnable
from inspector.jobs.messages import Ended, Outcome
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.source import Source

JOB = RecompileJob(
    1,
    CompileJob(Source("net.py", "net"), libraries=("own.py",)),
    "made",
    RunForm(),
    Runnable("A", "net.pte"),
)
COMPILED = Outcome(
    Ended.FINISHED, result={"files": [{"path": "model.pte"}, {"path": "b.ptd"}, {"path": "x.json"}]}
)
RAN = Outcome(
    Ended.FINISHED,
    result={"trace": {"debug_bytes": 0, "recorded": 3}, "files": [{"path": "run.etdp"}]},
)


def performed(*answers: Outcome | None, job: RecompileJob = JOB) -> list[RecompileStep]:
    """Return the steps of a recompile whose steps are answered one by one, the last by nothing."""
    done: list[RecompileStep] = []
    sequence = StepSequence(recompile(job), done.append)
    sequence.start()
    for answer in answers:
        sequence.answer(answer)
    return done


def names(steps: list[RecompileStep]) -> list[str]:
    return [type(step).__name__ for step in steps]


def test_steps_come_in_order_and_have_what_was_made() -> None:
    steps = performed(COMPILED, RAN, None, None)
    assert names(steps) == ["Compile", "Run", "Open", "Compare"]
    run = steps[1]
    assert isinstance(run, Run)
    assert (Path(run.job.program).name, run.job.libraries) == ("model.pte", ("own.py",))
    assert [Path(path).name for path in run.job.data_files] == ["b.ptd"]
    opened = steps[2].of
    assert (opened.phase, opened.outcome) == (Phase.DONE, None)
    assert [Path(path).name for path in opened.files] == [
        "model.pte",
        "model.etrecord",
        "b.ptd",
        "run.etdp",
    ]


def test_variant_runs_on_the_chosen_device_with_one_number_of_threads() -> None:
    form = RunForm(device="box", threads=-1, toolchain="executorch", engine="torch")
    steps = performed(COMPILED, RAN, job=replace(JOB, form=form))
    run = steps[1]
    assert isinstance(run, Run)
    assert (run.job.device, run.job.toolchain, run.job.engine) == ("box", "", "auto")
    assert (run.job.threads, run.job.sweep_threads) == (1, False)
    assert (Path(run.job.program).name, run.target) == ("model.pte", "made/run")


def test_runs_and_warm_up_are_auto_unless_chosen() -> None:
    run = performed(COMPILED, RAN)[1]
    assert isinstance(run, Run)
    assert (run.job.runs, run.job.warmup, run.job.threads) == (None, None, 1)
    chosen = performed(COMPILED, RAN, job=replace(JOB, form=RunForm(runs=7)))[1]
    assert isinstance(chosen, Run)
    assert chosen.job.runs == 7


def test_values_chosen_in_the_run_panel_are_not_logged_by_a_recompile() -> None:
    form = RunForm(level="intermediate", runs=3)
    steps = performed(COMPILED, RAN, job=replace(JOB, form=form))
    run = steps[1]
    assert isinstance(run, Run)
    assert (run.job.debug_level, run.job.runs) == ("none", 3)


def test_compile_that_fails_is_the_end() -> None:
    failed = Outcome(Ended.FAILED, "no such function")
    steps = performed(failed, None)
    assert names(steps) == ["Compile", "Failed"]
    assert (steps[1].of.phase, steps[1].of.outcome) == (Phase.FAILED, failed)


def test_program_that_cannot_be_run_is_opened_and_compared() -> None:
    crashed = Outcome(Ended.CRASHED, "the process crashed (SIGSEGV)")
    steps = performed(COMPILED, crashed, None)
    assert names(steps) == ["Compile", "Run", "Open", "Compare"]
    assert steps[2].of.outcome == crashed
    assert len(steps[2].of.files) == 3


def test_sequence_that_is_stopped_goes_no_further() -> None:
    done: list[RecompileStep] = []
    sequence = StepSequence(recompile(JOB), done.append)
    sequence.start()
    sequence.stop()
    sequence.answer(COMPILED)
    assert names(done) == ["Compile"]
    assert sequence.step is None
