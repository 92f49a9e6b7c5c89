"""Running sums over the events of a long lane: the cover of a pixel is a difference of two.

A frame then costs the same for a thousand events and for a million.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
MANY = 40_000  # events from which adding them up anew takes longer than two searches
_KINDS = 16  # colours with sums of their own; more would take too much memory
_NOISE = 1e-6  # of a pixel; what remains of equal sums


class LaneSums:
    """Sums of the lengths of events by their middle, for each colour."""

    def __init__(self, start: Floats, end: Floats, colour: Ints) -> None:
        middle = (start + end) * 0.5
        length = end - start
        if len(middle) > 1 and (middle[1:] < middle[:-1]).any():
            order = np.argsort(middle, kind="stable")
            middle, length, colour = middle[order], length[order], colour[order]
        self._middle = middle
        self._kinds = np.unique(colour)
        self._place = np.zeros(int(self._kinds.max(initial=0)) + 1, np.int64)
        self._place[self._kinds] = np.arange(len(self._kinds))
        self._sums = np.zeros((len(self._kinds), len(middle) + 1))
        for place, kind in enumerate(self._kinds.tolist()):
            np.cumsum(np.where(colour == kind, length, 0.0), out=self._sums[place, 1:])

    def view(
        self,
        low: float,
        scale: float,
        pixels: int,
        without: tuple[Floats, Floats, Ints],
    ) -> tuple[Floats, Ints]:
        """Return the cover of each pixel and the colour of most of it.

        Args:
            low: time at the left side
            scale: pixels a unit of time
            pixels: width of the screen
            without: start, end and colour of events that are left out
        """
        edges = low + np.arange(pixels + 1) / scale
        at = np.searchsorted(self._middle, edges)
        table = np.diff(self._sums[:, at], axis=1)
        start, end, colour = without
        pixel = np.searchsorted(edges, (start + end) * 0.5, side="right") - 1
        inside = (pixel >= 0) & (pixel < pixels)
        np.subtract.at(table, (self._place[colour[inside]], pixel[inside]), (end - start)[inside])
        table *= scale
        table[table < _NOISE] = 0.0
        return np.minimum(table.sum(axis=0), 1.0), self._kinds[table.argmax(axis=0)]


def lane_sums(start: Floats, end: Floats, colour: Ints) -> LaneSums | None:
    """Return the sums of a lane, None where they bring nothing or take too much memory."""
    if len(start) < MANY or len(np.unique(colour)) > _KINDS:
        return None
    return LaneSums(start, end, colour)
