"""A TOSA flatbuffer as the graph that every view understands."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import cast

from schema.errors import Issue, Severity
from schema.flatbuf.spec import UnknownMember
from schema.graph import Argument, Graph, GraphNode, GraphValue, NodeKind, TensorMeta
from schema.payloads.model import Constant
from schema.payloads.tosa import tables as t
from schema.payloads.tosa.ops import CONSTANTS, Release, is_enum

_WHERE = "TOSA payload"
_NESTED = ("then_graph", "else_graph", "cond_graph", "body_graph")
_SCALARS = {2: "<e", 4: "<f"}
_BOUNDS = ("min_val", "max_val", "min_fp", "max_fp", "pad_const_fp")
Constants = Mapping[tuple[str, str], Constant]


def block_names(graph: t.TosaGraph) -> Iterator[tuple[t.TosaBasicBlock, str]]:
    """Yield each block with a unique name: that of the region if it is the only block."""
    for index, region in enumerate(graph.regions):
        for number, block in enumerate(region.blocks):
            name = region.name or block.name or f"region_{index}"
            yield block, name if len(region.blocks) == 1 else f"{name}/{block.name or number}"


def node_name(release: Release, operator: t.TosaOperator, index: int) -> str:
    """Return the name of an operator: its kind and position in the block."""
    return f"{release.operator(operator.op)}_{index}"


def to_graph(
    graph: t.TosaGraph, release: Release, constants: Constants, issues: list[Issue]
) -> Graph:
    """Return the first block as the graph, the others as its subgraphs."""
    aliases = _aliases(graph)
    built = [
        _block(block, name, release, constants, issues, aliases)
        for block, name in block_names(graph)
    ]
    if not built:
        return Graph("TOSA", (), {})
    main = built[0]
    return Graph(
        main.name,
        main.nodes,
        main.values,
        main.inputs,
        main.outputs,
        {inner.name: inner for inner in built[1:]},
        main.attributes,
    )


def _aliases(graph: t.TosaGraph) -> Mapping[str, str]:
    """Return the names that attributes may have for a block, each with its unique name."""
    found: dict[str, str] = {}
    for block, name in block_names(graph):
        found.setdefault(block.name, name)
    return found | {name: name for _, name in block_names(graph)}


def _block(
    block: t.TosaBasicBlock,
    name: str,
    release: Release,
    constants: Constants,
    issues: list[Issue],
    aliases: Mapping[str, str],
) -> Graph:
    values = {tensor.name: _tensor(tensor, name, release, constants) for tensor in block.tensors}
    values |= {shape.name: _shape(shape, name, constants) for shape in block.shapes}
    if len(values) < len(block.tensors) + len(block.shapes):
        issues.append(Issue(Severity.WARNING, _WHERE, f"block {name} repeats a tensor name"))
    nodes = tuple(
        _node(operator, index, release, values, aliases)
        for index, operator in enumerate(block.operators)
    )
    named = {text for node in nodes for text in (*node.inputs, *node.outputs)}
    for missing in sorted((named | {*block.inputs, *block.outputs}) - values.keys()):
        values[missing] = GraphValue(missing, kind="other")
        text = f"{missing} is used in block {name} but not defined"
        issues.append(Issue(Severity.ERROR, _WHERE, text))
    variables = {one.name: one.variable_name or one.name for one in block.tensors if one.variable}
    facts: dict[str, object] = {"variables": MappingProxyType(variables)} if variables else {}
    return Graph(
        name, nodes, values, block.inputs, block.outputs, attributes=MappingProxyType(facts)
    )


def _tensor(tensor: t.TosaTensor, block: str, release: Release, constants: Constants) -> GraphValue:
    type_name, scalar_type = release.dtype(tensor.type)
    meta = TensorMeta(scalar_type, tensor.shape, type_name=type_name)
    return _with_constant(GraphValue(tensor.name, meta), block, constants)


def _shape(shape: t.TosaShape, block: str, constants: Constants) -> GraphValue:
    count = len(shape.data) // 8
    # That of a tensor without dimensions is complete without bytes
    sizes = struct.unpack_from(f"<{count}q", shape.data) if count or not shape.rank else None
    value = GraphValue(shape.name, kind="list", literal=sizes)
    return _with_constant(value, block, constants)


def _with_constant(value: GraphValue, block: str, constants: Constants) -> GraphValue:
    known = constants.get((block, value.name))
    if known is None:
        return value
    return GraphValue(value.name, value.tensor, value.kind, value.literal, known.name, known.nbytes)


def _node(
    operator: t.TosaOperator,
    index: int,
    release: Release,
    values: Mapping[str, GraphValue],
    aliases: Mapping[str, str],
) -> GraphNode:
    target = release.operator(operator.op)
    passive = target in CONSTANTS and not operator.inputs
    facts, nested = _attributes(operator, release, values)
    return GraphNode(
        node_name(release, operator, index),
        NodeKind.GET_ATTR if passive else NodeKind.CONTROL if nested else NodeKind.CALL,
        target,
        tuple(Argument(values=(name,)) for name in operator.inputs),
        operator.outputs,
        attributes=MappingProxyType(facts),
        subgraphs=tuple(aliases.get(one, one) for one in nested),
    )


def _attributes(
    operator: t.TosaOperator, release: Release, values: Mapping[str, GraphValue]
) -> tuple[dict[str, object], tuple[str, ...]]:
    facts: dict[str, object] = {}
    if operator.location is not None and operator.location.text:
        facts["location"] = operator.location.text
    found = operator.attribute
    if found is None or isinstance(found, UnknownMember):
        return facts, ()
    for field, item in found.items():
        if isinstance(item, memoryview):
            facts[field] = _scalar(field, cast("memoryview", item)[:64].tobytes(), operator, values)
        else:
            facts[field] = release.attribute_text(field, item) if is_enum(field) else item
    return facts, tuple(found[field] for field in _NESTED if found.get(field))


def _scalar(
    field: str,
    raw: bytes,
    operator: t.TosaOperator,
    values: Mapping[str, GraphValue],
) -> object:
    """Return a bound stored as bytes of the operand's type, or its hexadecimal digits."""
    operand = values.get(operator.inputs[0]) if operator.inputs else None
    tensor = operand.tensor if operand is not None else None
    name = tensor.type_name if tensor is not None and field in _BOUNDS else ""
    if name.startswith("float") and len(raw) in _SCALARS:
        return struct.unpack(_SCALARS[len(raw)], raw)[0]
    if name.startswith("int") and len(raw) <= 8:
        return int.from_bytes(raw, "little", signed=True)
    return f"{raw.hex()}{'…' if len(raw) == 64 else ''}"
