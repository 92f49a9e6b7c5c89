"""A QCIR graph as the graph that every view understands."""

from __future__ import annotations

import struct
from types import MappingProxyType

from schema.errors import FormatError, Issue, Severity
from schema.graph import (
    Argument,
    Dim,
    Graph,
    GraphNode,
    GraphValue,
    NodeKind,
    QuantizationParameters,
    TensorMeta,
)
from schema.payloads.model import INLINE, Constant
from schema.payloads.names import unique
from schema.payloads.qnn import tables as t
from schema.payloads.reading import span

WHERE = "QNN payload"
_PAIR, _BITS = struct.Struct("<fi"), struct.Struct("<Q")


def constant_name(graph: int, tensor: int) -> str:
    """Return a name of a tensor that is unique over all graphs."""
    return f"t{tensor}" if not graph else f"t{graph}.{tensor}"


def node_names(graph: t.QnnGraphTable, number: int) -> tuple[str, ...]:
    """Return a unique name for each node, its own where possible."""
    taken: set[str] = set()
    return tuple(
        unique(node.name or f"{node.type_name or 'op'}_{number}.{index}", index, taken)
        for index, node in enumerate(graph.nodes)
    )


def to_graph(graph: t.QnnGraphTable, number: int, issues: list[Issue]) -> Graph:
    """Return the graph; invalid indices become values of kind other."""
    values = {
        constant_name(number, index): _value(constant_name(number, index), tensor)
        for index, tensor in enumerate(graph.tensors)
    }
    nodes = tuple(
        _node(name, node, graph, number)
        for name, node in zip(node_names(graph, number), graph.nodes, strict=True)
    )
    used = {name for node in nodes for name in (*node.inputs, *node.outputs)}
    for name in sorted(used - values.keys()):
        values[name] = GraphValue(name, kind="other")
        issues.append(Issue(Severity.ERROR, WHERE, f"{name} is used but not defined"))
    return Graph(
        graph.name or f"graph_{number}",
        nodes,
        values,
        _of_type(graph, number, t.WRITE),
        _of_type(graph, number, t.READ),
    )


def _of_type(graph: t.QnnGraphTable, number: int, kind: int) -> tuple[str, ...]:
    return tuple(
        constant_name(number, index)
        for index, tensor in enumerate(graph.tensors)
        if tensor.type in (kind, t.READWRITE)
    )


def _node(name: str, node: t.Operator, graph: t.QnnGraphTable, number: int) -> GraphNode:
    inputs = [Argument(values=(constant_name(number, index),)) for index in node.inputs]
    params = [
        Argument(
            graph.tensors[index].name if index < len(graph.tensors) else "",
            (constant_name(number, index),),
        )
        for index in node.params
    ]
    facts = {"package": node.package_name} if node.package_name else {}
    return GraphNode(
        name,
        NodeKind.CALL,
        node.type_name or "unnamed",
        (*inputs, *params),
        tuple(constant_name(number, index) for index in node.outputs),
        attributes=MappingProxyType(facts),
    )


def _value(name: str, tensor: t.Tensor) -> GraphValue:
    known = t.DATATYPES[tensor.dtype] if 0 <= tensor.dtype < len(t.DATATYPES) else None
    type_name, scalar_type = known or (f"datatype {tensor.dtype}", -1)
    sizes: tuple[Dim, ...] = tensor.shape
    meta = TensorMeta(
        scalar_type, sizes, type_name=type_name, quantization=_quantization(tensor.qparam)
    )
    if not tensor.size:
        return GraphValue(name, meta)
    return GraphValue(name, meta, constant=name, constant_bytes=tensor.size)


def _quantization(param: t.QuantizeParam | None) -> QuantizationParameters | None:
    """Return the scales; a QNN offset is added to the stored integer, a zero point subtracted."""
    if param is None or not 0 <= param.type < len(t.SCHEMES):
        return None
    pairs = [_PAIR.unpack(_BITS.pack(bits)) for bits in param.data]
    scales = tuple(scale for scale, _ in pairs) or param.scales
    offsets = tuple(offset for _, offset in pairs) or param.offsets
    if not scales:
        return None
    scheme = t.SCHEMES[param.type]
    zeros = tuple(-offset for offset in offsets)
    return QuantizationParameters(
        scheme, scales, zeros, None if scheme == "per_tensor" else param.axis
    )


def constants_of(context: t.Context, area: memoryview, issues: list[Issue]) -> tuple[Constant, ...]:
    """Return the tensors that have data, parameters of operations included."""
    built: list[Constant] = []
    for number, graph in enumerate(context.graphs):
        for index, tensor in enumerate(graph.tensors):
            if not tensor.size:
                continue
            name = constant_name(number, index)
            try:
                data = span(area, tensor.offset, tensor.size, f"{name}.offset")
            except FormatError as error:
                issues.append(Issue(Severity.ERROR, WHERE, str(error)))
                continue
            built.append(Constant(name, tensor.size, INLINE, data))
    return tuple(built)
