"""Ranks of all items and the edges too long or too many to draw, before anything has a size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from devtools_app.viewmodels.layout.lift import CROSS, IN, OUT, GraphPieces
from devtools_app.viewmodels.layout.ranks import rank_items
from devtools_app.viewmodels.layout.visible import Ints, Visible

LONGEST_SPAN = 50  # ranks an edge may cross before it becomes a pair of stubs
WIDEST_FAN = 8  # readers of one value before far ones become stubs
CROWD = 24  # direct readers of one value, or pure sources of one item, that are still drawn
WIDEST_ROW = 64  # items that one item reads; a row of more is a line once the whole graph is seen
_SPAN_BUDGET = (3, 3000)  # ranks crossed per item of a cluster, and for free

RankKey = tuple[int, bytes, bytes]
RankValue = tuple[list[int], list[bool]]
RankCache = dict[RankKey, RankValue]


@dataclass(frozen=True, slots=True, eq=False)
class Topology:
    """Relative positions of items.

    Attributes:
        items: visible items, by holder and execution order
        start: first entry in items of each cluster, one more than clusters
        local: place of each item among those of its holder, -1 when not visible
        rank: rank of each item in its holder
        ranks: number of ranks in each cluster
        upward: visible edges drawn against the flow
        stubbed: visible edges drawn as a stub at either end

    Shapes: items int64[shown]; start int64[clusters + 1]; local, rank int64[all items];
        ranks int64[clusters]; upward, stubbed bool[visible edges]
    """

    items: Ints
    start: Ints
    local: Ints
    rank: Ints
    ranks: Ints
    upward: NDArray[np.bool_]
    stubbed: NDArray[np.bool_]


def topology(visible: Visible, first: Ints, pieces: GraphPieces, cache: RankCache) -> Topology:
    """Return ranks, reversed and stubbed edges.

    Args:
        visible: items and edges
        first: first node of each cluster
        pieces: visible edges cut at borders
        cache: results for equal clusters
    """
    clusters = len(first)
    items, start, local = _local_numbers(visible, first)
    rank = np.zeros(len(visible.holder), np.int64)
    ranks = np.zeros(clusters, np.int64)
    upward = np.zeros(len(visible.edges), np.bool_)
    jobs = _rank_jobs(visible, pieces, items, start, local)
    for cluster, members, pairs, pinned, edges in jobs:
        key = (len(members), pairs.tobytes(), pinned.tobytes())
        found = cache.get(key)
        if found is None:
            found = cache[key] = rank_items(len(members), pairs.tolist(), pinned.tolist())
        rank[members] = found[0]
        ranks[cluster] = max(found[0]) + 1
        if any(found[1]):
            upward[edges[np.array(found[1])]] = True
    upward = _spread_upward(pieces, local, upward)
    span = _spans(pieces, rank, ranks, upward)
    stubbed = _stubbed(visible, pieces, span, np.diff(start))
    return Topology(items, start, local, rank, ranks, upward, stubbed)


def _local_numbers(visible: Visible, first: Ints) -> tuple[Ints, Ints, Ints]:
    nodes = len(visible.item_of_node)
    order_of = np.concatenate([np.arange(nodes, dtype=np.int64), first])
    shown = np.flatnonzero(visible.holder >= 0)
    items = shown[np.lexsort((order_of[shown], visible.holder[shown]))]
    counts = np.bincount(visible.holder[items], minlength=len(first))
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    local = np.full(len(visible.holder), -1, np.int64)
    local[items] = np.arange(len(items)) - start[visible.holder[items]]
    return items, start, local


Job = tuple[int, Ints, Ints, NDArray[np.bool_], Ints]


def _rank_jobs(
    visible: Visible, pieces: GraphPieces, items: Ints, start: Ints, local: Ints
) -> list[Job]:
    """Return for each open cluster: number, items, pairs, items fed from outside, edge per pair."""
    cross = np.flatnonzero(pieces.kind == CROSS)
    u, v = local[pieces.source[cross]], local[pieces.target[cross]]
    order = np.lexsort((v, u, pieces.cluster[cross]))
    cluster, u, v = pieces.cluster[cross][order], u[order], v[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (np.diff(cluster) != 0) | (np.diff(u) != 0) | (np.diff(v) != 0)
    pairs = np.stack([u[fresh], v[fresh]], axis=1)
    edge = pieces.edge[cross][order][fresh]
    fed = np.zeros(len(local), np.bool_)
    fed[pieces.target[pieces.kind == IN]] = True
    bounds = np.searchsorted(cluster[fresh], np.arange(len(start))).tolist()
    starts: list[int] = start.tolist()
    jobs: list[Job] = []
    for number in np.flatnonzero(visible.opened).tolist():
        members = items[starts[number] : starts[number + 1]]
        if not len(members):
            continue
        low, high = bounds[number], bounds[number + 1]
        jobs.append((number, members, pairs[low:high], fed[members], edge[low:high]))
    return jobs


def _spread_upward(pieces: GraphPieces, local: Ints, known: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return upward for every edge: those that share both items with a known one turn with it."""
    cross = np.flatnonzero(pieces.kind == CROSS)
    total = len(local)
    pair = pieces.source[cross] * total + pieces.target[cross]
    turned = np.unique(pair[known[pieces.edge[cross]]])
    upward = np.zeros(len(known), np.bool_)
    upward[pieces.edge[cross]] = np.isin(pair, turned)
    return upward


