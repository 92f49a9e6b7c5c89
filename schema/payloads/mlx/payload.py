"""Decodes an MLX payload: header, graph of indexed slots, constants in named data.

Source: backends/mlx/serialization/mlx_graph_serialize.py, backends/mlx/builder
"""

from __future__ import annotations

import re
import struct
from types import MappingProxyType

from schema.errors import FormatError
from schema.payloads.mlx.graph import WHERE, instruction_counts, node_name, to_graph
from schema.payloads.mlx.tables import COUNTS, GRAPH, TENSOR_SLOT, MLXGraph
from schema.payloads.model import Constant, Part, Payload, PayloadSource
from schema.payloads.named import missing_constants, named_constant
from schema.payloads.parts import Owner, cover, flatbuffer_claims
from schema.payloads.reading import PayloadReader, span, unpack

MAGIC = b"MLX0"
_HEADER = struct.Struct("<I4sQQ")
_OPERATION = r"MLXGraph\.instruction_chains\[(\d+)\]\.instructions\[(\d+)\]"


def decode_payload(source: PayloadSource) -> Payload:
    """Decode an MLX payload.

    Raises: FormatError for any other payload, or unreadable tables
    """
    data = source.data
    first, magic, offset, size = unpack(_HEADER, data, 0, "header")
    if first or magic != MAGIC:
        raise FormatError("the mark MLX0", repr(magic)[1:], offset=4)
    span(data, offset if size else 0, size, "header.data_segment")
    reader = PayloadReader(data, offset if size else None, where=WHERE)
    table = reader.root(GRAPH, _HEADER.size)
    constants = _constants(table, source)
    issues = [*reader.issues, *missing_constants(constants.values(), WHERE)]
    graph = to_graph(table, constants, issues)
    claims = flatbuffer_claims(reader, GRAPH, _HEADER.size, ((_OPERATION, _owner(table)),))
    claims += [
        Part("header", "header", 0, _HEADER.size),
        Part("data segment", "section", offset, size),
    ]
    return Payload(
        source.backend_id,
        "MLX0",
        len(data),
        graph,
        cover(data, claims),
        tuple({item.name: item for item in constants.values()}.values()),
        summary=MappingProxyType(_summary(table, constants)),
        external_ids=MappingProxyType(dict(enumerate((*graph.inputs, *graph.outputs)))),
        issues=tuple(issues),
    )


def _constants(graph: MLXGraph, source: PayloadSource) -> dict[int, Constant]:
    """Return the constants by slot; inputs, outputs and buffers have names too, but no blob."""
    return {
        named.slot.idx: named_constant(named.name, source.named_data)
        for named in graph.named_slots
        if named.name
        and named.slot is not None
        and named.slot.slot_type == TENSOR_SLOT
        and named.slot.idx < graph.num_constant_tensors
    }


def _owner(graph: MLXGraph) -> Owner:
    def owner(found: re.Match[str], _kind: str) -> tuple[str, str]:
        return node_name(graph, int(found[1]), int(found[2])), "node"

    return owner


def _summary(graph: MLXGraph, constants: dict[int, Constant]) -> dict[str, object]:
    facts: dict[str, object] = {"schema version": graph.version}
    for name in COUNTS:
        facts[name.replace("_", " ")] = getattr(graph, f"num_{name}")
    facts["chains"] = len(graph.instruction_chains)
    if graph.init_chain_idx >= 0:
        facts["chain run once at loading"] = graph.init_chain_idx
    facts["instructions"] = instruction_counts(graph.instruction_chains)
    facts["named constants"] = len(constants)
    return facts
