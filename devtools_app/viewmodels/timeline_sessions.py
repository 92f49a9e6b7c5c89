"""Runs of several sessions one below another, all from a common start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from devtools_app.viewmodels.canvas_data import TimelineCounter, TimelineData
from devtools_app.viewmodels.timeline import Timeline, one_run
from devtools_app.viewmodels.timeline_counters import counters
from inspector.files.session import Session
from inspector.profile.timeline_runs import median_run, timeline_runs

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class SessionTimelines:
    """Timelines of several sessions in one.

    Attributes:
        timeline: all events; each session is a group of lanes
        owner: place of the session of each event
        omitted: titles of those without a run of this method, or with another unit

    Shapes: owner int64[events]
    """

    timeline: Timeline
    owner: Ints
    omitted: tuple[str, ...]


def has_run(session: Session, method: str) -> bool:
    """Return whether a session has a run of a method."""
    return any(run.executes for run in timeline_runs(session, method))


def with_counters(made: Timeline, session: Session, method: str) -> Timeline:
    """Return a timeline of one session with its counters."""
    spans = (made.data.start, made.data.end)
    groups = list(dict.fromkeys(lane.group for lane in made.data.lanes))
    if len(groups) != 1:
        return made
    found = counters(session, method, groups[0], made.rows, spans)
    return replace(made, data=replace(made.data, counters=found))


def stacked_sessions(
    sessions: Sequence[tuple[str, Session]], method: str, current: int
) -> SessionTimelines:
    """Return the median runs of sessions below one another.

    Args:
        sessions: titles and sessions, each title once
        method: that ran
        current: place of the session whose unit of time is used
    """
    made: dict[int, Timeline] = {}
    for place, (title, session) in enumerate(sessions):
        if has_run(session, method):
            runs = timeline_runs(session, method)
            run = median_run(runs)
            one = one_run(session, runs[run : run + 1])
            one = _under(f"{title} · {runs[run].label}", one)
            made[place] = with_counters(one, session, method)
    quantity = made[current].data.quantity
    kept = {place: one for place, one in made.items() if one.data.quantity is quantity}
    omitted = tuple(title for place, (title, _) in enumerate(sessions) if place not in kept)
    idle = tuple(title for place, (title, _) in enumerate(sessions) if place not in made)
    others = tuple(title for title in omitted if title not in idle)
    owner = [np.full(len(one.rows), place, np.int64) for place, one in kept.items()]
    parts = list(kept.values())
    legend = tuple(dict.fromkeys(entry for one in parts for entry in one.legend))
    notes = dict.fromkeys(note for one in parts for note in one.note.split(" · ") if note)
    if idle:
        notes[f"no run of {method or 'the method'}: {', '.join(idle)}"] = None
    if others:
        notes[f"left out for another unit: {', '.join(others)}"] = None
    rows = np.concatenate([one.rows for one in parts])
    merged = Timeline(_merged([one.data for one in parts]), rows, legend, " · ".join(notes))
    return SessionTimelines(merged, np.concatenate(owner), omitted)


def _under(title: str, made: Timeline) -> Timeline:
    """Return a timeline whose lanes stand under a title."""
    lanes = tuple(replace(lane, group=title) for lane in made.data.lanes)
    return replace(made, data=replace(made.data, lanes=lanes))


def _merged(parts: Sequence[TimelineData]) -> TimelineData:
    lanes = np.cumsum([0, *(len(one.lanes) for one in parts)]).tolist()
    names = np.cumsum([0, *(len(one.names) for one in parts)]).tolist()
    return TimelineData(
        lanes=tuple(lane for one in parts for lane in one.lanes),
        lane=np.concatenate([one.lane + lanes[at] for at, one in enumerate(parts)]),
        start=np.concatenate([one.start for one in parts]),
        end=np.concatenate([one.end for one in parts]),
        colour=np.concatenate([one.colour for one in parts]),
        label=np.concatenate([one.label + names[at] for at, one in enumerate(parts)]),
        names=tuple(name for one in parts for name in one.names),
        unattributed=np.concatenate([one.unattributed for one in parts]),
        quantity=parts[0].quantity,
        logged=any(one.logged for one in parts),
        counters=_comparable([counter for one in parts for counter in one.counters]),
    )


def _comparable(found: Sequence[TimelineCounter]) -> tuple[TimelineCounter, ...]:
    """Return counters of which equal heights are equal values."""
    tops: dict[str, float] = {}
    for one in found:
        tops[one.label] = max(tops.get(one.label, 0.0), one.top)
    return tuple(replace(one, top=tops[one.label]) for one in found)
