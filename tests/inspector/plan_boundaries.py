"""Boundaries of the delegates of a compiled program, as its instructions have them."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.graph.boundaries import Boundary, Crossing, is_quantization
from inspector.graph.plan_graph import plan_graph
from schema.graph import Graph, GraphNode, NodeKind
from schema.program import ProgramFile

_TRANSPOSING = "StaticTranspose"


def program_boundaries(program: ProgramFile, method: str) -> tuple[Boundary, ...]:
    """Return the boundaries of the delegates of a compiled method, with any compiler.

    Partitions are numbered in the order of their calls. Layout copies are known for payloads that
    list their nodes.

    Args:
        program: as read from its file
        method: of the program

    Raises: KeyError for an unknown method
    """
    graph = plan_graph(program, method)
    number = {
        node.name: at
        for at, node in enumerate(n for n in graph.nodes if n.kind is NodeKind.DELEGATE)
    }
    found: dict[tuple[int | None, int | None], dict[str, tuple[Crossing, bool]]] = {}
    makers: dict[str, GraphNode] = {}
    for node in graph.nodes:
        for name in dict.fromkeys(node.inputs):
            maker = makers.get(name)
            edge = number.get(maker.name) if maker else None, number.get(node.name)
            if maker is None or edge[0] == edge[1]:
                continue  # constants of the program, and values that are not moved
            is_end = maker.kind is NodeKind.PLACEHOLDER or node.kind is NodeKind.OUTPUT
            known = found.setdefault(edge, {})
            ends = is_end and (name not in known or known[name][1])
            known[name] = _crossing(graph, name, maker, node), ends
        makers.update(dict.fromkeys(node.outputs, node))
    return tuple(
        Boundary(*edge, tuple(c for c, _ in values.values()), all(e for _, e in values.values()))
        for edge, values in found.items()
    )


def _crossing(graph: Graph, name: str, maker: GraphNode, reader: GraphNode) -> Crossing:
    value = graph.values[name]
    meta = value.tensor
    kind = value.kind if meta is None else f"{meta.dtype}[{', '.join(map(str, meta.sizes))}]"
    copies = sum(
        found == name
        for node, side in ((maker, "outputs"), (reader, "inputs"))
        for found in _moved(graph, node, side)
    )
    quantizing = tuple(n.name for n in (maker, reader) if is_quantization(n.target))
    return Crossing(name, kind, 0 if meta is None else meta.nbytes, copies, quantizing)


def _moved(graph: Graph, node: GraphNode, side: str) -> Iterator[str]:
    """Yield the values of a call that its delegate reorders in memory."""
    places = [name for name in node.subgraphs if name in graph.subgraphs]
    for place in places if node.kind is NodeKind.DELEGATE else ():
        inner = graph.subgraphs[place]
        outer = node.inputs if side == "inputs" else node.outputs
        names = inner.inputs if side == "inputs" else inner.outputs
        moves = [one for one in inner.nodes if one.target == _TRANSPOSING]
        for inside, outside in zip(names, outer, strict=False):
            read = any(inside in move.inputs for move in moves)
            built = any(inside in move.outputs for move in moves)
            if read if side == "inputs" else built:
                yield outside
