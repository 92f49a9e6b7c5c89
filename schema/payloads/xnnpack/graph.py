"""An XNNPACK payload as the graph that every view understands."""

from __future__ import annotations

import struct
from dataclasses import fields
from types import MappingProxyType

from schema.errors import Issue, Severity
from schema.flatbuf.spec import UnknownMember
from schema.graph import (
    Argument,
    Graph,
    GraphNode,
    GraphValue,
    NodeKind,
    QuantizationParameters,
    TensorMeta,
)
from schema.payloads.model import Constant
from schema.payloads.xnnpack import model as m
from schema.payloads.xnnpack import nodes as n
from schema.payloads.xnnpack.kernels import input_ids, is_bounded, output_ids
from schema.payloads.xnnpack.model import DATATYPES, NODE_FLAGS

_WHERE = "XNNPACK payload"


def node_names(graph: m.XNNGraph) -> tuple[str, ...]:
    """Return a name for each node, as in ``Conv2d_1``: kind and position."""
    return tuple(f"{node_kind(node)}_{index}" for index, node in enumerate(graph.table.xnodes))


def node_kind(node: m.XNode) -> str:
    """Return the kind of a node; one of a newer schema is named by its tag."""
    form = node.xnode_union
    if form is None:
        return "None"
    return f"Unknown({form.tag})" if isinstance(form, UnknownMember) else form.kind


def value_names(graph: m.XNNGraph) -> tuple[str, ...]:
    """Return a name for each value: ``v`` and its id; a repeated id gets a suffix."""
    seen: dict[str, int] = {}
    names: list[str] = []
    for value in graph.table.xvalues:
        tensor = value.tensor
        name = "unknown" if tensor is None else f"v{tensor.id_out}"
        count = seen.get(name, 0)
        seen[name] = count + 1
        names.append(f"{name}.{count}" if count else name)
    return tuple(names)


def to_graph(graph: m.XNNGraph, constants: dict[int, Constant], issues: list[Issue]) -> Graph:
    """Return the graph; values are named after their ids, nodes after kind and position.

    Args:
        graph: the payload
        constants: constants by index, for the values that have one
        issues: inconsistencies are added here
    """
    values = {
        name: _value(name, value, constants)
        for name, value in zip(value_names(graph), graph.table.xvalues, strict=True)
    }
    nodes = tuple(
        _node(name, node) for name, node in zip(node_names(graph), graph.table.xnodes, strict=True)
    )
    _define_missing(nodes, values, issues)
    external = external_values(graph)
    facts = {"version": graph.table.version or "", "identifier": graph.identifier}
    return Graph(
        "XNNPACK",
        nodes,
        values,
        _external(external, m.EXTERNAL_INPUT),
        _external(external, m.EXTERNAL_OUTPUT),
        attributes=MappingProxyType(facts),
    )


def external_values(graph: m.XNNGraph) -> list[tuple[int, int, str]]:
    """Return (external id, flags, name) of the values of the delegate call, by id."""
    found = [
        (value.tensor.external_id, value.tensor.flags, name)
        for name, value in zip(value_names(graph), graph.table.xvalues, strict=True)
        if value.tensor is not None and value.tensor.external_id != m.NO_VALUE
    ]
    return sorted(found)


def _external(external: list[tuple[int, int, str]], flag: int) -> tuple[str, ...]:
    return tuple(name for _, flags, name in external if flags & flag)


def _value(name: str, value: m.XValue, constants: dict[int, Constant]) -> GraphValue:
    tensor = value.tensor
    if tensor is None:
        return GraphValue(name, kind="other")
    type_name, scalar_type = DATATYPES.get(tensor.datatype, (f"datatype {tensor.datatype}", -1))
    meta = TensorMeta(
        scalar_type, tensor.dims, type_name=type_name, quantization=_quantization(value, constants)
    )
    constant = constants.get(tensor.constant_buffer_idx) if tensor.constant_buffer_idx else None
    if constant is None:
        return GraphValue(name, meta)
    return GraphValue(name, meta, constant=constant.name, constant_bytes=constant.nbytes)


