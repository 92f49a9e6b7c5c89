"""Segments of the lines of a placed graph, sorted by neighbourhood so that few are looked at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
View = tuple[float, float, float, float]  # left, top, right, bottom of what is seen
_CHUNK = 256  # segments tested together
_CELL = 700.0  # world pixels; segments of one cell lie together in memory


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Segments sorted by position, with the bounds of each chunk of them.

    Attributes:
        segments: x1, y1, x2, y2
        edge: visible edge of each
        bounds: left, top, right, bottom of each chunk

    Shapes: segments float64[n, 4]; edge int64[n]; bounds float64[chunks, 4]
    """

    segments: Floats
    edge: NDArray[np.int64]
    bounds: Floats

    def seen(self, view: View) -> Floats:
        """Return the segments that may touch a part of the world, possibly more."""
        left, top, right, bottom = view
        b = self.bounds
        kept = (b[:, 0] <= right) & (b[:, 2] >= left) & (b[:, 1] <= bottom) & (b[:, 3] >= top)
        if kept.all():
            return self.segments
        runs = _runs(kept)
        parts = [self.segments[first * _CHUNK : last * _CHUNK] for first, last in runs]
        return np.concatenate(parts) if parts else self.segments[:0]

    def of(self, edges: Bools) -> Floats:
        """Return the segments of some edges.

        Shapes: edges bool[visible edges]
        """
        return np.ascontiguousarray(self.segments[edges[self.edge]])


@dataclass(frozen=True, slots=True, eq=False)
class PlacedLines:
    """What is drawn of the edges of a layout.

    Attributes:
        smooth: edges that are not emphasised, with all points
        coarse: the same with the points that a coarse drawing needs
        marked: emphasised edges
        arrows: x, y and direction of the tip of each drawn edge
        labelled: edges with a label, one for each value and cluster it appears in
        crossing: edges that leave or enter a cluster, or are emphasised
        turns: TO_RIGHT or BOTH where a label on the right of an edge would be on other lines

    Shapes: arrows float64[drawn edges, 4]; labelled int64[labels]; crossing bool[edges];
        turns int64[edges]
    """

    smooth: Lines
    coarse: Lines
    marked: Lines
    arrows: Floats
    labelled: NDArray[np.int64]
    crossing: Bools
    turns: NDArray[np.int64]


def sorted_lines(joined: Floats, edge: NDArray[np.int64]) -> Lines:
    """Return segments sorted by position.

    Shapes: joined float64[n, 4]: x1, y1, x2, y2; edge int64[n]
    """
    cell = ((joined[:, :2] + joined[:, 2:]) / (2 * _CELL)).astype(np.int64)
    order = np.lexsort((cell[:, 1], cell[:, 0]))
    joined = np.ascontiguousarray(joined[order])
    starts = np.arange(0, len(joined), _CHUNK)
    if not len(starts):
        return Lines(joined, edge[order], np.zeros((0, 4)))
    low = np.minimum(joined[:, :2], joined[:, 2:])
    high = np.maximum(joined[:, :2], joined[:, 2:])
    bounds = [np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)]
    return Lines(joined, edge[order], np.concatenate(bounds, axis=1))


def _runs(kept: Bools) -> list[tuple[int, int]]:
    """Return first and end of each run of true entries."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], kept, [False]]).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
