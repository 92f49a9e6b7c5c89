"""Decodes a Vulkan payload: header, operator calls, values, constants, shaders.

Source: backends/vulkan/runtime/VulkanDelegateHeader.h, VulkanBackend.cpp
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

from schema.errors import FormatError, Issue, Severity
from schema.flatbuf.spec import Spec
from schema.payloads.model import INLINE, Constant, NamedData, Part, Payload, PayloadSource
from schema.payloads.named import missing_constants, named_constant
from schema.payloads.parts import Owners, cover, flatbuffer_claims
from schema.payloads.reading import PayloadReader, expect_identifier, span, unpack
from schema.payloads.vulkan import tables as t
from schema.payloads.vulkan.graph import node_names, to_graph, value_name

MAGIC = b"VH00"
_HEADER = struct.Struct("<I4sHIIIQ")
_ALL_ONES = 0xFFFFFFFFFFFFFFFF  # offset of a constant that is in the named data
_WHERE = "Vulkan payload"
Header = tuple[int, int, int, int]  # flatbuffer offset and size, byte area offset and size


def decode_payload(source: PayloadSource) -> Payload:
    """Decode a Vulkan payload.

    Raises: FormatError for any other payload, or unreadable tables
    """
    data = source.data
    header = _header(data)
    base = header[0] if header else 0
    expect_identifier(data, base, (b"VK00",))
    reader = PayloadReader(data, base + header[1] if header else None, where=_WHERE)
    table = _release(reader, base)
    graph = reader.root(table, base)
    issues = list(reader.issues)
    constants = _blobs(graph.constants, "constant", data, header, source.named_data, issues)
    shaders = _blobs(graph.shaders, "shader", data, header, source.named_data, issues)
    issues += missing_constants((*constants, *shaders), _WHERE)
    built = to_graph(graph, constants, issues)
    return Payload(
        source.backend_id,
        "VH00/VK00" if header else "VK00",
        len(data),
        built,
        cover(data, _claims(reader, graph, table, header, (*constants, *shaders))),
        (*constants, *shaders),
        summary=_summary(graph),
        external_ids=MappingProxyType(dict(enumerate((*built.inputs, *built.outputs)))),
        issues=tuple(issues),
    )


def _header(data: memoryview) -> Header | None:
    if bytes(data[4:8]) != MAGIC:
        return None
    _, _, length, offset, size, area, area_size = unpack(_HEADER, data, 0, "header")
    if length < _HEADER.size:
        raise FormatError("a header of 30 bytes or more", str(length), field="header", offset=8)
    span(data, offset, size, "header.flatbuffer")
    # The stock runtime reads a size of 0 as "up to the end".
    area_size = area_size or max(0, len(data) - area)
    span(data, area, area_size, "header.bytes")
    return offset, size, area, area_size


def _release(reader: PayloadReader, base: int) -> Spec[t.VkGraph]:
    """Return the tables of release 0.2 when no operator call has a third slot."""
    entries, _ = reader.slots(reader.follow(base))
    if len(entries) < 2 or not entries[1]:
        return t.GRAPH
    start, count = reader.extent(reader.follow(reader.follow(base) + entries[1]), 4)
    first = [reader.slots(reader.follow(start + 4 * index))[0] for index in range(min(count, 8))]
    return t.GRAPH_V02 if first and all(len(slots) <= 2 for slots in first) else t.GRAPH


def _blobs(
    entries: tuple[t.VkBytes, ...],
    prefix: str,
    data: memoryview,
    header: Header | None,
    named_data: NamedData,
    issues: list[Issue],
) -> list[Constant]:
    found: list[Constant] = []
    role = "shader" if prefix == "shader" else "weight"
    for index, entry in enumerate(entries):
        if entry.named_key is not None and entry.offset == _ALL_ONES:
            found.append(
                named_constant(entry.named_key, named_data, nbytes=entry.length, role=role)
            )
            continue
        area = data[header[2] : header[2] + header[3]] if header else data[:0]
        raw: memoryview | None = None
        try:
            raw = span(area, entry.offset, entry.length, f"{prefix}s[{index}]")
        except FormatError as error:
            issues.append(Issue(Severity.ERROR, _WHERE, str(error)))
        found.append(Constant(f"{prefix}_{index}", entry.length, INLINE, raw, role))
    return found


def _claims(
    reader: PayloadReader,
    graph: t.VkGraph,
    table: Spec[t.VkGraph],
    header: Header | None,
    blobs: tuple[Constant, ...],
) -> list[Part]:
    names = node_names(graph)
    entries = (*graph.constants, *graph.shaders)
    shift = len(graph.constants)

    def reference(index: int) -> tuple[str, str]:
        inline = blobs[index].location == INLINE
        return blobs[index].name, "table" if inline else "named_reference"

    owners: Owners = (
        (r"VkGraph\.chain\[(\d+)\]", lambda found, _kind: (names[int(found[1])], "node")),
        (r"VkGraph\.values\[(\d+)\]", lambda found, _kind: (value_name(int(found[1])), "value")),
        (r"VkGraph\.constants\[(\d+)\]", lambda found, _kind: reference(int(found[1]))),
        (r"VkGraph\.shaders\[(\d+)\]", lambda found, _kind: reference(int(found[1]) + shift)),
    )
    claims = flatbuffer_claims(reader, table, header[0] if header else 0, owners)
    if header is None:
        return claims
    claims.append(Part("header", "header", 0, _HEADER.size))
    for entry, blob in zip(entries, blobs, strict=True):
        if blob.location == INLINE and blob.data is not None:
            claims.append(Part(blob.name, "constant", header[2] + entry.offset, entry.length))
    return claims


def _summary(graph: t.VkGraph) -> Mapping[str, object]:
    kinds = Counter(type(value.value).__name__ for value in graph.values)
    facts: dict[str, object] = {
        "schema version": graph.version or "",
        "operator calls": len(graph.chain),
        "values": len(graph.values),
        "tensors": kinds["VkTensor"],
        "symbolic integers": kinds["SymInt"],
        "constants": len(graph.constants),
        "constant bytes": sum(entry.length for entry in graph.constants),
        "shaders": len(graph.shaders),
        "storage override": t.STORAGE.get(
            graph.storage_type_override, str(graph.storage_type_override)
        ),
        "layout override": t.LAYOUT.get(
            graph.memory_layout_override, str(graph.memory_layout_override)
        ),
    }
    return MappingProxyType(facts)


def sniff(data: memoryview) -> bool:
    """Return whether the bytes begin like a Vulkan payload."""
    return bytes(data[4:8]) in (MAGIC, b"VK00")
