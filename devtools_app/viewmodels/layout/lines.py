"""Lines of a placed graph as they are drawn: segments culled by neighbourhood, arrows, labels.

All of it is of the layout alone, so it is worked out once, by the thread that lays out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from devtools_app.viewmodels.layout.placed import Placed
from devtools_app.viewmodels.layout.segments import (
    Bools,
    Floats,
    Lines,
    PlacedLines,
    View,
    sorted_lines,
)

TO_RIGHT, BOTH = 1, 2  # where lines turn; 0 is straight or to the left
_TURN, _BESIDE = 4.0, 14.0  # pixels sideways that count, pixels up and down that are near


def placed_lines(placed: Placed) -> PlacedLines:
    """Return what is drawn of the edges of a layout; it stays with the layout."""
    for known in placed.lines:
        return known
    marked = placed.edge_emphasised
    found = PlacedLines(
        segments(placed, ~marked),
        segments(placed, ~marked, placed.knots),
        segments(placed, marked),
        _arrow_heads(placed),
        _labelled_edges(placed),
        _crosses_border(placed),
        _turns(placed),
    )
    placed.lines.append(found)
    return found


def _arrow_heads(placed: Placed) -> Floats:
    """Return tip and direction of the arrow of each drawn edge: x, y, dx, dy.

    Shapes: result float64[drawn edges, 4]
    """
    counts = np.diff(placed.offsets)
    last = (placed.offsets[1:] - 1)[counts > 1]
    tip = placed.points[last]
    way = tip - placed.points[last - 1]
    length = np.maximum(np.hypot(way[:, 0], way[:, 1]), 1e-9)
    return np.concatenate([tip, way / length[:, None]], axis=1)


def _labelled_edges(placed: Placed) -> NDArray[np.int64]:
    """Return the labelled edges, one for each value and cluster it appears in."""
    at = np.flatnonzero(np.isfinite(placed.label_at[:, 0]))
    place = placed.label_at[at].astype(np.int64)
    columns: list[NDArray[np.int64]] = [placed.edges[at, 0], place[:, 0], place[:, 1]]
    order = np.lexsort(columns)
    fresh = np.zeros(len(at), np.bool_)
    fresh[:1] = True
    for column in columns:
        fresh[1:] |= np.diff(column[order]) != 0
    return at[np.sort(order[fresh])]


def _crosses_border(placed: Placed) -> Bools:
    """Return the edges that leave or enter a cluster, or are marked."""
    nodes = placed.node_count
    tree = placed.scene.tree
    around = np.concatenate([tree.node_cluster, tree.parent])
    source, target = placed.edges[:, 0], placed.edges[:, 1]
    inside = (around[source] == around[target]) & (source < nodes) & (target < nodes)
    return ~inside | placed.edge_emphasised | (around[source] == 0)


def _turns(placed: Placed) -> NDArray[np.int64]:
    """Return the side of each edge on which its label avoids other lines.

    All edges of one source are considered together, since they share their first line.
    """
    counts = np.diff(placed.offsets)
    start = np.minimum(placed.offsets[:-1], max(len(placed.points) - 1, 0))
    edges = np.flatnonzero((counts > 1) & np.isfinite(placed.label_at[:, 0]))
    found = np.zeros(len(counts), np.int64)
    if not len(edges):
        return found
    # the line as far as it is within one row of the text
    drift = np.zeros(len(counts))
    for ahead in range(1, 16):
        at = np.minimum(start + ahead, start + counts - 1)[edges]
        near = np.abs(placed.points[at, 1] - placed.label_at[edges, 1]) < _BESIDE
        off = np.where(near, placed.points[at, 0] - placed.label_at[edges, 0], 0.0)
        drift[edges] = np.where(np.abs(off) > np.abs(drift[edges]), off, drift[edges])
    source = placed.edges[:, 0]
    size = int(source.max()) + 1
    to_right, to_left = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    to_right[source[drift > _TURN]] = True
    to_left[source[drift < -_TURN]] = True
    found[to_right[source]] = TO_RIGHT
    found[(to_right & to_left)[source]] = BOTH
    return found


def segments(placed: Placed, edges: Bools, points: Bools | None = None) -> Lines:
    """Return the lines of some edges as segments, of all points or only of selected ones.

    Shapes: edges bool[visible edges]; points bool[points]
    """
    edge = np.repeat(np.arange(len(placed.edges)), np.diff(placed.offsets))
    kept = edges[edge] if points is None else edges[edge] & points
    way, edge = placed.points[kept], edge[kept]
    same = edge[1:] == edge[:-1]
    joined = np.concatenate([way[:-1], way[1:]], axis=1)[same]
    return sorted_lines(joined, edge[1:][same])


def seen_lines(lines: Floats, view: View) -> Floats:
    """Return the horizontal lines that touch a part of the world.

    Shapes: lines float64[n, 4]: x1, y1, x2, y2
    """
    left, top, right, bottom = view
    kept = (np.minimum(lines[:, 0], lines[:, 2]) <= right) & (lines[:, 1] <= bottom)
    kept &= (np.maximum(lines[:, 0], lines[:, 2]) >= left) & (lines[:, 1] >= top)
    return lines[kept]
