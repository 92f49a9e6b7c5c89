"""Converts a VGF container to the common graph model.

The operations of the modules are the graph, where all segments are graphs; otherwise each segment
is a node with its module as subgraph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from schema.errors import FormatError, Issue, Severity
from schema.graph import Argument, Dim, Graph, GraphNode, GraphValue, NodeKind, TensorMeta
from schema.payloads.model import Constant
from schema.payloads.vgf import tables as t
from schema.payloads.vgf.spirv import read_graph

_WHERE = "VGF payload"


def to_graph(
    sequence: t.Sequence,
    modules: t.ModuleTable,
    resources: t.ResourceTable,
    constants: Sequence[Constant],
    issues: list[Issue],
) -> Graph:
    """Return the graph; an unreadable module becomes an issue, and its segment has no subgraph."""
    values = {
        f"resource_{index}": _value(index, entry) for index, entry in enumerate(resources.mrt_entry)
    }
    inner: dict[str, Graph] = {}
    nodes: list[GraphNode] = []
    for index, segment in enumerate(sequence.segments):
        name = f"segment_{index}"
        module = _module(segment, modules, constants, issues)
        if module is not None:
            inner[name] = module
        nodes.append(_node(name, segment, modules, module is not None, values))
    if len(nodes) == 1 and inner:
        return _flat(next(iter(inner.values())), nodes[0], sequence)
    joined = _joined(nodes, inner, values) if nodes and len(inner) == len(nodes) else None
    if joined is not None:
        nodes, values, inner = joined[0], joined[1], {}
    return Graph(
        "VGF",
        tuple(nodes),
        values,
        _resources(sequence.inputs, values),
        _resources(sequence.outputs, values),
        inner,
    )


def _joined(
    segments: Sequence[GraphNode], inner: Mapping[str, Graph], resources: Mapping[str, GraphValue]
) -> tuple[list[GraphNode], dict[str, GraphValue]] | None:
    """Return the operations of all segments with their values; resources are between them.

    None if a segment's interface is not that of its module, or passes on what no operation made.
    """
    nodes: list[GraphNode] = []
    values = dict(resources)
    for segment in segments:
        module = inner[segment.name]
        sides = (module.inputs, segment.inputs), (module.outputs, segment.outputs)
        made = [name for node in module.nodes for name in node.outputs]
        border = {
            name: bound
            for inside, outside in sides
            for name, bound in zip(inside, outside, strict=False)
        }
        whole = all(len(inside) == len(outside) for inside, outside in sides)
        if not whole or len(set(module.outputs)) < len(module.outputs):
            return None
        if any(name not in made for name in module.outputs):
            return None
        names = {name: border.get(name, f"{segment.name}_{name}") for name in module.values}
        for name, value in module.values.items():
            values.setdefault(names[name], replace(value, name=names[name]))
        nodes += [_renamed(node, segment.name, names) for node in module.nodes]
    return nodes, values


def _renamed(node: GraphNode, segment: str, names: Mapping[str, str]) -> GraphNode:
    return replace(
        node,
        name=f"{segment}_{node.name}",
        args=tuple(
            replace(arg, values=tuple(names.get(one, one) for one in arg.values))
            for arg in node.args
        ),
        outputs=tuple(names.get(one, one) for one in node.outputs),
    )


def _flat(module: Graph, node: GraphNode, sequence: t.Sequence) -> Graph:
    facts: dict[str, object] = {**module.attributes, **node.attributes}
    if sequence.input_names:
        facts["input names"] = ", ".join(sequence.input_names)
    if sequence.output_names:
        facts["output names"] = ", ".join(sequence.output_names)
    inputs, outputs = _interface(module, sequence)
    return replace(module, inputs=inputs, outputs=outputs, attributes=MappingProxyType(facts))


def _interface(module: Graph, sequence: t.Sequence) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the inputs and outputs of a container by the values of its only module.

    The container may have an output twice, or an input as output; the module has each once.
    """
    segment = sequence.segments[0]
    sides = ((segment.inputs, module.inputs), (segment.outputs, module.outputs))
    if any(len(slots) != len(names) for slots, names in sides):
        return module.inputs, module.outputs
    bound = {
        slot.binding: name
        for slots, names in sides
        for slot, name in zip(slots, names, strict=True)
    }
    if any(slot.binding not in bound for slot in (*sequence.inputs, *sequence.outputs)):
        return module.inputs, module.outputs
    return (
        tuple(bound[slot.binding] for slot in sequence.inputs),
        tuple(bound[slot.binding] for slot in sequence.outputs),
    )


def _value(index: int, entry: t.Resource) -> GraphValue:
    shape = entry.description.shape if entry.description is not None else ()
    sizes: tuple[Dim, ...] = tuple(size if size >= 0 else "?" for size in shape)
    name, scalar_type = t.FORMATS.get(entry.vk_format, (f"format {entry.vk_format}", -1))
    return GraphValue(f"resource_{index}", TensorMeta(scalar_type, sizes, type_name=name))


def _resources(slots: tuple[t.BindingSlot, ...], values: dict[str, GraphValue]) -> tuple[str, ...]:
    names = tuple(f"resource_{slot.mrt_index}" for slot in slots)
    for name in names:
        values.setdefault(name, GraphValue(name, kind="other"))
    return names


def _node(
    name: str,
    segment: t.Segment,
    modules: t.ModuleTable,
    opened: bool,
    values: dict[str, GraphValue],
) -> GraphNode:
    known = segment.module_index < len(modules.modules)
    module = modules.modules[segment.module_index] if known else t.Module()
    facts: dict[str, object] = {
        "module": module.name or f"module {segment.module_index}",
        "entry_point": module.entry_point,
    }
    if segment.dispatch_shape:
        facts["dispatch_shape"] = segment.dispatch_shape
    inputs = _resources(segment.inputs, values)
    return GraphNode(
        name,
        NodeKind.CONTROL if opened else NodeKind.CALL,
        _text(t.MODULE_TYPES, segment.type),
        tuple(Argument(values=(value,)) for value in inputs),
        _resources(segment.outputs, values),
        attributes=MappingProxyType(facts),
        subgraphs=(name,) if opened else (),
    )


def _text(names: tuple[str, ...], number: int) -> str:
    return names[number] if number < len(names) else str(number)


def _module(
    segment: t.Segment,
    modules: t.ModuleTable,
    constants: Sequence[Constant],
    issues: list[Issue],
) -> Graph | None:
    known = segment.module_index < len(modules.modules)
    code = modules.modules[segment.module_index].code if known else None
    if not isinstance(code, t.SpirV) or _text(t.MODULE_TYPES, segment.type) != "graph":
        return None
    mine = [
        (constants[index].name, constants[index].nbytes or 0)
        for index in segment.constants
        if index < len(constants)
    ]
    try:
        return read_graph(code.words, mine)
    except FormatError as error:
        issues.append(Issue(Severity.WARNING, _WHERE, str(error)))
        return None
