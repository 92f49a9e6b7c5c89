"""Decodes a QNN payload.

The format of the context binary is not public. Releases 0.6 and 0.7 could also defer the
compilation to
the device and stored the graph itself, as QCIR.

Source: backends/qualcomm/runtime/backends/QnnCustomProtocol.h of releases 0.6, 1.0, 1.2 and 1.5.1
"""

from __future__ import annotations

import re
import struct
from types import MappingProxyType

from schema.errors import Issue, Severity
from schema.graph import Graph
from schema.payloads.model import Part, Payload, PayloadSource
from schema.payloads.parts import Owner, cover, flatbuffer_claims, is_zero, whole
from schema.payloads.qnn.graph import WHERE, constant_name, constants_of, node_names, to_graph
from schema.payloads.qnn.tables import CONTEXT, Context
from schema.payloads.reading import PayloadReader, span, unpack
from schema.payloads.settings.options import qnn_facts

_HEADER = struct.Struct("<IqQ")
_QCIR_HEADER = struct.Struct("<IIQ")
_MAGIC, _QCIR_MAGIC = 0x5678ABCD, 0x1234ABCD
_PADDED = 256  # where the context binary begins since release 1.2; before, after the header


def decode_payload(source: PayloadSource) -> Payload:
    """Decode the header of a QNN payload; without it the payload is the context binary.

    Raises: FormatError if the header announces more bytes than the payload has
    """
    data = source.data
    mark = int.from_bytes(data[:4], "little") if len(data) >= 4 else 0
    if mark == _QCIR_MAGIC:
        return _qcir(source)
    if mark == _MAGIC:
        return _context(source)
    return Payload(
        source.backend_id,
        "QNN context binary without header",
        len(data),
        parts=whole(len(data), "context binary", "binary"),
        summary=MappingProxyType(qnn_facts(source.compile_specs)),
        files=MappingProxyType({"context.bin": data}),
    )


def _context(source: PayloadSource) -> Payload:
    data = source.data
    _, signature, size = unpack(_HEADER, data, 0, "header")
    padded = len(data) >= _PADDED and is_zero(data[_HEADER.size : _PADDED])
    start = _PADDED if padded else _HEADER.size
    binary = span(data, start, size, "header.binary_size")
    facts = {"signature": f"{signature:#x}", "context binary bytes": size}
    claims = [
        Part("header", "header", 0, start),
        Part("context binary", "binary", start, size),
    ]
    issues: tuple[Issue, ...] = ()
    if not size:
        issues = (Issue(Severity.WARNING, WHERE, "the context binary is empty"),)
    return Payload(
        source.backend_id,
        "QNN custom protocol",
        len(data),
        parts=cover(data, claims),
        summary=MappingProxyType({**facts, **qnn_facts(source.compile_specs)}),
        files=MappingProxyType({"context.bin": binary}),
        issues=issues,
    )


def _qcir(source: PayloadSource) -> Payload:
    data = source.data
    _, flat_size, tensor_size = unpack(_QCIR_HEADER, data, 0, "header")
    start = _QCIR_HEADER.size
    span(data, start, flat_size, "header.qcir_fbs_size")
    area = span(data, start + flat_size, tensor_size, "header.tensor_size")
    reader = PayloadReader(data, start + flat_size, where=WHERE)
    context = reader.root(CONTEXT, start)
    issues = list(reader.issues)
    built = [to_graph(table, index, issues) for index, table in enumerate(context.graphs)]
    constants = constants_of(context, area, issues)
    owners = (
        (r"Context\.graphs\[(\d+)\]\.nodes\[(\d+)\]", _node_owner(context)),
        (r"Context\.graphs\[(\d+)\]\.tensors\[(\d+)\]", _tensor_owner),
    )
    claims = [Part("header", "header", 0, start)]
    claims += flatbuffer_claims(reader, CONTEXT, start, owners)
    base = start + flat_size
    claims += [Part(name, "constant", base + at, size) for name, at, size in _places(context)]
    counts = {"graphs": len(built), "operations": sum(len(item.nodes) for item in built)}
    return Payload(
        source.backend_id,
        "QCIR",
        len(data),
        _together(built),
        cover(data, claims),
        constants,
        summary=MappingProxyType({**counts, **qnn_facts(source.compile_specs)}),
        issues=tuple(issues),
    )


def _together(graphs: list[Graph]) -> Graph:
    """Return the only graph, or the first with the others as its subgraphs."""
    if not graphs:
        return Graph("QCIR", (), {})
    first, *others = graphs
    nested = {graph.name: graph for graph in others}
    return Graph(first.name, first.nodes, first.values, first.inputs, first.outputs, nested)


def _node_owner(context: Context) -> Owner:
    names = [node_names(graph, index) for index, graph in enumerate(context.graphs)]

    def owner(found: re.Match[str], _kind: str) -> tuple[str, str]:
        return names[int(found[1])][int(found[2])], "node"

    return owner


def _tensor_owner(found: re.Match[str], _kind: str) -> tuple[str, str]:
    return constant_name(int(found[1]), int(found[2])), "value"


def _places(context: Context) -> list[tuple[str, int, int]]:
    return [
        (constant_name(number, index), tensor.offset, tensor.size)
        for number, graph in enumerate(context.graphs)
        for index, tensor in enumerate(graph.tensors)
        if tensor.size
    ]
