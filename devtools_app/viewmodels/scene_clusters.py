"""Clusters of the graph view: modules, the delegates inside them, and quantized operators.

A delegate sits in the innermost module that holds all of it and something else, so that the
blocks of a model stay apart; one that spans modules is outermost. A module of one node, and one
that only wraps another module, have no separate box.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from devtools_app.viewmodels.layout.cluster_tree import ClusterPath
from inspector.graph.model_graph import GraphRegion, ModelGraph, ModelNode
from inspector.graph.node_text import operator_title
from inspector.join.operator_names import quantizes
from schema.graph import NodeKind

MODULE, DELEGATE, BRANCH, QUANTIZED = "module", "delegate", "branch", "quantized"
Regions = tuple[GraphRegion, ...]


@dataclass(frozen=True, slots=True)
class Clusters:
    """The clusters of the nodes of a graph.

    Attributes:
        paths: path of the innermost cluster of each node
        titles: title of each cluster
        regions: region of each cluster
    """

    paths: tuple[ClusterPath, ...]
    titles: Mapping[ClusterPath, str]
    regions: Mapping[ClusterPath, GraphRegion]


def clusters(graph: ModelGraph, *, flat: bool = False) -> Clusters:
    """Return the clusters of a graph; ``flat`` omits modules and quantized operators."""
    if flat:
        regions = [_without_modules(node.regions) for node in graph.nodes]
    else:
        regions = _with_quantized(graph, nested_delegates([node.regions for node in graph.nodes]))
        regions = _without_chains(_without_singles(regions))
    titles: dict[ClusterPath, str] = {}
    kinds: dict[ClusterPath, GraphRegion] = {}
    for own in filter(None, regions):
        _name(own, titles, kinds)
    return Clusters(tuple(_path(own) for own in regions), titles, kinds)


def tagged(found: Clusters, tags: Mapping[int, str]) -> Clusters:
    """Return the clusters with the tags of delegates in their titles."""
    titles = dict(found.titles)
    for path, region in found.regions.items():
        tag = tags.get(region.delegate) if region.delegate is not None else None
        if tag and region.kind == DELEGATE:
            titles[path] = f"{titles[path]} ({tag})"
    return replace(found, titles=titles)


def nested_delegates(regions: Sequence[Regions]) -> list[Regions]:
    """Return the regions of each node with delegates moved into the modules that hold them."""
    common: dict[GraphRegion, Regions] = {}
    owners: dict[str, set[GraphRegion | None]] = {}
    for own in filter(None, regions):
        delegate, modules = _split(own)
        for module in modules:
            owners.setdefault(module.key, set()).add(delegate)
        if delegate is not None and modules:
            common[delegate] = _shared(common.get(delegate, modules), modules)
    around = {
        delegate: tuple(module for module in modules if len(owners[module.key]) > 1)
        for delegate, modules in common.items()
    }
    return [_moved(own, around) if own else own for own in regions]


def _split(own: Regions) -> tuple[GraphRegion | None, Regions]:
    """Return the outermost delegate and the modules, named as they are outside of it."""
    delegate = own[0] if own and own[0].kind == DELEGATE else None
    inside = own[1:] if delegate is not None else own
    modules: list[GraphRegion] = []
    for region in inside:
        if region.kind != MODULE:
            break
        scope = f"{delegate.key}:" if delegate is not None else ""
        modules.append(replace(region, key=region.key.removeprefix(scope)))
    return delegate, tuple(modules)


def _shared(one: Regions, other: Regions) -> Regions:
    count = 0
    while count < min(len(one), len(other)) and one[count].key == other[count].key:
        count += 1
    return one[:count]


def _moved(own: Regions, around: Mapping[GraphRegion, Regions]) -> Regions:
    delegate, modules = _split(own)
    if delegate is None or delegate not in around:
        return own
    outer = around[delegate]
    inside = own[1 + len(outer) :] if modules else own[1:]
    return (*outer, delegate, *inside)


def _path(regions: Regions) -> ClusterPath:
    return tuple(region.key for region in regions)


def _without_modules(regions: Regions) -> Regions:
    return tuple(region for region in regions if region.kind != MODULE)


def _without_singles(regions: list[Regions]) -> list[Regions]:
    counts = _counts(regions)

    def kept(own: Regions, end: int) -> bool:
        return own[end - 1].kind != MODULE or counts[_path(own[:end])] > 1

    return [
        tuple(region for end, region in enumerate(own, 1) if kept(own, end)) if own else own
        for own in regions
    ]


def _counts(regions: Sequence[Regions]) -> Counter[ClusterPath]:
    """Return how many nodes each cluster holds."""
    inside = filter(None, regions)  # a flat graph has nodes in none
    return Counter(_path(own[:end]) for own in inside for end in range(1, len(own) + 1))


def _without_chains(regions: list[Regions]) -> list[Regions]:
    """Drop modules that contain only one other module."""
    counts = _counts(regions)

    def kept(own: Regions, at: int) -> bool:
        if own[at].kind != MODULE or at + 1 == len(own) or own[at + 1].kind != MODULE:
            return True
        return counts[_path(own[: at + 1])] != counts[_path(own[: at + 2])]

    return [
        tuple(own[at] for at in range(len(own)) if kept(own, at)) if own else own for own in regions
    ]


def _name(
    regions: Regions, titles: dict[ClusterPath, str], kinds: dict[ClusterPath, GraphRegion]
) -> None:
    path: ClusterPath = ()
    around = ""
    for region in regions:
        path = (*path, region.key)
        module = module_of(region) or around
        if path not in kinds:
            kinds[path] = region
            inside = around and module.startswith(f"{around}.")
            short = module.removeprefix(f"{around}.") if inside else module
            titles[path] = short if region.kind == MODULE else _title(region)
        around = module


def module_of(region: GraphRegion) -> str:
    """Return the path of the module that a region stands for, empty for others."""
    return region.key.rsplit(":", 1)[-1] if region.kind == MODULE else ""


def _title(region: GraphRegion) -> str:
    """Return the title of a region; that of a branch names the operator it belongs to."""
    if region.kind != BRANCH:
        return region.label
    owner = branch_owner(region).rsplit("/", 1)[-1]
    return f"{owner} · {region.label}"


def branch_owner(region: GraphRegion) -> str:
    """Return the name of the node that a nested graph belongs to."""
    return region.key.removesuffix(f"/{region.label}")


def _with_quantized(graph: ModelGraph, regions: list[Regions]) -> list[Regions]:
    """Put each operator with its private conversions into a separate region."""
    known = {target: quantizes(target) for target in {node.node.target for node in graph.nodes}}
    signs = [known[node.node.target] for node in graph.nodes]
    if not any(signs):
        return regions
    readers: list[list[int]] = [[] for _ in graph.nodes]
    makers: list[list[int]] = [[] for _ in graph.nodes]
    for edge in graph.edges:
        readers[edge.source].append(edge.target)
        makers[edge.target].append(edge.source)
    found = _Conversions(graph.nodes, signs, readers, makers)
    result = list(regions)
    for members in found.groups():
        main = graph.nodes[members[0]]
        title = f"cluster ({operator_title(main.node.target)})"
        region = GraphRegion(f"quantized {main.name}", title, QUANTIZED)
        for member in members:
            result[member] = (*regions[main.id], region)
    return result


class _Conversions:
    """Finds operators with their own dequantized inputs and quantized outputs."""

    def __init__(
        self,
        nodes: Sequence[ModelNode],
        signs: Sequence[int],
        readers: Sequence[Sequence[int]],
        makers: Sequence[Sequence[int]],
    ) -> None:
        self._nodes, self._signs = nodes, signs
        self._readers, self._makers = readers, makers
        self._taken: set[int] = set()

    def groups(self) -> list[list[int]]:
        """Return members of each group, the operator first."""
        found: list[list[int]] = []
        passive = (NodeKind.PLACEHOLDER, NodeKind.OUTPUT, NodeKind.CONTROL)
        for node in self._nodes:
            if self._signs[node.id] or node.node.kind in passive or node.id in self._taken:
                continue
            members = self._group(node.id)
            if len(members) > 1 and any(self._signs[one] for one in members):
                self._taken.update(members)
                found.append(members)
        return found

    def _group(self, start: int) -> list[int]:
        members = [start, *self._own_inputs(start)]
        last = start
        while True:
            after = self._readers[last]
            if len(set(after)) == 1 and not self._signs[after[0]] and self._follows(last, after[0]):
                last = after[0]
                members.append(last)
                continue
            members += self._own_outputs(last)
            return members

    def _own_inputs(self, node: int) -> list[int]:
        return [
            maker
            for maker in dict.fromkeys(self._makers[node])
            if self._signs[maker] < 0
            and set(self._readers[maker]) == {node}
            and self._together(node, maker)
        ]

    def _own_outputs(self, node: int) -> list[int]:
        return [
            reader
            for reader in dict.fromkeys(self._readers[node])
            if self._signs[reader] > 0 and self._together(node, reader)
        ]

    def _follows(self, node: int, reader: int) -> bool:
        """Return whether an operator is the only reader and its result is quantized, as a ReLU."""
        return (
            self._nodes[reader].node.kind is NodeKind.CALL
            and set(self._makers[reader]) == {node}
            and reader not in self._taken
            and bool(self._own_outputs(reader))
            and self._together(node, reader)
        )

    def _together(self, one: int, other: int) -> bool:
        return _outer(self._nodes[one]) == _outer(self._nodes[other]) and other not in self._taken


def _outer(node: ModelNode) -> Regions:
    return _without_modules(node.regions)
