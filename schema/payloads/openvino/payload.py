"""Decodes an OpenVINO payload: three ranges, the last one the model's XML.

The layout is that of the CPU plugin's stream and depends on its version: six 64-bit integers
(custom data, constants, model: offset and size each), then the ranges. The XML is obscured with
a fixed 12-byte key. Since 2026 a string with the version precedes it, after a mark, an integer and
the string's length. The exports of plugins of other devices are opaque.

Source: openvino src/common/util, src/plugins/intel_cpu/src/utils/serialize; exports of 2024.5,
2025.1, 2025.4 and 2026.4
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from schema.errors import FormatError, Issue, Severity
from schema.graph import Graph
from schema.payloads.model import INLINE, Constant, Part, Payload, PayloadSource
from schema.payloads.names import unique
from schema.payloads.openvino.graph import node_names, to_graph
from schema.payloads.openvino.ir import Layer, Net, read_ir
from schema.payloads.openvino.origins import origins_of, values_of
from schema.payloads.parts import carve, cover, whole
from schema.payloads.reading import span, unpack

_HEADER = struct.Struct("<6Q")
_KEY = bytes.fromhex("3060700204083f6f7274787f")
_MAX_XML = 256 << 20
_MARK = b"RR_UPCVO"
_PREFIX = struct.Struct("<8sIQ")
_FACTS = {"ov": "OpenVINO", "isa": "compiled for", "meta": "stream version"}
_MOST_FACTS = 16
_WHERE = "OpenVINO payload"


def decode_payload(source: PayloadSource) -> Payload:
    """Decode an exported model of the CPU plugin; that of another device is opaque.

    Raises: FormatError for any other layout
    """
    device = dict(source.compile_specs).get("device", b"")
    name = bytes(device).decode("utf-8", "backslashreplace")
    start, facts = _prefix(source.data)
    inner = source.data[start:]
    if not start and name.upper() not in ("", "CPU") and not _is_stream(inner):
        return _foreign(source, name)
    return _stream(source, inner, start, {"device": name, **facts})


def _prefix(data: memoryview) -> tuple[int, dict[str, object]]:
    """Return where the stream begins, and the facts of the string before it."""
    if bytes(data[: len(_MARK)]) != _MARK:
        return 0, {}
    _, _, nbytes = unpack(_PREFIX, data, 0, "header")
    text = bytes(span(data, _PREFIX.size, nbytes, "header.text")).decode("ascii", "replace")
    facts: dict[str, object] = {}
    for item in text.split(";")[:_MOST_FACTS]:
        key, separator, value = item.partition("=")
        if separator:
            facts[_FACTS.get(key, key)] = value
    return _PREFIX.size + nbytes, facts


def _is_stream(data: memoryview) -> bool:
    return bytes(data[:8]) == _HEADER.size.to_bytes(8, "little")


@dataclass(frozen=True, slots=True)
class Stream:
    """The ranges of an exported model of the CPU plugin.

    Attributes:
        prefix: bytes before the stream, of releases since 2026
        data: the stream
        model: where the model begins in it
        xml: the model in clear
        hidden: whether it is obscured
    """

    prefix: memoryview
    data: memoryview
    model: int
    xml: bytes
    hidden: bool


def read_stream(data: memoryview) -> Stream:
    """Return the ranges of a payload.

    Raises: FormatError for any other layout
    """
    start, _ = _prefix(data)
    inner = data[start:]
    if not _is_stream(inner):
        raise FormatError("an exported model of the CPU plugin", "another format", field="header")
    *_, model, model_size = unpack(_HEADER, inner, 0, "header")
    stored = span(inner, model, model_size, "model")
    xml = plain_text(stored)
    return Stream(data[:start], inner, model, xml, bytes(stored[:1]) != b"<")


def with_model(stream: Stream, xml: bytes) -> bytes:
    """Return a payload with another model, which is its last range."""
    stored = _hidden(xml) if stream.hidden else xml
    *before, model, _ = _HEADER.unpack_from(stream.data)
    head = _HEADER.pack(*before, model, len(stored))
    return b"".join((stream.prefix, head, stream.data[_HEADER.size : model], stored))


def _hidden(text: bytes | memoryview) -> bytes:
    raw = np.frombuffer(text, dtype=np.uint8)
    key = np.resize(np.frombuffer(_KEY, dtype=np.uint8), len(raw))
    return (raw ^ key).tobytes()


def _foreign(source: PayloadSource, device: str) -> Payload:
    kind = "ELF" if bytes(source.data[:4]) == b"\x7fELF" else "unknown"
    text = f"the export format of the {device} plugin is not public"
    return Payload(
        source.backend_id,
        f"OpenVINO export for {device}",
        len(source.data),
        parts=whole(len(source.data), "export", "binary"),
        summary=MappingProxyType({"device": device, "container": kind}),
        files=MappingProxyType({"model.blob": source.data}),
        issues=(Issue(Severity.INFO, _WHERE, text),),
    )


def _stream(
    source: PayloadSource, data: memoryview, start: int, facts: dict[str, object]
) -> Payload:
    custom, custom_size, area, area_size, model, model_size = unpack(_HEADER, data, 0, "header")
    if custom != _HEADER.size:
        raise FormatError(
            f"the custom data at {_HEADER.size}", str(custom), field="header", offset=start
        )
    span(data, custom, custom_size, "custom data")
    stored = span(data, area, area_size, "constants")
    xml = plain_text(span(data, model, model_size, "model"))
    net = read_ir(xml)
    issues: list[Issue] = []
    layers = _consts(net)
    constants = _constants(layers, stored, issues)
    graph = to_graph(net, constants, issues)
    names = node_names(net)
    origins = origins_of(net.layers, names)
    values = values_of(net.layers, names, origins)
    ranges = (custom, custom_size, area, area_size, model, model_size)
    claims = [Part("version", "header", 0, start)] if start else []
    claims += [
        replace(part, offset=part.offset + start) for part in _claims(ranges, layers, constants)
    ]
    return Payload(
        source.backend_id,
        "OpenVINO CPU stream",
        len(source.data),
        graph,
        cover(source.data, claims),
        tuple(constants.values()),
        summary=MappingProxyType({**facts, **_summary(net, graph, len(constants))}),
        files=MappingProxyType(
            {
                "model.xml": memoryview(xml),
                "model.bin": stored,
                "custom.xml": data[custom : custom + custom_size],
            }
        ),
        external_ids=MappingProxyType(dict(enumerate((*graph.inputs, *graph.outputs)))),
        origins=MappingProxyType(origins),
        node_values=MappingProxyType(values),
        issues=tuple(issues),
    )


def plain_text(stored: memoryview) -> bytes:
    """Return the model's XML in clear.

    Raises: FormatError if it is too large
    """
    if len(stored) > _MAX_XML:
        raise FormatError(f"an XML below {_MAX_XML} bytes", f"{len(stored)} bytes", field="model")
    if bytes(stored[:1]) == b"<":
        return bytes(stored)
    return _hidden(stored)


def _consts(net: Net) -> list[Layer]:
    """Return the constant layers of the net and its bodies."""
    found: list[Layer] = []
    stack = [net]
    while stack:
        current = stack.pop()
        for layer in current.layers:
            if layer.type == "Const":
                found.append(layer)
            stack.extend(layer.bodies.values())
    return found


def _place(layer: Layer) -> tuple[int, int]:
    offset, size = layer.data.get("offset", ""), layer.data.get("size", "")
    if not (offset.isdecimal() and size.isdecimal()):
        raise FormatError("a constant with offset and size", repr(offset)[:40], field=layer.name)
    return int(offset[:20]), int(size[:20])


def _constants(layers: list[Layer], stored: memoryview, issues: list[Issue]) -> dict[int, Constant]:
    """Return the constants by the identity of their layer; names are those of the layers."""
    found: dict[int, Constant] = {}
    taken: set[str] = set()
    lost: list[str] = []
    for index, layer in enumerate(layers):
        try:
            raw = span(stored, *_place(layer), field=layer.name)
        except FormatError as error:
            lost.append(str(error))
            continue
        name = unique(layer.name or f"Const_{layer.ident}", index, taken)
        found[id(layer)] = Constant(name, len(raw), INLINE, raw)
    if lost:
        more = f" (the first of {len(lost)} constants)" if len(lost) > 1 else ""
        issues.append(Issue(Severity.ERROR, _WHERE, lost[0] + more))
    return found


def _claims(
    ranges: tuple[int, ...], layers: list[Layer], constants: Mapping[int, Constant]
) -> list[Part]:
    custom, custom_size, area, area_size, model, model_size = ranges
    inner = [
        Part(constants[id(layer)].name, "constant", area + _place(layer)[0], _place(layer)[1])
        for layer in layers
        if id(layer) in constants
    ]
    return [
        Part("header", "header", 0, _HEADER.size),
        Part("custom data", "text", custom, custom_size),
        *carve(Part("constants", "section", area, area_size), inner),
        Part("model.xml", "text", model, model_size),
    ]


def _summary(net: Net, graph: Graph, constants: int) -> dict[str, object]:
    return {
        "network": net.name,
        "IR version": net.version,
        "layers": len(net.layers),
        "operations": len(graph.calls()),
        "constants": constants,
    }
