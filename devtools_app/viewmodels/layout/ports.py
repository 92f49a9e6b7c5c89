"""Places where edges pass cluster borders, and the edges of each cluster in its own numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from devtools_app.viewmodels.layout.lift import CROSS, IN, OUT, GraphPieces
from devtools_app.viewmodels.layout.topology import Topology
from devtools_app.viewmodels.layout.visible import Ints

_NO_PORT = -1
_MANY = 1 << 21  # more than the ports of one cluster


@dataclass(slots=True, eq=False)
class Ports:
    """Ports of all clusters; numbers within a cluster are filled in from the innermost outwards.

    All edges of one value that enter or leave a cluster share a port.

    Attributes:
        own: port that each piece begins or ends at on the border of its cluster, -1 for CROSS
        inner_source: port at the beginning of each piece on an open cluster inside, -1 for none
        inner_target: likewise at its end
        cluster: cluster of each port
        origin: item that computes the value
        bottom: the port is on the lower border
        local: place of the port among those of its cluster and side, left to right undecided

    Shapes: own, inner_source, inner_target int64[pieces]; cluster, origin, local int64[ports];
        bottom bool[ports]
    """

    own: Ints
    inner_source: Ints
    inner_target: Ints
    cluster: Ints
    origin: Ints
    bottom: NDArray[np.bool_]
    local: Ints


def find_ports(pieces: GraphPieces, edges: Ints, upward: NDArray[np.bool_]) -> Ports:
    """Return the ports that pieces of edges need.

    Args:
        pieces: pieces to draw
        edges: source and target item of each visible edge
        upward: visible edges drawn against the flow
    """
    border = np.flatnonzero(pieces.kind != CROSS)
    leaves = pieces.kind[border] == OUT
    bottom = leaves != upward[pieces.edge[border]]
    origin = edges[pieces.edge[border], 0]
    span = int(edges.max(initial=0)) + 1
    keys = ((pieces.cluster[border] * span + origin) * 2 + bottom) * 2 + leaves
    unique, which = np.unique(keys, return_inverse=True)
    own = np.full(len(pieces.edge), _NO_PORT, np.int64)
    own[border] = np.ravel(which)
    same = pieces.edge[1:] == pieces.edge[:-1]
    inner_source = np.full(len(own), _NO_PORT, np.int64)
    inner_source[1:] = np.where(same & (pieces.kind[1:] != IN), own[:-1], _NO_PORT)
    inner_target = np.full(len(own), _NO_PORT, np.int64)
    inner_target[:-1] = np.where(same & (pieces.kind[:-1] != OUT), own[1:], _NO_PORT)
    return Ports(
        own=own,
        inner_source=inner_source,
        inner_target=inner_target,
        cluster=unique // 4 // span,
        origin=unique // 4 % span,
        bottom=(unique // 2 % 2).astype(np.bool_),
        local=np.full(len(unique), _NO_PORT, np.int64),
    )


@dataclass(frozen=True, slots=True, eq=False)
class LevelEdges:
    """Edges of all clusters of one depth, in the numbering of solve().

    Attributes:
        cluster: cluster of each row, ascending
        rows: upper vertex, its port, lower vertex, its port, upward
        pieces: pieces of this level
        row_of: row that each of them became

    Shapes: cluster int64[rows]; rows int64[rows, 5]; pieces, row_of int64[pieces of the level]
    """

    cluster: Ints
    rows: Ints
    pieces: Ints
    row_of: Ints


def level_edges(
    level: Ints, pieces: GraphPieces, ports: Ports, topology: Topology, upward: NDArray[np.bool_]
) -> LevelEdges:
    """Number the ports of the clusters of one depth and return the edges inside them.

    Args:
        level: pieces in clusters of that depth; those one deeper are done
        pieces: all pieces
        ports: local is filled in for the ports of this level
        topology: local numbers of items
        upward: visible edges drawn against the flow
    """
    kind, cluster = pieces.kind[level], pieces.cluster[level]
    source, source_port = _inner(pieces.source[level], ports.inner_source[level], ports, topology)
    target, target_port = _inner(pieces.target[level], ports.inner_target[level], ports, topology)
    own = ports.own[level]
    inner = np.where(kind == OUT, source * _MANY + source_port, target * _MANY + target_port)
    tops = _number_ports(own, inner, ports, len(topology.ranks))
    at = _border_vertices(own, cluster, tops, np.diff(topology.start), ports)
    source = np.where(kind == IN, at, source)
    target = np.where(kind == OUT, at, target)
    source_port = np.where(kind == IN, _NO_PORT, source_port)
    target_port = np.where(kind == OUT, _NO_PORT, target_port)
    up = upward[pieces.edge[level]]
    columns = (
        cluster,
        np.where(up, target, source),
        np.where(up, target_port, source_port),
        np.where(up, source, target),
        np.where(up, source_port, target_port),
        up.astype(np.int64),
    )
    return _distinct(level, columns)


def _border_vertices(own: Ints, cluster: Ints, tops: Ints, members: Ints, ports: Ports) -> Ints:
    """Return the vertex of the port on the border; of no meaning for pieces without one."""
    if not len(ports.local):
        return np.zeros(len(own), np.int64)
    return members[cluster] + ports.local[own] + np.where(ports.bottom[own], tops[cluster], 0)


def _inner(item: Ints, port: Ints, ports: Ports, topology: Topology) -> tuple[Ints, Ints]:
    """Return local item and local port of an end inside the cluster; -1 is masked by the caller."""
    if not len(ports.local):
        return topology.local[item], np.full(len(item), _NO_PORT, np.int64)
    return topology.local[item], np.where(port < 0, _NO_PORT, ports.local[port])


def _number_ports(own: Ints, inner: Ints, ports: Ports, clusters: int) -> Ints:
    """Number the ports of this level by their targets; return ports on top of each cluster."""
    here = np.unique(own[own >= 0])
    least = np.full(len(ports.local) + 1, np.iinfo(np.int64).max, np.int64)
    np.minimum.at(least, own, inner)  # the last entry takes what has no port
    order = np.lexsort((ports.origin[here], least[here], ports.bottom[here], ports.cluster[here]))
    here = here[order]
    group = ports.cluster[here] * 2 + ports.bottom[here]
    fresh = np.ones(len(here), np.bool_)
    fresh[1:] = group[1:] != group[:-1]
    begin = np.maximum.accumulate(np.where(fresh, np.arange(len(here)), 0))
    ports.local[here] = np.arange(len(here)) - begin
    return np.bincount(ports.cluster[here][~ports.bottom[here]], minlength=clusters)


def _distinct(level: Ints, columns: tuple[Ints, ...]) -> LevelEdges:
    order = np.lexsort(columns[::-1])
    table = np.stack([column[order] for column in columns], axis=1)
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = np.any(table[1:] != table[:-1], axis=1)
    row_of = np.zeros(len(order), np.int64)
    row_of[order] = np.cumsum(fresh) - 1
    table = np.ascontiguousarray(table[fresh])
    return LevelEdges(table[:, 0], np.ascontiguousarray(table[:, 1:]), level, row_of)
