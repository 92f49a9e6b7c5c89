"""Nodes of branches and loop bodies inside payloads, and their names in traces."""

from __future__ import annotations

from collections.abc import Iterator

from schema.graph import Graph, GraphNode


def inner_label(block: str, node: str) -> str:
    """Return the name of a node in traces: nodes of nested blocks have that of the block before it.

    Args:
        block: key of the nested graph, empty for the outermost one
        node: name in its graph
    """
    return f"{block}/{node}" if block else node


def nested_calls(graph: Graph) -> Iterator[tuple[str, GraphNode]]:
    """Yield the computing nodes of a graph and of its nested blocks, with their names in traces."""
    for node in graph.calls():
        yield node.name, node
    for block, inner in graph.subgraphs.items():
        for label, node in nested_calls(inner):
            yield inner_label(block, label), node
