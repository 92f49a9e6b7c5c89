"""A range of time of a run, and the part of each operator inside of it.

Only the part of an event that lies in the range counts, so that the parts of a range add up to it
and ranges that meet add up to their union; events cut by its borders are counted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inspector.files.session import Session
from inspector.profile.attribution import attribution
from inspector.profile.intervals import inside_of
from inspector.profile.operator_columns import INNER, LEFT, REST, TRACED, BlockRows
from inspector.profile.operator_rows import operator_rows
from inspector.profile.timeline_runs import (
    MOST_RUNS,
    RunRange,
    TimelineRun,
    clock_origins,
    median_run,
    occurrences,
    timeline_runs,
)
from inspector.trace.blocks import Block
from inspector.trace.event_kinds import inside_delegates
from inspector.trace.timed_blocks import timed_blocks
from inspector.trace.timing import is_time, scale_factor
from inspector.units import TYPED_TIMES, Quantity

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
ALL_RUNS, CLOCK = "all", "clock"
_TIME = re.compile(r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(?P<unit>\D*)")
_FACTORS = {"": 1.0, **TYPED_TIMES}


class RangeError(ValueError):
    """A range that the traces do not have, as one sentence for the user."""


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A range of time.

    Attributes:
        start: nanoseconds, or ticks where these are not time
        end: likewise
        run: label or number of a run, from whose begin times count; ``all`` for the same range of
            each run; ``clock`` for the time since the first event of the trace; empty for the run
            nearest to the median
    """

    start: float = 0.0
    end: float = math.inf
    run: str = ""


WHOLE_RUN = TimeRange()


def time_from(text: str, missing: float) -> float:
    """Return a time in nanoseconds as typed: a number with or without a unit.

    Raises: RangeError
    """
    if not text.strip():
        return missing
    match = _TIME.fullmatch(text.strip())
    if match is None or match["unit"] not in _FACTORS:
        raise RangeError(f"invalid time {text!r}: expected a number and ns, us, ms or s")
    return float(match["number"]) * _FACTORS[match["unit"]]


def range_from(start: str, end: str, run: str) -> TimeRange | None:
    """Return a range as typed, None where nothing is.

    Raises: RangeError
    """
    if not (start or end or run):
        return None
    return TimeRange(time_from(start, 0.0), time_from(end, math.inf), run.strip())


@dataclass(frozen=True, slots=True)
class RangeSums:
    """The sums of a range.

    Attributes:
        start: of the range, as limited by the runs
        end: likewise
        runs: number of runs of which some part lies in it
        all_runs: number of runs it was looked for in
        method: time of the method in it, NaN where runs are not logged as a whole
        delegates: of it in calls of delegates
        operators: in calls of operators
        control: in control flow
        unattributed: in no call; NaN where method is
        calls: number of calls in it
        cut: number of calls that its borders cut, of which it has a part
        quantity: TIME, or TICKS where ticks are not time
        logged: whether values were logged meanwhile: times are not the program's
    """

    start: float
    end: float
    runs: int
    all_runs: int
    method: float
    delegates: float
    operators: float
    control: float
    unattributed: float
    calls: int
    cut: int
    quantity: Quantity
    logged: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class RangeRows:
    """The operators of a block that overlap a range.

    Attributes:
        part: all rows of the block
        rows: rows of part
        inside: time in the range, NaN where a delegate counts with another clock
        whole: time of the same events, uncut; NaN where inside is, and of unattributed time
        events: number of events in the range
        cut: number of them that a border cuts
        start: of the first of these events, since the begin of its run; NaN of unattributed time

    Shapes: rows, events, cut int64[n]; inside, whole, start float64[n]
    """

    part: BlockRows
    rows: Ints
    inside: Floats
    whole: Floats
    events: Ints
    cut: Ints
    start: Floats


def run_ranges(session: Session, method: str, span: TimeRange) -> tuple[RunRange, ...]:
    """Return the range in the ticks of each of its runs.

    Raises: RangeError for an unknown run, an empty range and a session without runs
    """
    if not span.end > span.start:
        raise RangeError(f"empty range: it ends at {span.end:g} and starts at {span.start:g}")
    runs = timeline_runs(session, method)
    if not runs:
        raise RangeError("no run of this method: a range needs a trace (run.etdp)")
    source = session.options.source_time_scale
    scale = scale_factor(source, "ns") if is_time(source) else 1.0
    blocks = timed_blocks(session.timed_dumps).blocks
    chosen = _chosen(runs, span.run)
    origins = clock_origins(blocks, chosen) if span.run == CLOCK else {}
    found: list[RunRange] = []
    for run in chosen:
        block = blocks[run.block]
        begin = origins.get(block.dump)
        if begin is None:
            start = occurrences(block, run.run)[0]
            begin = float(start.min()) if len(start) else 0.0
        found.append(RunRange(run, begin + span.start * scale, begin + span.end * scale))
    return tuple(found)


