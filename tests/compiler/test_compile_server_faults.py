"""What goes wrong in a warm worker is one sentence, and the next request works."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from inspector.jobs.compile_server import CompileServer, CompileServerError
from inspector.jobs.messages import Ended, Log, StageProgress
from inspector.jobs.warm_worker import Turn
from inspector.recipes.compile_job import CompileJob, Rules
from inspector.recipes.source import Source
from schema.etrecord.parts.verdicts import NodeOutcome

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
SOURCES, PARTITIONERS = HERE / "server_sources.py", HERE / "server_partitioners.py"
PATIENCE = 240.0
GOOD = CompileJob(Source(str(SOURCES), "plain"), partitioners=("xnnpack",))


@pytest.fixture(scope="module")
def server() -> Iterator[CompileServer]:
    made = CompileServer()
    yield made
    made.close()


def _of(function: str) -> CompileJob:
    return CompileJob(Source(str(SOURCES), function))


def _by(partitioner: str) -> CompileJob:
    return replace(GOOD, partitioners=(partitioner,))


def assert_works(server: CompileServer) -> None:
    shown = server.preview(GOOD, PATIENCE).methods["forward"]
    assert {one.outcome for one in shown.verdicts} >= {NodeOutcome.DELEGATED, NodeOutcome.NO_RULE}


CRASHES = [
    (_by(f"{PARTITIONERS}:Fatal"), "was killed (SIGKILL), most likely because memory ran out, in"),
]


def test_crashes_are_one_sentence_each_and_the_next_request_works(
    server: CompileServer, tmp_path: Path
) -> None:
    for job, words in CRASHES:
        outcome = server.compile(job, tmp_path / "out", timeout=PATIENCE)
        assert outcome.ended is Ended.CRASHED
        assert words in outcome.sentence
        assert "\n" not in outcome.sentence
        assert list(tmp_path.iterdir()) == []
    run = server.start_compile(_of("never"), tmp_path / "out")
    heard: list[object] = []
    # What is printed and what is told come on two ways, in any order.
    while run.outcome is None and not {Log("waiting"), StageProgress("load")} <= {*heard}:
        heard += run.take(PATIENCE)
    run.cancel()
    assert run.outcome is not None
    assert run.outcome.ended is Ended.CANCELLED
    assert run.outcome.sentence == "cancelled in stage load"
    until = time.monotonic() + PATIENCE
    while list(tmp_path.iterdir()):
        assert time.monotonic() < until
        time.sleep(0.05)
    assert_works(server)


def test_failure_leaves_the_worker_as_it_was(server: CompileServer, tmp_path: Path) -> None:
    assert_works(server)
    broken = tmp_path / "broken.py"
    broken.write_text("import torch\nimport no_such_module\n")
    missing = tmp_path / "missing.py"
    missing.write_text("class Other: pass\n")
    cases = [
        (_by(f"{broken}:Mine"), f"{broken}:2: ModuleNotFoundError: No module named"),
        (_by(f"{missing}:Mine"), f"{missing} does not define 'Mine'"),
        (_by(f"{missing}:Other"), "is not a partitioner: it has no method partition"),
        (_by(f"{tmp_path / 'gone.py'}:Mine"), "gone.py: file not found"),
        (_by(f"{PARTITIONERS}:Raising"), "RuntimeError: no idea"),
        (_by(f"{PARTITIONERS}:Leaving"), "the code called sys.exit(3)"),
        (_by("xnnpac"), "unknown partitioner 'xnnpac'; did you mean xnnpack?"),
        (replace(GOOD, memory_planner="best"), "unknown memory planner 'best'"),
    ]
    for job, words in cases:
        with pytest.raises(CompileServerError) as caught:
            server.preview(job, PATIENCE)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)
        outcome = server.compile(job, tmp_path / "out", timeout=PATIENCE)
        assert (outcome.ended, words in outcome.sentence) == (Ended.FAILED, True)
        assert not (tmp_path / "out").exists()
    run = server.start_preview(GOOD)
    run.wait(PATIENCE)
    assert not any(isinstance(one, StageProgress) for one in run.take()), (
        "all of it was still there"
    )


def test_mended_partitioner_is_read_anew(server: CompileServer, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("raise RuntimeError('not yet')\nclass Mine: pass\n")
    with pytest.raises(CompileServerError, match="not yet"):
        server.preview(_by(f"{file}:Mine"), PATIENCE)
    file.write_text("from compiler.backends.xnnpack import XnnpackPartitioner as Mine\n")
    shown = server.preview(_by(f"{file}:Mine"), PATIENCE).methods["forward"]
    assert shown.delegated == server.preview(GOOD, PATIENCE).methods["forward"].delegated


def test_newer_compile_takes_the_place_of_the_older(server: CompileServer, tmp_path: Path) -> None:
    assert_works(server)
    older = server.start_compile(GOOD, tmp_path / "older")
    newer = server.start_compile(
        replace(GOOD, rules=Rules(deny_ops=("aten.convolution",))), tmp_path / "newer"
    )
    seen = server.preview(GOOD, PATIENCE)  # may be answered while the compile runs
    outcome = newer.wait(PATIENCE)
    assert outcome is not None
    assert outcome.ended is Ended.FINISHED
    assert outcome.result["verdicts"]["forward"]["vetoed_by_user"] == 2
    replaced = older.outcome
    assert replaced is not None
    assert (replaced.ended, replaced.sentence) == (
        Ended.CANCELLED,
        "replaced by a newer request",
    ) or replaced.ended is Ended.FINISHED
    assert (tmp_path / "older").exists() == (replaced.ended is Ended.FINISHED)
    assert seen.methods["forward"].delegated > 0


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of others are set on Linux")
def test_full_disk_is_named_and_what_was_there_stays(server: CompileServer, tmp_path: Path) -> None:
    outcome = server.compile(GOOD, tmp_path / "out", timeout=PATIENCE)
    assert outcome.ended is Ended.FINISHED
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    worker = server.pid
    assert worker is not None
    soft, hard = resource.prlimit(worker, resource.RLIMIT_FSIZE)
    resource.prlimit(worker, resource.RLIMIT_FSIZE, (1000, hard))
    try:
        changed = replace(GOOD, rules=Rules(min_nodes=2))
        outcome = server.compile(changed, tmp_path / "out", force=True, timeout=PATIENCE)
        words = f"model.pte cannot be written in {tmp_path / 'out'}: File too large"
        assert outcome.sentence == words
    finally:
        resource.prlimit(worker, resource.RLIMIT_FSIZE, (soft, hard))
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    again = server.compile(changed, tmp_path / "out", force=True, timeout=PATIENCE)
    assert (again.ended, server.pid) == (Ended.FINISHED, worker)


def test_changed_source_is_read_by_a_new_worker(server: CompileServer, tmp_path: Path) -> None:
    (tmp_path / "part_of_net.py").write_text("SIZE = 3\n")
    file = tmp_path / "mine_net.py"
    file.write_text(
        "import torch\nfrom part_of_net import SIZE\n"
        "def net():\n    return torch.nn.Linear(SIZE, 2).eval(), (torch.ones(1, SIZE),)\n"
    )
    job = CompileJob(Source(str(file), "net"), partitioners=("xnnpack",))

    def kinds() -> set[str]:
        shown = server.preview(job, PATIENCE).methods["forward"]
        return {value.kind for one in shown.boundaries for value in one.values}

    assert kinds() == {"float32[1, 3]", "float32[1, 2]"}
    worker = server.pid
    assert kinds() == {"float32[1, 3]", "float32[1, 2]"}
    assert server.pid == worker
    (tmp_path / "part_of_net.py").write_text("SIZE = 5 \n")  # another size of the file
    assert kinds() == {"float32[1, 5]", "float32[1, 2]"}
    assert server.pid != worker
    assert "mine_net" not in sys.modules


def test_closed_server_starts_no_further_worker(tmp_path: Path) -> None:
    server = CompileServer()
    server.start(GOOD)
    worker = server._worker
    assert worker is not None
    server.close()
    late = [server.start_preview(GOOD), server.start_compile(GOOD, tmp_path / "late")]
    server.start(GOOD)
    turn = Turn(GOOD, worker.ask)
    server._stale(worker, [turn])  # as its thread does when the source has changed
    assert server.pid is None
    assert server.runner.take() is None
    for outcome in (*(run.wait(PATIENCE) for run in late), turn.outcome):
        assert outcome is not None
        assert outcome.ended is Ended.CANCELLED
        assert "closed" in outcome.sentence
    assert not (tmp_path / "late").exists()
