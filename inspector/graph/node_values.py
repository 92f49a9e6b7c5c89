"""Values of a file at the nodes of a graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.files.node_data import NodeData
from inspector.graph.model_graph import ModelGraph
from schema.objects.identity_cache import identity_cache


@dataclass(frozen=True, slots=True, eq=False)
class NodeValues:
    """The values of a set at the nodes of a graph.

    Attributes:
        values: of each node, NaN where the set has none
        keys: name in the set of each node with a value
        unmatched: names in the set that no node has

    Shapes: values float64[nodes]
    """

    values: NDArray[np.float64]
    keys: dict[int, str]
    unmatched: tuple[str, ...]

    @property
    def missing(self) -> int:
        """Return the number of nodes without a value."""
        return int(np.isnan(self.values).sum())


@identity_cache
def node_values(graph: ModelGraph, data: NodeData) -> NodeValues:
    """Return the values of a set at the nodes of a graph.

    A name is that of a node, of one of its outputs, or of the node without the delegate call around
    it; in data of Model Explorer it may be the position of the node.
    """
    by_name = _names(graph)
    values = np.full(len(graph.nodes), np.nan)
    keys: dict[int, str] = {}
    unmatched: list[str] = []
    for name, value in data.values.items():
        node = by_name.get(name)
        if node is None and data.by_id and name.isdecimal() and int(name) < len(graph.nodes):
            node = int(name)
        if node is None:
            unmatched.append(name)
            continue
        values[node] = value
        keys[node] = name
    return NodeValues(values, keys, tuple(unmatched))


@identity_cache
def values_of_part(part: ModelGraph, whole: ModelGraph, data: NodeData) -> NodeValues:
    """Return the values of a set at some nodes of a graph, which have other numbers.

    Positions and names are those of the whole graph: what is not drawn is not unknown.
    """
    found = node_values(whole, data)
    old = [whole.by_name[node.name] for node in part.nodes]
    keys = {new: found.keys[node] for new, node in enumerate(old) if node in found.keys}
    return NodeValues(found.values[old], keys, found.unmatched)


def _names(graph: ModelGraph) -> dict[str, int]:
    """Return the node of each name; a name of several nodes is of none of them."""
    found = {node.name: node.id for node in graph.nodes}
    others: dict[str, int] = {}
    twice: set[str] = set()
    for node in graph.nodes:
        for name in {node.name.rsplit("/", 1)[-1], *node.node.outputs}:
            if others.setdefault(name, node.id) != node.id:
                twice.add(name)
    return {**{name: node for name, node in others.items() if name not in twice}, **found}
