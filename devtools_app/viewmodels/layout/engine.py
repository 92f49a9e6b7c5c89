"""Lay out a scene: every cluster once for its structure, from the innermost outwards."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from devtools_app.viewmodels.layout.assemble import Solution, assemble
from devtools_app.viewmodels.layout.cluster_tree import ClusterPath
from devtools_app.viewmodels.layout.lift import GraphPieces, lift
from devtools_app.viewmodels.layout.local import solve
from devtools_app.viewmodels.layout.placed import Placed
from devtools_app.viewmodels.layout.ports import LevelEdges, Ports, find_ports, level_edges
from devtools_app.viewmodels.layout.problem import Edge, LayoutItem, LayoutResult, Problem
from devtools_app.viewmodels.layout.scene_graph import SceneGraph
from devtools_app.viewmodels.layout.stubs import side_room
from devtools_app.viewmodels.layout.topology import (
    RankCache,
    RankKey,
    RankValue,
    Topology,
    topology,
)
from devtools_app.viewmodels.layout.visible import Ints, Visible, visible_items
from schema.objects.identity_cache import identity_cache

COLLAPSED_HEIGHT = 48.0
_MOST_ANSWERS = 20000  # cached clusters before the cache starts anew
_NOT_OPEN = -1
_STEP = 24.0

_Key = tuple[bytes, bytes, bytes, bytes, int, int, float]


@dataclass(slots=True)
class LayoutCache:
    """Layouts of clusters, cached by structure.

    Use one per view for all calls: toggling a cluster then lays out only that
    cluster and enclosing ones. Not thread-safe.

    Attributes:
        answers: clusters laid out, by number
        numbers: number of an answer by structure
        ranks: ranks of clusters by topology
        hits: clusters found here so far
    """

    answers: list[LayoutResult] = field(default_factory=list[LayoutResult])
    numbers: dict[_Key, int] = field(default_factory=dict[_Key, int])
    ranks: RankCache = field(default_factory=dict[RankKey, RankValue])
    hits: int = 0

    def trim(self) -> None:
        """Clear the cache once it is larger than a session needs."""
        if len(self.answers) > _MOST_ANSWERS:
            self.answers.clear()
            self.numbers.clear()
            self.ranks.clear()


def lay_out(
    scene: SceneGraph, expanded: frozenset[ClusterPath], cache: LayoutCache | None = None
) -> Placed:
    """Return a scene with places for one set of expanded clusters.

    The same scene and set give the same result, with or without a cache.

    Args:
        scene: nodes, edges, clusters
        expanded: clusters whose inside is drawn
        cache: answers of earlier calls, extended by this one
    """
    cache = cache if cache is not None else LayoutCache()
    cache.trim()
    visible = visible_items(scene, expanded)
    tree = scene.tree
    pieces = lift(visible, tree.parent, tree.depth)
    ranks = topology(visible, tree.first, pieces, cache.ranks)
    drawn = pieces.select(~ranks.stubbed)
    work = _LayoutWork(scene, visible, ranks, drawn, cache)
    work.run()
    return assemble(scene, expanded, visible, ranks, work.solution())


class _LayoutWork:
    """One run: clusters by depth, the deepest first, so that sizes of insides are known."""

    def __init__(
        self,
        scene: SceneGraph,
        visible: Visible,
        ranks: Topology,
        pieces: GraphPieces,
        cache: LayoutCache,
    ) -> None:
        self._scene, self._visible, self._ranks = scene, visible, ranks
        self._pieces, self._cache = pieces, cache
        self._nodes = len(scene.names)
        self._ports: Ports = find_ports(pieces, visible.edges, ranks.upward)
        self._shape = np.zeros((len(visible.holder), 4))  # width, height, room left and right
        self._shape[:, 2:] = side_room(len(visible.holder), visible.edges, ranks.stubbed)
        self._shape[: self._nodes, :2] = scene.sizes
        self._inside = np.full(len(visible.holder), _NOT_OPEN, np.int64)
        self._edge_of = np.zeros(len(pieces.edge), np.int64)
        self._title_width = np.zeros(scene.tree.size)
        self._measure_clusters()

    def _measure_clusters(self) -> None:
        opened, closed = title_widths(self._scene)
        shown = self._visible.shown
        inside = shown & self._visible.opened
        self._title_width[inside] = opened[inside]
        folded = np.flatnonzero(shown & ~self._visible.opened)
        self._shape[self._nodes + folded, 0] = closed[folded]
        self._shape[self._nodes + folded, 1] = COLLAPSED_HEIGHT

    def run(self) -> None:
        """Lay out all open clusters."""
        depth = self._scene.tree.depth
        opened = np.flatnonzero(self._visible.opened)
        piece_order = np.argsort(depth[self._pieces.cluster], kind="stable")
        piece_depth = depth[self._pieces.cluster][piece_order]
        for level in range(int(depth[opened].max(initial=0)), -1, -1):
            low, high = np.searchsorted(piece_depth, [level, level + 1])
            chosen = piece_order[low:high]
            edges = level_edges(chosen, self._pieces, self._ports, self._ranks, self._ranks.upward)
            self._level(opened[depth[opened] == level], edges)

    def _level(self, clusters: Ints, edges: LevelEdges) -> None:
        starts = np.searchsorted(edges.cluster, np.arange(self._scene.tree.size + 1))
        self._edge_of[edges.pieces] = edges.row_of - starts[self._pieces.cluster[edges.pieces]]
        first = starts.tolist()
        ports = self._ports
        count = 2 * self._scene.tree.size
        borders = np.bincount(ports.cluster * 2 + ports.bottom, minlength=count).tolist()
        for cluster in clusters.tolist():
            rows = edges.rows[first[cluster] : first[cluster + 1]]
            tops, bottoms = borders[2 * cluster], borders[2 * cluster + 1]
            number = self._answer(cluster, rows, tops, bottoms)
            answer = self._cache.answers[number]
            item = self._nodes + cluster
            self._inside[item] = number
            self._shape[item, 0], self._shape[item, 1] = answer.width, answer.height

    def _answer(self, cluster: int, rows: Ints, tops: int, bottoms: int) -> int:
        start = self._ranks.start
        items = self._ranks.items[int(start[cluster]) : int(start[cluster + 1])]
        shape, inside, rank = self._shape[items], self._inside[items], self._ranks.rank[items]
        least = float(self._title_width[cluster])
        framed = 1 if cluster else 0
        key = (shape.tobytes(), inside.tobytes(), rank.tobytes(), rows.tobytes())
        whole = (*key, tops * 2 + framed, bottoms, least)
        found = self._cache.numbers.get(whole)
        if found is not None:
            self._cache.hits += 1
            return found
        problem = self._problem(shape, inside, rank, rows)
        answer = solve(Problem(*problem, tops, bottoms, framed=bool(framed), least_width=least))
        number = self._cache.numbers[whole] = len(self._cache.answers)
        self._cache.answers.append(answer)
        return number

    def _problem(
        self, shape: NDArray[np.float64], inside: Ints, rank: Ints, rows: Ints
    ) -> tuple[tuple[LayoutItem, ...], tuple[int, ...], tuple[Edge, ...]]:
        items: list[LayoutItem] = []
        plain: dict[tuple[float, ...], LayoutItem] = {}  # most boxes are of a few sizes
        numbers: list[int] = inside.tolist()
        sizes: list[tuple[float, float, float, float]] = list(map(tuple, shape.tolist()))
        for size, number in zip(sizes, numbers, strict=True):
            if number == _NOT_OPEN:
                if size not in plain:
                    plain[size] = LayoutItem(*size)
                items.append(plain[size])
                continue
            width, height, left, right = size
            answer = self._cache.answers[number]
            items.append(
                LayoutItem(width, height, left, right, answer.upper, answer.lower, is_open=True)
            )
        edges = tuple((a, b, c, d, e) for a, b, c, d, e in rows.tolist())
        return tuple(items), tuple(rank.tolist()), edges

    def solution(self) -> Solution:
        """Return the input of assemble()."""
        return Solution(
            self._pieces,
            self._inside[self._nodes :],
            self._edge_of,
            self._cache.answers,
            self._shape[:, :2],
        )


@identity_cache
def title_widths(scene: SceneGraph) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the width that the title of each cluster needs while it is open, and closed."""
    infos = [scene.cluster_info(path) for path in scene.tree.paths]
    title = np.array([len(one.title) for one in infos], np.float64)
    detail = np.array([len(one.detail) for one in infos], np.float64)
    opened = np.minimum(_stepped(7.6 * title + 6.6 * detail + 56.0, 2 * _STEP), 480.0)
    closed = _stepped(np.maximum(7.6 * title + 48.0, 6.6 * detail + 28.0), _STEP)
    return opened, np.minimum(np.maximum(closed, 168.0), 336.0)


def _stepped(width: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.ceil(width / step) * step
    return found
