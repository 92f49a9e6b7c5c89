"""An OpenVINO network as the graph that every view understands."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from schema.errors import Issue, Severity
from schema.graph import Argument, Dim, Graph, GraphNode, GraphValue, NodeKind, TensorMeta
from schema.payloads.model import Constant
from schema.payloads.names import unique
from schema.payloads.openvino.ir import Layer, Net, Port

_WHERE = "OpenVINO payload"
_TYPES = {
    "FP64": ("float64", 7),
    "FP32": ("float32", 6),
    "FP16": ("float16", 5),
    "BF16": ("bfloat16", 15),
    "I64": ("int64", 4),
    "I32": ("int32", 3),
    "I16": ("int16", 2),
    "I8": ("int8", 1),
    "U8": ("uint8", 0),
    "U16": ("uint16", 27),
    "U32": ("uint32", 28),
    "U64": ("uint64", 29),
    "BOOL": ("bool", 11),
    "F8E4M3": ("float8_e4m3fn", 24),
    "F8E5M2": ("float8_e5m2", 23),
}
_KINDS = {
    "Parameter": NodeKind.PLACEHOLDER,
    "Const": NodeKind.GET_ATTR,
    "Result": NodeKind.OUTPUT,
}
_Ends = Mapping[tuple[str, str], str]


def to_graph(net: Net, constants: Mapping[int, Constant], issues: list[Issue]) -> Graph:
    """Return the graph; a value is named after its layer and port.

    Args:
        net: the network
        constants: by the identity of the layer that holds one
        issues: inconsistencies are added here
    """
    label = net.name or "OpenVINO"
    builder = _GraphBuilder(constants, issues)
    top = builder.graph(net, label)
    return Graph(
        label, top.nodes, top.values, top.inputs, top.outputs, builder.subgraphs, top.attributes
    )


class _GraphBuilder:
    """Builds the graphs of a network and of its bodies; those are collected by name."""

    def __init__(self, constants: Mapping[int, Constant], issues: list[Issue]) -> None:
        self.subgraphs: dict[str, Graph] = {}
        self._constants = constants
        self._issues = issues
        self._taken: set[str] = set()

    def graph(self, net: Net, label: str) -> Graph:
        """Return the graph of one network."""
        names = node_names(net)
        built: dict[tuple[str, str], str] = {}
        values: dict[str, GraphValue] = {}
        for layer, name in zip(net.layers, names, strict=True):
            for port in layer.outputs:
                value = value_name(layer, name, port)
                built[layer.ident, port.ident] = value
                values[value] = _value(value, port, self._constants.get(id(layer)))
        sources = _sources(net, built, self._issues)
        nodes = tuple(
            _node(layer, name, built, sources, self._bodies(layer, name))
            for layer, name in zip(net.layers, names, strict=True)
        )
        return Graph(
            label,
            nodes,
            values,
            tuple(
                out for node in nodes if node.kind is NodeKind.PLACEHOLDER for out in node.outputs
            ),
            tuple(name for node in nodes if node.kind is NodeKind.OUTPUT for name in node.inputs),
            attributes=MappingProxyType({"version": net.version}),
        )

    def _bodies(self, layer: Layer, name: str) -> tuple[str, ...]:
        keys: list[str] = []
        for kind, body in layer.bodies.items():
            keys.append(unique(f"{name}/{kind}", len(self._taken), self._taken))
            self.subgraphs[keys[-1]] = self.graph(body, keys[-1])
        return tuple(keys)


def value_name(layer: Layer, name: str, port: Port) -> str:
    """Return the name of the value at a port of a layer whose node has a name."""
    return name if len(layer.outputs) == 1 else f"{name}:{port.ident}"


def node_names(net: Net) -> list[str]:
    """Return the names of the nodes of a network, one for each layer."""
    taken: set[str] = set()
    return [
        unique(layer.name or f"{layer.type}_{layer.ident}", index, taken)
        for index, layer in enumerate(net.layers)
    ]


def _sources(net: Net, built: _Ends, issues: list[Issue]) -> dict[tuple[str, str], str]:
    """Return the value that enters each (layer, input port)."""
    found: dict[tuple[str, str], str] = {}
    lost = 0
    for layer, port, to_layer, to_port in net.edges:
        if (layer, port) in built:
            found[to_layer, to_port] = built[layer, port]
        else:
            lost += 1
    if lost:
        text = f"{lost} edges begin at an output that does not exist"
        issues.append(Issue(Severity.ERROR, _WHERE, text))
    return found


def _node(
    layer: Layer,
    name: str,
    built: _Ends,
    sources: Mapping[tuple[str, str], str],
    inner: tuple[str, ...],
) -> GraphNode:
    arguments: list[Argument] = []
    for port in layer.inputs:
        source = sources.get((layer.ident, port.ident))
        arguments.append(Argument(values=(source,) if source else ()))
    facts: dict[str, object] = dict(layer.data)
    fx_node = layer.name.split("/", 1)[0]
    if "/" in layer.name:  # the front end writes fx node / operator / step
        facts["fx_node"] = fx_node
    if layer.fused and layer.fused != layer.name:
        facts["fused_names"] = layer.fused
    if layer.version:
        facts["opset"] = layer.version
    kind = _KINDS.get(layer.type, NodeKind.CONTROL if inner else NodeKind.CALL)
    outputs = tuple(built[layer.ident, port.ident] for port in layer.outputs)
    return GraphNode(
        name,
        kind,
        layer.type,
        tuple(arguments),
        outputs,
        attributes=MappingProxyType(facts),
        subgraphs=inner,
    )


def _value(name: str, port: Port, constant: Constant | None) -> GraphValue:
    type_name, scalar_type = _TYPES.get(port.precision, (port.precision.lower() or "unknown", -1))
    meta = TensorMeta(scalar_type, tuple(map(_dim, port.dims)), type_name=type_name)
    if constant is None:
        return GraphValue(name, meta)
    return GraphValue(name, meta, constant=constant.name, constant_bytes=constant.nbytes)


def _dim(text: str) -> Dim:
    return int(text) if text.isdecimal() and len(text) < 20 else "?"
