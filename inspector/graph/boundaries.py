"""The cost of values that enter or leave delegates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from inspector.graph.plan_graph import plan_graph
from schema.graph import Graph, GraphNode, NodeKind
from schema.program import ProgramFile

QUANTIZING = ("quantize_", "dequantize_", "choose_qparams")  # prefixes of operator names
_TRANSPOSING = "StaticTranspose"


@dataclass(frozen=True, slots=True)
class Crossing:
    """A value that crosses a boundary.

    Attributes:
        name: of the node that computes it
        kind: dtype and sizes, as in ``float32[1, 3, 8, 8]``
        nbytes: bytes copied or passed; None if a size is unknown
        layout_copies: transpositions of it by the delegate
        quantizing: nodes outside that quantize or dequantize it
    """

    name: str
    kind: str
    nbytes: int | None
    layout_copies: int = 0
    quantizing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Boundary:
    """An edge between two parts of a program, at least one of which is a partition.

    Attributes:
        source: index of the source partition, None outside of partitions
        target: index of the target partition, None outside of partitions
        values: that cross it
        is_end: whether all are inputs or results of the program, so that no rule can remove it
    """

    source: int | None
    target: int | None
    values: tuple[Crossing, ...]
    is_end: bool = False

    @property
    def nbytes(self) -> int | None:
        """Return the bytes of all values, None if a size is unknown."""
        sizes = [value.nbytes for value in self.values]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None

    @property
    def layout_copies(self) -> int:
        """Return how often a value changes its order in memory for it."""
        return sum(value.layout_copies for value in self.values)

    @property
    def quantizing(self) -> tuple[str, ...]:
        """Return the nodes outside that quantize or dequantize for it."""
        return tuple(dict.fromkeys(name for value in self.values for name in value.quantizing))


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


def is_quantization(operator: str) -> bool:
    """Return whether an operator quantizes or dequantizes, or chooses how."""
    return any(part.startswith(QUANTIZING) for part in operator.replace("::", ".").split(".")[1:])


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