def _chosen(runs: Sequence[TimelineRun], name: str) -> tuple[TimelineRun, ...]:
    if name == CLOCK:
        return tuple(runs[:MOST_RUNS])
    executed = tuple(run for run in runs if run.executes)
    if name == ALL_RUNS:
        return executed
    if not name:
        return tuple(runs[median_run(runs) :][:1])
    for run in runs:
        if name in (run.label, run.label.partition(",")[0].removeprefix("run ")):
            return (run,)
    raise RangeError(f"unknown run {name!r}; available: 1 to {len(executed)}, {ALL_RUNS}, {CLOCK}")


def range_times(
    session: Session, method: str, span: TimeRange
) -> tuple[RangeSums, tuple[RangeRows, ...]]:
    """Return the sums of a range and its operators.

    Raises: RangeError for an unknown run, an empty range and a session without runs
    """
    parts = {_first_row(part): part for part in operator_rows(session, method).parts}
    blocks = timed_blocks(session.timed_dumps).blocks
    source = session.options.source_time_scale
    scale = scale_factor(source, "ns") if is_time(source) else 1.0
    total = _Total(scale)
    found: dict[int, _BlockRange] = {}
    for one in run_ranges(session, method, span):
        first = one.run.first_row
        if first not in found:
            found[first] = _BlockRange(blocks[one.run.block])
        total.add(found[first], one, one.start - span.start * scale)
    rows = tuple(one.rows(parts[first], scale) for first, one in found.items() if first in parts)
    sums = total.sums(span, Quantity.TIME if is_time(source) else Quantity.TICKS)
    return replace(sums, logged=session.times_with_values), rows


def _first_row(part: BlockRows) -> int:
    """Return the row of the profile of the first event of the block of some rows."""
    known = np.flatnonzero(part.event >= 0)[:1]
    return int((part.events[known] - part.event[known])[0]) if len(known) else -1


