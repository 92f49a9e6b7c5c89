"""Where the lanes of a timeline are: pinned ones at the top, below them groups with their lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from devtools_app.viewmodels.canvas_data import TimelineData
from devtools_app.viewmodels.layout.timeline_bins import TimelineIndex

RULER = 28.0
LABELS = 156.0  # width of the lane names
LANE, FLAME_LANE = 24.0, 19.0
GROUP = 24.0  # height of a group's name
COUNTER, NO_COUNTER = 46.0, 20.0  # height of a counter, and of one that is missing
_MORE_LANE, _MORE_COUNTER = 16.0, 2 * COUNTER  # by which they grow in a high window
_PAD = 6.0


@dataclass(frozen=True, slots=True)
class LanePlace:
    """Vertical extent of a lane, relative to the top of its part before scrolling.

    Attributes:
        lane: number in the index
        top: of it
        height: of it
        label: shown at the left
        depth: level of nesting
    """

    lane: int
    top: float
    height: float
    label: str = ""
    depth: int = 0


@dataclass(frozen=True, slots=True)
class GroupPlace:
    """Position of the name of a group."""

    name: str
    top: float


@dataclass(frozen=True, slots=True)
class CounterPlace:
    """Vertical extent of a counter, as of a lane."""

    counter: int
    top: float
    height: float


@dataclass(frozen=True, slots=True)
class Pin:
    """A lane, or all events of a name, kept at the top.

    Attributes:
        name: of events; empty for a lane
        label: of the lane
        group: of the lane
        depth: of the lane
    """

    name: str = ""
    label: str = ""
    group: str = ""
    depth: int = 0

    @property
    def title(self) -> str:
        """Return a description of the pinned lanes."""
        return self.name or " · ".join(filter(None, (self.group, self.label or "nested")))


@dataclass(slots=True)
class TimelinePlaces:
    """All lanes, groups and counters.

    Attributes:
        lanes: that scroll
        groups: likewise
        counters: likewise
        pinned: that do not
        tall: height of what scrolls
        pins: what pinned lanes show, one each
    """

    lanes: list[LanePlace] = field(default_factory=list)
    groups: list[GroupPlace] = field(default_factory=list)
    counters: list[CounterPlace] = field(default_factory=list)
    pinned: list[LanePlace] = field(default_factory=list)
    tall: float = 0.0
    pins: list[Pin] = field(default_factory=list)

    @property
    def body(self) -> float:
        """Return where that begins what scrolls."""
        if not self.pinned:
            return RULER
        last = self.pinned[-1]
        return RULER + last.top + last.height + _PAD


def place_lanes(data: TimelineData, *, flame: bool, room: float = 0.0) -> TimelinePlaces:
    """Return the places of lanes, groups and counters.

    Args:
        data: the lanes
        flame: stack them without gaps
        room: height that they may fill
    """
    found = _placed(data, FLAME_LANE if flame else LANE, COUNTER, flame=flame)
    left = room - found.tall
    if flame or left <= 0.0:
        return found
    lanes = max(len(found.lanes), 1)
    counters = sum(not one.missing for one in data.counters)
    more = min(_MORE_LANE, left / (2 * lanes) if counters else left / lanes)
    left -= more * lanes
    high = COUNTER + (min(_MORE_COUNTER, left / counters) if counters else 0.0)
    return _placed(data, LANE + more, high, flame=flame)


def _placed(data: TimelineData, height: float, high: float, *, flame: bool) -> TimelinePlaces:
    """Return the places for a height of lanes and one of counters."""
    found = TimelinePlaces()
    y = _PAD
    for number, lane in enumerate(data.lanes):
        if lane.group and (number == 0 or data.lanes[number - 1].group != lane.group):
            y += 4.0 if number else 0.0
            found.groups.append(GroupPlace(lane.group, y))
            y += GROUP
        found.lanes.append(LanePlace(number, y, height, lane.label, lane.depth))
        y += height + (0.0 if flame else 2.0)
        if number + 1 == len(data.lanes) or data.lanes[number + 1].group != lane.group:
            y = _place_counters(data, lane.group, y, high, found)
    found.tall = y + _PAD
    return found


def _place_counters(
    data: TimelineData, group: str, y: float, high: float, found: TimelinePlaces
) -> float:
    for place, counter in enumerate(data.counters):
        if counter.group == group:
            height = NO_COUNTER if counter.missing else high
            found.counters.append(CounterPlace(place, y + 4.0, height))
            y += height + 6.0
    return y


def place_pins(
    places: TimelinePlaces, pins: Sequence[Pin], data: TimelineData, index: TimelineIndex
) -> None:
    """Put pinned lanes at the top; those that a timeline does not have are left out."""
    places.pinned.clear()
    places.pins.clear()
    y = _PAD
    for pin in pins:
        number = _lane_of(pin, data, index)
        if number >= 0:
            label = pin.title
            places.pinned.append(LanePlace(number, y, LANE, label, pin.depth))
            places.pins.append(pin)
            y += LANE + 2.0


def _lane_of(pin: Pin, data: TimelineData, index: TimelineIndex) -> int:
    if pin.name:
        return index.lane_of_name(data, pin.name)
    for number, lane in enumerate(data.lanes):
        if (lane.label, lane.group, lane.depth) == (pin.label, pin.group, pin.depth):
            return number
    return -1
