"""An MPS payload as the graph that every view understands."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, cast

from schema.errors import Issue, Severity
from schema.flatbuf.spec import UnknownMember
from schema.graph import Argument, Graph, GraphNode, GraphValue, NodeKind, TensorMeta
from schema.payloads.model import Constant
from schema.payloads.mps import tables as t

_WHERE = "MPS payload"
Types = Mapping[int, tuple[str, int]]


def value_name(index: int) -> str:
    """Return the name of a value: ``v`` and its id."""
    return f"v{index}"


def node_names(graph: t.MPSGraph) -> tuple[str, ...]:
    """Return a name for each node: kind and position."""
    return tuple(f"{_kind(node)}_{index}" for index, node in enumerate(graph.mps_nodes))


def _kind(node: t.Node) -> str:
    inner = node.mpsnode_union
    if inner is None:
        return "None"
    return f"Unknown({inner.tag})" if isinstance(inner, UnknownMember) else inner.kind


def to_graph(
    graph: t.MPSGraph, types: Types, constants: Mapping[int, Constant], issues: list[Issue]
) -> Graph:
    """Return the graph; invalid ids become values of kind other.

    Args:
        graph: the payload
        types: name and scalar type of a datatype in the release that wrote it
        constants: constants by value id
        issues: inconsistencies are added here
    """
    values = {
        value_name(index): _value(index, tensor, types, constants.get(index))
        for index, tensor in enumerate(graph.mps_values)
    }
    nodes = tuple(
        _node(name, node, types)
        for name, node in zip(node_names(graph), graph.mps_nodes, strict=True)
    )
    inputs = tuple(value_name(ident) for ident in graph.input_ids)
    outputs = tuple(value_name(ident) for ident in graph.output_ids)
    used = {name for node in nodes for name in (*node.inputs, *node.outputs)}
    for name in sorted((used | {*inputs, *outputs}) - values.keys()):
        values[name] = GraphValue(name, kind="other")
        issues.append(Issue(Severity.ERROR, _WHERE, f"{name} is used but not defined"))
    facts = MappingProxyType({"version": graph.version or ""})
    return Graph("MPS", nodes, values, inputs, outputs, attributes=facts)


def _value(index: int, tensor: t.Tensor, types: Types, constant: Constant | None) -> GraphValue:
    type_name, scalar_type = types.get(tensor.datatype, (f"datatype {tensor.datatype}", -1))
    meta = TensorMeta(scalar_type, tensor.dims, type_name=type_name)
    if constant is None:
        return GraphValue(value_name(index), meta)
    return GraphValue(
        value_name(index), meta, constant=constant.name, constant_bytes=constant.nbytes
    )


def _node(name: str, node: t.Node, types: Types) -> GraphNode:
    inner = node.mpsnode_union
    facts: dict[str, object] = {}
    arguments: list[Argument] = []
    outputs: list[str] = []
    if isinstance(inner, t.MpsOperation):
        for field in t.FIELD_ORDER[inner.kind]:
            item = inner.fields[field]
            if (inner.kind, field) in t.UNUSED:
                continue
            if not field.endswith(("_id", "_ids")):
                facts[field] = types.get(item, (str(item),))[0] if field in t.TYPE_FIELDS else item
            elif field.startswith("output"):
                outputs += _names(item)
            else:
                arguments.append(Argument(_argument(field, inner.kind), tuple(_names(item))))
            if field == "indices_id":  # -1 stands for dimensions that are not indexed
                facts["axis"] = next((at for at, one in enumerate(item) if one >= 0), 0)
    if node.min_max is not None:
        facts["min_value"], facts["max_value"] = node.min_max.min_value, node.min_max.max_value
    return GraphNode(
        name,
        NodeKind.CALL,
        _kind(node),
        tuple(arguments),
        tuple(outputs),
        attributes=MappingProxyType(facts),
    )


def _names(item: Any) -> list[str]:  # noqa: ANN401 - an id or several
    idents = cast("tuple[int, ...]", item if isinstance(item, tuple) else (item,))
    return [value_name(ident) for ident in idents if ident >= 0]


def _argument(field: str, kind: str) -> str:
    name = field.removesuffix("_ids").removesuffix("_id")
    alone = "input2_id" not in t.FIELD_ORDER[kind] or (kind, "input2_id") in t.UNUSED
    return "input" if name == "input1" and alone else name
