"""Compiles in a worker: what it tells, how user code of every kind ends, nothing half-written."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from inspector.files.load import load_session
from inspector.jobs.messages import (
    Counted,
    Ended,
    Log,
    Message,
    Outcome,
    Ready,
    StageProgress,
    Warned,
)
from inspector.jobs.run import JobRun
from inspector.memory.plan import analyse_memory
from inspector.recipes.compile_job import CompileJob, Quantization, Rules
from inspector.recipes.source import Source
from schema.objects.codec import from_json, to_json

pytestmark = pytest.mark.slow

SOURCES = Path(__file__).with_name("job_sources.py")
PATIENCE = 100.0  # seconds; a worker loads torch first, on a machine that does other things too


def job_of(function: str) -> CompileJob:
    return CompileJob(Source(str(SOURCES), function))


def line_of(name: str) -> int:
    lines = SOURCES.read_text("utf-8").splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.endswith(f"# line: {name}"))


def compiled(
    job: CompileJob, folder: Path, *, force: bool = False, timeout: float = PATIENCE
) -> tuple[Outcome, list[Message]]:
    """Run a compile to its end."""
    run = JobRun(job, folder, force=force, timeout=timeout)
    heard: list[Message] = []
    try:
        while run.outcome is None:
            heard += run.take(0.1)
        heard += run.take()
        return run.outcome, heard
    finally:
        run.close()


def assert_untouched(folder: Path) -> None:
    """Nothing is left of a compile that did not finish, visible or hidden."""
    assert list(folder.parent.iterdir()) == []


def test_compile_of_a_function_writes_files_that_belong_together(tmp_path: Path) -> None:
    outcome, heard = compiled(job_of("every_form"), tmp_path / "deep" / "out")
    assert outcome.ended is Ended.FINISHED, outcome
    folder = tmp_path / "deep" / "out"
    assert {path.name for path in folder.iterdir()} == {
        "model.pte",
        "model.etrecord",
        "compile.json",
        "recipe.json",
    }
    assert {path.name for path in tmp_path.rglob(".*")} == set()
    session = load_session([str(folder)])
    assert set(session.methods) >= {"forward", "scaled", "exported", "vocabulary"}
    assert [file.error for file in session.files if file.error] == []
    assert isinstance(heard[0], Ready)
    ended = [
        (one.stage, one.method) for one in heard if isinstance(one, StageProgress) and one.seconds
    ]
    for method in ("forward", "scaled"):
        assert ("export", method) in ended
        assert ("edge", method) in ended
        assert ("emit", method) in ended
    report = json.loads((folder / "compile.json").read_text("utf-8"))
    assert report["methods"] == ["exported", "forward", "scaled"]
    assert report["constant_methods"] == ["vocabulary"]
    assert report["total_ms"] == pytest.approx(sum(one["time_ms"] for one in report["stages"]))
    sizes = {one["path"]: one["bytes"] for one in report["files"]}
    assert sizes == {name: (folder / name).stat().st_size for name in sizes}


@pytest.mark.parametrize(
    ("function", "words", "blame"),
    [
        ("untraceable", "data-dependent", "failed"),
        ("returns_nothing", "nothing was returned; expected (module, inputs)", "usage"),
    ],
)
def test_failure_is_one_sentence_with_the_line(
    function: str, words: str, blame: str, tmp_path: Path
) -> None:
    outcome, _ = compiled(job_of(function), tmp_path / "out")
    assert outcome.ended is Ended.FAILED
    assert words in outcome.sentence
    assert (outcome.file, outcome.line) == (str(SOURCES), line_of(function))
    assert outcome.sentence.startswith(f"{SOURCES}:{line_of(function)}: ")
    assert outcome.blame == blame
    assert_untouched(tmp_path / "out")


@pytest.mark.parametrize("python", ["", sys.executable])
@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("without_a_bound", "has no maximum; set a max for its Dim"),
        ("beyond_all_bounds", "may be up to 1,099,511,627,776, and a program stores sizes up to"),
    ],
)
def test_failure_that_no_line_of_the_user_made_has_that_of_the_function(
    function: str, words: str, python: str, tmp_path: Path
) -> None:
    outcome, _ = compiled(replace(job_of(function), python=python), tmp_path / "out")
    assert outcome.ended is Ended.FAILED
    assert words in outcome.sentence
    assert (outcome.file, outcome.line) == (str(SOURCES), line_of(function))
    assert_untouched(tmp_path / "out")


def test_violations_are_one_sentence_with_the_line_of_each(tmp_path: Path) -> None:
    outcome, _ = compiled(job_of("two_unknown_operators"), tmp_path / "out")
    first, second = (
        f"{SOURCES}:{line_of(n)})" for n in ("two_unknown_operators", "second_unknown")
    )
    assert outcome.sentence.startswith("Operator aten::linalg_qr is not in the Core ATen opset")
    assert outcome.sentence.endswith(f"{first}; and 1 more: node aten_randn_like_default ({second}")
    assert (outcome.file, outcome.line) == (str(SOURCES), line_of("two_unknown_operators"))


@pytest.mark.usefixtures("real_workers")
@pytest.mark.parametrize(
    ("function", "words", "line"),
    [
        ("crashes", "the process crashed (SIGSEGV) in stage load", "crashes"),
        ("is_killed", "most likely because memory ran out, in stage load", ""),
        ("ends_the_process", "ended from inside (exit code 3) in stage load", ""),
    ],
)
def test_crash_is_survived_and_said(function: str, words: str, line: str, tmp_path: Path) -> None:
    outcome, _ = compiled(job_of(function), tmp_path / "out")
    assert outcome.ended is Ended.CRASHED
    assert words in outcome.sentence
    assert outcome.line == (line_of(line) if line else 0)
    assert_untouched(tmp_path / "out")


@pytest.mark.usefixtures("real_workers")
@pytest.mark.parametrize("function", ["never", "stubborn"])
def test_cancel_ends_a_function_that_does_not_end(function: str, tmp_path: Path) -> None:
    run = JobRun(job_of(function), tmp_path / "out")
    try:
        until = time.monotonic() + PATIENCE
        while not any(isinstance(one, Log) for one in run.take(0.1)):
            assert time.monotonic() < until
        asked = time.monotonic()
        run.cancel()
        outcome = run.wait(20)
        assert outcome is not None
        assert outcome.ended is Ended.CANCELLED
        assert outcome.sentence == "cancelled in stage load"
        assert time.monotonic() - asked < 20
    finally:
        run.close()
    assert_untouched(tmp_path / "out")


@pytest.mark.usefixtures("real_workers")
def test_timeout_ends_a_function_that_does_not_end(tmp_path: Path) -> None:
    outcome, _ = compiled(job_of("never"), tmp_path / "out", timeout=0.5)
    assert outcome.ended is Ended.TIMED_OUT
    assert_untouched(tmp_path / "out")


def test_prints_of_every_kind_are_lines_of_the_log_and_no_messages(tmp_path: Path) -> None:
    outcome, heard = compiled(job_of("prints"), tmp_path / "out")
    assert outcome.ended is Ended.FINISHED
    lines = [one.text for one in heard if isinstance(one, Log) and not one.library]
    assert lines == [
        "printed by python",
        "printed by a descriptor",
        "printed by a child",
        "printed to stderr",
    ]


def test_flood_of_prints_is_bounded_and_counted(tmp_path: Path) -> None:
    run = JobRun(job_of("floods"), tmp_path / "out", timeout=PATIENCE)
    try:
        outcome = run.wait(PATIENCE)  # nobody takes what is said meanwhile
        lines = [one.text for one in run.take() if isinstance(one, Log) and not one.library]
    finally:
        run.close()
    assert outcome is not None
    assert outcome.ended is Ended.FINISHED
    assert lines[0] == "(28,000 lines omitted)"
    assert lines[-1] == "line 29999"


def test_warnings_of_users_code_have_their_line(tmp_path: Path) -> None:
    _, heard = compiled(job_of("warns"), tmp_path / "out")
    warned = [one for one in heard if isinstance(one, Warned)]
    assert warned == [
        Warned("UserWarning: careful with these weights", str(SOURCES), line_of("warns"))
    ]


@pytest.mark.usefixtures("real_workers")
def test_threads_and_children_of_users_code_end_with_the_compile(tmp_path: Path) -> None:
    outcome, _ = compiled(job_of("leaves_a_thread"), tmp_path / "out")
    assert outcome.ended is Ended.FINISHED
    outcome, heard = compiled(job_of("leaves_a_child"), tmp_path / "out", force=True)
    assert outcome.ended is Ended.FINISHED
    said = next(one.text for one in heard if isinstance(one, Log))
    pid = int(said.split()[1])
    until = time.monotonic() + 60
    while _alive(pid):
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.usefixtures("real_workers")
def test_copies_that_users_code_forks_hold_nothing_up_and_answer_nothing(tmp_path: Path) -> None:
    started = time.monotonic()
    outcome, _ = compiled(job_of("forks_and_leaves"), tmp_path / "out")
    assert outcome.ended is Ended.FINISHED, outcome
    assert time.monotonic() - started < PATIENCE
    outcome, _ = compiled(job_of("forks_and_raises"), tmp_path / "out", force=True)
    assert outcome.ended is Ended.FINISHED, outcome
    outcome, heard = compiled(job_of("warns_in_a_fork"), tmp_path / "out", force=True)
    assert outcome.ended is Ended.FINISHED, outcome
    assert Log("UserWarning: careful in the copy") in heard
    assert Log("ended with 7") in heard


def test_copies_forked_in_another_interpreter_hold_nothing_up(tmp_path: Path) -> None:
    for function in ("forks_and_leaves", "forks_and_raises", "warns_in_a_fork"):
        other = replace(job_of(function), python=sys.executable)
        outcome, heard = compiled(other, tmp_path / "out", force=True)
        assert outcome.ended is Ended.FINISHED, (function, outcome)
    assert Log("ended with 7") in heard


def _alive(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    return status.exists() and "State:\tZ" not in status.read_text("ascii", "replace")


def test_other_interpreter_exports_and_the_program_is_the_same(tmp_path: Path) -> None:
    compiled(job_of("every_form"), tmp_path / "own")
    other = replace(job_of("every_form"), python=sys.executable)
    outcome, heard = compiled(other, tmp_path / "other")
    assert outcome.ended is Ended.FINISHED, outcome
    report = json.loads((tmp_path / "other" / "compile.json").read_text("utf-8"))
    assert report["constant_methods"] == ["vocabulary"]
    assert report["python"] == sys.executable
    assert Log("in the company of ETScope: False") in heard
    assert ("export", "scaled") in [
        (s.stage, s.method) for s in heard if isinstance(s, StageProgress)
    ]
    own, others = ((tmp_path / name / "model.pte").stat().st_size for name in ("own", "other"))
    assert own == others
    assert {path.name for path in (tmp_path / "other").iterdir()} == {
        "model.pte",
        "model.etrecord",
        "compile.json",
        "recipe.json",
    }


def test_other_interpreter_that_fails_or_crashes_is_said(tmp_path: Path) -> None:
    outcome, _ = compiled(replace(job_of("raises"), python=sys.executable), tmp_path / "out")
    assert (outcome.ended, outcome.line) == (Ended.FAILED, line_of("raises"))
    outcome, _ = compiled(replace(job_of("crashes"), python=sys.executable), tmp_path / "out")
    assert (outcome.ended, outcome.line) == (Ended.FAILED, line_of("crashes"))
    assert "crashed (signal 11)" in outcome.sentence
    outcome, _ = compiled(replace(job_of("good"), python="/bin/false"), tmp_path / "out")
    assert "/bin/false ended with exit code 1 before it had exported" in outcome.sentence
    assert_untouched(tmp_path / "out")


@pytest.mark.usefixtures("real_workers")
def test_disk_that_is_full_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # the worker inherits it
    try:
        outcome, _ = compiled(job_of("good"), tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert outcome.ended is Ended.FAILED
    assert outcome.sentence == f"model.pte cannot be written in {tmp_path}: File too large"
    assert_untouched(tmp_path / "out")


def test_partitioners_and_rules_decide_what_is_delegated(tmp_path: Path) -> None:
    job = replace(job_of("products"), partitioners=("demo-add-mul",))
    outcome, _ = compiled(job, tmp_path / "out")
    assert outcome.result["verdicts"]["forward"]["delegated"] == 2
    ruled = replace(job, rules=Rules(deny_ops=("aten.mm.default",)))
    outcome, _ = compiled(ruled, tmp_path / "out", force=True)
    assert outcome.result["verdicts"]["forward"]["delegated"] == 1
    assert outcome.result["verdicts"]["forward"]["vetoed_by_user"] == 1
    unknown = replace(job, partitioners=("demo-ad-mul",))
    outcome, heard = compiled(unknown, tmp_path / "other")
    assert outcome.sentence == "unknown partitioner 'demo-ad-mul'; did you mean demo-add-mul?"
    assert not any(isinstance(one, StageProgress) for one in heard)  # before the user's code is run


def test_program_is_quantized_with_inputs_of_a_file_and_progress(tmp_path: Path) -> None:
    calls = tmp_path / "calls.pt"
    torch.save([(torch.randn(2, 4),) for _ in range(3)], calls)
    wanted = Quantization("static", str(calls), operators=("aten.dropout=none",))
    job = replace(job_of("good"), partitioners=("xnnpack",), quantising=wanted)
    outcome, heard = compiled(job, tmp_path / "out")
    assert outcome.ended is Ended.FINISHED, outcome
    assert [one for one in heard if isinstance(one, Counted)][-1] == Counted(3, 3)
    assert ("quantize", "forward") in {
        (o.stage, o.method) for o in heard if isinstance(o, StageProgress)
    }
    report = json.loads((tmp_path / "out" / "compile.json").read_text("utf-8"))
    assert report["options"]["quantising"]["mode"] == "static"
    assert report["verdicts"]["forward"].keys() == {"delegated"}
    unknown = replace(job, quantising=Quantization("dynamic", modules=("nowhere=static",)))
    outcome, _ = compiled(unknown, tmp_path / "none")
    assert outcome.ended is Ended.FAILED
    told = "quantization.modules.nowhere: unknown module of the program; available: fc, drop"
    assert told in outcome.sentence


def test_constants_go_into_a_file_beside_the_program_when_asked(tmp_path: Path) -> None:
    job = replace(job_of("good"), external_constants=True, memory_planner="naive")
    outcome, _ = compiled(job, tmp_path / "out")
    made = {file["path"]: file["bytes"] for file in outcome.result["files"]}
    assert [name for name in made if name.endswith(".ptd")]
    memory = outcome.result["memory"]["forward"]
    assert memory["planner"] == "naive"
    session = load_session([str(tmp_path / "out")])
    assert session.program is not None
    shown = analyse_memory(session.program, "forward")
    for name in ("planned_bytes", "peak_bytes", "lower_bound_bytes"):
        assert memory[name] == getattr(shown, name) > 0
    assert [file.error for file in session.files if file.error] == []


@pytest.mark.usefixtures("real_workers")
def test_worker_started_ahead_is_used(tmp_path: Path) -> None:
    from inspector.jobs.process import Worker

    worker = Worker()
    until = time.monotonic() + PATIENCE
    while worker.ready is None:
        worker.take(0.1)
        assert time.monotonic() < until
    assert "greedy" in worker.ready.planners
    run = JobRun(job_of("good"), tmp_path / "out", worker=worker)
    try:
        outcome = run.wait(PATIENCE)
    finally:
        run.close()
    assert outcome is not None
    assert outcome.ended is Ended.FINISHED


@pytest.mark.parametrize("awaited", ["Log", ""], ids=["at work", "loading"])
def test_worker_whose_parent_is_gone_ends_and_cleans_up(awaited: str, tmp_path: Path) -> None:
    code = f"""
import os, signal, sys, time
from pathlib import Path
from inspector.recipes.compile_job import *
from inspector.jobs.messages import Log
from inspector.jobs.run import JobRun
run = JobRun(CompileJob(Source({str(SOURCES)!r}, "never")), Path({str(tmp_path / "out")!r}))
while {awaited or None} and not any(isinstance(one, Log) for one in run.take(0.1)):
    pass
print(run.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    import subprocess

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    pid = int(done.stdout)
    until = time.monotonic() + 60
    while _alive(pid) or os.listdir(tmp_path):
        assert time.monotonic() < until
        time.sleep(0.05)


def test_description_survives_its_way_as_json() -> None:
    job = CompileJob(
        Source("model.py", "build"),
        "/usr/bin/python3",
        "openvino",
        ("forward",),
        ("demo-all",),
        Rules(deny_ops=("aten.*",), max_partitions=3, granularity="module"),
        "greedy",
        True,
    )
    assert from_json(json.loads(json.dumps(to_json(job))), CompileJob, "job") == job
