"""Tensors and delegate payloads of records and program files, read without torch."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from inspector.compat.devtools.opening import open_program
from inspector.files.bundled import inner_program
from inspector.memory.plan import value_name
from schema.bundled import BundledFile
from schema.dtypes.scalar_type import numel, scalar_type
from schema.errors import FormatError
from schema.etrecord import LoweredModule, RecordFile
from schema.graph import Graph, NodeKind
from schema.program import ProgramFile
from schema.program import model as m

Row = dict[str, Any]
NamedPayload = tuple[str, str, "bytes | memoryview"]  # name, backend id, bytes
_FORWARD = "forward"


def of_record(record: RecordFile) -> tuple[list[Row], list[NamedPayload]]:
    """Return the tensors and payloads of the recorded edge program.

    Parameters and buffers that are saved with the program count, as in the documented tool.

    Raises: FormatError if there is no edge program, or it cannot be read
    """
    edge = record.roles.edge
    name = edge.get(_FORWARD) or next(iter(edge.values()), None)
    if name is None:
        raise FormatError("an edge program", "none", file=record.file)
    graph = record.graph(name)
    saved = record.state_dict(name)
    rows: list[Row] = []
    for node in graph.nodes:
        tensor = saved.get(str(node.attributes.get("target", "")))
        kind = node.attributes.get("input_kind")
        if tensor is not None and kind in ("parameter", "buffer"):
            rows.append(_row(node.name, tensor.scalar_type, tensor.sizes))
    return rows, _payloads(graph)


def _payloads(graph: Graph) -> list[NamedPayload]:
    found: list[NamedPayload] = []
    for node in graph.nodes:
        lowered = node.attributes.get("lowered_module")
        if node.kind is NodeKind.DELEGATE and isinstance(lowered, LoweredModule):
            found.append((lowered.name, lowered.backend_id, lowered.processed))
            continue
        for name in node.subgraphs:
            inner = graph.subgraphs.get(name)
            found += _payloads(inner) if inner is not None else []
    return found


@dataclass(frozen=True, slots=True)
class ProgramRows:
    """The parts of a program file.

    Attributes:
        tensors: constants and initial state
        payloads: of delegates
        named: blobs that delegates look up by key
        size: bytes of the file, None for a program that was not read from one
    """

    tensors: list[Row]
    payloads: list[NamedPayload]
    named: list[Row]
    size: int | None


def of_program(source: str | os.PathLike[str] | ProgramFile) -> ProgramRows:
    """Return the parts of a program.

    What several values, delegates or keys share counts once.

    Raises: FormatError, OSError
    """
    file = open_program(source)
    assert file is not None
    artifact = file.artifact
    program = inner_program(artifact) if isinstance(artifact, BundledFile) else artifact
    if not isinstance(program, ProgramFile):
        raise FormatError("a program inside the bundle", "no readable one", file=file.path)
    size = len(artifact.program) if isinstance(artifact, BundledFile) else file.size
    return ProgramRows(_constants(program), _delegates(program), _named(program), size or None)


def _named(program: ProgramFile) -> list[Row]:
    rows: dict[int, Row] = {}
    for entry in program.table.named_data or ():
        if _among_constants(program, entry.segment_index):
            continue
        nbytes = len(program.segments[entry.segment_index])
        rows.setdefault(entry.segment_index, {"name": entry.key, "num_bytes": nbytes})
    return list(rows.values())


def _among_constants(program: ProgramFile, index: int) -> bool:
    """Return whether the bytes of a segment are some of the constants'."""
    places, home = program.table.segments or (), program.table.constant_segment
    if home is None or max(index, home.segment_index) >= len(places) or not places[index].size:
        return False
    whole, place = places[home.segment_index], places[index]
    ends = place.offset + place.size <= whole.offset + whole.size
    return index != home.segment_index and whole.offset <= place.offset and ends


def _constants(program: ProgramFile) -> list[Row]:
    rows: dict[int, Row] = {}
    for plan in program.plans:
        for index, entry in enumerate(plan.values):
            tensor = entry.val
            if not isinstance(tensor, m.Tensor) or tensor.data_buffer_idx == 0:
                continue
            key = tensor.data_buffer_idx if tensor.allocation_info is None else -index - 1
            row = _row(value_name(plan, index), tensor.scalar_type, tensor.sizes)
            if key not in rows or rows[key]["num_bytes"] < row["num_bytes"]:
                rows[key] = row
    return list(rows.values())


def _delegates(program: ProgramFile) -> list[NamedPayload]:
    found: dict[object, NamedPayload] = {}
    for plan in program.plans:
        for index, delegate in enumerate(plan.delegates):
            place = delegate.processed
            key = (place.location, place.index) if place is not None else (plan.name, index)
            data = program.delegate_data(delegate)
            found.setdefault(key, (f"{plan.name} delegate {index}", delegate.id, data))
    return list(found.values())


def _row(name: str, code: int, sizes: tuple[int, ...]) -> Row:
    kind = scalar_type(code)
    return {
        "name": name,
        "numel": numel(sizes),
        "dtype": kind.name,
        "element_size": kind.item_bytes,
        "shape": list(sizes),
        "num_bytes": numel(sizes) * kind.item_bytes,
        "nn_module_stack": None,
    }
