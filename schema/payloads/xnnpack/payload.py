"""An XNNPACK payload as a Payload: graph, constants, sizes, expected events."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from schema.errors import FormatError, Issue, Severity
from schema.payloads.model import (
    INLINE,
    NAMED,
    Constant,
    NamedData,
    Part,
    Payload,
    PayloadSource,
    total_bytes,
)
from schema.payloads.named import missing_constants
from schema.payloads.parts import Owners, cover, flatbuffer_claims
from schema.payloads.reading import PayloadReader
from schema.payloads.xnnpack import codec
from schema.payloads.xnnpack import model as m
from schema.payloads.xnnpack.graph import external_values, node_names, to_graph, value_names
from schema.payloads.xnnpack.kernels import runtime_operators
from schema.payloads.xnnpack.model import GRAPH

_WHERE = "XNNPACK payload"


def decode_payload(source: PayloadSource) -> Payload:
    """Decode an XNNPACK payload.

    Raises: FormatError for any other payload, or unreadable tables
    """
    reader = PayloadReader(source.data, where=_WHERE)
    graph = codec.read(reader)
    issues = list(graph.issues)
    constants = _constants(graph, source.named_data, issues)
    names = node_names(graph)
    built = to_graph(graph, constants, issues)
    return Payload(
        source.backend_id,
        f"XH00/{graph.identifier}" if graph.has_header else graph.identifier,
        len(source.data),
        built,
        _parts(reader, graph, names, constants),
        tuple(constants.values()),
        _handles(graph, names),
        _summary(graph, constants),
        external_ids=MappingProxyType({ident: name for ident, _, name in external_values(graph)}),
        operators=runtime_operators(graph, names),
        issues=tuple(issues),
    )


def _constants(
    graph: m.XNNGraph, named_data: NamedData, issues: list[Issue]
) -> dict[int, Constant]:
    # A scale index may be shared with a weight only by accident; the first use names the role.
    found: dict[int, Constant] = {}
    for index, role in _uses(graph):
        if index == 0 or index in found:
            continue
        try:
            found[index] = _constant(graph, index, role, named_data)
        except FormatError as error:
            issues.append(Issue(Severity.ERROR, _WHERE, str(error)))
    issues += missing_constants(found.values(), _WHERE)
    return dict(sorted(found.items()))


def _uses(graph: m.XNNGraph) -> list[tuple[int, str]]:
    uses: list[tuple[int, str]] = []
    for value in graph.table.xvalues:
        if value.tensor is not None:
            uses.append((value.tensor.constant_buffer_idx, "weight"))
        params = value.quantization
        if isinstance(params, m.PerChannelQuant | m.PerChannelGroupQuant):
            uses.append((params.scale_buffer_idx, "scale"))
    return uses


def _constant(graph: m.XNNGraph, index: int, role: str, named_data: NamedData) -> Constant:
    data = codec.constant_data(graph, index, named_data)
    entries = graph.table.constant_data or ()
    if graph.has_header and index < len(entries):
        entry = entries[index]
        if entry.named_key is not None:
            return Constant(entry.named_key, entry.size, NAMED, data, role)
    return Constant(f"constant_{index}", 0 if data is None else len(data), INLINE, data, role)


def _parts(
    reader: PayloadReader,
    graph: m.XNNGraph,
    names: tuple[str, ...],
    constants: dict[int, Constant],
) -> tuple[Part, ...]:
    data = reader.buffer
    header = codec.header_of(data)
    values = value_names(graph)

    def constant(found: re.Match[str], _kind: str) -> tuple[str, str]:
        known = constants.get(int(found[1]))
        name = f"constant_{found[1]}" if known is None else known.name
        named = known is not None and known.location == NAMED
        return name, "named_reference" if named else "table"

    def buffer(found: re.Match[str], kind: str) -> tuple[str, str]:
        stored = kind == "blob" and int(found[1]) in constants
        return f"constant_{found[1]}", "constant" if stored else "table"

    owners: Owners = (
        (r"XNNGraph\.xnodes\[(\d+)\]", lambda found, _kind: (names[int(found[1])], "node")),
        (r"XNNGraph\.xvalues\[(\d+)\]", lambda found, _kind: (values[int(found[1])], "value")),
        (r"XNNGraph\.constant_data\[(\d+)\]", constant),
        (r"XNNGraph\.constant_buffer\[(\d+)\]", buffer),
    )
    claims = flatbuffer_claims(reader, GRAPH, header[0] if header else 0, owners)
    if header:
        claims.append(Part("header", "header", 0, 30))
        claims += _area(graph, constants, header[2])
    return cover(data, claims)


def _area(graph: m.XNNGraph, constants: dict[int, Constant], start: int) -> list[Part]:
    entries = graph.table.constant_data or ()
    return [
        Part(constant.name, "constant", start + entries[index].offset, entries[index].size)
        for index, constant in constants.items()
        if constant.location == INLINE and index < len(entries)
    ]


def _handles(graph: m.XNNGraph, names: tuple[str, ...]) -> Mapping[str, tuple[int, ...]]:
    return MappingProxyType(
        {
            name: (node.debug_handle,)
            for name, node in zip(names, graph.table.xnodes, strict=True)
            if node.debug_handle not in (0, m.INSERTED_HANDLE)
        }
    )


def _summary(graph: m.XNNGraph, constants: dict[int, Constant]) -> Mapping[str, object]:
    table = graph.table
    inserted = sum(node.debug_handle == m.INSERTED_HANDLE for node in table.xnodes)
    return MappingProxyType(
        {
            "schema version": table.version or "",
            "nodes": len(table.xnodes),
            "nodes inserted by the compiler": inserted,
            "values": len(table.xvalues),
            "external values": table.num_externs,
            "constants": len(constants),
            "constant bytes": total_bytes(constants.values()),
        }
    )
