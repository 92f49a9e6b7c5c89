"""Programs measured side by side in the worker: blocks of warm runs, each in a fresh load."""

from __future__ import annotations

import gc
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from inspector.jobs.executing import PROCESSOR, WALL, MeasureJob, RunJob
from inspector.worker.backend_options import set_backend_options
from inspector.worker.exporter import Say, timed_stage
from inspector.worker.inputs import chosen_method
from inspector.worker.missing_data import missing_data_named
from inspector.worker.passes import SLOW_MS, Stopped, never
from inspector.worker.run_job import inputs_of, record_of
from runtime import Method, Runtime
from schema.etrecord import RecordFile
from schema.version import __version__

_WARM_SECONDS, _WARM_RUNS = 0.02, 3  # at least, in each block
_SPREAD_BYTES = 1 << 21  # by how much the place of a program in memory differs between blocks

Failure = Callable[[BaseException], dict[str, Any]]
Clock = Callable[[], float]


@dataclass
class _MeasuredProgram:
    """One of the programs.

    Attributes:
        job: run options
        number: its index in the job
        first: the block to start with
        record: its record, if delegates are emulated
        inputs: of every run, None before the first
        failed: whether it is excluded
        facts: about its runs
    """

    job: RunJob
    number: int
    first: int = 0
    record: RecordFile | None = None
    inputs: list[Any] | None = None
    failed: bool = False
    facts: dict[str, Any] = field(default_factory=dict[str, Any])


def measure(
    job: MeasureJob, notify: Say, failure: Failure, stopped: Stopped = never
) -> dict[str, Any]:
    """Measure all programs; report each block when it ends.

    Args:
        job: the request
        notify: called with messages
        failure: an error as the content of a message
        stopped: whether to end with the blocks there are
    """
    first = job.first_block or (0,) * len(job.programs)
    entries = [
        _MeasuredProgram(each, number, start)
        for number, (each, start) in enumerate(zip(job.programs, first, strict=True))
    ]
    steps = [(-1, entry) for entry in entries] + list(_steps(entries, job.blocks))
    gc.collect()
    gc.freeze()  # existing objects are not scanned before each block
    with timed_stage(notify, "measure"):
        for block, entry in steps:
            if stopped():
                break
            notify("counted", done=max(block, 0), total=job.blocks)
            if entry.failed:
                continue
            notify("measured", program=entry.number, block=max(block, 0), run_ms=[])
            try:
                torch.set_num_threads(entry.job.threads or 1)
                times = _block(entry, job, block)
            except Exception as error:  # noqa: BLE001 - whatever kernels raise; the others go on
                entry.failed = True
                found = failure(error)
                notify("refused", program=entry.number, **{key: found[key] for key in _TOLD})
                continue
            if times:
                facts = entry.facts
                notify("measured", program=entry.number, block=block, run_ms=times, facts=facts)
        notify("counted", done=job.blocks, total=job.blocks)
    return {"etscope": __version__, "torch": str(torch.__version__)}


_TOLD = ("sentence", "blame")


def _steps(
    entries: Sequence[_MeasuredProgram], blocks: int
) -> Iterator[tuple[int, _MeasuredProgram]]:
    """Yield blocks and programs in the order in which they are measured."""
    for block in range(blocks):
        for entry in entries if block % 2 == 0 else reversed(entries):
            if block >= entry.first:
                yield block, entry


def _block(entry: _MeasuredProgram, job: MeasureJob, block: int) -> list[float]:
    """Load a program at new addresses, warm it up, and return the times of its runs.

    Block -1 is a rehearsal without times: the first runs of a process differ from all others.

    Units: ms
    """
    size = random.Random(f"{block} {entry.number}").randrange(64, _SPREAD_BYTES)
    pad = torch.empty(size, dtype=torch.uint8)
    with missing_data_named(entry.job.program, entry.job.data_files):
        program = Runtime.get().load_program(
            entry.job.program, data_path=list(entry.job.data_files), tracer=None
        )
        name = chosen_method(program.file, entry.job.method)
        if entry.inputs is None:
            entry.record = record_of(entry.job)
            entry.inputs = inputs_of(entry.job, program, name)
        set_backend_options(entry.job.backend_options)
        method = program.load_method(name, engine=entry.job.engine, emulate=entry.record)
    inputs = [each.clone() if isinstance(each, torch.Tensor) else each for each in entry.inputs]
    gc.collect()
    gc.disable()
    try:
        _warm_up(method, inputs)
        entry.facts = entry.facts or _facts(method, _clock(job))
        return _timed(method, inputs, job) if block >= 0 else []
    finally:
        gc.enable()
        program.unload_method(name)
        del pad


def _warm_up(method: Method, inputs: Sequence[Any]) -> None:
    until = time.perf_counter() + _WARM_SECONDS
    count = 0
    while count < _WARM_RUNS or time.perf_counter() < until:
        count += 1
        if _once(method, inputs) > SLOW_MS:
            break


def _timed(method: Method, inputs: Sequence[Any], job: MeasureJob) -> list[float]:
    clock = _clock(job)
    until = clock() + job.seconds
    times: list[float] = []
    while len(times) < job.least_runs or clock() < until:
        times.append(_once(method, inputs, clock))
        if len(times) >= max(job.most_runs, job.least_runs):
            break
    return times


def _once(method: Method, inputs: Sequence[Any], clock: Clock = time.perf_counter) -> float:
    method.set_inputs(inputs)
    start = clock()
    method.run()
    return (clock() - start) * 1e3


def _clock(job: MeasureJob) -> Clock:
    """Return the clock that was requested, else the one that fits the threads.

    One thread is timed by CPU time: on a busy machine other processes interrupt it, often for
    longer than a run. On an idle machine both clocks agree.
    """
    if job.clock == WALL:
        return time.perf_counter
    alone = torch.get_num_threads() == 1 and sys.platform != "win32"  # whose clock steps by 16 ms
    return time.thread_time if alone else time.perf_counter


def _facts(method: Method, clock: Clock) -> dict[str, Any]:
    return {
        "method": method.name,
        "threads": torch.get_num_threads(),
        "clock": PROCESSOR if clock is time.thread_time else WALL,
        "backends": list(method.metadata.backend_names()),
        "partitions": [asdict(one) for one in method.measurements],
    }
