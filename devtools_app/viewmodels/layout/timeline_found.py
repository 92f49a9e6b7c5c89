"""Events that a search found: in the order of time, and brought to pixels lane by lane."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from devtools_app.viewmodels.canvas_data import TimelineData
from inspector.tables.filter import matches, parse_filter
from inspector.tables.table import Table, number_column
from inspector.units import Quantity

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
NARROW = 3.0  # pixels from which a found event has a ring


class FoundEvents:
    """Found events.

    Attributes:
        rows: rows of the data, by their begin

    Shapes: rows int64[found]
    """

    def __init__(self, data: TimelineData, rows: Ints) -> None:
        order = np.lexsort((data.lane[rows], data.start[rows]))
        self.rows: Ints = rows[order]
        self._start, self._end = data.start[self.rows], data.end[self.rows]
        lane = data.lane[self.rows]
        by_lane = np.argsort(lane, kind="stable")
        bounds = np.searchsorted(lane[by_lane], np.arange(len(data.lanes) + 1)).tolist()
        self._lanes = [self._lane(by_lane[low:high]) for low, high in itertools.pairwise(bounds)]

    def _lane(self, places: Ints) -> tuple[Floats, Floats, Floats]:
        """Return begin, end and largest end so far of matches in a lane."""
        start, end = self._start[places], self._end[places]
        return start, end, np.maximum.accumulate(end) if len(end) else end

    def __len__(self) -> int:
        return len(self.rows)

    def place(self, row: int) -> int:
        """Return the place of an event among the matches, or -1."""
        found = np.flatnonzero(self.rows == row)
        return int(found[0]) if len(found) else -1

    def next(self, current: int, time: float, step: int) -> int:
        """Return the place of the match after (1) or before (-1) the current one.

        Args:
            current: row of an event; otherwise the time decides
            time: from which to look
            step: 1 or -1
        """
        place = self.place(current)
        if place >= 0:
            return (place + step) % len(self.rows)
        after = int(np.searchsorted(self._start, time))
        return (after if step > 0 else after - 1) % len(self.rows)

    def view(self, lane: int, low: float, scale: float, pixels: int) -> tuple[Floats, Floats]:
        """Return left and right side in pixels of wide events of a lane, and of runs of pixels.

        In each pixel of such a run some event begins.

        Shapes: float64[n, 2] each
        """
        none = np.zeros((0, 2))
        if lane >= len(self._lanes):
            return none, none
        start, end, reach = self._lanes[lane]
        first = int(np.searchsorted(reach, low, side="left"))
        last = int(np.searchsorted(start, low + pixels / scale, side="left"))
        start, end = start[first:last], end[first:last]
        wide = np.flatnonzero(end - start >= NARROW / scale)
        boxes = np.stack([start[wide] - low, end[wide] - low], axis=1) * scale
        if len(wide) == len(start):
            return boxes, none
        # begins are sorted: a pixel has some where the places of its edges differ
        edges = np.searchsorted(start, low + np.arange(pixels + 1) / scale)
        return boxes, _runs(np.diff(edges) > 0)


def _runs(marked: NDArray[np.bool_]) -> Floats:
    """Return the first pixel and the one after the last of each run of marked pixels."""
    change = np.flatnonzero(np.diff(np.concatenate([[False], marked, [False]]).astype(np.int8)))
    return np.stack([change[::2], change[1::2]], axis=1).astype(np.float64)


def search_events(data: TimelineData, text: str) -> Ints | None:
    """Return the rows of the events that a filter finds by name, lane and ``duration``.

    None for an empty filter.

    Raises: FilterError
    """
    duration = data.end - data.start
    table = _durations(duration, data.quantity)
    parsed = parse_filter(text, table)
    if not parsed:
        return None
    found = np.ones(len(duration), np.bool_)
    for term in parsed.terms:
        kept = matches(term)
        lanes = kept([f"{lane.group} {lane.label}" for lane in data.lanes])
        found &= kept(data.names)[data.label] | lanes[data.lane]
    for condition in parsed.comparisons:
        found &= condition.keeps(duration / condition.scale(table.columns[condition.column]))
    return np.flatnonzero(found)


def _durations(values: Floats, quantity: Quantity) -> Table:
    """Return the table that comparisons of a search name a column of."""
    largest = values[[int(values.argmax())]] if len(values) else values
    return Table((number_column("duration", largest, quantity),), len(largest))
