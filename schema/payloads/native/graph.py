"""A native payload as graphs, one per method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from schema import graph as g
from schema.dtypes.scalar_type import scalar_type
from schema.payloads.model import Constant
from schema.payloads.names import unique
from schema.payloads.native import tables as t

STATES = "states"
"""Attribute of a graph: its buffers without bytes."""
STATE_WRITES = "state writes"
"""Attribute of a graph: buffer -> the value of a call that it has in the next one."""
_KINDS = {
    t.CALL: g.NodeKind.CALL,
    t.PLACEHOLDER: g.NodeKind.PLACEHOLDER,
    t.OUTPUT: g.NodeKind.OUTPUT,
}


def method_graph(method: t.Method, constants: Mapping[str, Constant]) -> g.Graph:
    """Return the graph of a method; nested graphs of control flow are its subgraphs.

    Args:
        method: the method
        constants: constants by data key
    """
    nested: dict[str, g.Graph] = {}
    built = _graph(method.graph or t.Graph(), method.name, nested)
    values = dict(built.values)
    for ref in method.constants:
        known = constants.get(ref.data_key)
        values[ref.name] = g.GraphValue(
            ref.name,
            _meta(ref.meta),
            constant=ref.data_key,
            constant_bytes=None if known is None else known.nbytes,
        )
    facts: dict[str, object] = {}
    for output in method.output_specs:
        if output.kind:
            kind = _text(t.OUTPUT_KINDS, output.kind)
            facts[f"output {output.name}"] = f"{kind} of {output.target}"
    for buffer in method.mutable_buffers:
        facts[f"buffer {buffer.name}"] = f"{buffer.fqn}, zero at load"
    outputs, writes = _results(method, built.outputs)
    facts |= {STATES: tuple(one.name for one in method.mutable_buffers)}
    facts |= {STATE_WRITES: MappingProxyType(writes)} if writes else {}
    return replace(
        built,
        values=values,
        outputs=outputs,
        subgraphs=nested,
        attributes=MappingProxyType({name: one for name, one in facts.items() if one}),
    )


def _results(method: t.Method, outputs: tuple[str, ...]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the results of a call, and buffer -> the value that it has in the next one.

    The first output of a buffer is what it becomes; the call may return the same value too.
    """
    holders = {ref.data_key: ref.name for ref in method.constants}
    holders |= {buffer.fqn: buffer.name for buffer in method.mutable_buffers}
    if len(method.output_specs) != len(outputs):
        return outputs, {}
    writes: dict[str, str] = {}
    results: list[str] = []
    for name, output in zip(outputs, method.output_specs, strict=True):
        holder = holders.get(output.target) if output.kind == t.BUFFER_MUTATION else None
        if holder is None or holder in writes:
            results.append(name)
        else:
            writes[holder] = name
    return tuple(results), writes


def _text(names: tuple[str, ...], number: int) -> str:
    return names[number] if 0 <= number < len(names) else str(number)


def _graph(graph: t.Graph, label: str, nested: dict[str, g.Graph]) -> g.Graph:
    values = {item.name: g.GraphValue(item.name, _meta(item.meta)) for item in graph.tensor_values}
    taken: set[str] = set()
    names = [unique(node.name, index, taken) for index, node in enumerate(graph.nodes)]
    nodes = tuple(
        _node(node, name, label, values, nested)
        for node, name in zip(graph.nodes, names, strict=True)
    )
    for node in nodes:
        for name in (*node.inputs, *node.outputs):
            values.setdefault(name, g.GraphValue(name, kind="other"))
    for name in (*graph.inputs, *graph.outputs):
        values.setdefault(name, g.GraphValue(name, kind="other"))
    return g.Graph(label, nodes, values, graph.inputs, graph.outputs)


def _meta(meta: t.TensorMeta | None) -> g.TensorMeta | None:
    if meta is None:
        return None
    code = t.SCALAR_TYPES.get(meta.dtype, -1)
    name = scalar_type(code).name if code >= 0 else f"scalar type {meta.dtype}"
    sizes = tuple(_size(dim) for dim in meta.sizes)
    scheme = meta.quant.scheme if meta.quant is not None else None
    quantization = None
    if isinstance(scheme, t.AffineGroup):
        width = (scheme.quant_max - scheme.quant_min).bit_length()
        name = f"{name} ({width}-bit groups of {scheme.group_size or 'a channel'})"
        kind = "per_group" if scheme.group_size else "per_channel"
        group = scheme.group_size or None
        quantization = g.QuantizationParameters(kind, axis=max(len(sizes) - 1, 0), group_size=group)
        code = -1  # packed: the sizes are logical
    elif isinstance(scheme, t.PackedQuant):
        name, code = scheme.codec, -1
    return g.TensorMeta(code, sizes, meta.dim_order, name, quantization)


