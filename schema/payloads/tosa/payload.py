"""Decodes a TOSA flatbuffer: regions, blocks, operators, tensors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from schema.payloads.model import INLINE, Constant, Payload, PayloadSource
from schema.payloads.parts import Owners, cover, flatbuffer_claims
from schema.payloads.reading import PayloadReader, expect_identifier, span
from schema.payloads.tosa import tables as t
from schema.payloads.tosa.graph import block_names, node_name, to_graph
from schema.payloads.tosa.ops import RELEASE_1, Release
from schema.payloads.tosa.release_0 import RELEASE_0

_WHERE = "TOSA payload"
_BLOCK = r"TosaGraph\.regions\[(\d+)\]\.blocks\[(\d+)\]\."


def decode_payload(source: PayloadSource) -> Payload:
    """Decode a TOSA flatbuffer.

    Raises: FormatError for any other flatbuffer, or unreadable tables
    """
    data = source.data
    expect_identifier(data, 0, (b"TOSA",))
    reader = PayloadReader(data, where=_WHERE)
    version = PayloadReader(data).root(t.HEAD).version or t.Version()
    release, table = (RELEASE_0, t.GRAPH_0) if version.major == 0 else (RELEASE_1, t.GRAPH_1)
    graph = reader.root(table)
    constants = _constants(graph, data)
    issues = list(reader.issues)
    built = to_graph(graph, release, constants, issues)
    return Payload(
        source.backend_id,
        "TOSA",
        len(data),
        built,
        cover(data, flatbuffer_claims(reader, table, 0, _owners(graph, release, constants))),
        tuple(constants.values()),
        summary=_summary(graph, version),
        files=MappingProxyType({"model.tosa": data}),
        external_ids=MappingProxyType(dict(enumerate((*built.inputs, *built.outputs)))),
        issues=tuple(issues),
    )


def _constants(graph: t.TosaGraph, data: memoryview) -> dict[tuple[str, str], Constant]:
    """Return the constants by block and tensor name."""
    found: dict[tuple[str, str], Constant] = {}
    several = sum(len(region.blocks) for region in graph.regions) > 1
    for block, name in block_names(graph):
        for tensor in (*block.tensors, *block.shapes):
            raw = _stored(tensor, data)
            if len(raw):
                label = f"{name}/{tensor.name}" if several else tensor.name
                found[name, tensor.name] = Constant(label, len(raw), INLINE, raw)
    return found


def _stored(tensor: t.TosaTensor | t.TosaShape, data: memoryview) -> memoryview:
    # Above 2 GB the bytes follow the flatbuffer; an offset of 0 or 1 means they do not.
    if isinstance(tensor, t.TosaTensor) and tensor.offset > 1:
        return span(data, tensor.offset, tensor.size, tensor.name)
    return tensor.data


def _owners(
    graph: t.TosaGraph, release: Release, constants: dict[tuple[str, str], Constant]
) -> Owners:
    stored = {id(constant.data) for constant in constants.values()}

    def block(found: re.Match[str]) -> t.TosaBasicBlock:
        return graph.regions[int(found[1])].blocks[int(found[2])]

    def node(found: re.Match[str], _kind: str) -> tuple[str, str]:
        index = int(found[3])
        return node_name(release, block(found).operators[index], index), "node"

    def tensor(found: re.Match[str], kind: str) -> tuple[str, str]:
        item = block(found).tensors[int(found[3])]
        return item.name, "constant" if kind == "blob" and id(item.data) in stored else "value"

    def shape(found: re.Match[str], kind: str) -> tuple[str, str]:
        item = block(found).shapes[int(found[3])]
        return item.name, "constant" if kind == "blob" and id(item.data) in stored else "value"

    return (
        (_BLOCK + r"operators\[(\d+)\]", node),
        (_BLOCK + r"tensors\[(\d+)\]", tensor),
        (_BLOCK + r"shapes\[(\d+)\]", shape),
    )


def _summary(graph: t.TosaGraph, version: t.Version) -> Mapping[str, object]:
    blocks = [block for region in graph.regions for block in region.blocks]
    draft = " draft" if version.draft else ""
    return MappingProxyType(
        {
            "specification": f"TOSA {version.major}.{version.minor}.{version.patch}{draft}",
            "written by": _software(graph.software_version),
            "regions": len(graph.regions),
            "blocks": len(blocks),
            "operators": sum(len(block.operators) for block in blocks),
            "tensors": sum(len(block.tensors) for block in blocks),
            "constant bytes": sum(
                len(item.data) for block in blocks for item in (*block.tensors, *block.shapes)
            ),
        }
    )


def _software(version: t.SoftwareVersion | None) -> str:
    if version is None:
        return "unknown"
    return f"{version.major}.{version.minor}.{version.micro}{version.modifier}"
