"""The timeline: lanes of a run, of all runs side by side or one after another, and the flame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from devtools_app.appearance.colours import NOT_DELEGATED, PLAIN, backend_index
from devtools_app.viewmodels.canvas_data import LegendEntry, Swatch, TimelineData
from devtools_app.viewmodels.timeline_events import TimelineEventFacts, event_facts
from devtools_app.viewmodels.timeline_lanes import EventBag, RunLanes
from inspector.files.session import Session
from inspector.profile.methods import VALUES_LOGGED, unit_assumed
from inspector.profile.timeline_runs import (
    MOST_RUNS,
    TimelineRun,
    clock_origins,
    occurrences,
)
from inspector.trace.timed_blocks import timed_blocks
from inspector.trace.timing import is_time, scale_factor
from inspector.units import Quantity
from schema.backends import backend_of, short_backend

Ints = NDArray[np.int64]
MOST_ALIGNED = 24  # runs side by side; more cannot be distinguished


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
    blocks = timed_blocks(session.timed_dumps).blocks
    numbers = dict.fromkeys(run.block for run in runs)
    facts = {number: event_facts(session, blocks[number]) for number in numbers}
    bag = EventBag()
    first_name = {number: bag.add_names(fact.names) for number, fact in facts.items()}
    source = session.options.source_time_scale
    scale = scale_factor(source, "ns") if is_time(source) else 1.0
    origin = clock_origins(blocks, runs)
    # by the clock, runs that are alike share their lanes
    shared = [[run] for run in runs] if aligned else _by_block(runs)
    for place, alike in enumerate(shared):
        run = alike[0]
        block = blocks[run.block]
        found = [occurrences(block, one.run) for one in alike]
        start, end, event = (np.concatenate(column) for column in zip(*found, strict=True))
        begin = float(start.min()) if aligned and len(start) else origin.get(block.dump, 0.0)
        group = run.label if len(runs) > 1 and aligned else ""
        where = (place if aligned else 0, group)
        first = (first_name[run.block], run.first_row)
        lanes = RunLanes(bag, facts[run.block], where, first)
        lanes.add((start - begin) / scale, (end - begin) / scale, event)
    data, rows = bag.data(Quantity.TIME if is_time(source) else Quantity.TICKS)
    data = replace(data, logged=session.times_with_values)
    return Timeline(data, rows, timeline_legend(data, facts.values()), _note(session, facts))


def _by_block(runs: Iterable[TimelineRun]) -> list[list[TimelineRun]]:
    found: dict[int, list[TimelineRun]] = {}
    for run in runs:
        found.setdefault(run.block, []).append(run)
    return list(found.values())


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
    parts += [
        f"{short_backend(backend)} counts cycles inside: lengths there are not time"
        for backend in dict.fromkeys(one.backend for one in lanes if not one.same_clock)
    ]
    return " · ".join(parts)