class _BlockRange:
    """The part of each event of a block inside of a range, over the runs added.

    Attributes:
        inside: ticks in the range, float64[events]
        whole: ticks of the same occurrences, uncut
        events: number of occurrences in the range
        cut: number of those that a border cuts
        first: ticks from the begin of a run to the first of them, NaN without one
        apart: events of delegates that lie outside of their call, bool[events]
    """

    def __init__(self, block: Block) -> None:
        self.block = block
        self.parts = attribution(block)
        self.inside, self.whole = np.zeros(len(block)), np.zeros(len(block))
        self.events, self.cut = np.zeros(len(block), np.int64), np.zeros(len(block), np.int64)
        self.first = np.full(len(block), np.nan)
        self.apart = np.zeros(len(block), np.bool_)
        self._call = _calls_around(block, self.parts.calls)

    def add(self, one: RunRange, begun: float) -> tuple[float, float] | None:
        """Add a run that begun at some ticks; return the overlap with the range, None without."""
        start, end, event = occurrences(self.block, one.run.run)
        low, high = one.start, one.end
        point = (start == end) & (start >= low) & (start < high)
        chosen = ((end > low) & (start < high)) | point
        if not chosen.any():
            return None
        self._find_apart(start, end, event)
        begin, last = float(start.min()), float(end.max())
        start, end, event = start[chosen], end[chosen], event[chosen]
        count = len(self.block)
        clipped = np.minimum(end, high) - np.maximum(start, low)
        self.inside += np.bincount(event, clipped, minlength=count)
        self.whole += np.bincount(event, end - start, minlength=count)
        self.events += np.bincount(event, minlength=count)
        np.fmin.at(self.first, event, start - begun)
        self.cut += np.bincount(event[(start < low) | (end > high)], minlength=count)
        return max(low, begin), min(high, last)

    def _find_apart(self, start: Floats, end: Floats, event: Ints) -> None:
        call = self._call[event]
        inner, calls = call >= 0, self.parts.calls[event]
        fits = inside_of(
            (event[calls], start[calls], end[calls]), (call[inner], start[inner], end[inner])
        )
        strayed = np.unique(call[inner][~fits])
        self.apart |= np.isin(self._call, strayed)

    def rows(self, part: BlockRows, scale: float) -> RangeRows:
        """Return the operators of the block that overlap the range."""
        inside, whole = self._of_rows(part, self.inside), self._of_rows(part, self.whole)
        whole[part.kind == LEFT] = np.nan  # of a run as a whole, not of the range
        known = part.event >= 0
        events, cut = np.zeros(len(part), np.int64), np.zeros(len(part), np.int64)
        events[known], cut[known] = self.events[part.event[known]], self.cut[part.event[known]]
        counted = known & (part.kind != REST)
        start = np.full(len(part), np.nan)
        start[known] = self.first[part.event[known]]
        start[np.isnan(inside) | (part.kind == LEFT)] = np.nan
        kept = np.flatnonzero(((events > 0) & counted) | (~counted & (inside > 0)))
        return RangeRows(
            part,
            kept,
            inside[kept] / scale,
            whole[kept] / scale,
            events[kept],
            cut[kept],
            start[kept] / scale,
        )

    def _of_rows(self, part: BlockRows, ticks: Floats) -> Floats:
        """Return the ticks of each row: a call without what is inside of it, the rest of a run."""
        found = np.zeros(len(part))
        known = part.event >= 0
        found[known] = ticks[part.event[known]]
        nested = self._nested(part)
        inner = nested & (part.kind == INNER)
        call = self._call[part.event[inner]]
        spent = np.bincount(call, ticks[part.event[inner]], minlength=len(self.block))
        rest = (part.kind == REST) & known
        found[rest] -= spent[part.event[rest]]
        found[(part.kind == INNER) & ~nested] = np.nan
        found[part.kind == LEFT] = ticks[self.parts.whole].sum() - ticks[self.parts.calls].sum()
        found[part.kind == TRACED] = 0.0
        return found

    def _nested(self, part: BlockRows) -> Bools:
        """Return which rows inside of delegates take time of their call."""
        known = part.event >= 0
        found = np.zeros(len(part), np.bool_)
        found[known] = part.timed[known] & (self._call[part.event[known]] >= 0)
        found[known] &= ~self.apart[part.event[known]]
        return found


def _calls_around(block: Block, calls: Bools) -> Ints:
    """Return the call of the same instruction for events inside delegates, -1 for others."""
    layout = block.layout
    steps, which = np.unique(layout.instruction, return_inverse=True)
    of_step = np.full(len(steps), -1, np.int64)
    of_step[which[calls]] = np.flatnonzero(calls)
    inner = inside_delegates(block) & (layout.chain >= 0) & (layout.instruction != -1)
    return np.where(inner, of_step[which], -1)


class _Total:
    """Adds up the sums of a range run by run."""

    def __init__(self, scale: float) -> None:
        self._scale = scale
        self._blocks: dict[int, _BlockRange] = {}
        self._ends: list[tuple[float, float]] = []
        self._runs = 0

    def add(self, block: _BlockRange, one: RunRange, begun: float) -> None:
        """Add a run to its block."""
        self._runs += 1
        ends = block.add(one, begun)
        if ends is not None:
            self._ends.append(
                ((ends[0] - one.start) / self._scale, (ends[1] - one.start) / self._scale)
            )
            self._blocks[id(block)] = block

    def sums(self, span: TimeRange, quantity: Quantity) -> RangeSums:
        """Return the sums."""
        blocks = self._blocks.values()

        def ticks(name: str) -> float:
            return float(sum(one.inside[getattr(one.parts, name)].sum() for one in blocks))

        logged = all(one.parts.whole.any() for one in blocks if one.parts.calls.any())
        whole = ticks("whole") if logged else math.nan
        return RangeSums(
            start=span.start + min((low for low, _ in self._ends), default=0.0),
            end=span.start + max((high for _, high in self._ends), default=0.0),
            runs=len(self._ends),
            all_runs=self._runs,
            method=whole / self._scale,
            delegates=ticks("delegates") / self._scale,
            operators=ticks("operators") / self._scale,
            control=ticks("control") / self._scale,
            unattributed=(whole - ticks("calls")) / self._scale,
            calls=int(sum(one.events[one.parts.calls].sum() for one in blocks)),
            cut=int(sum(one.cut[one.parts.calls].sum() for one in blocks)),
            quantity=quantity,
        )
