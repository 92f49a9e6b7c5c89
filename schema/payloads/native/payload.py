"""Decodes a payload of the native backend.

Source: backends/native/serialization, backends/native/preprocess.py
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from schema.graph import Graph
from schema.payloads.model import Constant, NamedData, Payload, PayloadSource, total_bytes
from schema.payloads.named import missing_constants, named_constant
from schema.payloads.native import tables as t
from schema.payloads.native.graph import method_graph
from schema.payloads.parts import Owners, cover, flatbuffer_claims
from schema.payloads.reading import PayloadReader, expect_identifier

_WHERE = "native payload"
_GRAPH = r"Program\.methods\[(\d+)\]\.graph\."


def decode_payload(source: PayloadSource) -> Payload:
    """Decode a native payload.

    Raises: FormatError for any other payload, or unreadable tables
    """
    data = source.data
    expect_identifier(data, 0, (b"NPTG",))
    reader = PayloadReader(data, where=_WHERE)
    program = reader.root(t.PROGRAM)
    constants = _constants(program, source.named_data)
    issues = [*reader.issues, *missing_constants(constants.values(), _WHERE)]
    graphs = {method.name: method_graph(method, constants) for method in program.methods}
    graph = _main(graphs)
    externals = (*graph.inputs, *graph.outputs)
    return Payload(
        source.backend_id,
        "NPTG",
        len(data),
        graph,
        cover(data, flatbuffer_claims(reader, t.PROGRAM, 0, _owners(program))),
        tuple(constants.values()),
        summary=_summary(program, constants),
        external_ids=MappingProxyType(dict(enumerate(externals))),
        issues=tuple(issues),
    )


def _main(graphs: Mapping[str, Graph]) -> Graph:
    """Return the first method's graph with the other methods among its subgraphs."""
    first, *others = list(graphs.values()) or [Graph("native", (), {})]
    if not others:
        return first
    extra = {graph.name: graph for graph in others}
    return Graph(
        first.name,
        first.nodes,
        first.values,
        first.inputs,
        first.outputs,
        {**first.subgraphs, **extra},
        first.attributes,
    )


def _constants(program: t.Program, named_data: NamedData) -> dict[str, Constant]:
    found: dict[str, Constant] = {}
    for method in program.methods:
        for ref in method.constants:
            found.setdefault(ref.data_key, named_constant(ref.data_key, named_data))
            scheme = ref.meta.quant.scheme if ref.meta and ref.meta.quant else None
            if isinstance(scheme, t.AffineGroup):
                for key in filter(None, (scheme.scale_data_key, scheme.zero_point_data_key)):
                    found.setdefault(key, named_constant(key, named_data, role="scale"))
    return found


def _owners(program: t.Program) -> Owners:
    def node(found: re.Match[str], _kind: str) -> tuple[str, str]:
        graph = program.methods[int(found[1])].graph or t.Graph()
        return graph.nodes[int(found[2])].name, "node"

    def value(found: re.Match[str], _kind: str) -> tuple[str, str]:
        graph = program.methods[int(found[1])].graph or t.Graph()
        return graph.tensor_values[int(found[2])].name, "value"

    def constant(found: re.Match[str], _kind: str) -> tuple[str, str]:
        method = program.methods[int(found[1])]
        return method.constants[int(found[2])].data_key, "named_reference"

    return (
        (_GRAPH + r"nodes\[(\d+)\]", node),
        (_GRAPH + r"tensor_values\[(\d+)\]", value),
        (r"Program\.methods\[(\d+)\]\.constants\[(\d+)\]", constant),
    )


def _summary(program: t.Program, constants: Mapping[str, Constant]) -> Mapping[str, object]:
    graphs = [method.graph or t.Graph() for method in program.methods]
    return MappingProxyType(
        {
            "schema version": program.version,
            "methods": ", ".join(method.name for method in program.methods),
            "nodes": sum(len(graph.nodes) for graph in graphs),
            "constants": len(constants),
            "constant bytes at hand": total_bytes(constants.values()),
        }
    )
