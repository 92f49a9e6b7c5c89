"""Structure of programs, delegate payloads, external data, bundled programs and debug buffers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, cast

import numpy as np

from inspector.files.bundled import inner_program
from inspector.files.payloads import delegate_payload
from inspector.structure.node import (
    StructureNode,
    header_node,
    listed,
    table_node,
    value_node,
)
from schema.bundled import BundledFile
from schema.dtypes.scalar_type import scalar_type
from schema.errors import FormatError
from schema.etdump import DebugTensor, DebugValue, ETDump
from schema.etdump.debug_buffer import DebugBuffer, TensorView
from schema.flat_tensor import FlatTensor
from schema.flatbuf.header import HeaderField, header_field
from schema.flatbuf.reader import Reader
from schema.graph import GraphNode
from schema.objects.plural import plural
from schema.payloads import Payload
from schema.program import ProgramFile
from schema.program import model as m
from schema.program.model import PROGRAM

_HEADER = (
    ("root offset", 0, "I", "position of the root table"),
    ("file_identifier", 4, "4s", "names the format"),
)
_EXTENDED = (
    ("magic", 8, "4s", "names the extended header"),
    ("length", 12, "I", "bytes of the extended header"),
    ("program_size", 16, "Q", "bytes of the flatbuffer, this header included"),
    ("segment_base_offset", 24, "Q", "position of the segments, 0 for none"),
    ("segment_data_size", 32, "Q", "bytes of all segments and the gaps between them"),
)
_SHOWN = 8  # values of a logged tensor that are shown


def program_fields(program: ProgramFile, data: memoryview) -> tuple[HeaderField, ...]:
    """Return the fields at the head of a program; old files have fewer."""
    head = bytes(data[:64])
    rows = list(_HEADER)
    if program.header is not None:
        rows += [row for row in _EXTENDED if row[1] < 8 + program.header.length]
    return tuple(header_field(head, *row) for row in rows)


def program_nodes(
    program: ProgramFile, data: memoryview, external: tuple[object, ...], base: int = 0
) -> list[StructureNode]:
    """Return header, tables, segments and delegate payloads of a program.

    Args:
        program: the program
        data: its bytes
        external: files that may hold its named data
        base: its position in the file
    """
    limit = program.header.program_size if program.header is not None else len(data)
    found = [
        header_node(program_fields(program, data), data, base),
        table_node(data, Reader(data, limit), PROGRAM, 0, base),
    ]
    if program.segments:
        found.append(_segments(program, data, base))
    for plan in program.plans:
        for index, delegate in enumerate(plan.delegates):
            found.append(_payload(program, plan, index, delegate, external))
    return found


def _segments(program: ProgramFile, data: memoryview, base: int) -> StructureNode:
    start = program.header.segment_base_offset if program.header is not None else 0
    places = program.table.segments or ()

    def node(index: int, place: m.DataSegment) -> StructureNode:
        size = len(program.segments[index]) if index < len(program.segments) else 0
        text = f"{size:,} bytes" + ("" if size == place.size else f" of {place.size:,}: truncated")
        at = start + place.offset
        return StructureNode(f"segment {index}", "bytes", text, data, at, size, base)

    text = f"{len(places):,} segments"
    return StructureNode("segments", "", text, opens=lambda: listed(places, node))


def _payload(
    program: ProgramFile,
    plan: m.ExecutionPlan,
    index: int,
    delegate: m.BackendDelegate,
    external: tuple[object, ...],
) -> StructureNode:
    title = f"{plan.name} delegate {index}"

    def opens() -> list[StructureNode]:
        data = program.delegate_data(delegate)
        return payload_nodes(delegate_payload(program, plan, index, external), data)

    return StructureNode(title, delegate.id, "payload", opens=opens)


def payload_nodes(payload: Payload, data: memoryview) -> list[StructureNode]:
    """Return facts, nodes, parts and files of a payload; offsets count from its beginning."""
    found = [
        StructureNode("bytes", payload.format, f"{len(data):,} bytes", data, 0, len(data), -1),
        value_node("facts", dict(payload.summary)),
    ]
    parts = payload.parts
    found.append(
        StructureNode(
            "parts",
            "",
            f"{len(parts):,} parts",
            opens=lambda: listed(
                parts,
                lambda _, part: StructureNode(
                    part.name, part.kind, "", data, part.offset, part.nbytes, -1
                ),
            ),
        )
    )
    graph = payload.graph
    if graph is not None:
        nodes = graph.nodes
        text = plural(len(nodes), "node")
        found.append(StructureNode("nodes", "", text, opens=lambda: listed(nodes, _graph_node)))
    for path, content in payload.files.items():
        size = len(content)
        found.append(StructureNode(path, "file", f"{size:,} bytes", content, 0, size, -1))
    found += [
        StructureNode(issue.where, issue.severity.value, issue.message, failed=True)
        for issue in payload.issues
    ]
    return found


def _graph_node(_: int, node: GraphNode) -> StructureNode:
    facts: dict[str, object] = {
        "inputs": list(node.inputs),
        "outputs": list(node.outputs),
        **node.attributes,
    }
    rows = [value_node(name, value) for name, value in facts.items()]
    return StructureNode(node.name, node.target, "", opens=lambda: rows)


def external_nodes(artifact: FlatTensor, data: memoryview) -> list[StructureNode]:
    """Return the entries of external data with the place of their bytes."""
    start = artifact.header.segment_base_offset if artifact.header is not None else 0

    def place(index: int) -> int | None:
        known = index < len(artifact.segments)
        return start + max(artifact.segments[index].offset, 0) if known else None

    rows: list[StructureNode] = []
    for entry in artifact.entries:
        at = place(entry.segment_index)
        layout = entry.layout
        kind = "bytes"
        if layout is not None:
            kind = f"{scalar_type(layout.scalar_type).short} {list(layout.sizes)}"
        offset = None if at is None else at + entry.offset
        text = f"{entry.size:,} bytes in segment {entry.segment_index}"
        rows.append(StructureNode(entry.key, kind, text, data, offset, entry.size))
    return [StructureNode("entries", "", f"{len(rows):,} keys", opens=lambda: rows)]


def bundled_nodes(artifact: BundledFile, external: tuple[object, ...]) -> list[StructureNode]:
    """Return the program inside a bundled program."""
    program, data = inner_program(artifact), artifact.program
    base = artifact.program_offset
    node = StructureNode("program", "pte", f"{len(data):,} bytes", data, 0, len(data), base)
    if program is None:
        return [node]
    opens = program_nodes(program, data, external, base)
    return [
        StructureNode(
            node.name, node.type, node.text, data, 0, len(data), base, opens=lambda: opens
        )
    ]


def buffer_nodes(buffer: DebugBuffer, dumps: Sequence[ETDump]) -> list[StructureNode]:
    """Return the logged tensors of a debug buffer as the traces of the session name them."""
    size = len(buffer.data)
    whole = StructureNode("bytes", "", f"{size:,} bytes", buffer.data, 0, size)
    if not dumps:
        text = "open the ETDump of the same run to see the tensors in it"
        return [whole, StructureNode("tensors", "", text)]
    found = [whole]
    for dump in dumps:
        for number, run in enumerate(dump.run_data):
            table = run.events
            rows = np.flatnonzero(table.value >= 0).tolist()
            if not rows:
                continue

            def node(_: int, row: int, table: object = table) -> StructureNode:
                return _logged(buffer, table, row)

            found.append(
                StructureNode(
                    f"run {number} · {run.name}",
                    "tensors",
                    f"{len(rows):,} logged values",
                    opens=lambda rows=rows, node=node: listed(rows, node),
                )
            )
    return found


def _logged(buffer: DebugBuffer, table: object, row: int) -> StructureNode:
    from schema.etdump.table import EventTable

    assert isinstance(table, EventTable)
    value = table.values[int(table.value[row])]
    name = table.text(int(table.delegate_id_str[row])) or table.text(int(table.name[row])) or ""
    step = int(table.instruction_id[row])
    title = f"instruction {step}" if step >= 0 else f"event {row}"
    title = f"{title} · {name}" if name else title
    tensors = value.all_tensors()
    if len(tensors) == 1:
        return _tensor(title, buffer, tensors[0])
    if tensors:
        rows = [_tensor(f"[{at}]", buffer, tensor) for at, tensor in enumerate(tensors)]
        return StructureNode(title, "list", plural(len(rows), "tensor"), opens=lambda: rows)
    return StructureNode(title, "value", _scalar(value))


def _scalar(value: DebugValue) -> str:
    fields = (value.int_value, value.float_value, value.double_value, value.bool_value)
    return next((repr(field) for field in fields if field is not None), "nothing logged")


def _tensor(name: str, buffer: DebugBuffer, tensor: DebugTensor) -> StructureNode:
    kind = f"{scalar_type(tensor.scalar_type).short} {list(tensor.sizes)}"
    try:
        view = buffer.tensor_array(tensor)
    except FormatError as error:
        return StructureNode(name, kind, str(error), failed=True)
    at = tensor.offset if tensor.offset >= 0 else None
    return StructureNode(name, kind, preview(view), buffer.data, at, len(view.raw))


def preview(view: TensorView) -> str:
    """Return the first values of a tensor, and its range if it is small enough."""
    values = view.values()
    if values is None:
        return "values of this type cannot be shown"
    text = ", ".join(f"{value:.6g}" for value in islice(cast("Any", values).flat, _SHOWN))
    more = ", …" if values.size > _SHOWN else ""
    if 0 < values.size <= 1 << 20 and values.dtype.kind in "fiu":
        low, high = float(np.min(values)), float(np.max(values))
        return f"[{text}{more}]  min {low:.6g} max {high:.6g}"
    return f"[{text}{more}]"
