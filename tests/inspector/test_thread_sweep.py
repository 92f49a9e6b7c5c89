"""Several numbers of threads side by side: rows, the best one, refusals, the run with it."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inspector.devices.device import Device, store_device
from inspector.jobs.executing import WALL, MeasureJob, RunJob
from inspector.tables.runs import threads_table, threads_text
from inspector.toolchain.child import ToolchainError
from inspector.worker.tasks import Task
from inspector.worker.thread_sweep import (
    best_threads,
    run_with_best_threads,
    thread_counts,
    thread_times,
)
from tests.inspector.cli_runs import run, valid
from tests.inspector.sessions import DATA

MODEL = DATA / "corpus/v1.5.1/mm_portable/model.pte"


@pytest.mark.parametrize(
    ("cores", "counts"), [(1, (1,)), (2, (1, 2)), (6, (1, 2, 4, 6)), (8, (1, 2, 4, 8))]
)
def test_counts_are_powers_of_two_and_the_cores(cores: int, counts: tuple[int, ...]) -> None:
    assert thread_counts(cores) == counts


def _measure(ms: dict[int, float], asked: list[MeasureJob]):
    pick = random.Random(5)

    def measure(job: MeasureJob, task: Task) -> dict[str, Any]:
        asked.append(job)
        for block in range(job.blocks):
            for number, one in enumerate(job.programs):
                times = [ms[one.threads] * pick.uniform(1, 1.01) for _ in range(job.least_runs)]
                task.notify("measured", program=number, block=block, run_ms=times, facts={})
        return {}

    return measure


@pytest.mark.parametrize(
    ("ms", "best"),
    [
        ({1: 10.0, 2: 6.0, 4: 4.0}, 4),
        ({1: 10.0, 2: 6.0, 4: 6.01}, 2),
        ({1: 1.0, 2: 1.001, 4: 3.0}, 1),
        ({1: 2_000.0, 2: 900.0, 4: 1_000.0}, 2),
    ],
)
def test_least_number_that_is_not_slower_than_the_fastest_runs(
    ms: dict[int, float], best: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inspector.worker.thread_sweep.usable_cores", lambda: 4)
    asked: list[MeasureJob] = []
    told: list[str] = []
    ran: list[RunJob] = []

    def runs(job: RunJob, _task: Task) -> dict[str, Any]:
        ran.append(job)
        return {"threads": job.threads}

    report = run_with_best_threads(
        RunJob("a.pte", threads=7, sweep_threads=True),
        Task(tmp_path, lambda kind, **_content: told.append(kind)),
        _measure(ms, asked),
        runs,
    )
    assert ran == [RunJob("a.pte", threads=best)]
    assert all(job.clock == WALL for job in asked)  # one thread beside several
    slow = ms[1] > 300
    assert ([asked[1].blocks, asked[1].least_runs], told) == (
        ([3, 1], ["expected"]) if slow else ([10, 5], [])
    )
    rows = report["thread_sweep"]
    assert [row["threads"] for row in rows if row["best"]] == [best]
    assert rows[1]["speedup"] == rows[0]["mean_ms"] / rows[1]["mean_ms"]
    assert rows[0]["speedup"] == 1.0
    table = threads_table(report)
    assert table.columns[0].values[[1, 2, 4].index(best)] == f"{best} (best)"
    assert threads_text(report).startswith(f"{best} thread")


def test_what_cannot_be_swept_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    store_device(Device("pi", "ssh", "pi", "runner {program}"), new=True)
    task = Task(tmp_path, lambda *_, **__: None)
    job = RunJob("a.pte", sweep_threads=True)
    with pytest.raises(
        ToolchainError, match=r"the runner of pi has no \{threads\}: etscope device"
    ):
        run_with_best_threads(replace(job, device="pi"), task, _measure({}, []), lambda *_: {})

    def refuses(_job: MeasureJob, task: Task) -> dict[str, Any]:
        task.notify("refused", program=0, sentence="a.pte: no kernel", blame="failed")
        return {}

    with pytest.raises(ToolchainError, match="no kernel"):
        run_with_best_threads(job, task, refuses, lambda *_: {})
    with pytest.raises(ToolchainError, match="stopped before every number"):
        thread_times({1: {0: (1.0,)}, 2: {}})
    rows = thread_times({1: {0: (1.0,), 1: (1.0,)}, 2: {0: (2.0,)}})
    assert (len(rows[0].times.times), best_threads(rows)) == (1, 1)


@pytest.mark.slow
def test_sweep_is_in_the_report_of_a_run_with_the_best_number(tmp_path: Path) -> None:
    out = tmp_path / "out"
    more = ("--runs", 2, "--warmup", 1, "--format", "json")
    data = valid(run("run", MODEL, "-o", out, "--threads", "sweep", *more), "run")["data"]
    best = next(one["threads"] for one in data["thread_sweep"] if one["best"])
    assert data["threads"] == best
    assert data["thread_sweep"][0]["threads"] == 1
    assert len(data["run_ms"]) == 2
    table = run("table", "thread-times", out)
    assert (table.code, f"{best} (best)" in table.out) == (0, True)
    wrong = run("run", MODEL, "-o", tmp_path / "b", "--threads", "many")
    assert (wrong.code, "expected an integer of at least 1" in wrong.err) == (2, True)