def _spans(pieces: GraphPieces, rank: Ints, ranks: Ints, upward: NDArray[np.bool_]) -> Ints:
    """Return the ranks that each piece crosses, borders counted as ranks."""
    up = upward[pieces.edge]
    of_source, of_target = rank[pieces.source], rank[pieces.target]
    height = ranks[pieces.cluster]
    leaving = np.where(up, of_source + 1, height - of_source)
    entering = np.where(up, height - of_target, of_target + 1)
    inside = np.abs(of_target - of_source)
    return np.select([pieces.kind == OUT, pieces.kind == IN], [leaving, entering], inside)


def _stubbed(visible: Visible, pieces: GraphPieces, span: Ints, members: Ints) -> NDArray[np.bool_]:
    longest = np.zeros(len(visible.edges), np.int64)
    np.maximum.at(longest, pieces.edge, span)
    number = np.bincount(pieces.edge, minlength=len(visible.edges))
    source, target = visible.edges[:, 0], visible.edges[:, 1]
    fan = np.bincount(source, minlength=len(visible.holder))[source]
    direct = (number == 1) & (longest == 1) & (fan <= CROWD)
    wide = (fan > WIDEST_FAN) & ~direct
    into = np.bincount(target, minlength=len(visible.holder))[target]
    many = wide | _crowded(source, target, wide) | (into > WIDEST_ROW)
    stubbed = (many & (number > 0)) | (longest > LONGEST_SPAN)
    return stubbed | _over_budget(pieces, span, members, stubbed)


def _crowded(source: Ints, target: Ints, stubbed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the edges from pure sources to items that read too many of them.

    Pure are weights, and items to which no line leads because all they read is stubbed.
    """
    size = int(max(source.max(initial=0), target.max(initial=0))) + 1
    pure = np.bincount(target[~stubbed], minlength=size)[source] == 0
    return pure & (np.bincount(target[pure], minlength=size)[target] > CROWD)


def _over_budget(
    pieces: GraphPieces, span: Ints, members: Ints, stubbed: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return the longest edges of clusters in which lines would outnumber boxes by far."""
    extra = np.where(stubbed[pieces.edge], 0, span - 1)
    total = np.bincount(pieces.cluster, weights=extra, minlength=len(members))
    allowed = members * _SPAN_BUDGET[0] + _SPAN_BUDGET[1]
    cut = np.zeros(len(stubbed), np.bool_)
    for cluster in np.flatnonzero(total > allowed).tolist():
        inside = np.flatnonzero(pieces.cluster == cluster)
        inside = inside[np.argsort(extra[inside], kind="stable")]
        too_much = np.cumsum(extra[inside]) > allowed[cluster]
        cut[pieces.edge[inside[too_much]]] = True
    return cut
