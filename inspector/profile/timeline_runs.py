"""The runs of a trace by the clock, and when each of their events was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inspector.files.run_report import is_sequence
from inspector.files.session import Session
from inspector.join.links import link_block
from inspector.join.methods import is_execution
from inspector.profile.attribution import attribution, steady_set
from inspector.trace.blocks import Block
from inspector.trace.run_times import median
from inspector.trace.timed_blocks import timed_blocks
from schema.objects.identity_cache import identity_cache

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
MOST_RUNS = 10_000  # shown one after another


_LOADING: dict[str, str] = {
    "": "loading",
    "Default": "loading",
}  # names that runtimes give to its block


@dataclass(frozen=True, slots=True)
class TimelineRun:
    """One run of a trace.

    Attributes:
        label: shown to the user
        block: its block
        run: its place in the block
        first_row: profile row of the block's first event
        executes: whether it ran instructions, as opposed to loading
        steady: whether it is one of the runs that figures are made of
        ticks: how long it took, NaN where that was not logged
    """

    label: str
    block: int
    run: int
    first_row: int
    executes: bool
    steady: bool = True
    ticks: float = float("nan")


@dataclass(frozen=True, slots=True)
class RunRange:
    """A range of one run.

    Attributes:
        run: the run
        start: first tick of the range
        end: last tick
    """

    run: TimelineRun
    start: float
    end: float


@identity_cache
def timeline_runs(session: Session, method: str) -> tuple[TimelineRun, ...]:
    """Return the runs of a method and those that load, in the order of time."""
    found: list[tuple[int, float, TimelineRun]] = []
    row = 0
    for number, block in enumerate(timed_blocks(session.timed_dumps).blocks):
        executes = is_execution(block)
        if not executes or link_block(session, block).method in (method, None):
            begins = block.start.min(axis=1) if len(block) else np.zeros(len(block.runs))
            steady = steady_set(block).tolist()
            ticks = block.total[:, attribution(block).whole].sum(axis=1).tolist()
            for run in range(len(block.runs)):
                kept = steady[run] or not executes
                one = TimelineRun("", number, run, row, executes, kept, ticks[run])
                found.append((block.dump, float(begins[run]), one))
        row += len(block)
    found.sort(key=lambda entry: (entry[0], entry[1]))
    runs: list[TimelineRun] = []
    count = 0
    blocks = timed_blocks(session.timed_dumps).blocks
    for _, _, run in found:
        count += run.executes
        block = blocks[run.block]
        label = f"run {count}" if run.executes else _LOADING.get(block.name, block.name)
        if run.executes and is_sequence(session.timed_dumps[block.dump]):
            label = f"call {block.bundled_input_index}"
        runs.append(replace(run, label=label if run.steady else f"{label}, left out"))
    return tuple(runs)


def median_run(runs: Sequence[TimelineRun]) -> int:
    """Return which run is nearest to the median of the steady ones; the first without times."""
    known = [
        (run.ticks, place)
        for place, run in enumerate(runs)
        if run.executes and run.steady and run.ticks == run.ticks
    ]
    if not known:
        return next((place for place, run in enumerate(runs) if run.executes), 0)
    middle = median([ticks for ticks, _ in known])
    return min(known, key=lambda one: (abs(one[0] - middle), one[1]))[1]


def slowest_run(runs: Sequence[TimelineRun]) -> int:
    """Return which run took longest, cold ones and outliers included; -1 where no time is known."""
    known = [
        (run.ticks, -place)
        for place, run in enumerate(runs)
        if run.executes and run.ticks == run.ticks
    ]
    return -max(known)[1] if known else -1


def clock_origins(blocks: Sequence[Block], runs: Iterable[TimelineRun]) -> dict[int, float]:
    """Return the first tick of each trace: traces of different clocks all begin at 0."""
    found: dict[int, float] = {}
    for run in runs:
        block = blocks[run.block]
        begin = float(block.start[run.run].min()) if len(block) else 0.0
        found[block.dump] = min(found.get(block.dump, begin), begin)
    return found


def occurrences(block: Block, run: int) -> tuple[Floats, Floats, Ints]:
    """Return start, end (ticks) and event of everything timed in one run.

    All iterations of loops are included.
    """
    table, layout = block.runs[run], block.layouts[run]
    rows, event = layout.rows, layout.row_event
    start, end = table.start_time[rows], table.end_time[rows]
    # Ticks since the first: a float has 53 bits, a clock 64.
    begin = int(start.min()) if len(start) else 0
    lows = (start - np.uint64(begin)).astype(np.float64) + float(begin)
    highs = lows + np.where(end >= start, end - start, 0).astype(np.float64)
    return lows, highs, event
