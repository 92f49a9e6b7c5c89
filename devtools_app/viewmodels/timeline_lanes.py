"""Lanes of a run, nested as its events are: method, calls, and kernels inside of a call.

What a delegate logs lies below its call, whichever delegate it is, so that lanes are as many as
events are nested and not as many as there are delegates. A delegate whose times do not lie inside
of its calls, or that counts with a clock of its own, is drawn in a lane of its backend.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from devtools_app.appearance.colours import PLAIN
from devtools_app.viewmodels.canvas_data import TimelineData, TimelineLane
from devtools_app.viewmodels.timeline_events import (
    CALLS,
    FIRST_DELEGATE,
    KERNELS,
    METHOD,
    TimelineEventFacts,
)
from inspector.profile.intervals import gaps, inside_of, stack_levels
from inspector.units import Quantity
from schema.backends import short_backend

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
UNATTRIBUTED = "unattributed"
_LABELS = {METHOD: "method", CALLS: "calls", KERNELS: "kernels"}
_APART = FIRST_DELEGATE  # number of all lanes of what is not nested
_LaneKey = tuple[int, int, str, int]  # place of the run, number, label, level


class EventBag:
    """Columns collected run by run, and the lanes they are in."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, Floats, Floats, Ints, Ints, Ints]] = []
        self._names: list[str] = [UNATTRIBUTED]
        self._lane_of: dict[_LaneKey, int] = {}
        self._lanes: list[TimelineLane] = []

    def add_names(self, names: tuple[str, ...]) -> int:
        """Add strings; return the index of the first."""
        first = len(self._names)
        self._names += names
        return first

    def lane(self, place: tuple[int, str], number: int, label: str, level: int) -> int:
        """Return the number of a lane, creating it if necessary."""
        run, group = place
        key = (run, number, label, level)
        found = self._lane_of.get(key)
        if found is None:
            found = self._lane_of[key] = len(self._lanes)
            depth = {METHOD: 0, CALLS: 1}.get(number, 2) + level
            apart = number == _APART
            self._lanes.append(TimelineLane("" if level else label, group, depth, apart))
        return found

    def add(
        self, lane: int, start: Floats, end: Floats, looks: tuple[Ints, Ints, Ints] | None = None
    ) -> None:
        """Add events with (colour, label, row); without these it is unattributed time."""
        count = len(start)
        if looks is None:
            none = np.zeros(count, np.int64)
            looks = (none + PLAIN, none, none - 1)
        self._parts.append((lane, start, end, *looks))

    def data(self, quantity: Quantity) -> tuple[TimelineData, Ints]:
        """Return all events sorted by lane and start, and the profile rows."""
        ordered = sorted(self._lane_of)
        place = {self._lane_of[key]: at for at, key in enumerate(ordered)}
        parts = sorted(self._parts, key=lambda part: place[part[0]])
        counts = [len(start) for _, start, *_ in parts]
        numbers = [place[one] for one, *_ in parts]
        lane = np.repeat(np.array(numbers, np.int64), counts)
        places = _places(numbers, [part[1] for part in parts])
        start = _put([part[1] for part in parts], places, np.float64)
        end = _put([part[2] for part in parts], places, np.float64)
        colour = _put([part[3] for part in parts], places, np.int64)
        label = _put([part[4] for part in parts], places, np.int64)
        rows = _put([part[5] for part in parts], places, np.int64)
        data = TimelineData(
            lanes=tuple(self._lanes[self._lane_of[key]] for key in ordered),
            lane=lane,
            start=start,
            end=end,
            colour=colour,
            label=label,
            names=tuple(self._names),
            unattributed=rows < 0,
            quantity=quantity,
        )
        return data, rows


Number = TypeVar("Number", bound=np.generic)


def _places(lanes: Sequence[int], starts: Sequence[Floats]) -> list[Ints | slice]:
    """Return where the events of each part go, so that those of a lane are sorted by start.

    Args:
        lanes: lane of each part, ascending
        starts: of the events of each part
    """
    found: list[Ints | slice] = []
    low = 0
    for _, group in groupby(range(len(lanes)), key=lanes.__getitem__):
        own = [starts[part] for part in group]
        ends = np.cumsum([0, *map(len, own)])
        start = own[0] if len(own) == 1 else np.concatenate(own)
        if (start[1:] >= start[:-1]).all():
            found += [slice(low + int(a), low + int(b)) for a, b in pairwise(ends)]
        else:
            place = np.empty(len(start), np.int64)
            place[np.argsort(start, kind="stable")] = np.arange(low, low + len(start))
            found += [place[int(a) : int(b)] for a, b in pairwise(ends)]
        low += len(start)
    return found


