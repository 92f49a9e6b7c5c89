"""Content of the timeline view: the runs to choose from, and the events of the chosen ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from devtools_app.viewmodels.layout.timeline_bins import TimelineIndex
from devtools_app.viewmodels.timeline import Timeline, absolute_runs, aligned_runs, one_run
from devtools_app.viewmodels.timeline_counters import row_steps
from devtools_app.viewmodels.timeline_flame import flame_timeline, has_flame
from devtools_app.viewmodels.timeline_flow import DataFlow, flow_arrows
from devtools_app.viewmodels.timeline_sessions import (
    SessionBeside,
    has_run,
    stacked_sessions,
    with_counters,
)
from inspector.files.session import Session
from inspector.profile.join_index import JoinIndex, join_index
from inspector.profile.time_range import ALL_RUNS, CLOCK
from inspector.profile.timeline_runs import (
    TimelineRun,
    median_run,
    slowest_run,
    timeline_runs,
)
from inspector.trace.timed_blocks import timed_blocks

Ints = NDArray[np.int64]
FLAME, ALIGNED, ABSOLUTE, RUN, SESSIONS = "flame", ALL_RUNS, CLOCK, "run ", "sessions"
_MOST_LISTED = 200  # runs in the chooser; all runs together show the others


@dataclass(frozen=True, slots=True, eq=False)
class TimelineContent:
    """A timeline with its look-ups.

    Attributes:
        choices: runs and other arrangements, with their keys
        chosen: key of the one shown
        timeline: its events, None without any
        index: look-ups of the method
        places: the events lane by lane
        run: which runs a range is of, empty where there is no clock
        slowest: key of the slowest run, empty where no time is known
        owner: place of the session of each event; None where all are of one
        methods: whose run is drawn of each session, by its place; empty where all is of one
        current: place of the session shown
        flow: of data between instructions, None without a program
    """

    choices: list[tuple[str, str]]
    chosen: str
    timeline: Timeline | None
    index: JoinIndex
    places: TimelineIndex | None
    run: str
    slowest: str
    owner: Ints | None = None
    methods: Mapping[int, str] = field(default_factory=dict[int, str])
    current: int = 0
    flow: DataFlow | None = field(default=None, repr=False)

    def own(self, event: int) -> bool:
        """Return whether an event is of the session shown."""
        return self.owner is None or int(self.owner[event]) == self.current

    def events_of(self, rows: Sequence[int]) -> list[int]:
        """Return the events of rows of the profile of the session shown."""
        if self.timeline is None or not rows:
            return []
        found = np.flatnonzero(np.isin(self.timeline.rows, rows))
        return [event for event in found.tolist() if self.own(event)]

    def arrows(self, session: Session, event: int) -> list[tuple[int, int]]:
        """Return the flow of data to and from the call of an event, as pairs of events."""
        made, flow = self.timeline, self.flow
        if made is None or flow is None or not self.own(event) or made.rows[event] < 0:
            return []
        steps, is_call, _ = row_steps(session)
        data, rows = made.data, made.rows
        named = {lane.group: place for place, lane in enumerate(data.lanes)}
        groups = np.array([named[lane.group] for lane in data.lanes], np.int64)[data.lane]
        calls = np.flatnonzero((groups == groups[event]) & (rows >= 0))
        calls = calls[is_call[rows[calls]]]
        spans = (data.start, data.end)
        step = int(steps[rows[event]])
        return flow_arrows(flow, event, calls, steps[rows[calls]], spans, step)


def timeline_content(
    session: Session,
    method: str,
    chosen: str,
    others: Sequence[SessionBeside] = (),
    row: int | None = None,
) -> TimelineContent:
    """Return the content to draw.

    Args:
        session: the one shown
        method: of its runs
        chosen: key of a run or arrangement; the run nearest to the median for an unknown one
        others: all sessions that are open, that one among them
        row: of the profile, which the run shown has to have; None for any run
    """
    runs = timeline_runs(session, method)
    middle = median_run(runs[:_MOST_LISTED])
    if row is not None:
        chosen = _run_with(session, runs, chosen or f"{RUN}{middle}", row)
    choices = _choices(session, method, others, chosen)
    known = [key for _, key in choices]
    if chosen not in known:
        chosen = f"{RUN}{middle}" if runs else ""
    current = next((at for at, one in enumerate(others) if one.session is session), 0)
    stacked = stacked_sessions(others, method, current) if chosen == SESSIONS else None
    timeline = stacked.timeline if stacked else _timeline(session, method, chosen)
    run = chosen if chosen in (ALIGNED, ABSOLUTE) else stacked.run if stacked else ""
    if chosen.startswith(RUN):
        run = runs[int(chosen.removeprefix(RUN))].label
    slowest = slowest_run(runs[:_MOST_LISTED])
    index = join_index(session, method)
    return TimelineContent(
        choices,
        chosen,
        timeline,
        index,
        TimelineIndex(timeline.data) if timeline is not None else None,
        run,
        f"{RUN}{slowest}" if slowest >= 0 else "",
        stacked.owner if stacked else None,
        stacked.methods if stacked else {},
        current,
        DataFlow(index.operands) if index.operands and chosen != FLAME else None,
    )


def _run_with(session: Session, runs: Sequence[TimelineRun], chosen: str, row: int) -> str:
    """Return the key of a run that has a row of the profile, the chosen one if it has."""
    blocks = timed_blocks(session.timed_dumps).blocks
    having = [
        place
        for place, run in enumerate(runs)
        if run.first_row <= row < run.first_row + len(blocks[run.block])
    ]
    if not having or not chosen.startswith(RUN) or chosen in {f"{RUN}{one}" for one in having}:
        return chosen
    return f"{RUN}{having[median_run([runs[place] for place in having])]}"


def _choices(
    session: Session, method: str, others: Sequence[SessionBeside], chosen: str
) -> list[tuple[str, str]]:
    """Return the arrangements and runs to choose from; there may be hundreds of runs."""
    runs = timeline_runs(session, method)
    listed = runs[:_MOST_LISTED]
    choices: list[tuple[str, str]] = []
    if len(runs) > 1:
        choices += [("all runs, side by side", ALIGNED), ("all runs, one after another", ABSOLUTE)]
    beside = (one for one in others if one.session is not session)
    if has_run(session, method) and any(one.method_beside(method) is not None for one in beside):
        choices.append(("all sessions, side by side", SESSIONS))
    if any(run.executes for run in runs) and has_flame(session, method):
        choices.append(("flame of the mean run", FLAME))
    choices += [(run.label, f"{RUN}{place}") for place, run in enumerate(listed)]
    choices += [
        (run.label, key)
        for place, run in enumerate(runs[_MOST_LISTED:], _MOST_LISTED)
        if (key := f"{RUN}{place}") == chosen
    ]
    return choices


def _timeline(session: Session, method: str, chosen: str) -> Timeline | None:
    runs = timeline_runs(session, method)
    if not chosen:
        return None
    if chosen == FLAME:
        return flame_timeline(session, method)
    if chosen == ALIGNED:
        return aligned_runs(session, runs)
    if chosen == ABSOLUTE:
        return with_counters(absolute_runs(session, runs), session, method)
    place = int(chosen.removeprefix(RUN))
    return with_counters(one_run(session, runs[place : place + 1]), session, method)
