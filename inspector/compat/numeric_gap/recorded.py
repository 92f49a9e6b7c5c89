"""Values of the nodes of a recorded program, by debug handle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from inspector.compat.devtools.etrecord import ETRecord
from inspector.compat.numeric_gap.bodies import Executed
from inspector.join import record_maps
from inspector.numerics.flat_graph import Value
from inspector.rebuild.torch_bridge import later_copy
from schema.graph import Graph, GraphNode, NodeKind

EDGE, EXPORTED = "edge_dialect_exported_program", "exported_program"
_SKIPPED = (NodeKind.PLACEHOLDER, NodeKind.OUTPUT)


@dataclass(frozen=True, slots=True)
class NodeValue:
    """Value of one node.

    Attributes:
        name: of the node
        value: tensor, list or number
        stack_trace: where the user's code calls it, None when unknown
    """

    name: str
    value: Any
    stack_trace: str | None


@dataclass(frozen=True, slots=True)
class Recorded:
    """Values of the nodes of a recorded program.

    Attributes:
        name: of the graph
        nodes: debug handle -> its nodes, in order
        executed: of a graph with branches or loops: value of a nested graph, or of a node that has
            some -> its values, pass by pass
        inputs: source of the inputs
    """

    name: str
    nodes: Mapping[int, Sequence[NodeValue]]
    executed: Executed = field(default_factory=dict[Value, list[Any]])
    inputs: str = ""


def recorded_bytes(found: Recorded) -> int:
    """Return the bytes of all values."""
    inside = sum(_bytes(value) for passes in found.executed.values() for value in passes)
    return inside + sum(_bytes(node.value) for nodes in found.nodes.values() for node in nodes)


def copied(found: Recorded) -> Recorded:
    """Return a copy with cloned tensors."""
    nodes = {
        handle: [replace(node, value=own_copy(node.value)) for node in each]
        for handle, each in found.nodes.items()
    }
    inside = {
        value: [own_copy(each) for each in passes] for value, passes in found.executed.items()
    }
    return replace(found, nodes=nodes, executed=inside)


def _bytes(value: Any) -> int:  # noqa: ANN401
    if isinstance(value, (tuple, list)):
        return sum(map(_bytes, cast("Sequence[Any]", value)))
    return int(getattr(value, "nbytes", 0))


def handles_of_exported(record: ETRecord, method: str, *, best_effort: bool) -> dict[str, int]:
    """Return node of the exported graph -> debug handle, by the ancestors edge nodes name.

    Args:
        record: with an exported program
        method: name
        best_effort: return partial results if edge nodes have no counterpart

    Returns: empty where an edge node has no counterpart
    """
    artifact = record.artifact
    edge, exported = record_maps.edge_graph(artifact, method), record_maps.aten_graph(artifact)
    if edge is None or exported is None:
        return {}
    by_ancestor: dict[str, int] = {}
    for node in _all_nodes(edge):
        if node.debug_handle is not None and node.kind is not NodeKind.DELEGATE:
            for ancestor in node.from_node:
                by_ancestor.setdefault(ancestor, node.debug_handle)
    found: dict[str, int] = {}
    for node in _all_nodes(exported):
        own = f"{node.name}.{artifact.export_graph_id}"
        handle = next((by_ancestor[key] for key in (own, *node.from_node) if key in by_ancestor), 0)
        found[node.name] = handle
    matched = set(found.values())
    requested = {
        node.debug_handle
        for node in _all_nodes(edge)
        if node.debug_handle is not None and node.kind is not NodeKind.DELEGATE
    }
    return found if best_effort or requested <= matched else {}


def _all_nodes(graph: Graph) -> list[GraphNode]:
    found = [node for node in graph.nodes if node.kind not in _SKIPPED]
    for inner in graph.subgraphs.values():
        found += _all_nodes(inner)
    return found


def own_copy(value: Any) -> Any:  # noqa: ANN401
    """Return a copy of a value that later in-place operators do not change."""
    if hasattr(value, "clone"):
        return later_copy(value)
    if isinstance(value, (tuple, list)):
        return [own_copy(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value
