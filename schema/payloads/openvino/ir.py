"""OpenVINO's XML of layers and edges, read with limits and without any entity.

Expat is driven directly: a document type, the only way to define entities, ends the reading.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

from schema.errors import FormatError

_MAX_ELEMENTS = 300_000  # bounds the time for a hostile file
_MAX_LAYERS = 100_000  # a transformer of a billion weights has a few thousand
_MAX_DEPTH = 64
_MAX_TEXT = 4096  # of one element; a dimension is a few digits


@dataclass(slots=True)
class Port:
    """An input or output of a layer."""

    ident: str
    precision: str = ""
    names: str = ""
    dims: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class Layer:
    """A layer.

    Attributes:
        data: attributes of its data element
        fused: names of the layers it was fused from
        bodies: nested networks by element name
    """

    ident: str
    name: str
    type: str
    version: str = ""
    data: Mapping[str, str] = field(default_factory=dict[str, str])
    fused: str = ""
    inputs: list[Port] = field(default_factory=list[Port])
    outputs: list[Port] = field(default_factory=list[Port])
    bodies: dict[str, Net] = field(default_factory=dict[str, "Net"])


@dataclass(slots=True)
class Net:
    """A network: layers, and edges as (from layer, from port, to layer, to port)."""

    name: str = ""
    version: str = ""
    layers: list[Layer] = field(default_factory=list[Layer])
    edges: list[tuple[str, str, str, str]] = field(default_factory=list[tuple[str, str, str, str]])


def read_ir(xml: bytes) -> Net:
    """Return the network of an XML document.

    Raises: FormatError if it is not well-formed, declares a document type or is too large
    """
    handler = _XmlHandler()
    parser = expat.ParserCreate()
    parser.StartElementHandler = handler.start
    parser.EndElementHandler = handler.end
    parser.CharacterDataHandler = handler.text
    parser.StartDoctypeDeclHandler = _refuse_doctype
    try:
        parser.Parse(xml, True)
    except expat.ExpatError as error:
        raise FormatError("well-formed XML", str(error), field="model") from None
    if handler.root is None:
        raise FormatError("an XML element net", "none", field="model")
    return handler.root


def _refuse_doctype(*_: object) -> None:
    raise FormatError("XML without a document type", "one", field="model")


class _XmlHandler:
    """Builds networks from the element stream."""

    def __init__(self) -> None:
        self.root: Net | None = None
        self._path: list[str] = []
        self._nets: list[Net] = []
        self._depths: list[int] = []  # of the elements that hold a nested network
        self._layers: list[Layer] = []
        self._port: Port | None = None
        self._text = ""
        self._count = 0
        self._layer_count = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Open an element."""
        self._count += 1
        if self._count > _MAX_ELEMENTS or len(self._path) >= _MAX_DEPTH:
            raise FormatError("an XML of sane size and depth", f"element {self._count}")
        parent = self._path[-1] if self._path else ""
        self._path.append(name)
        self._text = ""
        if name == "net" and self.root is None:
            self.root = Net(attributes.get("name", ""), attributes.get("version", ""))
            self._nets.append(self.root)
        elif name == "layers" and parent not in ("", "net") and self._layers:
            self._nets.append(Net(parent))
            self._layers[-1].bodies[parent] = self._nets[-1]
            self._depths.append(len(self._path) - 1)
        elif self._nets:
            self._inside(name, parent, attributes)

    def _inside(self, name: str, parent: str, attributes: dict[str, str]) -> None:
        get = attributes.get
        if name == "layer":
            self._layer_count += 1
            if self._layer_count > _MAX_LAYERS:
                raise FormatError(f"at most {_MAX_LAYERS} layers", "more", field="model")
            layer = Layer(get("id", ""), get("name", ""), get("type", ""), get("version", ""))
            self._nets[-1].layers.append(layer)
            self._layers.append(layer)
        elif name == "edge":
            ends = (get("from-layer", ""), get("from-port", ""))
            self._nets[-1].edges.append((*ends, get("to-layer", ""), get("to-port", "")))
        elif self._layers and name == "data" and parent == "layer":
            self._layers[-1].data = attributes
        elif self._layers and name == "port" and parent in ("input", "output"):
            self._port = Port(get("id", ""), get("precision", ""), get("names", ""))
            layer = self._layers[-1]
            (layer.inputs if parent == "input" else layer.outputs).append(self._port)
        elif self._layers and name == "attribute" and get("name") == "fused_names":
            self._layers[-1].fused = get("value", "")

    def end(self, name: str) -> None:
        """Close an element."""
        self._path.pop()
        if name == "dim" and self._port is not None:
            self._port.dims.append(self._text.strip())
        elif name == "port":
            self._port = None
        elif name == "layer" and self._layers:
            self._layers.pop()
        if self._depths and len(self._path) < self._depths[-1]:
            self._depths.pop()
            self._nets.pop()

    def text(self, data: str) -> None:
        """Collect character data."""
        if len(self._text) < _MAX_TEXT:
            self._text += data
