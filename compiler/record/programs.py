"""Programs and values as members of a record; requires torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.record.examples import plain_containers
from compiler.record.graph import program_json
from compiler.record.graph_ids import GraphIds
from compiler.record.provenance import origin_of
from compiler.record.torch_save import SavedStates, torch_save
from compiler.untyped import OpOverload
from schema.etrecord import members as m
from schema.etrecord.archive.zip_write import Content, Sums

_STATE, _CONSTANTS, _INPUTS = m.SIDE_FILES


def program_contents(parts: Mapping[str, Any], sums: Sums, *, numbered: bool) -> Iterator[Content]:
    """Yield the members of programs, and the identifier of the exported graph.

    Args:
        parts: of a record, by attribute
        sums: known checksums
        numbered: use graph ids that are equal in each process, not those of torch

    Raises: UnsupportedError if an argument cannot be represented in a record
    """
    saved = SavedStates(sums)
    exported: ExportedProgram | None = parts.get("exported_program")
    left_out = exported is not None and _bodies_hold_tensors(exported)
    if left_out:
        exported = None  # the format has no place for them; the edge program has them lifted
    graph_id: int = parts.get("export_graph_id") or 0
    graph = exported.graph if exported is not None else None
    numbers = GraphIds(graph, graph_id, kept=not numbered)
    if exported is not None:
        yield from _program(m.EXPORTED, exported, saved, numbers, edge=False)
    edge: dict[str, ExportedProgram] = parts.get("_edge_programs") or {}
    for method, program in edge.items():
        yield from _program(f"{m.EDGE}/{method}", program, saved, numbers, edge=True)
    extra: dict[str, ExportedProgram] = parts.get("graph_map") or {}
    for name, program in extra.items():
        member = name if "/" in name else f"{name}/forward"
        yield from _program(member, program, saved, numbers, edge=_is_edge(program))
    if graph_id and not left_out:
        yield Content(m.GRAPH_ID, str(numbers.of(graph_id)).encode())


def _program(
    name: str, program: ExportedProgram, saved: SavedStates, numbers: GraphIds, *, edge: bool
) -> Iterator[Content]:
    origin = origin_of(program)
    if origin is not None:
        for suffix in ("", *m.SIDE_FILES):
            if origin.member + suffix in origin.artifact.archive:
                yield Content(name + suffix, origin.artifact.read(origin.member + suffix))
        return
    yield Content(name, program_json(program, numbers, edge=edge))
    yield Content(name + _STATE, saved.bytes_of(program.state_dict))
    yield Content(name + _CONSTANTS, saved.bytes_of(program.constants))
    inputs = program.example_inputs  # none of a program that was delegated: stock reads no bytes
    yield Content(name + _INPUTS, b"" if inputs is None else torch_save(plain_containers(inputs)))


def _is_edge(program: ExportedProgram) -> bool:
    """Return whether a program has operators of the edge dialect."""
    targets: list[Any] = [n.target for n in program.graph.nodes if n.op == "call_function"]
    return any(
        isinstance(getattr(target, "_op", None), OpOverload)
        for target in targets
        if not isinstance(target, OpOverload)
    )


def _bodies_hold_tensors(program: ExportedProgram) -> bool:
    """Return whether a body of control flow holds a tensor that it created from scalars."""
    modules: Any = program.graph_module.modules()
    return any(
        node.op == "get_attr" and isinstance(getattr(module, str(node.target), None), torch.Tensor)
        for module in modules
        if isinstance(module, torch.fx.GraphModule)
        for node in module.graph.nodes
    )
