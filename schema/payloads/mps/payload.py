"""Decodes an MPS payload: header, flatbuffer, constant segment.

Source: backends/apple/mps/mps_preprocess.py of releases 1.4.1 and 0.3
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from types import MappingProxyType

from schema.errors import FormatError, Issue, Severity
from schema.flatbuf.spec import UnknownMember
from schema.payloads.model import INLINE, Constant, Part, Payload, PayloadSource, total_bytes
from schema.payloads.mps import tables as t
from schema.payloads.mps.graph import node_names, to_graph, value_name
from schema.payloads.parts import Owners, cover, flatbuffer_claims
from schema.payloads.reading import PayloadReader, expect_identifier, span, unpack

_HEADER = struct.Struct("<I4sQQ")
_MAGIC = b"MP00"
_SCATTER = t.NODE_KINDS.index("Scatter")
_WHERE = "MPS payload"


def decode_payload(source: PayloadSource) -> Payload:
    """Decode an MPS payload.

    Raises: FormatError for any other payload, or unreadable tables
    """
    data = source.data
    place = _segment(data)
    base = _HEADER.size if place else 0
    expect_identifier(data, base, (_MAGIC,))
    reader = PayloadReader(data, place[0] if place else None, where=_WHERE)
    table = t.GRAPH if place else t.OLD_GRAPH
    graph = reader.root(table, base)
    issues = [*reader.issues, *_age(graph, place is not None)]
    constants = _constants(graph, data, place, issues)
    types = t.DATATYPES if place else t.OLD_DATATYPES
    built = to_graph(graph, types, constants, issues)
    claims = _claims(reader, graph, base, constants)
    if place:
        claims.append(Part("header", "header", 0, _HEADER.size))
        claims += _area(graph, constants, place[0])
    return Payload(
        source.backend_id,
        "MP00" if place else "MP00 without header",
        len(data),
        built,
        cover(data, claims),
        tuple(constants.values()),
        summary=_summary(graph, constants),
        external_ids=MappingProxyType(dict(enumerate((*built.inputs, *built.outputs)))),
        issues=tuple(issues),
    )


def _segment(data: memoryview) -> tuple[int, int] | None:
    """Return offset and size of the data segment, None for a bare flatbuffer."""
    first, magic, offset, size = unpack(_HEADER, data, 0, "header")
    if magic != _MAGIC:
        raise FormatError("the mark MP00", repr(magic)[1:], offset=4)
    if first:  # the root offset of a flatbuffer is never zero
        return None
    span(data, offset, size, "header.data_segment")
    return offset, size


def _age(graph: t.MPSGraph, has_header: bool) -> list[Issue]:
    tags = [node.mpsnode_union for node in graph.mps_nodes]
    kinds = {tag.kind for tag in tags if isinstance(tag, t.MpsOperation)}
    late = kinds & set(t.NODE_KINDS[_SCATTER:])
    if has_header or not (late or any(isinstance(tag, UnknownMember) for tag in tags)):
        return []
    text = "read with the tags of release 0.3; release 0.2 had no Scatter before " + ", ".join(
        sorted(late)
    )
    return [Issue(Severity.WARNING, _WHERE, text)]


def _constants(
    graph: t.MPSGraph, data: memoryview, place: tuple[int, int] | None, issues: list[Issue]
) -> dict[int, Constant]:
    area = data[place[0] : place[0] + place[1]] if place else data[:0]
    found: dict[int, Constant] = {}
    for index, tensor in enumerate(graph.mps_values):
        size = tensor.constant_buffer_size
        if size <= 0:
            continue
        try:
            raw = _stored(tensor, area, value_name(index))
        except FormatError as error:
            issues.append(Issue(Severity.ERROR, _WHERE, str(error)))
            continue
        found[index] = Constant(f"constant_{index}", size, INLINE, raw)
    return found


def _in_segment(tensor: t.Tensor) -> bool:
    # Writers of the segment leave an empty buffer.
    return tensor.constant_buffer is None or not len(tensor.constant_buffer.storage)


def _stored(tensor: t.Tensor, area: memoryview, field: str) -> memoryview:
    size = tensor.constant_buffer_size
    if tensor.constant_buffer is None or _in_segment(tensor):
        return span(area, tensor.segment_offset, size, field)
    return span(tensor.constant_buffer.storage, 0, size, field)


def _claims(
    reader: PayloadReader, graph: t.MPSGraph, base: int, constants: Mapping[int, Constant]
) -> list[Part]:
    names = node_names(graph)

    def value(found: re.Match[str], kind: str) -> tuple[str, str]:
        index = int(found[1])
        if kind == "blob" and index in constants and not _in_segment(graph.mps_values[index]):
            return constants[index].name, "constant"
        return value_name(index), "value"

    owners: Owners = (
        (r"MPSGraph\.mps_nodes\[(\d+)\]", lambda found, _kind: (names[int(found[1])], "node")),
        (r"MPSGraph\.mps_values\[(\d+)\]", value),
    )
    return flatbuffer_claims(reader, t.GRAPH if base else t.OLD_GRAPH, base, owners)


def _area(graph: t.MPSGraph, constants: Mapping[int, Constant], start: int) -> list[Part]:
    return [
        Part(
            constant.name,
            "constant",
            start + graph.mps_values[index].segment_offset,
            constant.nbytes or 0,
        )
        for index, constant in constants.items()
        if _in_segment(graph.mps_values[index])
    ]


def _summary(graph: t.MPSGraph, constants: Mapping[int, Constant]) -> Mapping[str, object]:
    kind = graph.graph_type
    return MappingProxyType(
        {
            "schema version": graph.version or "",
            "graph type": t.GRAPH_TYPES[kind] if 0 <= kind < len(t.GRAPH_TYPES) else str(kind),
            "nodes": len(graph.mps_nodes),
            "values": len(graph.mps_values),
            "constants": len(constants),
            "constant bytes": total_bytes(constants.values()),
        }
    )
