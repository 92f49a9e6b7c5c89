"""The files of a session as a tree that opens lazily: headers, tables, members, logged tensors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from inspector.files.session import LoadedFile, Session
from inspector.structure.node import StructureNode, header_node, table_node
from inspector.structure.parts import (
    buffer_nodes,
    bundled_nodes,
    external_nodes,
    program_nodes,
)
from inspector.structure.record import record_nodes
from schema import bundled, etdump, flat_tensor
from schema.bundled import BundledFile
from schema.etdump import ETDump
from schema.etdump.debug_buffer import DebugBuffer
from schema.etrecord import RecordFile
from schema.flat_tensor import FlatTensor
from schema.program import ProgramFile


def structure(session: Session) -> tuple[StructureNode, ...]:
    """Return one node a file, in the order of the session."""
    return tuple(_file(session, file) for file in session.files)


def _file(session: Session, file: LoadedFile) -> StructureNode:
    node = StructureNode(
        Path(file.path).name, file.kind, f"{file.size:,} bytes", file.data, 0, file.size
    )
    if file.artifact is None:
        return replace(node, text=file.error, failed=True)
    return replace(node, opens=lambda: _inside(session, file))


def _inside(session: Session, file: LoadedFile) -> list[StructureNode]:
    artifact = file.artifact
    if isinstance(artifact, ProgramFile):
        return program_nodes(artifact, file.data, session.external)
    if isinstance(artifact, FlatTensor):
        tables = table_node(file.data, *flat_tensor.root_table(file.data))
        header = header_node(flat_tensor.header_fields(file.data), file.data)
        return [header, tables, *external_nodes(artifact, file.data)]
    if isinstance(artifact, BundledFile):
        tables = table_node(file.data, *bundled.root_table(file.data))
        header = header_node(bundled.header_fields(file.data), file.data)
        return [header, tables, *bundled_nodes(artifact, session.external)]
    if isinstance(artifact, ETDump):
        tables = table_node(file.data, *etdump.root_table(file.data))
        return [header_node(etdump.header_fields(file.data), file.data), tables]
    if isinstance(artifact, RecordFile):
        return record_nodes(artifact, file.data)
    if isinstance(artifact, DebugBuffer):
        return buffer_nodes(artifact, session.dumps)
    return []


_VALUES = "values"


def plan_value(way: Sequence[str], session: Session | None) -> tuple[str, int] | None:
    """Return method and index of the value that a line of a program is in, None for others.

    Args:
        way: names of the lines from the file to the line
        session: whose structure it is
    """
    program = session.program if session is not None else None
    if program is None or "execution_plan" not in way or _VALUES not in way:
        return None
    plan = _index_after(way, "execution_plan")
    value = _index_after(way, _VALUES)
    if plan is None or value is None or plan >= len(program.plans):
        return None
    return program.plans[plan].name, value


def _index_after(way: Sequence[str], name: str) -> int | None:
    """Return the index in the first line like ``[12]`` below the one with a name."""
    below = way[list(way).index(name) + 1 :]
    found = (re.fullmatch(r"\[(\d+)\]", one) for one in below)
    first = next((match for match in found if match is not None), None)
    return None if first is None else int(first[1])
