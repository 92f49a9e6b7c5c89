"""Edges cut at cluster borders into pieces that each lie inside one cluster.

An edge leaves the clusters around its source one by one (OUT), crosses the innermost cluster that
holds both ends (CROSS) and enters the clusters around its target (IN).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from devtools_app.viewmodels.layout.visible import Ints, Visible

OUT, CROSS, IN = 0, 1, 2
_FAR = 1 << 40  # beyond any number of nested clusters


@dataclass(frozen=True, slots=True, eq=False)
class GraphPieces:
    """LiftedPieces of visible edges, those of one edge together and in order from source to target.

    Attributes:
        edge: visible edge
        kind: OUT, CROSS or IN
        cluster: cluster in which the piece lies
        source: item at its beginning; -1 for IN, which begins at the border
        target: item at its end; -1 for OUT, which ends at the border

    Shapes: all int64[pieces]
    """

    edge: Ints
    kind: Ints
    cluster: Ints
    source: Ints
    target: Ints

    def select(self, chosen: NDArray[np.bool_]) -> GraphPieces:
        """Return the pieces of some visible edges.

        Shapes: chosen bool[visible edges]
        """
        kept = chosen[self.edge]
        columns = (self.edge, self.kind, self.cluster, self.source, self.target)
        return GraphPieces(*(column[kept] for column in columns))


def lift(visible: Visible, parent: Ints, depth: Ints) -> GraphPieces:
    """Return the pieces of every visible edge that joins two items.

    Args:
        visible: items and edges
        parent: enclosing cluster of each cluster
        depth: levels of each cluster below the root
    """
    nodes = len(visible.item_of_node)
    source, target = visible.edges[:, 0], visible.edges[:, 1]
    edge = np.flatnonzero(source != target)
    source, target = source[edge], target[edge]
    climbing = _Climb(visible.holder, parent, depth, nodes)
    found: list[tuple[Ints, ...]] = []
    step = 0
    while edge.size:
        met, edge, source, target, rows = climbing.step(edge, source, target, step)
        found.extend((met, rows))
        step += 1
    return _in_order(found)


@dataclass(frozen=True, slots=True)
class _Climb:
    """Moves all edges one level up, towards the cluster that contains both ends."""

    holder: Ints
    parent: Ints
    depth: Ints
    nodes: int

    def step(
        self, edge: Ints, source: Ints, target: Ints, step: int
    ) -> tuple[tuple[Ints, ...], Ints, Ints, Ints, tuple[Ints, ...]]:
        """Return the crossings found, the remaining edges one level up, and the pieces passed."""
        above, below = self.holder[source], self.holder[target]
        same = above == below
        met = _rows(edge[same], CROSS, above[same], source[same], target[same], _FAR)
        rest = ~same
        edge, source, target = edge[rest], source[rest], target[rest]
        above, below = above[rest], below[rest]
        leaves = self.depth[above] >= self.depth[below]
        none = np.full(len(edge), -1, np.int64)
        rows = _rows(
            edge,
            np.where(leaves, OUT, IN),
            np.where(leaves, above, below),
            np.where(leaves, source, none),
            np.where(leaves, none, target),
            np.where(leaves, step, 2 * _FAR - step),
        )
        source = np.where(leaves, self.nodes + above, source)
        target = np.where(leaves, target, self.nodes + below)
        return met, edge, source, target, rows


def _rows(
    edge: Ints, kind: int | Ints, cluster: Ints, source: Ints, target: Ints, place: int | Ints
) -> tuple[Ints, ...]:
    shape = edge.shape
    kinds = np.broadcast_to(np.asarray(kind, np.int64), shape)
    places = np.broadcast_to(np.asarray(place, np.int64), shape)
    return edge, kinds, cluster, source, target, places


def _in_order(found: list[tuple[Ints, ...]]) -> GraphPieces:
    if not found:
        none = np.zeros(0, np.int64)
        return GraphPieces(none, none, none, none, none)
    columns = [np.concatenate(column) for column in zip(*found, strict=True)]
    order = np.lexsort((columns[5], columns[0]))
    return GraphPieces(*(column[order] for column in columns[:5]))
