"""Runs of several sessions one below another, all from a common start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from devtools_app.viewmodels.canvas_data import TimelineCounter, TimelineData
from devtools_app.viewmodels.timeline import Timeline, one_run
from devtools_app.viewmodels.timeline_counters import counters
from inspector.files.session import Session
from inspector.profile.methods import first_method
from inspector.profile.timeline_runs import median_run, timeline_runs

Ints = NDArray[np.int64]


class SessionBeside(NamedTuple):
    """A session whose run may stand beside another's.

    Attributes:
        title: no other has it
        session: with its trace
        method: its own that was shown last; empty before
    """

    title: str
    session: Session
    method: str = ""

    def method_beside(self, method: str) -> str | None:
        """Return the method to show beside one of another session; None without a run of any.

        That of the same name, else its own, since exports of one model name their methods in
        several ways; without a program nothing shows which method ran, and its name is empty.
        """
        known = [name for name in (method, self.method) if name in self.session.methods]
        names = (*known, first_method(self.session))
        return next((name for name in names if has_run(self.session, name)), None)


@dataclass(frozen=True, slots=True, eq=False)
class SessionTimelines:
    """Timelines of several sessions in one.

    Attributes:
        timeline: all events; each session is a group of lanes
        owner: place of the session of each event
        methods: whose run is drawn, by the place of the session
        run: label of the run of the session whose unit is used

    Shapes: owner int64[events]
    """

    timeline: Timeline
    owner: Ints
    methods: Mapping[int, str]
    run: str


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
    sessions: Sequence[SessionBeside], method: str, current: int
) -> SessionTimelines:
    """Return the median runs of sessions below one another.

    Args:
        sessions: each title once
        method: of the session at ``current``, which has a run of it
        current: place of the session whose unit of time is used
    """
    found = {place: one.method_beside(method) for place, one in enumerate(sessions)}
    methods = {place: name for place, name in found.items() if name is not None}
    several = len(set(methods.values())) > 1
    made: dict[int, Timeline] = {}
    labels: dict[int, str] = {}
    for place, name in methods.items():
        title, session, _ = sessions[place]
        runs = timeline_runs(session, name)
        run = median_run(runs)
        labels[place] = runs[run].label
        words = (title, name if several else "", labels[place])
        one = _under(
            " · ".join(word for word in words if word), one_run(session, runs[run : run + 1])
        )
        made[place] = with_counters(one, session, name)
    quantity = made[current].data.quantity
    kept = {place: one for place, one in made.items() if one.data.quantity is quantity}
    owner = [np.full(len(one.rows), place, np.int64) for place, one in kept.items()]
    parts = list(kept.values())
    legend = tuple(dict.fromkeys(entry for one in parts for entry in one.legend))
    notes = dict.fromkeys(_reasons(sessions, method, methods, kept))
    notes |= dict.fromkeys(note for one in parts for note in one.note.split(" · ") if note)
    rows = np.concatenate([one.rows for one in parts])
    merged = Timeline(_merged([one.data for one in parts]), rows, legend, " · ".join(notes))
    return SessionTimelines(merged, np.concatenate(owner), methods, labels[current])


def _reasons(
    sessions: Sequence[SessionBeside],
    method: str,
    methods: Mapping[int, str],
    kept: Mapping[int, object],
) -> list[str]:
    """Return why sessions are not drawn, or with another method."""
    titles = {place: one.title for place, one in enumerate(sessions)}
    idle = [title for place, title in titles.items() if place not in methods]
    others = [titles[place] for place in methods if place not in kept]
    own = [
        f"{titles[place]}, whose {name} is shown"
        for place, name in methods.items()
        if place in kept and method and name and name != method
    ]
    words = {f"no run of {method}": own, "no run": idle, "left out for another unit": others}
    return [f"{word}: {'; '.join(named)}" for word, named in words.items() if named]


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
