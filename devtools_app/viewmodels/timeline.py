"""The timeline: lanes of a run, of all runs side by side or one after another, and the flame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from devtools_app.appearance.colours import NOT_DELEGATED, PLAIN, backend_index
from devtools_app.viewmodels.canvas_data import LegendEntry, Swatch, TimelineData, TimelineLane
from devtools_app.viewmodels.timeline_events import (
    CALLS,
    FIRST_DELEGATE,
    KERNELS,
    METHOD,
    TimelineEventFacts,
    event_facts,
)
from devtools_app.viewmodels.timeline_stack import gaps, stack_levels
from inspector.files.session import Session
from inspector.join.links import link_block
from inspector.join.methods import is_execution
from inspector.profile.attribution import attribution, steady_set
from inspector.profile.methods import VALUES_LOGGED, unit_assumed
from inspector.trace.blocks import Block, trace_blocks
from inspector.trace.timing import is_time, scale_factor
from inspector.units import Quantity
from schema.backends import backend_of, short_backend
from schema.objects.identity_cache import identity_cache

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
MOST_ALIGNED = 24  # runs side by side; more cannot be distinguished
MOST_RUNS = 10_000  # one after another
UNATTRIBUTED = "unattributed"


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


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """A timeline and its events.

    Attributes:
        data: to draw
        rows: profile row of each event, -1 for unattributed time
        legend: meaning of the colours
        note: remarks on the times (unit, origin, omitted runs)

    Shapes: rows int64[events]
    """

    data: TimelineData
    rows: Ints
    legend: tuple[LegendEntry, ...]
    note: str


@identity_cache
def timeline_runs(session: Session, method: str) -> tuple[TimelineRun, ...]:
    """Return the runs of a method and those that load, in the order of time."""
    found: list[tuple[int, float, TimelineRun]] = []
    row = 0
    for number, block in enumerate(trace_blocks(session.timed_dumps).blocks):
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
    blocks = trace_blocks(session.timed_dumps).blocks
    for _, _, run in found:
        count += run.executes
        label = f"run {count}" if run.executes else f"{blocks[run.block].name or 'load'}"
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
    middle = float(np.median([ticks for ticks, _ in known]))
    return min(known, key=lambda one: (abs(one[0] - middle), one[1]))[1]


def one_run(session: Session, runs: tuple[TimelineRun, ...]) -> Timeline:
    """Return the lanes of one run, from its beginning."""
    return _timeline(session, runs[:1], aligned=True)


def aligned_runs(session: Session, runs: tuple[TimelineRun, ...]) -> Timeline:
    """Return the lanes of the executions, each starting at 0, one below another."""
    requested = tuple(run for run in runs if run.executes) or runs
    result = _timeline(session, requested[:MOST_ALIGNED], aligned=True)
    if len(requested) > MOST_ALIGNED:
        more = f"the first {MOST_ALIGNED} of {len(requested):,} runs"
        return replace(result, note=" · ".join(filter(None, (more, result.note))))
    return result


def absolute_runs(session: Session, runs: tuple[TimelineRun, ...]) -> Timeline:
    """Return all runs one after another, by the clock of the trace."""
    result = _timeline(session, runs[:MOST_RUNS], aligned=False)
    if len(runs) > MOST_RUNS:
        more = f"the first {MOST_RUNS:,} of {len(runs):,} runs"
        return replace(result, note=" · ".join(filter(None, (more, result.note))))
    return result


def _timeline(session: Session, runs: tuple[TimelineRun, ...], *, aligned: bool) -> Timeline:
    blocks = trace_blocks(session.timed_dumps).blocks
    facts = {run.block: event_facts(session, blocks[run.block]) for run in runs}
    bag = _Bag()
    first_name = {number: bag.add_names(fact.names) for number, fact in facts.items()}
    source = session.options.source_time_scale
    scale = scale_factor(source, "ns") if is_time(source) else 1.0
    origin = _origin(blocks, runs)
    for place, run in enumerate(runs):
        block = blocks[run.block]
        start, end, event = occurrences(block, run.run)
        begin = float(start.min()) if aligned and len(start) else origin.get(block.dump, 0.0)
        group = run.label if len(runs) > 1 and aligned else ""
        where = (place if aligned else 0, group)
        lanes = _RunLanes(bag, facts[run.block], run, first_name[run.block], where)
        lanes.add((start - begin) / scale, (end - begin) / scale, event)
    data, rows = bag.data(Quantity.TIME if is_time(source) else Quantity.TICKS)
    data = replace(data, logged=session.times_with_values)
    return Timeline(data, rows, timeline_legend(data, facts.values()), _note(session, facts))


def _origin(blocks: tuple[Block, ...], runs: tuple[TimelineRun, ...]) -> dict[int, float]:
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


class _Bag:
    """Columns collected run by run, and the lanes they are in."""

    def __init__(self) -> None:
        self._parts: list[tuple[Ints, Floats, Floats, Ints, Ints, Ints]] = []
        self._names: list[str] = [UNATTRIBUTED]
        self._lanes: list[TimelineLane] = []
        self._lane_of: dict[tuple[int, int, str], int] = {}

    def add_names(self, names: tuple[str, ...]) -> int:
        """Add strings; return the index of the first."""
        first = len(self._names)
        self._names += names
        return first

    def lane(self, place: tuple[int, str], label: str, level: int, depth: int) -> int:
        """Return the number of a lane, creating it if necessary."""
        run, group = place
        found = self._lane_of.get((run, level, label))
        if found is None:
            found = self._lane_of[run, level, label] = len(self._lanes)
            self._lanes.append(TimelineLane("" if level else label, group, depth + level))
        return found

    def add(
        self, lane: int, start: Floats, end: Floats, looks: tuple[Ints, Ints, Ints] | None = None
    ) -> None:
        """Add events with (colour, label, row); without these it is unattributed time."""
        count = len(start)
        if looks is None:
            none = np.zeros(count, np.int64)
            looks = (none + PLAIN, none, none - 1)
        self._parts.append((np.full(count, lane, np.int64), start, end, *looks))

    def data(self, quantity: Quantity) -> tuple[TimelineData, Ints]:
        """Return all events sorted by lane and start, and the profile rows."""
        empty = np.zeros(0)
        columns = [np.concatenate([empty, *column]) for column in zip(*self._parts, strict=True)]
        if not columns:
            columns = [empty] * 6
        order = np.lexsort((columns[1], columns[0]))
        lane, start, end, colour, label, rows = (column[order] for column in columns)
        data = TimelineData(
            lanes=tuple(self._lanes),
            lane=lane.astype(np.int64),
            start=start,
            end=end,
            colour=colour.astype(np.int64),
            label=label.astype(np.int64),
            names=tuple(self._names),
            unattributed=rows < 0,
            quantity=quantity,
        )
        return data, rows.astype(np.int64)


class _RunLanes:
    """Puts the events of one run into lanes."""

    def __init__(
        self,
        bag: _Bag,
        fact: TimelineEventFacts,
        run: TimelineRun,
        first_name: int,
        place: tuple[int, str],
    ) -> None:
        self._bag, self._fact, self._run = bag, fact, run
        self._first_name, self._place = first_name, place

    def add(self, start: Floats, end: Floats, event: Ints) -> None:
        """Add everything timed in the run."""
        lane = self._fact.lane[event]
        for number in np.unique(lane).tolist():
            self._add_lane(number, *_sorted(start, end, event, lane == number))
            inside = lane == number
            around = self._around(number, event, lane)
            if around is not None:
                place = self._bag.lane(self._place, self._label(number), 0, _depth(number))
                outer = (start[around], end[around])
                self._bag.add(place, *gaps(*outer, start[inside], end[inside]))

    def _around(self, number: int, event: Ints, lane: Ints) -> NDArray[np.bool_] | None:
        """Return the events whose time a lane divides, None for lanes that divide nothing."""
        if number == CALLS:
            return self._fact.executes[event]
        if number < FIRST_DELEGATE:
            return None
        calls = np.unique(self._fact.call[event[lane == number]])
        return np.isin(event, calls) & (lane == CALLS)

    def _add_lane(self, number: int, start: Floats, end: Floats, event: Ints) -> None:
        levels = stack_levels(start, end)
        for level in range(int(levels.max(initial=0)) + 1):
            chosen = levels == level
            ids = event[chosen]
            place = self._bag.lane(self._place, self._label(number), level, _depth(number))
            looks = (
                self._fact.colour[ids],
                self._first_name + self._fact.label[ids],
                self._run.first_row + ids,
            )
            self._bag.add(place, start[chosen], end[chosen], looks)

    def _label(self, number: int) -> str:
        if number < FIRST_DELEGATE:
            return {METHOD: "method", CALLS: "calls", KERNELS: "kernels"}[number]
        return self._fact.delegates[number - FIRST_DELEGATE].label


def _sorted(
    start: Floats, end: Floats, event: Ints, chosen: NDArray[np.bool_]
) -> tuple[Floats, Floats, Ints]:
    start, end, event = start[chosen], end[chosen], event[chosen]
    order = np.lexsort((-end, end > start, start))  # what takes no time is inside nothing
    return start[order], end[order], event[order]


def _depth(number: int) -> int:
    return {METHOD: 0, CALLS: 1}.get(number, 2)


def timeline_legend(
    data: TimelineData, facts: Iterable[TimelineEventFacts]
) -> tuple[LegendEntry, ...]:
    """Return the legend of a timeline."""
    found = {
        backend_index(one.backend): short_backend(one.backend)
        for fact in facts
        for one in fact.delegates
        if one.backend
    }
    colours = set(np.unique(data.colour).tolist())
    entries = [
        LegendEntry(found.get(colour, "delegate, backend unknown"), Swatch.FILL, colour)
        for colour in sorted(colours)
        if colour >= 0
    ]
    if NOT_DELEGATED in colours:
        entries.append(LegendEntry("not delegated", Swatch.FILL, NOT_DELEGATED))
    if bool((~data.unattributed & (data.colour == PLAIN)).any()):
        entries.append(LegendEntry("framework", Swatch.FILL, PLAIN))
    if data.unattributed.any():
        entries.append(LegendEntry("unattributed", Swatch.HATCH))
    return tuple(entries)


def _note(session: Session, facts: Mapping[int, TimelineEventFacts]) -> str:
    options = session.options
    parts = [f"{VALUES_LOGGED}: not the program's times"] if session.times_with_values else []
    if not is_time(options.source_time_scale):
        parts.append("in clock ticks: their unit is not time")
    elif unit_assumed(session):
        parts.append(f"ticks read as {options.source_time_scale} (assumed)")
    lanes = [one for fact in facts.values() for one in fact.delegates]
    backends = dict.fromkeys(
        one.backend for one in lanes if backend_of(one.backend).start_times_synthesized
    )
    parts += [
        f"{short_backend(backend)}: durations measured, start times synthesised"
        for backend in backends
    ]
    ticks = dict.fromkeys(one.backend for one in lanes if not one.is_time)
    if is_time(options.source_time_scale):
        parts += [
            f"{short_backend(backend)} counts cycles inside: lengths there are not time"
            for backend in ticks
        ]
    return " · ".join(parts)
