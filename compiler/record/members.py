"""The members of a record: new ones for changed parts, those of its file for the rest."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from schema.etrecord import RecordFile
from schema.etrecord import members as m
from schema.etrecord.archive.zip_write import Bytes, Content, Sums, archive_chunks

_PROGRAMS = ("exported_program", "export_graph_id", "_edge_programs", "graph_map")
_JSON = {
    "_debug_handle_map": m.HANDLES,
    "_delegate_map": m.DELEGATES,
    "_instruction_id_to_num_outs_map": m.COUNTS,
}
_SAVED = {"_reference_outputs": m.OUTPUTS, "_representative_inputs": m.INPUTS}


def record_chunks(
    file: RecordFile | None,
    parts: Mapping[str, Any],
    own: Mapping[str, Callable[[], bytes]],
    *,
    numbered: bool,
) -> Iterator[Bytes]:
    """Return a record as a file, piece by piece.

    Parts that were read from a file and never accessed are copied from it.

    Args:
        file: that the record was read from
        parts: that were set or accessed, and so may have changed, by attribute
        own: writer of each member that the stock tool does not read
        numbered: use graph ids that are equal in each process, not those of torch

    Raises: UnsupportedError if an argument cannot be represented in a record
    """
    sums = Sums()
    return archive_chunks(_contents(file, parts, own, sums, numbered=numbered), sums)


def _contents(
    file: RecordFile | None,
    parts: Mapping[str, Any],
    own: Mapping[str, Callable[[], bytes]],
    sums: Sums,
    *,
    numbered: bool,
) -> Iterator[Content]:
    if file is None:
        yield Content(m.MARKER, b"")
    else:
        yield from _kept(file, set(parts))
    if any(parts.get(part) for part in _PROGRAMS):
        from compiler.record.programs import program_contents

        yield from program_contents(parts, sums, numbered=numbered)
    for part, member in _JSON.items():
        if parts.get(part) is not None:
            yield Content(member, json.dumps(parts[part]).encode())
    for member, write in own.items():
        yield Content(member, write())
    for part, member in _SAVED.items():
        if parts.get(part) is not None:
            from compiler.record.torch_save import torch_save

            yield Content(member, torch_save(parts[part]))


def _kept(artifact: Any, given: set[str]) -> Iterator[Content]:  # noqa: ANN401
    """Yield the members of a record's file, without those of changed parts."""
    roles = artifact.roles
    programs = {
        "exported_program": [roles.exported],
        "_edge_programs": [*roles.edge.values()],
        "graph_map": [*roles.extra],
    }
    gone = {_JSON[part] for part in given & set(_JSON)}
    gone |= {_SAVED[part] for part in given & set(_SAVED)}
    gone |= {m.GRAPH_ID} if "export_graph_id" in given else set()
    for part in given & set(programs):
        for name in programs[part]:
            gone |= {name, *(name + suffix for suffix in m.SIDE_FILES)}
    names = artifact.archive.sound_names()
    if m.MARKER not in names:
        yield Content(m.MARKER, b"")
    for name in names:
        member = artifact.archive.get(name)
        if name not in gone and member is not None:
            yield Content(name, artifact.archive.read(name), member.stamp)
