"""A Vulkan payload as the graph that every view understands."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from schema.errors import Issue, Severity
from schema.flatbuf.spec import UnknownMember
from schema.graph import Argument, Graph, GraphNode, GraphValue, NodeKind, TensorMeta
from schema.payloads.model import Constant
from schema.payloads.vulkan import tables as t

_WHERE = "Vulkan payload"
_LITERAL_KINDS: dict[type[object], str] = {
    t.Null: "none",
    t.Int: "int",
    t.Double: "float",
    t.Bool: "bool",
    t.String: "str",
    t.IntList: "list",
    t.DoubleList: "list",
    t.BoolList: "list",
}


def value_name(index: int) -> str:
    """Return the name of a value: ``v`` and its id."""
    return f"v{index}"


def node_names(graph: t.VkGraph) -> tuple[str, ...]:
    """Return a name for each operator call: its operator and position."""
    return tuple(f"{call.name or 'unnamed'}_{index}" for index, call in enumerate(graph.chain))


def to_graph(graph: t.VkGraph, constants: list[Constant], issues: list[Issue]) -> Graph:
    """Return the graph; problems are added to ``issues``.

    Invalid ids become values of kind other
    """
    values = {
        value_name(index): _value(index, value, constants, issues)
        for index, value in enumerate(graph.values)
    }
    nodes = tuple(
        _node(name, call, graph, values, issues)
        for name, call in zip(node_names(graph), graph.chain, strict=True)
    )
    inputs = _known(graph.input_ids, values, issues, "input")
    outputs = _known(graph.output_ids, values, issues, "output")
    facts = MappingProxyType({"version": graph.version or ""})
    return Graph("Vulkan", nodes, values, inputs, outputs, attributes=facts)


def _known(
    ids: tuple[int, ...], values: dict[str, GraphValue], issues: list[Issue], user: str
) -> tuple[str, ...]:
    for ident in ids:
        if value_name(ident) not in values:
            values[value_name(ident)] = GraphValue(value_name(ident), kind="other")
            text = f"{user} refers to value {ident}, which does not exist"
            issues.append(Issue(Severity.ERROR, _WHERE, text))
    return tuple(value_name(ident) for ident in ids)


def literal_of(value: object) -> object:
    """Return the constant of a literal value."""
    if isinstance(value, t.Int):
        return value.int_val
    if isinstance(value, t.Double):
        return value.double_val
    if isinstance(value, t.Bool):
        return value.bool_val
    if isinstance(value, t.String):
        return value.string_val
    if isinstance(value, t.IntList | t.DoubleList | t.BoolList):
        return value.items
    return None


def _value(
    index: int, value: t.VkValue, constants: list[Constant], issues: list[Issue]
) -> GraphValue:
    name, inner = value_name(index), value.value
    if isinstance(inner, t.VkTensor):
        return _tensor(name, inner, constants, issues)
    if isinstance(inner, t.SymInt):
        return GraphValue(name, kind="symint", literal=inner.value)
    if isinstance(inner, t.ValueList):
        return GraphValue(name, kind="list", literal=tuple(map(value_name, inner.items)))
    if inner is None:
        return GraphValue(name, kind="none")
    if isinstance(inner, UnknownMember):
        return GraphValue(name, kind="other")
    return GraphValue(name, kind=_LITERAL_KINDS[type(inner)], literal=literal_of(inner))


def _tensor(
    name: str, tensor: t.VkTensor, constants: list[Constant], issues: list[Issue]
) -> GraphValue:
    type_name, scalar_type = t.DATATYPES.get(tensor.datatype, (f"datatype {tensor.datatype}", -1))
    meta = TensorMeta(scalar_type, tensor.dims, type_name=type_name)
    if tensor.constant_id < 0:
        return GraphValue(name, meta)
    if tensor.constant_id >= len(constants):
        text = f"{name} refers to constant {tensor.constant_id} of {len(constants)}"
        issues.append(Issue(Severity.ERROR, _WHERE, text))
        return GraphValue(name, meta)
    constant = constants[tensor.constant_id]
    return GraphValue(name, meta, constant=constant.name, constant_bytes=constant.nbytes)


def _node(
    name: str,
    call: t.OperatorCall,
    graph: t.VkGraph,
    values: dict[str, GraphValue],
    issues: list[Issue],
) -> GraphNode:
    _known(call.args, values, issues, name)
    arguments = tuple(_argument(ident, graph) for ident in call.args[:-1])
    outputs = _flatten(call.args[-1], graph) if call.args else ()
    facts = {"node_id": call.node_id, **_storage(outputs, graph)}
    if call.name in t.CLAMPED:
        facts["fused_activation"] = "clamp"
    return GraphNode(
        name,
        NodeKind.CALL,
        call.name,
        arguments,
        tuple(map(value_name, outputs)),
        attributes=MappingProxyType(facts),
    )


def _inner(ident: int, graph: t.VkGraph) -> object:
    return graph.values[ident].value if 0 <= ident < len(graph.values) else None


def _flatten(ident: int, graph: t.VkGraph) -> tuple[int, ...]:
    inner = _inner(ident, graph)
    return inner.items if isinstance(inner, t.ValueList) else (ident,)


def _argument(ident: int, graph: t.VkGraph) -> Argument:
    inner = _inner(ident, graph)
    if isinstance(inner, t.ValueList):
        return Argument(values=tuple(map(value_name, inner.items)))
    if type(inner) in _LITERAL_KINDS:
        return Argument(literal=literal_of(inner))
    return Argument(values=(value_name(ident),))


def _storage(outputs: tuple[int, ...], graph: t.VkGraph) -> Mapping[str, object]:
    tensor = _inner(outputs[0], graph) if outputs else None
    if not isinstance(tensor, t.VkTensor):
        return {}
    facts: dict[str, object] = {
        "storage": t.STORAGE.get(tensor.storage_type, str(tensor.storage_type)),
        "layout": t.LAYOUT.get(tensor.memory_layout, str(tensor.memory_layout)),
    }
    if tensor.mem_obj_id >= 0:
        facts["memory_object"] = tensor.mem_obj_id
    if tensor.staging_datatype != t.UNSET:
        staging = t.DATATYPES.get(tensor.staging_datatype, (str(tensor.staging_datatype), -1))
        facts["staging_type"] = staging[0]
    return facts
