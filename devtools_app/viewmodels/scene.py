"""The scene of the graph view: boxes, lines and clusters of one graph of a method."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import cast

import numpy as np
from numpy.typing import NDArray

from devtools_app.appearance.colours import NOT_DELEGATED, PLAIN, backend_index
from devtools_app.viewmodels.layout.cluster_tree import ClusterPath, ClusterTree
from devtools_app.viewmodels.layout.scene_graph import (
    UNKNOWN_BYTES,
    ClusterInfo,
    SceneEdge,
    SceneGraph,
    SceneNode,
    scene_graph,
)
from devtools_app.viewmodels.scene_clusters import (
    BRANCH,
    QUANTIZED,
    Clusters,
    branch_owner,
    clusters,
    module_of,
    tagged,
)
from devtools_app.viewmodels.seen_texts import SeenTexts
from inspector.files.session import Session
from inspector.graph.delegation import partition_tags
from inspector.graph.model_graph import COMPILED, ModelGraph, ModelNode, model_graph
from inspector.graph.node_text import (
    in_short,
    node_title,
    shape_text,
    short_description,
    value_text,
)
from inspector.graph.reach import subgraph
from inspector.join.record_maps import verdicts
from inspector.profile.node_times import NodeTimes, node_times
from inspector.tables.boundaries import boundaries
from inspector.units import (
    Quantity,
    below,
    format_bytes,
    format_duration,
    format_share,
    format_time,
)
from schema.etrecord.graph.signature import USER_OUTPUT
from schema.graph import NodeKind, is_compute
from schema.objects.identity_cache import identity_cache
from schema.objects.plural import plural

MOST_VISIBLE = 60  # boxes on show when a graph is opened
# one closed delegate shows little: fewer boxes are opened further, up to _MANY
_FEW, _MANY = 12, 400
_FLOW = (NodeKind.PLACEHOLDER, NodeKind.OUTPUT)


@dataclass(frozen=True, slots=True, eq=False)
class GraphScene:
    """A graph before layout.

    Attributes:
        graph: its source
        scene: its columns; node n of it is node n of the graph
        times: measured times of the nodes
        nbytes: bytes each node writes and the weights it reads, NaN when unknown
        clusters: its clusters
        whole: the graph that it is a part of, None if it is whole

    Shapes: nbytes float64[nodes]
    """

    graph: ModelGraph
    scene: SceneGraph
    times: NodeTimes
    nbytes: NDArray[np.float64]
    clusters: Clusters
    whole: ModelGraph | None = None


@identity_cache
def graph_scene(
    session: Session, method: str, name: str = COMPILED, *, flat: bool = False
) -> GraphScene | None:
    """Return the scene of a graph, None if the session has no data for it.

    Args:
        session: the session
        method: name of the method
        name: one of ``graph_names``
        flat: without boxes for modules
    """
    graph = model_graph(session, method, name)
    if graph is None:
        return None
    tags = _tags(session, method, graph)
    return scene_of(graph, node_times(session, method, graph), tags, flat=flat)


def _tags(session: Session, method: str, graph: ModelGraph) -> dict[int, str]:
    """Return the tags that a partitioner of this project gave to the delegates."""
    if session.record is None or graph.source != "record":
        return {}
    delegates = {node.name: node.delegate for node in graph.nodes}
    return partition_tags(verdicts(session.record, method), delegates)


def scene_of(
    graph: ModelGraph,
    times: NodeTimes,
    tags: Mapping[int, str] = MappingProxyType({}),
    *,
    flat: bool = False,
) -> GraphScene:
    """Return the scene of a graph.

    Args:
        graph: the graph
        times: of its nodes
        tags: of delegates, shown in their titles
        flat: without boxes for modules
    """
    found = tagged(clusters(graph, flat=flat), tags)
    names = _unique([node.name for node in graph.nodes])
    delegation = graph.source in ("record", "program")
    nodes = [
        SceneNode(name, node_title(node), "", path, _owner(node, delegation=delegation))
        for node, name, path in zip(graph.nodes, names, found.paths, strict=True)
    ]
    scene = scene_graph(nodes, _edges(graph, names))
    nbytes = np.array([_bytes(node) for node in graph.nodes], np.float64)
    info = cluster_infos(graph, scene, times, found)
    return GraphScene(graph, replace(scene, info=info), times, nbytes, found)


@identity_cache
def part_of_scene(
    session: Session, method: str, whole: GraphScene, nodes: tuple[int, ...], *, flat: bool
) -> GraphScene:
    """Return the scene of some nodes of a graph alone, by their ascending numbers."""
    graph = subgraph(whole.graph, nodes)
    tags = _tags(session, method, graph)
    part = scene_of(graph, node_times(session, method, graph), tags, flat=flat)
    return replace(part, whole=whole.graph)


def _unique(names: Sequence[str]) -> list[str]:
    seen: dict[str, int] = {}
    found: list[str] = []
    for name in names:
        count = seen[name] = seen.get(name, 0) + 1
        found.append(name if count == 1 else f"{name} #{count}")
    if len(set(found)) == len(found):
        return found
    return [f"{name} #{number}" for number, name in enumerate(names)]


def _owner(node: ModelNode, *, delegation: bool) -> int:
    if node.backend:
        return backend_index(node.backend)
    if node.node.kind in _FLOW or not delegation:
        return PLAIN
    return NOT_DELEGATED


def _bytes(node: ModelNode) -> float:
    sizes = [node.output_bytes, *(weight.nbytes for weight in node.weights)]
    known = [size for size in sizes if size is not None]
    return float(sum(known)) if known and len(known) == len(sizes) else float("nan")


def _edges(graph: ModelGraph, names: Sequence[str]) -> list[SceneEdge]:
    found: list[SceneEdge] = []
    for edge in graph.edges:
        size = edge.nbytes
        source, target = graph.nodes[edge.source], graph.nodes[edge.target]
        found.append(
            SceneEdge(
                names[edge.source],
                names[edge.target],
                "",  # its bytes are written when they are seen
                UNKNOWN_BYTES if size is None else size,
                edge.value,
                emphasised=crosses_boundary(source, target),
            )
        )
    return [*found, *_branch_edges(graph, names)]


def _branch_edges(graph: ModelGraph, names: Sequence[str]) -> list[SceneEdge]:
    """Return lines from operators of control flow to the inputs of their nested graphs."""
    found: list[SceneEdge] = []
    for node in graph.nodes:
        around = node.regions[-1] if node.regions else None
        if around is None or around.kind != BRANCH or node.node.kind is not NodeKind.PLACEHOLDER:
            continue
        owner = graph.by_name.get(branch_owner(around))
        if owner is not None:
            found.append(SceneEdge(names[owner], names[node.id], "", UNKNOWN_BYTES, around.key))
    return found


def crosses_boundary(source: ModelNode, target: ModelNode) -> bool:
    """Return whether a value crosses executors, so that it has to be transferred.

    Inputs and outputs of the program do not count: they are always transferred.
    """
    if source.node.kind in _FLOW or target.node.kind in _FLOW:
        return False
    return source.delegate != target.delegate


def cluster_infos(
    graph: ModelGraph,
    scene: SceneGraph,
    times: NodeTimes,
    found: Clusters,
    time_unit: str = "auto",
) -> Mapping[ClusterPath, ClusterInfo]:
    """Return title and facts of every cluster."""
    calls = [found.regions[path].delegate if path else None for path in scene.tree.paths]
    sums = _cluster_sums(scene.tree, times, calls)
    ticks = _cluster_ticks(scene.tree, times, calls)
    inside = [node for node in graph.nodes if node.delegate is not None]
    backends = {node.delegate: node.backend for node in inside}
    crossings = boundary_texts(graph)
    computing = Counter(node.delegate for node in inside if is_compute(node.node.target))
    infos: dict[ClusterPath, ClusterInfo] = {}
    for number, path in enumerate(scene.tree.paths):
        if not path:
            continue
        region = found.regions[path]
        ns = sums[number]
        owner = PLAIN
        if region.delegate is not None:
            owner = backend_index(backends.get(region.delegate, ""))
        words = plural(int(scene.tree.count[number]), "node")
        if region.delegate is not None:
            words = plural(computing[region.delegate], "computing node")
        infos[path] = ClusterInfo(
            found.titles[path],
            _detail("" if region.kind == QUANTIZED else words, ns, ticks[number], times, time_unit),
            owner,
            None if np.isnan(times.share(ns)) else times.share(ns),
            *crossings.get(region.delegate, ("", "")),
            module=module_of(region),
        )
    return infos


@identity_cache
def boundary_texts(graph: ModelGraph) -> dict[int | None, tuple[str, str]]:
    """Return delegate -> number and bytes of the tensors that enter and leave it."""
    found: dict[tuple[int, bool], list[int | None]] = {}
    for one in boundaries(graph):
        found.setdefault((one.delegate, one.inward), []).append(one.nbytes)
    return {
        delegate: (
            _crossing(found.get((delegate, True), []), "in"),
            _crossing(found.get((delegate, False), []), "out"),
        )
        for delegate in {delegate for delegate, _ in found}
    }


def _crossing(sizes: list[int | None], word: str) -> str:
    known = [size for size in sizes if size is not None]
    nbytes = format_bytes(sum(known)) if len(known) == len(sizes) else "size unknown"
    return f"{word}: {plural(len(sizes), 'tensor')}, {nbytes}" if sizes else ""


def _detail(
    words: str, ns: float, ticks: tuple[float, float], times: NodeTimes, time_unit: str
) -> str:
    parts = [words] if words else []
    coarsest, bound = ticks
    if ns < coarsest:
        parts.append(below(bound, Quantity.TIME))
    elif not np.isnan(ns):
        parts.append(format_time(ns, time_unit))
        if not np.isnan(times.share(ns)):
            parts.append(format_share(times.share(ns)))
    return " · ".join(parts)


def _cluster_sums(
    tree: ClusterTree, times: NodeTimes, delegates: Sequence[int | None]
) -> list[float]:
    """Return the time spent in each cluster, NaN if unknown.

    The time of a delegate is that of its call, which exceeds that of its operators.
    """
    values = times.node_ns
    known = ~np.isnan(values)
    sums = np.bincount(tree.node_cluster[known], values[known], tree.size).tolist()
    counts = np.bincount(tree.node_cluster[known], minlength=tree.size).tolist()
    parents: list[int] = tree.parent.tolist()
    for cluster in range(tree.size - 1, 0, -1):
        called = delegates[cluster]
        if called is not None:
            sums[cluster] = times.delegate_ns.get(called, 0.0)
            counts[cluster] = int(called in times.delegate_ns)
        sums[parents[cluster]] += sums[cluster]
        counts[parents[cluster]] += counts[cluster]
    return [total if count else float("nan") for total, count in zip(sums, counts, strict=True)]


def _cluster_ticks(
    tree: ClusterTree, times: NodeTimes, delegates: Sequence[int | None]
) -> list[tuple[float, float]]:
    """Return the coarsest clock in each cluster and the sum of the clocks of its nodes, in ns.

    The call of a delegate has a clock of its own, which is fine enough: 0.
    """
    coarsest, total = np.zeros(tree.size), np.zeros(tree.size)
    np.maximum.at(coarsest, tree.node_cluster, times.tick_ns)
    np.add.at(total, tree.node_cluster, times.tick_ns)
    for cluster in range(tree.size - 1, 0, -1):
        if delegates[cluster] is not None:
            coarsest[cluster] = total[cluster] = 0.0
        parent = tree.parent[cluster]
        coarsest[parent] = max(coarsest[parent], coarsest[cluster])
        total[parent] += total[cluster]
    return list(zip(coarsest.tolist(), total.tolist(), strict=True))


def with_sublabels(
    graph: GraphScene,
    overlay: str,
    time_unit: str,
    size_unit: str,
    second_lines: Mapping[int, str] = MappingProxyType({}),
) -> SceneGraph:
    """Return the scene in these units; second lines of nodes show the value of the colour.

    Args:
        graph: the graph
        overlay: meanings of colour
        time_unit: of times
        size_unit: of bytes
        second_lines: node -> its second line, where another overlay sets it
    """

    def text(node: ModelNode) -> str:
        if second_lines.get(node.id):
            return second_lines[node.id]
        if node.node.kind is NodeKind.PLACEHOLDER:
            return f"input · {shape_text(node.values)}"
        if node.node.kind is NodeKind.OUTPUT:
            return _output_text(graph.graph, node)
        if "destination" in node.node.attributes:
            return f"if false, to instruction {node.node.attributes['destination']}"
        if overlay == "time":
            return _time_text(graph, node, time_unit)
        if overlay == "bytes":
            size = float(graph.nbytes[node.id])
            return "size unknown" if math.isnan(size) else format_bytes(size, size_unit)
        return shape_text(node.values)

    scene = graph.scene
    return replace(
        scene,
        sublabels=SeenTexts(len(graph.graph.nodes), lambda at: text(graph.graph.nodes[at])),
        edge_labels=_edge_labels(scene, size_unit),
        info=cluster_infos(graph.graph, scene, graph.times, graph.clusters, time_unit),
    )


def _output_text(graph: ModelGraph, node: ModelNode) -> str:
    """Return what a caller gets, in short: also constants, but no state that was written."""
    kinds = cast("Sequence[str]", node.node.attributes.get("output_kinds", ()))
    args = node.node.args
    if len(kinds) == len(args):
        args = [arg for arg, kind in zip(args, kinds, strict=True) if kind == USER_OUTPUT]
    read = dict.fromkeys(name for arg in args for name in arg.values)
    values = {
        value.name: value for one in graph.nodes for value in one.values if value.name in read
    }
    weights = (short_description(one.description) for one in node.weights)
    return in_short(
        [value_text(values[name]) if name in values else next(weights, "") for name in read]
    )


def _edge_labels(scene: SceneGraph, size_unit: str) -> tuple[str, ...]:
    """Return the bytes of edges in a fixed unit; in its own each is written when it is seen."""
    if size_unit == "auto":
        return scene.edge_labels
    return tuple(
        format_bytes(size, size_unit) if size != UNKNOWN_BYTES else ""
        for size in scene.edge_bytes.tolist()
    )


def _time_text(graph: GraphScene, node: ModelNode, unit: str) -> str:
    ns = float(graph.times.node_ns[node.id])
    if not math.isnan(ns):
        tick_ns = float(graph.times.tick_ns[node.id])
        text = format_duration(ns, tick_ns, unit)
        share = graph.times.share(ns)
        known = not math.isnan(share) and ns >= tick_ns
        return f"{text} · {format_share(share)}" if known else text
    main = graph.times.part_of.get(node.id)
    if main is not None:
        return f"in {node_title(graph.graph.nodes[main])}"
    return shape_text(node.values)


def opening_set(tree: ClusterTree, most: int = MOST_VISIBLE) -> frozenset[ClusterPath]:
    """Return the clusters to open at first: level by level, while few enough boxes are visible.

    Clusters of one size are opened together or not at all, so that equal blocks look equal.
    """
    opened = _opened(tree, most)
    top = int((tree.parent == 0).sum() + (tree.node_cluster == 0).sum())
    # One delegate with everything inside would leave nothing to look at.
    while not opened and tree.size > 1 and top < _FEW and most < _MANY:
        most = 2 * most
        opened = _opened(tree, most)
    return opened


def _opened(tree: ClusterTree, most: int) -> frozenset[ClusterPath]:
    inside = np.bincount(tree.node_cluster, minlength=tree.size)
    inside += np.bincount(tree.parent[1:], minlength=tree.size)
    shown = int(inside[0])
    opened: set[int] = {0}
    groups: dict[tuple[int, int, int], list[int]] = {}
    for cluster in range(1, tree.size):
        key = (int(tree.depth[cluster]), int(inside[cluster]), int(tree.count[cluster]))
        groups.setdefault(key, []).append(cluster)
    for _, members in sorted(groups.items()):
        ready = [one for one in members if int(tree.parent[one]) in opened]
        more = sum(int(inside[one]) - 1 for one in ready)
        if ready and shown + more <= most:
            opened.update(ready)
            shown += more
    return frozenset(tree.paths[one] for one in opened if one)