def _quantization(value: m.XValue, constants: dict[int, Constant]) -> QuantizationParameters | None:
    params = value.quantization
    stored = ""
    if isinstance(params, m.PerChannelQuant | m.PerChannelGroupQuant):
        one = constants.get(params.scale_buffer_idx)
        stored = one.name if one is not None else ""
    if isinstance(params, m.PerTensorQuant):
        return QuantizationParameters("per_tensor", (params.scale,), (params.zero_point,))
    if isinstance(params, m.PerChannelQuant):
        return QuantizationParameters(
            "per_channel", params.scale, axis=params.channel_dim, scale_constant=stored
        )
    if isinstance(params, m.PerTokenDynamicQuant):
        return QuantizationParameters("per_token")
    if isinstance(params, m.PerChannelGroupQuant):
        scale = params.scale or tuple(bf16(item) for item in params.scale_bf16)
        return QuantizationParameters(
            "per_group",
            scale,
            axis=params.channel_dim,
            group_size=params.group_size,
            scale_constant=stored,
        )
    return None


def bf16(raw: int) -> float:
    """Return the value of bfloat16 bits."""
    return float(struct.unpack("<f", struct.pack("<I", raw << 16))[0])


def _node(name: str, node: m.XNode) -> GraphNode:
    form = node.xnode_union
    inserted = node.debug_handle == m.INSERTED_HANDLE
    handle = None if inserted else node.debug_handle or None  # 0 is unset
    if form is None or isinstance(form, UnknownMember):
        return GraphNode(name, NodeKind.CALL, node_kind(node), debug_handle=handle)
    arguments = tuple(
        Argument(_argument_name(key, form), () if ident == m.NO_VALUE else (f"v{ident}",))
        for key, ident in input_ids(form)
    )
    outputs = tuple(f"v{ident}" for ident in output_ids(form) if ident != m.NO_VALUE)
    facts = _attributes(node, form)
    if inserted:
        facts["inserted"] = True
    return GraphNode(
        name,
        NodeKind.CALL,
        form.kind,
        arguments,
        outputs,
        handle,
        attributes=MappingProxyType(facts),
    )


def _argument_name(key: str, form: n.NodeForm) -> str:
    only_input = key == "input1_id" and not hasattr(form, "input2_id")
    return "input" if only_input else key.removesuffix("_id")


def _attributes(node: m.XNode, form: n.NodeForm) -> dict[str, object]:
    facts: dict[str, object] = {
        field.name: getattr(form, field.name)
        for field in fields(form)
        if field.name != "kind" and not field.name.endswith("_id")
    }
    flags = [text for bit, text in NODE_FLAGS.items() if form.flags & bit]
    if flags:
        facts["flag_names"] = ", ".join(flags)
    bounds = node.output_min_max
    if bounds is not None:
        facts["output_min"], facts["output_max"] = bounds.output_min, bounds.output_max
        if is_bounded(bounds) and form.kind != "Clamp":
            facts["fused_activation"] = _activation(bounds)
    return facts


def _activation(bounds: m.OutputMinMax) -> str:
    low, high = bounds.output_min, bounds.output_max
    if low == 0 and high == float("inf"):
        return "relu"
    if low == 0 and high == 6:
        return "relu6"
    return f"clamp({low:g}, {high:g})"


def _define_missing(
    nodes: tuple[GraphNode, ...], values: dict[str, GraphValue], issues: list[Issue]
) -> None:
    for node in nodes:
        for name in (*node.inputs, *node.outputs):
            if name not in values:
                values[name] = GraphValue(name, kind="other")
                text = f"{node.name} refers to {name}, which is not defined"
                issues.append(Issue(Severity.ERROR, _WHERE, text))
