"""Where the values of the edge graph are in the graph as it was exported."""

from __future__ import annotations

from collections.abc import Mapping

from inspector.numerics.flat_graph import FlatGraph, Scope, Value, flat_graph, is_transparent
from schema.etrecord import RecordFile
from schema.graph import GraphNode


def aten_values(record: RecordFile, edge: FlatGraph) -> Mapping[Value, tuple[Scope, str, int]]:
    """Return value of the edge graph -> scope, node and output of the exported graph.

    A node of the exported graph may have become several edge nodes: its result is that of the
    last one. Results that merge again, or of other shapes, are left out.
    """
    if not record.roles.exported:
        return {}
    exported = flat_graph(record.graph(record.roles.exported))
    by_name = {node.node.name: node for node in exported.nodes if not node.scope}
    suffix = f".{record.export_graph_id}"
    last: dict[str, tuple[Value, ...]] = {}
    sources: dict[Value, str] = {}
    for node in edge.nodes:
        source = _source(node.node, suffix, by_name)
        if source:
            last[source] = node.writes
            sources.update((value, source) for value in node.writes)
    found: dict[Value, tuple[Scope, str, int]] = {}
    for name, values in last.items():
        results = by_name[name].writes
        for index, value in enumerate(values):
            if index < len(results) and _alike(edge, value, exported, results[index]):
                found[value] = ((), name, index)
    for value, place in list(found.items()):
        _add_views(edge, value, place, sources, found)
    for place, value in enumerate(edge.inputs):
        if place < len(exported.inputs):
            found.setdefault(value, ((), exported.inputs[place][1], 0))
    return found


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
