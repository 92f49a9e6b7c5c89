"""A program measured with 1, 2, 4, … threads side by side, and then run with the best number."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from inspector.compare.statistics import SLOWER, TimeVerdict, judge
from inspector.devices.device import device_named
from inspector.devices.runner import has_placeholder
from inspector.files.machine import usable_cores
from inspector.jobs.executing import REPORT, WALL, MeasureJob, RunJob
from inspector.toolchain.child import ToolchainError
from inspector.trace.run_times import RunTimes
from inspector.worker.passes import SLOW_MS
from inspector.worker.tasks import Task

_BLOCKS, _SLOW_BLOCKS = 10, 3
_DEVICE_CORES = 8  # phones since 2014; what more threads than cores cost is measured, too
Blocks = dict[int, tuple[float, ...]]
Measure = Callable[[MeasureJob, Task], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class ThreadTimes:
    """The times with one number of threads.

    Units: ms

    Attributes:
        threads: their number
        times: of all runs
        against_one: beside one thread
        against_best: beside the best number
    """

    threads: int
    times: RunTimes
    against_one: TimeVerdict
    against_best: TimeVerdict

    def content(self, best: int, one_ms: float) -> dict[str, Any]:
        """Return it as a JSON object, beside the mean of one thread."""
        return {
            "threads": self.threads,
            "runs": len(self.times.times),
            "mean_ms": self.times.mean,
            "p10_ms": self.times.p10,
            "p90_ms": self.times.p90,
            "noise": self.times.noise or None,
            "speedup": one_ms / self.times.mean if self.times.mean > 0 else None,
            "against_one": self.against_one.content(),
            "against_best": self.against_best.content(),
            "best": self.threads == best,
        }


def run_with_best_threads(
    job: RunJob, task: Task, measure: Measure, run: Callable[[RunJob, Task], dict[str, Any]]
) -> dict[str, Any]:
    """Measure all numbers of threads, run with the best one; return the content of ``run.json``.

    Args:
        job: the request; its own threads are ignored
        task: its context
        measure: measures programs side by side; blocks are reported by ``task.notify``
        run: runs a program into the folder of a task

    Raises: ToolchainError if nothing could be measured, or on a device whose runner takes no number
    """
    if job.device and not has_placeholder(device_named(job.device).runner, "threads"):
        words = f"the runner of {job.device} has no {{threads}}"
        raise ToolchainError(f"{words}: etscope device edit {job.device} --runner", blame="usage")
    counts = thread_counts(_cores(job))
    one = replace(job, sweep_threads=False, threads=1)
    blocks = _measured(tuple(replace(one, threads=count) for count in counts), task, measure)
    rows = thread_times(dict(zip(counts, blocks, strict=True)))
    best = best_threads(rows)
    report = run(replace(one, threads=best), task)
    report["thread_sweep"] = [row.content(best, rows[0].times.mean) for row in rows]
    text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    (task.folder / REPORT).write_text(text, "utf-8")
    return report


def _cores(job: RunJob) -> int:
    """Return the cores of this machine, or as many as a usual device has."""
    return _DEVICE_CORES if job.device else usable_cores()


def thread_counts(cores: int) -> tuple[int, ...]:
    """Return 1, 2, 4, … and the number of cores."""
    powers = (1 << shift for shift in range(cores.bit_length()))
    return tuple(sorted({*(count for count in powers if count <= cores), cores}))


def thread_times(blocks: Mapping[int, Blocks]) -> list[ThreadTimes]:
    """Return the times of each number of threads, by blocks that all of them have.

    Args:
        blocks: number of threads -> number of the block -> times of its runs

    Raises: ToolchainError if there are none
    """
    first, *others = blocks.values()
    order = sorted(number for number in first if all(number in each for each in others))
    if not order:
        raise ToolchainError("stopped before every number of threads had been measured once")
    sides = {count: [each[number] for number in order] for count, each in blocks.items()}
    times = {count: RunTimes(sum(side, ())) for count, side in sides.items()}
    fastest = min(times, key=lambda count: times[count].mean)
    return [
        ThreadTimes(
            count,
            times[count],
            judge(sides[min(sides)], side),
            judge(sides[fastest], side),
        )
        for count, side in sorted(sides.items())
    ]


def best_threads(rows: list[ThreadTimes]) -> int:
    """Return the least number of threads that is not slower than the fastest."""
    return next(row.threads for row in rows if row.against_best.word != SLOWER)


def _measured(programs: tuple[RunJob, ...], task: Task, measure: Measure) -> list[Blocks]:
    """Return the blocks of each program; their number depends on the time of one run.

    Raises: ToolchainError for a program that cannot be measured
    """
    trial = MeasureJob(programs[:1], 1, 0.0, 1, 1, clock=WALL)
    (first,) = _collected(trial, task, measure)
    run_ms = min(min(times) for times in first.values())
    job = MeasureJob(programs, _BLOCKS, clock=WALL)
    if run_ms > SLOW_MS:
        job = MeasureJob(programs, _SLOW_BLOCKS, 0.0, 1, 1, clock=WALL)
        runs = (_SLOW_BLOCKS + 1) * len(programs)  # and a rehearsal of each
        seconds = run_ms * (runs * 2 - len(programs)) / 1e3
        task.notify("expected", run_ms=run_ms, timed=0, bare=runs, seconds=seconds)
    return _collected(job, task, measure)


def _collected(job: MeasureJob, task: Task, measure: Measure) -> list[Blocks]:
    found: list[Blocks] = [{} for _ in job.programs]
    refused: list[str] = []

    def notify(kind: str, **content: Any) -> None:  # noqa: ANN401 - JSON
        if kind == "measured" and content["run_ms"]:
            found[content["program"]][content["block"]] = tuple(content["run_ms"])
        elif kind == "refused":
            refused.append(content["sentence"])
        elif kind != "measured":
            task.notify(kind, **content)

    measure(job, replace(task, notify=notify))
    if refused:
        raise ToolchainError(refused[0])
    return found
