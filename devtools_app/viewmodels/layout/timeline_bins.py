"""Events of a timeline brought to pixels: wide ones as boxes, narrow ones summed a pixel.

A million events cost a few searches and sums a frame, and the density seen is true: a pixel shows
the share of its time that is covered, in the colour that covers most of it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from devtools_app.viewmodels.canvas_data import TimelineData
from devtools_app.viewmodels.layout.lane_sums import MANY, LaneSums, disjoint, lane_sums
from inspector.trace.group_keys import distinct

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
WIDE = 1.5  # pixels from which an event is a box
_FEW_COLOURS = 64  # one sum per colour and pixel: memory grows with both


@dataclass(frozen=True, slots=True, eq=False)
class LaneIndex:
    """Events of one lane in order of their begin.

    Attributes:
        event: row of the data
        start: begin
        end: end
        reach: largest end so far, so that overlapping events are found
        colour: number among the colours of the timeline
        length: end less begin
        sums: of a long lane
        disjoint: whether no two overlap

    Shapes: event, colour int64[n]; start, end, reach, length float64[n]
    """

    event: Ints
    start: Floats
    end: Floats
    reach: Floats
    colour: Ints
    length: Floats
    sums: LaneSums | None
    disjoint: bool


@dataclass(frozen=True, slots=True, eq=False)
class LaneView:
    """One lane as seen.

    Attributes:
        event: rows of the data drawn as boxes
        left: x of each box in pixels
        right: likewise
        cover: part of each pixel covered by narrow events, 0..1
        colour: number of the colour that covers most of it

    Shapes: event int64[boxes]; left, right float64[boxes]; cover float64[pixels];
        colour int64[pixels]; the last two are empty when nothing is narrow
    """

    event: Ints
    left: Floats
    right: Floats
    cover: Floats
    colour: Ints


class TimelineIndex:
    """All lanes of a timeline, sorted once.

    Attributes:
        colours: distinct colour references; narrow events are numbered by them
        start: least begin
        end: largest end
    """

    def __init__(self, data: TimelineData) -> None:
        references, number = distinct(data.colour)
        self.colours: list[int] = references.tolist()
        self.start = float(data.start.min()) if len(data.start) else 0.0
        self.end = float(data.end.max()) if len(data.end) else 0.0
        self._lanes = _lanes(data, number)
        self._number = number
        self._of_name: dict[str, int] = {}

    def lane_of_name(self, data: TimelineData, name: str) -> int:
        """Return the number of the lane of all events of a name, -1 without any."""
        if name not in self._of_name:
            labels = [place for place, one in enumerate(data.names) if one == name]
            rows = np.flatnonzero(np.isin(data.label, labels))
            rows = rows[np.argsort(data.start[rows], kind="stable")]
            self._of_name[name] = len(self._lanes) if len(rows) else -1
            if len(rows):
                self._lanes.append(_lane(data, self._number, rows))
        return self._of_name[name]

    def lane(self, lane: int) -> LaneIndex:
        """Return the events of a lane."""
        return self._lanes[lane]

    def view(self, lane: int, low: float, scale: float, pixels: int) -> LaneView:
        """Return the visible part of a lane.

        Args:
            lane: which one
            low: time at the left side
            scale: pixels a unit of time
            pixels: width of the screen
        """
        index = self._lanes[lane]
        high = low + pixels / scale
        first = int(np.searchsorted(index.reach, low, side="right"))
        last = int(np.searchsorted(index.start, high, side="left"))
        if index.sums is not None and last - first >= MANY:
            return self._many(index, index.sums, slice(first, last), (low, scale, pixels))
        start, end = index.start[first:last], index.end[first:last]
        left, right = (start - low) * scale, (end - low) * scale
        wide = right - left >= WIDE
        boxes = np.flatnonzero(wide)
        seen = boxes[right[boxes] > 0]
        columns = (left[~wide], right[~wide], index.colour[first:last][~wide])
        cover, colour = self._summed(columns, pixels, disjoint=index.disjoint)
        return LaneView(index.event[first:last][seen], left[seen], right[seen], cover, colour)

    def _many(
        self, index: LaneIndex, sums: LaneSums, seen: slice, screen: tuple[float, float, int]
    ) -> LaneView:
        """Return the visible part of a long lane without adding up its events again."""
        low, scale, pixels = screen
        wide = np.flatnonzero(index.length[seen] >= WIDE / scale) + seen.start
        start, end = index.start[wide], index.end[wide]
        boxes_alone = LaneSums(start, end, index.colour[wide])
        cover, colour = sums.cover(low + np.arange(pixels + 1) / scale, boxes_alone)
        left, right = (start - low) * scale, (end - low) * scale
        boxes = right > 0
        return LaneView(index.event[wide][boxes], left[boxes], right[boxes], cover, colour)

    def _summed(
        self, columns: tuple[Floats, Floats, Ints], pixels: int, *, disjoint: bool
    ) -> tuple[Floats, Ints]:
        """Return cover and colour of each pixel by narrow events: their sides and colours."""
        left, right, colour = columns
        kinds = len(self.colours)
        if not len(left):
            return np.zeros(0), np.zeros(0, np.int64)
        if disjoint and kinds <= _FEW_COLOURS:
            return LaneSums(left, right, colour).cover(np.arange(pixels + 1.0))
        at = np.floor((left + right) * 0.5).astype(np.int64)
        inside = (at >= 0) & (at < pixels)
        at, colour = at[inside], colour[inside]
        width = (right - left)[inside]
        if kinds > _FEW_COLOURS:  # too many to sum apart: the widest event of a pixel wins
            return _widest(at, colour, width, pixels)
        sums = np.bincount(at * kinds + colour, weights=width, minlength=pixels * kinds)
        table = np.reshape(sums, (pixels, kinds))
        return np.minimum(table.sum(axis=1), 1.0), table.argmax(axis=1).astype(np.int64)

    def at(self, lane: int, time: float, slack: float) -> int:
        """Return the row of the event at a time, the nearest within some slack, or -1."""
        index = self._lanes[lane]
        first = int(np.searchsorted(index.reach, time - slack, side="left"))
        last = int(np.searchsorted(index.start, time + slack, side="right"))
        if first >= last:
            return -1
        start, end = index.start[first:last], index.end[first:last]
        away = np.maximum(np.maximum(start - time, time - end), 0.0)
        best = int(np.lexsort((end - start, away))[0])  # the shortest of those that hold it
        return int(index.event[first + best]) if away[best] <= slack else -1

    def border(self, lane: int, time: float, slack: float) -> float:
        """Return the begin or end of an event nearest to a time, the time itself beyond a slack."""
        index = self._lanes[lane]
        first = int(np.searchsorted(index.reach, time - slack, side="left"))
        last = int(np.searchsorted(index.start, time + slack, side="right"))
        ends = np.concatenate([index.start[first:last], index.end[first:last]])
        if not len(ends):
            return time
        nearest = float(ends[np.abs(ends - time).argmin()])
        return nearest if abs(nearest - time) <= slack else time

    def holds(self, lane: int, event: int) -> bool:
        """Return whether an event is in a lane."""
        return bool((self._lanes[lane].event == event).any())

    def neighbour(self, data: TimelineData, event: int, step: int) -> int:
        """Return the row of the event before (-1) or after (1) in the same lane, or -1."""
        index = self._lanes[int(data.lane[event])]
        place = np.flatnonzero(index.event == event)
        to = int(place[0]) + step
        return int(index.event[to]) if 0 <= to < len(index.event) else -1


def _lanes(data: TimelineData, number: Ints) -> list[LaneIndex]:
    step = np.diff(data.lane)
    ascending = (step > 0) | ((step == 0) & (data.start[1:] >= data.start[:-1]))
    rows = np.arange(len(data.lane))
    order = rows if ascending.all() else np.lexsort((data.start, data.lane))
    lane = data.lane[order]
    bounds: list[int] = np.searchsorted(lane, np.arange(len(data.lanes) + 1)).tolist()
    found: list[LaneIndex] = []
    for low, high in itertools.pairwise(bounds):
        found.append(_lane(data, number, order[low:high]))
    return found


def _lane(data: TimelineData, number: Ints, rows: Ints) -> LaneIndex:
    """Return the lane of some events, given by their begin."""
    end = data.end[rows]
    reach = np.maximum.accumulate(end) if len(end) else end
    start, colour = data.start[rows], number[rows]
    sums = lane_sums(start, end, colour)
    apart = sums is not None or disjoint(start, end)
    return LaneIndex(rows, start, end, reach, colour, end - start, sums, apart)


def _widest(at: Ints, colour: Ints, width: Floats, pixels: int) -> tuple[Floats, Ints]:
    cover = np.minimum(np.bincount(at, weights=width, minlength=pixels), 1.0)
    chosen = np.zeros(pixels, np.int64)
    order = np.argsort(width, kind="stable")
    chosen[at[order]] = colour[order]  # the last write, of the widest, stays
    return cover, chosen
