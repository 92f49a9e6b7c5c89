"""Reads and writes XNNPACK payloads: header, flatbuffer, constant area.

Source: backends/xnnpack/runtime/XNNHeader.h, XNNCompiler.cpp
"""

from __future__ import annotations

import struct

from schema.errors import FormatError, Issue, Severity
from schema.flatbuf.writer import write_root
from schema.payloads.model import NamedData
from schema.payloads.reading import PayloadReader, expect_identifier, span, unpack
from schema.payloads.xnnpack import model as m
from schema.payloads.xnnpack.model import GRAPH, IDENTIFIERS, MAGIC

_HEADER = struct.Struct("<I4sHIIIQ")
_ALIGNMENT = 16
_WHERE = "XNNPACK payload"


def decode(data: bytes | memoryview) -> m.XNNGraph:
    """Read a payload; constants stay views into it.

    Raises: FormatError if it is not an XNNPACK payload or its tables cannot be read
    """
    return read(PayloadReader(memoryview(data).toreadonly(), where=_WHERE))


def header_of(data: memoryview) -> tuple[int, int, int, int] | None:
    """Return flatbuffer offset and size, constant offset and size; None if there is no header.

    Raises: FormatError if the header is too short or points outside the payload
    """
    if len(data) < _HEADER.size or bytes(data[4:8]) != MAGIC:
        return None
    _, _, length, offset, size, area, area_size = unpack(_HEADER, data, 0, "header")
    if length < _HEADER.size:
        raise FormatError("a header of 30 bytes or more", str(length), field="header", offset=8)
    span(data, offset, size, "header.flatbuffer")
    span(data, area, area_size, "header.constant_data")
    return offset, size, area, area_size


def read(reader: PayloadReader) -> m.XNNGraph:
    """Read the payload of a reader, whose limit is set to the end of the flatbuffer."""
    data = reader.buffer
    header = header_of(data)
    base = header[0] if header else 0
    identifier = expect_identifier(data, base, IDENTIFIERS)
    constants = data[:0]
    if header:
        reader.limit = header[0] + header[1]
        constants = data[header[2] : header[2] + header[3]]
    table = reader.root(GRAPH, base)
    issues = (*reader.issues, *_behind(data, header))
    return m.XNNGraph(table, constants, identifier, header is not None, issues)


def _behind(data: memoryview, header: tuple[int, int, int, int] | None) -> list[Issue]:
    if header is None:
        return []
    extra = len(data) - max(header[0] + header[1], header[2] + header[3])
    if extra < _ALIGNMENT:
        return []
    text = f"{extra} bytes after the constant area are not described by the header"
    return [Issue(Severity.WARNING, _WHERE, text)]


def encode(graph: m.XNNGraph) -> bytes:
    """Return the payload, laid out as the stock compiler lays it out."""
    flat = write_root(GRAPH, graph.table, graph.identifier.encode("ascii"))
    if not graph.has_header:
        return flat
    start = _aligned(_HEADER.size)
    area = start + _aligned(len(flat))
    header = _HEADER.pack(0, MAGIC, _HEADER.size, start, len(flat), area, len(graph.constants))
    body = header.ljust(start, b"\0") + flat
    return body.ljust(area, b"\0") + bytes(graph.constants)


def _aligned(nbytes: int) -> int:
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


def constant_data(graph: m.XNNGraph, index: int, named_data: NamedData) -> memoryview | None:
    """Return the bytes of a constant, None if its named blob is missing.

    The stock runtime uses the buffers of the flatbuffer only without a header.

    Raises: FormatError if the index or the range is invalid
    """
    entries = graph.table.constant_data or ()
    if graph.has_header and index < len(entries):
        entry = entries[index]
        if entry.named_key is not None:
            return named_data.get(entry.named_key)
        return span(graph.constants, entry.offset, entry.size, f"constant_data[{index}]")
    buffers = graph.table.constant_buffer or ()
    if index >= len(buffers):
        known = max(len(entries), len(buffers))
        raise FormatError(f"a constant index below {known}", str(index), field="constant_data")
    return buffers[index].storage