def _put(
    parts: Sequence[NDArray[Number]], places: Sequence[Ints | slice], kind: type[Number]
) -> NDArray[Number]:
    column = np.empty(sum(map(len, parts)), kind)
    for part, place in zip(parts, places, strict=True):
        column[place] = part
    return column


class RunLanes:
    """Puts the events of one run into lanes."""

    def __init__(
        self,
        bag: EventBag,
        fact: TimelineEventFacts,
        place: tuple[int, str],
        first: tuple[int, int],
    ) -> None:
        """Keep what the events of the run have in common.

        Args:
            bag: collects the events
            fact: of the block of the run
            place: position and group of the run
            first: number of the block's first name in the bag, and of its first profile row
        """
        self._bag, self._fact, self._place = bag, fact, place
        self._first_name, self._first_row = first

    def add(self, start: Floats, end: Floats, event: Ints) -> None:
        """Add everything timed in the run."""
        lane = self._fact.lane[event]
        apart = self._apart(start, end, event, lane)
        nested = (lane >= FIRST_DELEGATE) & ~apart
        number = np.minimum(lane, KERNELS)
        for one in (METHOD, CALLS, KERNELS):
            self._add_lane(one, _LABELS[one], start, end, event, (number == one) & ~apart)
        calls = lane == CALLS
        logging = calls & np.isin(event, np.unique(self._fact.call[event[nested]]))
        if calls.any():
            self._add_gaps(CALLS, start, end, self._fact.executes[event], calls)
        self._add_gaps(KERNELS, start, end, logging, nested)
        labels = [self._apart_label(delegate) for delegate in range(len(self._fact.delegates))]
        for label in dict.fromkeys(labels):
            own = [FIRST_DELEGATE + at for at, one in enumerate(labels) if one == label]
            self._add_lane(_APART, label, start, end, event, apart & np.isin(lane, own))

    def _apart(self, start: Floats, end: Floats, event: Ints, lane: Ints) -> Bools:
        """Return what delegates logged that cannot be nested: all events of such a call."""
        inner = lane >= FIRST_DELEGATE
        foreign = np.array([not one.same_clock for one in self._fact.delegates], np.bool_)
        apart = np.zeros(len(lane), np.bool_)
        if inner.any():
            calls, call = lane == CALLS, self._fact.call[event[inner]]
            inside = inside_of(
                (event[calls], start[calls], end[calls]), (call, start[inner], end[inner])
            )
            strayed = np.unique(call[~inside & (call >= 0)])
            apart[inner] = np.isin(call, strayed) | foreign[lane[inner] - FIRST_DELEGATE]
        return apart

    def _apart_label(self, number: int) -> str:
        delegate = self._fact.delegates[number]
        name = short_backend(delegate.backend) if delegate.backend else "delegates"
        return f"{name}, {'outside' if delegate.same_clock else 'own clock'}"

    def _add_lane(
        self, number: int, label: str, start: Floats, end: Floats, event: Ints, chosen: Bools
    ) -> None:
        if not chosen.any():
            return
        start, end, event = _sorted(start[chosen], end[chosen], event[chosen])
        levels = stack_levels(start, end)
        for level in range(int(levels.max(initial=0)) + 1):
            own = levels == level
            ids = event[own]
            looks = (
                self._fact.colour[ids],
                self._first_name + self._fact.label[ids],
                self._first_row + ids,
            )
            lane = self._bag.lane(self._place, number, label, level)
            self._bag.add(lane, start[own], end[own], looks)

    def _add_gaps(
        self, number: int, start: Floats, end: Floats, around: Bools, inside: Bools
    ) -> None:
        """Add the time of outer events that none of the inner ones covers."""
        low, high = gaps(start[around], end[around], start[inside], end[inside])
        if len(low):
            self._bag.add(self._bag.lane(self._place, number, _LABELS[number], 0), low, high)


def _sorted(start: Floats, end: Floats, event: Ints) -> tuple[Floats, Floats, Ints]:
    if (start[1:] > start[:-1]).all():
        return start, end, event
    order = np.lexsort((-end, end > start, start))  # what takes no time is inside nothing
    return start[order], end[order], event[order]
