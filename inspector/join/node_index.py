"""The nodes of a recorded graph by debug handle, and normalized operator names."""

from __future__ import annotations

from collections.abc import Mapping

from schema.graph import Graph, GraphNode
from schema.objects.identity_cache import identity_cache


@identity_cache
def nodes_by_handle(graph: Graph) -> Mapping[int, tuple[GraphNode, ...]]:
    """Return the nodes of a graph by debug handle, nested graphs after the node that has them."""
    found: dict[int, list[GraphNode]] = {}
    for node in walk_nodes(graph):
        if node.debug_handle is not None:
            found.setdefault(node.debug_handle, []).append(node)
    return {handle: tuple(nodes) for handle, nodes in found.items()}


def walk_nodes(graph: Graph) -> list[GraphNode]:
    """Return all nodes of a graph and its nested graphs, outer before inner."""
    found: list[GraphNode] = []
    for node in graph.nodes:
        found.append(node)
        for name in node.subgraphs:
            inner = graph.subgraphs.get(name)
            if inner is not None:
                found.extend(walk_nodes(inner))
    return found


def base_operator(name: str) -> str:
    """Return ``ns::op`` of an operator name in either spelling, overload dropped.

    ``aten.addmm.default`` and ``aten::addmm.out`` are the same operator.
    """
    if "::" in name:
        namespace, rest = name.split("::", 1)
        return f"{namespace}::{rest.split('.')[0]}"
    return "::".join(name.split(".")[:2])
