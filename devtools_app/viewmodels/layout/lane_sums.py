"""How much of each pixel the events of a lane cover, by colour.

Events of a lane do not overlap, so that what lies before a time is a sum of lengths less what the
last one that began reaches beyond it. With these sums kept, a frame costs the same for a thousand
events and for a million.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
MANY = 40_000  # events from which adding them up again takes longer than two searches
_KINDS = 16  # colours with sums of their own; more would take too much memory
_NOISE = 1e-6  # of a pixel; what remains of equal sums


class LaneSums:
    """Sums of the lengths of events that do not overlap, for each colour.

    Args:
        start: begins, sorted
        end: ends
        colour: number of each colour
    """

    def __init__(self, start: Floats, end: Floats, colour: Ints) -> None:
        self._start, self._end = start, end
        self.kinds: Ints = np.unique(colour)
        self._place = np.searchsorted(self.kinds, colour)
        self._sums = np.zeros((len(self.kinds), len(start) + 1))
        for place in range(len(self.kinds)):
            np.cumsum(np.where(self._place == place, end - start, 0.0), out=self._sums[place, 1:])

    def between(self, edges: Floats) -> Floats:
        """Return the time that events of each colour cover between two edges.

        Shapes: edges float64[n + 1], sorted; float64[kinds, n]
        """
        at = np.searchsorted(self._start, edges, side="right")
        covered = self._sums[:, at]
        begun = np.flatnonzero(at > 0)
        last = at[begun] - 1
        covered[self._place[last], begun] -= np.maximum(self._end[last] - edges[begun], 0.0)
        return np.diff(covered, axis=1)

    def cover(self, edges: Floats, without: LaneSums | None = None) -> tuple[Floats, Ints]:
        """Return the covered part of each pixel and the colour of most of it.

        Args:
            edges: times of the borders of pixels of equal width
            without: events to leave out, with no other colours
        """
        table = self.between(edges)
        if without is not None and len(without.kinds):
            table[np.searchsorted(self.kinds, without.kinds)] -= without.between(edges)
        table /= edges[1] - edges[0]
        table[table < _NOISE] = 0.0
        return np.minimum(table.sum(axis=0), 1.0), self.kinds[table.argmax(axis=0)]


def lane_sums(start: Floats, end: Floats, colour: Ints) -> LaneSums | None:
    """Return the sums of a lane, None where they bring nothing or take too much memory."""
    if len(start) < MANY or len(np.unique(colour)) > _KINDS or not disjoint(start, end):
        return None
    return LaneSums(start, end, colour)


def disjoint(start: Floats, end: Floats) -> bool:
    """Return whether no event begins before the one before it ends."""
    return not bool((start[1:] < end[:-1]).any())