def _size(dim: t.Dim) -> g.Dim:
    if dim.min == dim.max:
        return dim.min
    return f"{dim.min}..{dim.max if dim.max >= dim.min else ''}"


def _node(
    node: t.Node,
    name: str,
    label: str,
    values: dict[str, g.GraphValue],
    nested: dict[str, g.Graph],
) -> g.GraphNode:
    inner: list[str] = []
    arguments: list[g.Argument] = []
    mixed: dict[str, object] = {}
    for item in node.inputs:
        value = item.arg.value if item.arg is not None else None
        if isinstance(value, t.GraphArg):
            key = f"{label}/{name}/{value.name}"
            nested[key] = _graph(value.graph or t.Graph(), key, nested)
            inner.append(key)
        arguments.append(_argument(item.name, value))
        items = _items(value)
        if items is not None:
            mixed[items_of(item.name)] = items
    outputs: list[str] = []
    for output in node.outputs:
        for built in output.names if output.kind == t.TENSOR_LIST else (output.name,):
            outputs.append(built)
            kind = _text(t.VALUE_KINDS, output.kind)
            if kind not in ("tensor", "list"):
                values.setdefault(built, g.GraphValue(built, kind=kind))
    facts: dict[str, object] = {entry.key: entry.value for entry in node.metadata} | mixed
    mutated = [item.name for item in node.inputs if item.mutated]
    if mutated:
        facts["mutated"] = ", ".join(mutated)
    kind = _KINDS.get(node.op_kind, g.NodeKind.CALL)
    return g.GraphNode(
        name,
        g.NodeKind.CONTROL if inner else kind,
        node.target.removeprefix("torch.ops."),
        tuple(arguments),
        tuple(outputs),
        _handle(facts),
        attributes=MappingProxyType(facts),
        subgraphs=tuple(inner),
    )


def _handle(facts: Mapping[str, object]) -> int | None:
    text = facts.get("debug_handle")
    return int(text) if isinstance(text, str) and text.isdecimal() and len(text) < 19 else None


def items_of(name: str) -> str:
    """Return the attribute that has the items of a list argument, of which some are literals."""
    return f"items of {name}"


def _items(value: object) -> tuple[object, ...] | None:
    """Return the items of a list, names of values and literals; None if all are of one kind."""
    if isinstance(value, t.OptionalTensorListArg):
        if all(value.has_value or ()):
            return None
        pairs = zip(value.names, value.has_value or (), strict=False)
        return tuple(name if known else None for name, known in pairs)
    if isinstance(value, t.IntListArg) and any(value.refs):
        return tuple(ref or item for ref, item in zip(value.refs, value.values, strict=False))
    return None


def _argument(name: str, value: object) -> g.Argument:
    if isinstance(value, t.TensorArg):
        return g.Argument(name, (value.name,))
    if isinstance(value, t.TensorListArg):
        return g.Argument(name, value.names)
    if isinstance(value, t.OptionalTensorListArg):
        present = value.has_value or (True,) * len(value.names)
        pairs = zip(value.names, present, strict=False)
        return g.Argument(name, tuple(item for item, known in pairs if known))
    if isinstance(value, t.IntArg | t.FloatArg | t.BoolArg):
        return g.Argument(name, (value.ref,)) if value.ref else g.Argument(name, (), value.value)
    if isinstance(value, t.IntListArg):
        return g.Argument(name, tuple(filter(None, value.refs)), value.values)
    if isinstance(value, t.FloatListArg | t.BoolListArg):
        return g.Argument(name, (), value.values)
    if isinstance(value, t.StringArg):
        return g.Argument(name, (), value.value)
    if isinstance(value, t.ScalarTypeArg):
        code = t.SCALAR_TYPES.get(value.value, -1)
        return g.Argument(name, (), scalar_type(code).name if code >= 0 else value.value)
    return g.Argument(name)
