"""The node list that the stock tool derives from the same graph, for comparison with it.

The stock tool turns the JSON back into a torch.fx graph: outputs of one node become ``getitem``
nodes, nested graphs and lowered modules become ``get_attr`` nodes, and nodes without a stored
name get a new one. Our graphs keep the names of the file; this list has the names of the stock
tool.

Source: exir/serde/export_serialize.py and serialize.py, ``GraphModuleDeserializer``;
torch/fx/graph.py, ``Graph.create_node``
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from schema.etrecord.graph.names import FxNames, callable_name
from schema.graph import Graph, GraphNode, NodeKind

GETITEM = "_operator.getitem"
_EDGE = "executorch.exir.dialects."
_NAMELESS = ("executorch.exir.memory.view",)  # deserialised as plain functions, without metadata


@dataclass(frozen=True, slots=True)
class ListedNode:
    """One node as the stock tool lists it.

    Attributes:
        name: torch.fx name
        op: placeholder, call_function, get_attr or output
        target: operator without its dialect; attribute or placeholder name
        debug_handle: as in the file, 0 included; None if absent
        stack_trace: traceback string, empty if absent
        source: name of the corresponding node of our graph
    """

    name: str
    op: str
    target: str
    debug_handle: int | None = None
    stack_trace: str = ""
    source: str = ""


def node_list(graph: Graph) -> list[ListedNode]:
    """Return the nodes of the stock tool's graph, in its order; nested graphs not included."""
    names = FxNames()
    return [listed for node in graph.nodes for listed in _listed(node, names)]


def _listed(node: GraphNode, names: FxNames) -> Iterator[ListedNode]:
    if node.kind is NodeKind.PLACEHOLDER:
        names.create(node.name)
        yield ListedNode(node.name, "placeholder", node.name, source=node.name)
    elif node.kind is NodeKind.OUTPUT:
        yield ListedNode(names.create("output"), "output", "output", source=node.name)
    else:
        yield from _attributes(node, names)
        yield from _call(node, names)


def _attributes(node: GraphNode, names: FxNames) -> Iterator[ListedNode]:
    """Yield the attributes a call reads, the subgraph by its name in the file."""
    delegate = node.kind is NodeKind.DELEGATE
    args = node.args[:1] if delegate else node.args
    nested = set(node.subgraphs)
    for arg in args:
        attribute = arg.name if delegate else arg.literal
        if delegate or (isinstance(attribute, str) and attribute in nested):
            attribute = str(attribute)
            name = names.of_target(attribute) if delegate else names.create(attribute)
            yield ListedNode(name, "get_attr", attribute, source=node.name)


def _call(node: GraphNode, names: FxNames) -> Iterator[ListedNode]:
    raw = str(node.attributes.get("raw_target", node.target))
    silent = raw in _NAMELESS
    handle = None if silent else _handle(node)
    trace = "" if silent else node.stack_trace
    layout = cast("tuple[object, ...] | None", node.attributes.get("outputs"))
    name = _name(node, raw, layout, names)
    yield ListedNode(name, "call_function", node.target, handle, trace, node.name)
    if layout is not None:
        only_list = len(layout) == 1 and isinstance(layout[0], tuple)
        items = cast("tuple[object, ...]", layout[0]) if only_list else layout
        for item in _items(items, names):
            yield ListedNode(item, "call_function", GETITEM, handle, trace, node.name)


def _name(node: GraphNode, raw: str, layout: tuple[object, ...] | None, names: FxNames) -> str:
    if node.target == "memory.alloc":
        return names.create("alloc")
    if raw in _NAMELESS:
        return names.create(callable_name(raw))
    if raw.startswith(_EDGE) or node.kind is NodeKind.DELEGATE:
        plain = layout is None and node.outputs and not _is_symbol(node)
        return names.create(node.outputs[0]) if plain else names.of_target(raw)
    return names.create(node.name)


def _is_symbol(node: GraphNode) -> bool:
    """Return whether an edge operator has one output, a scalar: the stock tool renames those."""
    return node.attributes.get("scalar_output") is True


def _items(layout: tuple[object, ...], names: FxNames) -> Iterator[str]:
    for item in layout:
        if isinstance(item, str):
            yield names.create(item)
        else:
            yield names.of_target("_operator.getitem")
            yield from _items(cast("tuple[object, ...]", item or ()), names)


def _handle(node: GraphNode) -> int | None:
    if node.debug_handle is not None:
        return node.debug_handle
    return 0 if node.attributes.get("debug_handle") == "0" else None
