"""Decodes an OpenVINO payload: three ranges, of which the last is the model's XML.

The layout is that of the CPU plugin's own stream and is tied to its version: six 64-bit numbers
(custom data, constants, model: offset and size each), then the ranges. The XML is obscured with
a fixed 12-byte key. Source: openvino src/common/util, src/plugins/intel_cpu/src/utils/serialize
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from schema.errors import FormatError, Issue, Severity
from schema.graph import Graph
from schema.payloads.model import INLINE, Constant, Part, Payload, Source
from schema.payloads.openvino.graph import to_graph
from schema.payloads.openvino.ir import Layer, Net, read_ir
from schema.payloads.parts import carve, cover
from schema.payloads.reading import span, unpack

_HEADER = struct.Struct("<6Q")
_KEY = bytes.fromhex("3060700204083f6f7274787f")
_MAX_XML = 256 << 20
_WHERE = "OpenVINO payload"


def decode_payload(source: Source) -> Payload:
    """Decode an exported model of the CPU plugin.

    Raises: FormatError if the bytes are not laid out like one
    """
    data = source.data
    custom, custom_size, area, area_size, model, model_size = unpack(_HEADER, data, 0, "header")
    if custom != _HEADER.size:
        raise FormatError(f"the custom data at {_HEADER.size}", str(custom), field="header")
    span(data, custom, custom_size, "custom data")
    stored = span(data, area, area_size, "constants")
    xml = plain_text(span(data, model, model_size, "model"))
    net = read_ir(xml)
    issues: list[Issue] = []
    layers = dict(_consts(net))
    constants = _constants(layers, stored, issues)
    sizes = {name: constant.nbytes or 0 for name, constant in constants.items()}
    graph = to_graph(net, sizes, issues)
    return Payload(
        source.backend_id,
        "OpenVINO CPU stream",
        len(data),
        graph,
        cover(data, _claims((custom, custom_size, area, area_size, model, model_size), layers)),
        tuple(constants.values()),
        summary=_summary(net, graph, source),
        files=MappingProxyType(
            {
                "model.xml": memoryview(xml),
                "model.bin": stored,
                "custom.xml": data[custom : custom + custom_size],
            }
        ),
        external_ids=MappingProxyType(dict(enumerate((*graph.inputs, *graph.outputs)))),
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
    raw = np.frombuffer(stored, dtype=np.uint8)
    key = np.resize(np.frombuffer(_KEY, dtype=np.uint8), len(raw))
    return (raw ^ key).tobytes()


def _consts(net: Net) -> list[tuple[str, Layer]]:
    """Return the constant layers of the net and its bodies, by name."""
    found: list[tuple[str, Layer]] = []
    stack = [net]
    while stack:
        current = stack.pop()
        for layer in current.layers:
            if layer.type == "Const":
                found.append((layer.name, layer))
            stack.extend(layer.bodies.values())
    return found


def _place(layer: Layer) -> tuple[int, int]:
    offset, size = layer.data.get("offset", ""), layer.data.get("size", "")
    if not (offset.isdecimal() and size.isdecimal()):
        raise FormatError("a constant with offset and size", repr(offset)[:40], field=layer.name)
    return int(offset[:20]), int(size[:20])


def _constants(
    layers: Mapping[str, Layer], stored: memoryview, issues: list[Issue]
) -> dict[str, Constant]:
    found: dict[str, Constant] = {}
    for name, layer in layers.items():
        try:
            raw = span(stored, *_place(layer), field=name)
        except FormatError as error:
            issues.append(Issue(Severity.ERROR, _WHERE, str(error)))
            continue
        found[name] = Constant(name, len(raw), INLINE, raw)
    return found


def _claims(header: tuple[int, ...], layers: Mapping[str, Layer]) -> list[Part]:
    custom, custom_size, area, area_size, model, model_size = header
    inner: list[Part] = []
    for name, layer in layers.items():
        try:
            offset, size = _place(layer)
        except FormatError:
            continue  # reported with the constants
        inner.append(Part(name, "constant", area + offset, size))
    return [
        Part("header", "header", 0, _HEADER.size),
        Part("custom data", "text", custom, custom_size),
        *carve(Part("constants", "section", area, area_size), inner),
        Part("model.xml", "text", model, model_size),
    ]


def _summary(net: Net, graph: Graph, source: Source) -> Mapping[str, object]:
    kinds = Counter(layer.type for layer in net.layers)
    device = dict(source.compile_specs).get("device", b"")
    return MappingProxyType(
        {
            "device": device.decode("utf-8", "backslashreplace"),
            "network": net.name,
            "IR version": net.version,
            "layers": len(net.layers),
            "operations": len(graph.calls()),
            "constants": kinds["Const"],
        }
    )
