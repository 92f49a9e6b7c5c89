"""Programs measured side by side: blocks of each, and whatever ends a worker costs one program."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from inspector.jobs import run as job_runs
from inspector.jobs.executing import (
    PROCESSOR,
    MeasureJob,
    RunJob,
)
from inspector.jobs.measure import Measurement
from inspector.jobs.messages import (
    Counted,
    Ended,
    Measured,
    Message,
    Outcome,
    Refused,
    message_from,
)
from inspector.jobs.run import JobRun
from inspector.toolchain.child import ToolchainError
from inspector.worker.executing import work
from inspector.worker.tasks import Task
from schema.objects.codec import from_json, to_json
from tests.inspector.jobs_here import Scripted
from tests.inspector.sessions import DATA

PORTABLE = str(DATA / "corpus/v1.5.1/convnet_portable/model.pte")
XNNPACK = str(DATA / "corpus/v1.5.1/convnet_xnnpack/model.pte")
CRASH = Outcome(Ended.CRASHED, "the process crashed (SIGSEGV) in stage measure")
DONE = Outcome(Ended.FINISHED, result={"etscope": "1", "torch": "2"})


def _started(patch: pytest.MonkeyPatch, job: MeasureJob, workers: list[Scripted]) -> JobRun:
    left = iter(workers)
    patch.setattr(job_runs, "Worker", lambda _kind: next(left))
    return JobRun(job)


def _job(count: int, blocks: int = 3) -> MeasureJob:
    return MeasureJob(tuple(RunJob(f"{number}.pte") for number in range(count)), blocks)


def _block(program: int, block: int) -> list[Message]:
    return [
        Measured(program, block),
        Measured(program, block, (1.0 + program, 2.0), {"threads": 1}),
    ]


def _blocks(programs: Iterable[int], blocks: Iterable[int]) -> list[Message]:
    return [each for block in blocks for one in programs for each in _block(one, block)]


def test_measurement_of_two_programs_has_their_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    running = _started(monkeypatch, _job(2), [Scripted(_blocks((0, 1), range(3)), DONE)])
    outcome = running.wait()
    assert outcome is not None
    assert outcome.ended is Ended.FINISHED
    found = running.state
    assert [program.blocks for program in found.programs] == [((1.0, 2.0),) * 3, ((2.0, 2.0),) * 3]
    assert found.common(0, 1) == ([(1.0, 2.0)] * 3, [(2.0, 2.0)] * 3)
    assert from_json(json.loads(json.dumps(found.content())), Measurement, "measurement") == found
    assert dict(outcome.result) == found.content()


def test_program_that_takes_its_worker_along_is_left_out_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = Scripted([*_blocks((0, 1, 2), [0]), *_block(0, 1), Measured(1, 1)], CRASH)
    second = Scripted([*_block(1, 1), *_blocks((0, 1), [2])], DONE)  # its number 1 was number 2
    running = _started(monkeypatch, _job(3), [first, second])
    outcome = running.wait()
    assert outcome is not None
    assert outcome.ended is Ended.FINISHED
    sent = from_json(second.request["job"], MeasureJob, "job")
    assert [one.program for one in sent.programs] == ["0.pte", "2.pte"]
    assert sent.first_block == (2, 1)
    found = running.state.programs
    assert [len(program.blocks) for program in found] == [3, 1, 3]
    assert found[1].failure.startswith("1.pte: the process crashed (SIGSEGV)")
    assert found[2].blocks[1] == (2.0, 2.0)


def test_worker_lost_between_programs_is_replaced_and_nothing_is_blamed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = Scripted(_blocks((0, 1), [0]), CRASH)
    second = Scripted(_blocks((0, 1), [1, 2]), DONE)
    running = _started(monkeypatch, _job(2), [first, second])
    assert running.wait() is not None
    assert [program.failure for program in running.state.programs] == ["", ""]
    assert [len(program.blocks) for program in running.state.programs] == [3, 3]


def test_workers_that_are_always_lost_end_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = [Scripted([], CRASH) for _ in range(4)]
    outcome = _started(monkeypatch, _job(2), workers).wait()
    assert outcome is not None
    assert outcome.ended is Ended.CRASHED
    assert workers[-1].request == {}


def test_refused_programs_alone_are_a_failure_with_their_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[Message] = [Measured(0, 0), Refused(0, "no such file", "unreadable")]
    running = _started(monkeypatch, _job(1), [Scripted(said, DONE)])
    outcome = running.wait()
    assert outcome is not None
    assert (outcome.ended, outcome.sentence) == (Ended.FAILED, "no such file")
    assert outcome.blame == "unreadable"


def test_cancelled_measurement_keeps_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    running = _started(monkeypatch, _job(2), [Scripted(_blocks((0, 1), [0, 1]), None)])
    said = running.take()
    assert running.outcome is None
    assert any(isinstance(each, Measured) for each in said)
    running.cancel()
    outcome = running.outcome
    assert outcome is not None
    assert outcome.ended is Ended.CANCELLED
    assert [len(program.blocks) for program in running.state.programs] == [2, 2]
    running.close()


def test_progress_counts_blocks_of_all_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    said = [*_blocks((0, 1), [0]), Counted(1, 3), Refused(1, "broken"), Counted(2, 3)]
    running = _started(monkeypatch, _job(2), [Scripted(said, None)])
    counted = [each for each in running.take() if isinstance(each, Counted)]
    assert counted == [Counted(2, 6), Counted(4, 6)]
    running.close()


def test_job_and_messages_survive_their_way_as_json() -> None:
    job = MeasureJob((RunJob("a.pte", data_files=("a.ptd",)), RunJob("b.pte")), first_block=(0, 2))
    assert from_json(json.loads(json.dumps(to_json(job))), MeasureJob, "job") == job
    sent = {"type": "measured", "program": 1, "block": 2, "run_ms": [1.5], "facts": {"threads": 1}}
    assert message_from(sent) == Measured(1, 2, (1.5,), {"threads": 1})
    refused = {"type": "refused", "program": 1, "sentence": "no", "blame": "usage"}
    assert message_from(refused) == Refused(1, "no", "usage")


def test_programs_of_two_runtimes_are_not_measured_side_by_side(tmp_path: Path) -> None:
    job = MeasureJob((RunJob("a.pte"), RunJob("b.pte", toolchain="executorch")))
    with pytest.raises(ToolchainError, match="built-in and executorch cannot be measured"):
        work(job, Task(tmp_path, lambda *_, **__: None))


@pytest.mark.slow
def test_real_worker_measures_each_program_and_names_what_it_cannot() -> None:
    lost, two = str(DATA / "nothing.pte"), str(DATA / "extra/two_methods/model.pte")
    jobs = (
        RunJob(PORTABLE, threads=1),
        RunJob(lost),
        RunJob(XNNPACK, threads=1, engine="torch"),
        RunJob(two, method="nowhere"),
    )
    running = JobRun(MeasureJob(jobs, 3, seconds=0.002), timeout=240)
    outcome = running.wait()
    running.close()
    assert outcome is not None
    assert outcome.ended is Ended.FINISHED
    found = running.state
    assert [len(program.blocks) for program in found.programs] == [3, 0, 3, 0]
    assert all(len(block) >= 5 for one in (0, 2) for block in found.programs[one].blocks)
    assert all(time > 0 for one in (0, 2) for block in found.programs[one].blocks for time in block)
    assert lost in found.programs[1].failure
    assert found.programs[1].blame == "unreadable"
    assert "nowhere" in found.programs[3].failure
    assert found.programs[2].engines == ("torch",)
    facts = found.programs[0].facts
    assert facts is not None
    assert (facts["method"], facts["threads"], facts["clock"]) == ("forward", 1, PROCESSOR)
    assert set(found.versions or {}) == {"etscope", "torch"}
