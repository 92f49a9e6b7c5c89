"""Where the values of the edge graph are in the graph as it was exported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.numerics.flat_graph import (
    FlatGraph,
    FlatNode,
    Scope,
    Value,
    flat_graph,
    is_transparent,
)
from schema.etrecord import RecordFile
from schema.graph import GraphNode

# operator that takes a part of a tensor -> its argument that tells where the part begins
_PARTS = {
    "aten::slice": "start",
    "aten::slice_copy": "start",
    "aten::select": "index",
    "aten::select_copy": "index",
}


def aten_values(record: RecordFile, edge: FlatGraph) -> Mapping[Value, tuple[Scope, str, int]]:
    """Return value of the edge graph -> scope, node and output of the exported graph.

    A node of the exported graph may have become several edge nodes: its result is that of the
    last one, and its pieces are those of nodes that take parts of one tensor, by where they begin.
    Results that merge again, of other shapes, or of nodes whose number of results is another, are
    left out.
    """
    if not record.roles.exported:
        return {}
    exported = flat_graph(record.graph(record.roles.exported))
    by_name = {node.node.name: node for node in exported.nodes if not node.scope}
    suffix = f".{record.export_graph_id}"
    became: dict[str, list[FlatNode]] = {}
    sources: dict[Value, str] = {}
    for node in edge.nodes:
        source = _source(node.node, suffix, by_name)
        if source:
            became.setdefault(source, []).append(node)
            sources.update((value, source) for value in node.writes)
    found: dict[Value, tuple[Scope, str, int]] = {}
    for name, nodes in became.items():
        results = by_name[name].writes
        for index, value in enumerate(_results(edge, nodes, len(results))):
            if _alike(edge, value, exported, results[index]):
                found[value] = ((), name, index)
    for value, place in list(found.items()):
        _add_views(edge, value, place, sources, found)
    for place, value in enumerate(edge.inputs):
        if place < len(exported.inputs):
            found.setdefault(value, ((), exported.inputs[place][1], 0))
    return found


def _results(edge: FlatGraph, nodes: Sequence[FlatNode], count: int) -> tuple[Value, ...]:
    """Return the values that are the results of the exported node which became these nodes."""
    last = nodes[-1].writes
    if count == 1 or len(last) == count:
        return last[:count]
    return _pieces(edge, nodes, count)


def _pieces(edge: FlatGraph, nodes: Sequence[FlatNode], count: int) -> tuple[Value, ...]:
    """Return the values of nodes that divide one tensor, in its order; empty unless they do.

    Args:
        edge: graph of the nodes
        nodes: what one node of the exported graph became
        count: of its results
    """
    inner = {value for node in nodes for value in node.reads}
    ends = [value for node in nodes for value in node.writes if value not in inner]
    parts = [_part(edge, value) for value in ends]
    known = [(place, value) for place, value in zip(parts, ends, strict=True) if place is not None]
    wholes = {place[0] for place, _ in known}
    begins = {place[1] for place, _ in known}
    if len(ends) != count or len(begins) != count or len(wholes) != 1:
        return ()
    return tuple(value for _, value in sorted(known, key=lambda one: one[0][1]))


def _part(edge: FlatGraph, value: Value) -> tuple[tuple[Value, object], int] | None:
    """Return the tensor and dimension that a value is a part of, and where it begins there."""
    maker = edge.producers.get(value)
    while maker is not None and is_transparent(maker[0]):
        maker = edge.producers.get(maker[0].reads[0])
    if maker is None or maker[0].operator not in _PARTS or not maker[0].reads:
        return None
    given = {arg.name: arg.literal for arg in maker[0].node.args}
    begin = given.get(_PARTS[maker[0].operator], 0)
    if not isinstance(begin, int) or isinstance(begin, bool) or begin < 0:
        return None
    return (maker[0].reads[0], given.get("dim", 0)), begin


def _add_views(
    edge: FlatGraph,
    value: Value,
    place: tuple[Scope, str, int],
    sources: Mapping[Value, str],
    found: dict[Value, tuple[Scope, str, int]],
) -> None:
    """Add the values that the result is a view or copy of, within the same exported node."""
    maker = edge.producers.get(value)
    while maker is not None and is_transparent(maker[0]):
        value = maker[0].reads[0]
        if sources.get(value) != place[1]:
            return
        found.setdefault(value, place)
        maker = edge.producers.get(value)


def _source(node: GraphNode, suffix: str, names: Mapping[str, object]) -> str:
    """Return the exported node that an edge node came from, empty when it is not known."""
    for entry in reversed(node.from_node):
        name = entry.rpartition(".")[0]
        if entry.endswith(suffix) and name in names:
            return name
    for entry in reversed(node.from_node):
        name = entry.rpartition(".")[0]
        if name in names:
            return name
    return ""


def _alike(edge: FlatGraph, value: Value, exported: FlatGraph, other: Value) -> bool:
    first, second = edge.meta.get(value), exported.meta.get(other)
    if first is None or second is None or first.tensor is None or second.tensor is None:
        return True
    return (
        first.tensor.scalar_type == second.tensor.scalar_type
        and len(first.tensor.sizes) == len(second.tensor.sizes)
        and all(
            one == two or isinstance(one, str) or isinstance(two, str)
            for one, two in zip(first.tensor.sizes, second.tensor.sizes, strict=True)
        )
    )
