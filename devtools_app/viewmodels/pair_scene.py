"""Two graphs as one scene: paired nodes share a place, so that both sides are aligned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from devtools_app.appearance.colours import PLAIN
from devtools_app.viewmodels.canvas_data import GraphOverlay, LegendEntry, Swatch
from devtools_app.viewmodels.layout.cluster_tree import ClusterPath
from devtools_app.viewmodels.layout.engine import LayoutCache
from devtools_app.viewmodels.layout.lines import placed_lines
from devtools_app.viewmodels.layout.placed import Placed
from devtools_app.viewmodels.layout.scene_graph import ClusterInfo, SceneGraph
from devtools_app.viewmodels.layout.stubs import place_stubs
from devtools_app.viewmodels.opening import opened_or_readable
from devtools_app.viewmodels.scene import GraphScene, graph_scene, scene_of
from inspector.compare.graph_pair import Difference, GraphPair, PairNode, partners
from inspector.files.session import Session
from inspector.graph.model_graph import GraphRegion, ModelEdge, ModelGraph, ModelNode
from inspector.graph.node_text import node_title
from inspector.profile.node_times import no_times
from inspector.units import format_duration, format_time
from schema.objects.plural import plural

ABSENT = -1
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
# colours of the set of backends; green and vermilion are apart for any colour vision
_COLOURS = {
    Difference.ONLY: 3,
    Difference.BACKEND: 0,
    Difference.CHANGED: 4,
    Difference.SLOWER: 2,
    Difference.FASTER: 1,
}


@dataclass(frozen=True, slots=True, eq=False)
class PairScene:
    """The union of two graphs.

    Attributes:
        graph: the union, as nodes and edges
        scene: boxes and lines of it
        places: number of each node of the union in the first and in the second graph, or ABSENT

    Shapes: places int64[2, nodes]
    """

    graph: ModelGraph
    scene: GraphScene
    places: Ints


@dataclass(frozen=True, slots=True, eq=False)
class PairSide:
    """One of two graphs in the places of both.

    Attributes:
        graph: the graph alone
        placed: its boxes and lines
        overlay: the colours of its differences
        ghosts: boxes of what only the other graph has
        items: number in the union of each node of the graph

    Shapes: ghosts float64[n, 4]; items int64[nodes of the graph]
    """

    graph: ModelGraph
    placed: Placed
    overlay: GraphOverlay
    ghosts: NDArray[np.float64]
    items: Ints


@dataclass(frozen=True, slots=True, eq=False)
class DrawnPair:
    """Two graphs laid out together.

    Attributes:
        pair: the differences
        union: nodes of both
        placed: places of both
        sides: the first and the second graph
        legend: for both
        counts: of the differing nodes, by kind, of both sides
    """

    pair: GraphPair
    union: PairScene
    placed: Placed
    sides: tuple[PairSide, PairSide]
    legend: tuple[LegendEntry, ...]
    counts: Mapping[Difference, int]


def union_scene(pair: GraphPair) -> PairScene:
    """Return the union of two graphs, in modules; delegates are the outlines of their nodes."""
    old, new = pair.alignment.old, pair.alignment.new
    members = _members(pair)
    union_of_old = {one: number for number, (one, _) in enumerate(members) if one is not None}
    union_of_new = {two: number for number, (_, two) in enumerate(members) if two is not None}
    taken: set[str] = set()
    nodes: list[ModelNode] = []
    for number, (one, two) in enumerate(members):
        node = new.nodes[two] if two is not None else old.nodes[one or 0]
        name = node.name
        while name in taken:
            name += " "
        taken.add(name)
        modules = _modules(node)
        if not modules and one is not None:
            modules = _modules(old.nodes[one])  # instructions beside a record have none
        nodes.append(replace(node, id=number, name=name, regions=modules, delegate=None))
    ends: dict[tuple[int, int, str], ModelEdge] = {}
    for graph, numbers in ((new, union_of_new), (old, union_of_old)):
        seen = {(source, target) for source, target, _ in ends}
        for edge in graph.edges:
            source, target = numbers[edge.source], numbers[edge.target]
            if (source, target) not in seen:
                ends[source, target, edge.value] = replace(edge, source=source, target=target)
    by_name = {node.name: node.id for node in nodes}
    union = ModelGraph("pair", "pair", tuple(nodes), tuple(ends.values()), by_name)
    places: Ints = np.full((2, len(members)), ABSENT, np.int64)
    for side, numbers in enumerate((union_of_old, union_of_new)):
        places[side, list(numbers.values())] = list(numbers)
    return PairScene(union, scene_of(union, no_times(len(nodes))), places)


def _members(pair: GraphPair) -> list[tuple[int | None, int | None]]:
    """Return the nodes of both in one order: nodes of the first graph only keep their place."""
    to_old = {there: here for here, there in partners(pair.alignment).items()}
    paired = set(to_old.values())
    alone = [node.id for node in pair.alignment.old.nodes if node.id not in paired]
    members: list[tuple[int | None, int | None]] = []
    at = 0
    for node in pair.alignment.new.nodes:
        one = to_old.get(node.id)
        while one is not None and at < len(alone) and alone[at] < one:
            members.append((alone[at], None))
            at += 1
        members.append((one, node.id))
    return members + [(one, None) for one in alone[at:]]


def _modules(node: ModelNode) -> tuple[GraphRegion, ...]:
    frames = [frame for frame in node.node.modules if frame.path]
    found = [GraphRegion(frame.path, frame.path.rsplit(".", 1)[-1], "module") for frame in frames]
    return tuple(dict.fromkeys(found))


def build_pair(  # noqa: PLR0913 - two graphs, how they are opened, and what is known of them
    pair: GraphPair,
    union: PairScene,
    sources: Sequence[tuple[Session, str]],
    method: str,
    expanded: frozenset[ClusterPath] | None,
    before: DrawnPair | None,
    cache: LayoutCache,
) -> DrawnPair:
    """Return two graphs laid out together.

    Args:
        pair: the graphs
        union: of them
        sources: session and name of each graph
        method: of both
        expanded: opened boxes, None for the defaults
        before: the previous drawing, whose scenes are kept for the same graphs
        cache: of layouts
    """
    scene = union.scene.scene
    placed = opened_or_readable(scene, expanded, cache)
    found = (pair.old, pair.new)
    sides: list[PairSide] = []
    for which, (session, name) in enumerate(sources):
        own = graph_scene(session, method, name)
        assert own is not None  # the pair was made of it
        same = before is not None and before.union is union
        known = before.sides[which].placed.scene if before is not None and same else None
        sides.append(_side(union, placed, own, found[which], which, known))
    counts = _counts(pair)
    return DrawnPair(pair, union, placed, (sides[0], sides[1]), _legend(counts), counts)


def _side(
    union: PairScene,
    placed: Placed,
    own: GraphScene,
    found: Mapping[int, PairNode],
    which: int,
    known: SceneGraph | None,
) -> PairSide:
    at = union.places[which]
    present = at != ABSENT
    scene = known or _side_scene(union, own, found, at)
    codes = np.full(len(at), PLAIN, np.int64)
    for number in np.flatnonzero(present).tolist():
        what = found[int(at[number])].what if int(at[number]) in found else None
        if what is not None:
            codes[number] = _COLOURS[what]
    items = np.zeros(len(own.graph.nodes), np.int64)
    items[at[present]] = np.flatnonzero(present)
    shown = _restricted(replace(placed, scene=scene), present, own, items)
    placed_lines(shown)  # not when the window draws it
    overlay = GraphOverlay("difference", categories=codes, sparse=True)
    gone = placed.nodes[~present[placed.nodes]]
    ghosts = np.ascontiguousarray(placed.boxes[gone])
    return PairSide(own.graph, shown, overlay, ghosts, items)


def _side_scene(
    union: PairScene, own: GraphScene, found: Mapping[int, PairNode], at: Ints
) -> SceneGraph:
    scene = union.scene.scene
    names, labels, second = list(scene.names), list(scene.labels), [""] * len(at)
    owners = np.full(len(at), PLAIN, np.int64)
    known: list[int] = at.tolist()
    for number, node in enumerate(known):
        if node == ABSENT:
            continue
        labels[number] = node_title(own.graph.nodes[node])
        owners[number] = own.scene.owners[node]
        second[number] = _second_line(own, found.get(node), node)
    return replace(
        scene,
        names=tuple(names),
        labels=tuple(labels),
        sublabels=tuple(second),
        owners=owners,
        info=_infos(union, own, found, at),
    )


def _second_line(own: GraphScene, one: PairNode | None, node: int) -> str:
    ns = float(own.times.node_ns[node])
    time = "" if np.isnan(ns) else format_duration(ns, float(own.times.tick_ns[node]))
    return " · ".join(filter(None, (time, one.words if one is not None else "")))


def _infos(
    union: PairScene, own: GraphScene, found: Mapping[int, PairNode], at: Ints
) -> dict[ClusterPath, ClusterInfo]:
    tree = union.scene.scene.tree
    present = np.flatnonzero(at != ABSENT)
    counts, differ = np.zeros(tree.size, np.int64), np.zeros(tree.size, np.int64)
    times = np.zeros(tree.size)
    np.add.at(counts, tree.node_cluster[present], 1)
    differing = [node for node in present.tolist() if _differs(found, int(at[node]))]
    np.add.at(differ, tree.node_cluster[np.array(differing, np.int64)], 1)
    np.add.at(times, tree.node_cluster[present], np.nan_to_num(own.times.node_ns[at[present]]))
    for cluster in range(tree.size - 1, 0, -1):
        for sums in (counts, differ, times):
            sums[tree.parent[cluster]] += sums[cluster]
    titles = union.scene.clusters.titles
    infos: dict[ClusterPath, ClusterInfo] = {}
    for number, path in enumerate(tree.paths):
        if path:
            words = [plural(int(counts[number]), "node")]
            words += [format_time(float(times[number]))] if times[number] else []
            words += [f"{plural(int(differ[number]), 'difference')}"] if differ[number] else []
            infos[path] = ClusterInfo(titles[path], " · ".join(words))
    return infos


def _differs(found: Mapping[int, PairNode], node: int) -> bool:
    one = found.get(node)
    return one is not None and one.what is not None


def _restricted(placed: Placed, present: Bools, own: GraphScene, items: Ints) -> Placed:
    """Return a layout with the boxes and lines of one side only."""
    nodes = placed.node_count
    boxes = np.array(placed.boxes)
    boxes[:nodes][~present] = np.nan
    inside = np.zeros(len(boxes) - nodes, np.int64)
    tree = placed.scene.tree
    np.add.at(inside, tree.node_cluster[present], 1)
    for cluster in range(tree.size - 1, 0, -1):
        inside[tree.parent[cluster]] += inside[cluster]
    there = inside[placed.clusters - nodes] > 0
    boxes[nodes:][inside == 0] = np.nan
    own_edges = items[own.scene.edges]
    ends = placed.item_of_node[own_edges]
    total = len(boxes)
    kept = np.isin(placed.edges[:, 0] * total + placed.edges[:, 1], ends[:, 0] * total + ends[:, 1])
    return replace(
        _only_edges(placed, kept),
        boxes=boxes,
        nodes=placed.nodes[present[placed.nodes]],
        clusters=placed.clusters[there],
        collapsed=placed.collapsed[there],
        edge_emphasised=_crossing(placed, own, ends)[kept],
    )


def _crossing(placed: Placed, own: GraphScene, ends: Ints) -> Bools:
    """Return the visible edges on which a value changes between executors on this side."""
    total = len(placed.boxes)
    marked = ends[own.scene.emphasised]
    keys = placed.edges[:, 0] * total + placed.edges[:, 1]
    found: Bools = np.isin(keys, marked[:, 0] * total + marked[:, 1])
    return found


def _only_edges(placed: Placed, kept: Bools) -> Placed:
    counts = np.diff(placed.offsets)
    points = np.repeat(kept, counts)
    offsets = np.concatenate([[0], np.cumsum(counts[kept])]).astype(np.int64)
    edges, stubbed = placed.edges[kept], placed.edge_stubbed[kept]
    return replace(
        placed,
        edges=edges,
        edge_uses=placed.edge_uses[kept],
        edge_bytes=placed.edge_bytes[kept],
        edge_label_of=placed.edge_label_of[kept],
        edge_upward=placed.edge_upward[kept],
        edge_stubbed=stubbed,
        points=placed.points[points],
        knots=placed.knots[points],
        offsets=offsets,
        label_at=placed.label_at[kept],
        stubs=place_stubs(edges, stubbed, placed.boxes),
    )


def _counts(pair: GraphPair) -> dict[Difference, int]:
    found = dict.fromkeys(Difference, 0)
    for one in (*pair.new.values(), *(each for each in pair.old.values() if _alone(each))):
        if one.what is not None:
            found[one.what] += 1
    return {what: count for what, count in found.items() if count}


def _alone(one: PairNode) -> bool:
    return one.what is Difference.ONLY


def _counted(counts: Mapping[Difference, int], what: Difference) -> str:
    timed = (Difference.SLOWER, Difference.FASTER)
    count = sum(counts.get(one, 0) for one in timed) if what in timed else counts[what]
    return f" ({count:,})"


def _legend(counts: Mapping[Difference, int]) -> tuple[LegendEntry, ...]:
    labels = {
        Difference.ONLY: "only on this side",
        Difference.BACKEND: "another backend",
        Difference.CHANGED: "other operator, types or arguments",
        Difference.SLOWER: "slower than on the other side",
        Difference.FASTER: "faster than on the other side",
    }
    shown = dict(counts)
    for one, other in (
        (Difference.SLOWER, Difference.FASTER),
        (Difference.FASTER, Difference.SLOWER),
    ):
        if one in counts:
            shown.setdefault(other, 0)  # what is slower here is faster there
    lines = [
        LegendEntry(labels[what] + _counted(counts, what), Swatch.FILL, _COLOURS[what])
        for what in Difference
        if what in shown
    ]
    if not lines:
        return (LegendEntry("no node differs", Swatch.PLAIN),)
    ghost = [LegendEntry("only on the other side", Swatch.GHOST)]
    return (*lines, *(ghost if Difference.ONLY in counts else []))
