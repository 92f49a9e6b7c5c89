"""A payload whose inner values are outputs, and some of them inputs: written into its own XML.

`openvino.Core.read_model` refuses the operators of a compiled network, and an imported network
accepts no new outputs. The plugin reads layers that are added to the XML inside the payload.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from xml.parsers import expat
from xml.sax.saxutils import escape

from schema.errors import FormatError
from schema.payloads.openvino.graph import node_names, value_name
from schema.payloads.openvino.ir import Layer, Net, Port, read_ir
from schema.payloads.openvino.payload import Stream, with_model

_PASSIVE = ("Const", "Parameter", "Result")
_TYPES = {"BOOL": "boolean", "BOOLEAN": "boolean"}
Place = tuple[str, str]  # layer and port


@dataclass(frozen=True, slots=True)
class Probed:
    """A payload with more ports.

    Attributes:
        data: the payload
        values: of the payload's graph, for each output after those of the network
        nodes: that compute them
    """

    data: bytes
    values: tuple[str, ...]
    nodes: tuple[str, ...]


def probed(
    stream: Stream, replaced: Sequence[str] = (), values: Collection[str] | None = None
) -> Probed:
    """Return a payload with an output for each inner value, and an input for each replaced one.

    The new inputs follow those of the network, in the order of the replaced values.

    Args:
        stream: the payload
        replaced: values that are inputs
        values: that are outputs, None for all

    Raises: FormatError for XML without layers and edges
    """
    net = read_ir(stream.xml)
    taken = [int(layer.ident) for layer in net.layers if layer.ident.isdecimal()]
    number = 1 + max(taken, default=0)
    found = {value: (node, layer, port) for value, node, layer, port in _values(net)}
    shown = {value: each for value, each in found.items() if values is None or value in values}
    results, edges = "", ""
    for place, (_, layer, port) in enumerate(shown.values(), number):
        results += _result(place, port)
        edges += _edge(layer.ident, port.ident, place)
    number += len(shown)
    parameters: dict[Place, tuple[int, str]] = {}
    for place, value in enumerate(replaced, number):
        _, layer, port = found[value]
        parameters[layer.ident, port.ident] = place, _parameter(place, port)
    xml = _edited(stream.xml, results, edges, parameters)
    nodes = tuple(node for node, _, _ in shown.values())
    return Probed(with_model(stream, xml), tuple(shown), nodes)


def _values(net: Net) -> Iterator[tuple[str, str, Layer, Port]]:
    for layer, name in zip(net.layers, node_names(net), strict=True):
        if layer.type not in _PASSIVE:
            yield from (
                (value_name(layer, name, port), name, layer, port) for port in layer.outputs
            )


def _shape(port: Port) -> str:
    return "".join(f"<dim>{escape(dim)}</dim>" for dim in port.dims)


def _result(number: int, port: Port) -> str:
    return (
        f'<layer id="{number}" name="probe_{number}" type="Result" version="opset1"><input>'
        f'<port id="0" precision="{escape(port.precision)}">{_shape(port)}</port></input></layer>'
    )


def _edge(layer: str, port: str, number: int) -> str:
    return (
        f'<edge from-layer="{escape(layer)}" from-port="{escape(port)}" '
        f'to-layer="{number}" to-port="0"/>'
    )


def _parameter(number: int, port: Port) -> str:
    kind = _TYPES.get(port.precision, _element(port.precision))
    sizes = ",".join(dim if dim.isdecimal() else "-1" for dim in port.dims)
    return (
        f'<layer id="{number}" name="given_{number}" type="Parameter" version="opset1">'
        f'<data shape="{sizes}" element_type="{kind}"/><output>'
        f'<port id="0" precision="{escape(port.precision)}">{_shape(port)}</port></output></layer>'
    )


def _element(precision: str) -> str:
    return escape(precision.lower().replace("fp", "f"))


def _edited(
    xml: bytes, results: str, edges: str, parameters: dict[Place, tuple[int, str]]
) -> bytes:
    """Return the document with layers and edges of its outermost network added or redirected."""
    found = _Places()
    found.read(xml)
    if found.layers is None or found.edges is None:
        raise FormatError("a network with layers and edges", "none", field="model")
    pieces: list[tuple[int, int, str]] = []
    last = found.first_result if found.first_result is not None else found.layers
    pieces.append((found.layers, found.layers, results))
    more = "".join(text for _, text in parameters.values())
    pieces.append((found.first_other or last, found.first_other or last, more))
    for start, end, attributes in found.edge_places:
        source = attributes.get("from-layer", ""), attributes.get("from-port", "")
        if source in parameters:
            to = f'to-layer="{attributes["to-layer"]}" to-port="{attributes["to-port"]}"'
            edge = f'<edge from-layer="{parameters[source][0]}" from-port="0" {to}/>'
            pieces.append((start, end, edge))
    pieces.append((found.edges, found.edges, edges))
    made, end = bytearray(), 0
    for start, stop, text in sorted(pieces, key=lambda piece: piece[:2]):
        made += xml[end:start] + text.encode()
        end = stop
    return bytes(made + xml[end:])


class _Places:
    """Byte positions in a document: ends of the outermost lists, and their edges."""

    def __init__(self) -> None:
        self.layers: int | None = None
        self.edges: int | None = None
        self.first_other: int | None = None
        self.first_result: int | None = None
        self.edge_places: list[tuple[int, int, dict[str, str]]] = []
        self._path: list[str] = []
        self._open: tuple[int, dict[str, str]] | None = None

    def read(self, xml: bytes) -> None:
        parser = expat.ParserCreate()

        def start(name: str, attributes: dict[str, str]) -> None:
            self._path.append(name)
            if self._path == ["net", "edges", "edge"]:
                self._open = parser.CurrentByteIndex, attributes
            if self._path == ["net", "layers", "layer"]:
                kind, at = attributes.get("type"), parser.CurrentByteIndex
                if kind == "Result" and self.first_result is None:
                    self.first_result = at
                if kind != "Parameter" and self.first_other is None:
                    self.first_other = at

        def end(_name: str) -> None:
            at = parser.CurrentByteIndex
            if self._path == ["net", "layers"]:
                self.layers = at
            elif self._path == ["net", "edges"]:
                self.edges = at
            elif self._path == ["net", "edges", "edge"] and self._open is not None:
                begin, attributes = self._open
                self.edge_places.append((begin, _closing(xml, begin), attributes))
            self._path.pop()

        parser.StartElementHandler = start
        parser.EndElementHandler = end
        parser.Parse(xml, True)


def _closing(xml: bytes, begin: int) -> int:
    """Return the end of an element without content; attribute values have no ``>`` unescaped."""
    end = xml.index(b">", begin) + 1
    return end if xml[end - 2 : end - 1] == b"/" else xml.index(b">", end) + 1
