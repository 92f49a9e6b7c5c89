"""Roles of the members of a record, by name; and whether a zip archive is a record."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from schema.errors import FormatError
from schema.etrecord.archive.container import Archive, starts_like_zip
from schema.etrecord.archive.zip_index import LOCAL, LOCAL_MAGIC, read_directory
from schema.etrecord.parts.maps import FORWARD

MARKER = "ETRECORD_V0"
EXPORTED = "exported_program"
EDGE = "edge_dialect_exported_program"
GRAPH_ID = "export_graph_id"
HANDLES, DELEGATES = "debug_handle_map", "delegate_map"
COUNTS = "instruction_id_to_num_outs_map"
OUTPUTS, INPUTS = "reference_outputs", "representative_inputs"
PLANNED = "et_dialect_graph_module"  # older releases wrote the program after planning
RESERVED = (MARKER, EXPORTED, GRAPH_ID, EDGE, PLANNED, HANDLES, DELEGATES, COUNTS, OUTPUTS, INPUTS)
SIDE_FILES = ("_state_dict", "_constants", "_example_inputs")
OWN_PREFIX = "etscope/"  # ends in a side file's suffix, so that the stock tool ignores it
_PLAIN = frozenset((MARKER, GRAPH_ID, HANDLES, DELEGATES, COUNTS, OUTPUTS, INPUTS))
_GRAPH_KEY = b'"graph_module"'
_HEAD = 4096  # bytes that must show a marker or a graph: large members are not read for it


@dataclass(frozen=True, slots=True)
class Roles:
    """Members by their role.

    Attributes:
        exported: the program as it was exported, empty when absent
        edge: edge programs by method
        extra: further programs that were recorded under a name of the user's
        other: members no release is known to write
    """

    exported: str
    edge: dict[str, str]
    extra: tuple[str, ...]
    other: tuple[str, ...]


def roles_of(archive: Archive) -> Roles:
    """Return the role of each readable member."""
    edge: dict[str, str] = {}
    extra: list[str] = []
    other: list[str] = []
    for name in archive.names:
        if name in _PLAIN or name == EXPORTED or _is_side_file(name, archive):
            continue
        if name == EDGE:
            edge.setdefault(FORWARD, name)
        elif name.startswith(f"{EDGE}/"):
            edge[name[len(EDGE) + 1 :]] = name
        elif not name.startswith(OWN_PREFIX) and _is_program(name, archive):
            extra.append(name)
        else:
            other.append(name)
    return Roles(EXPORTED if EXPORTED in archive else "", edge, tuple(extra), tuple(other))


def sniff(head: bytes) -> bool:
    """Return whether these first bytes are those of a record, as every release writes it.

    The marker is its first member; repacked archives may have it later, see
    ``is_record``.
    """
    at = 0
    while at + LOCAL.size <= len(head):
        fields = LOCAL.unpack_from(head, at)
        if fields[0] != LOCAL_MAGIC:
            return False
        name_at = at + LOCAL.size
        if head[name_at : name_at + fields[9]] == MARKER.encode():
            return True
        at = name_at + fields[9] + fields[10] + fields[7]
    return False


def is_record(buffer: bytes | memoryview) -> bool:
    """Return whether a complete file is a record, with the marker at any position."""
    data = memoryview(buffer)
    if sniff(bytes(data[:_HEAD])):
        return True
    if not starts_like_zip(bytes(data[:4])):
        return False
    try:
        return any(member.name == MARKER for member in read_directory(data))
    except (FormatError, struct.error):
        return False


def _is_side_file(name: str, archive: Archive) -> bool:
    """Return whether a member belongs to an existing program."""
    owners = [name[: -len(suffix)] for suffix in SIDE_FILES if name.endswith(suffix)]
    return bool(owners) and owners[0] in archive and not name.startswith(OWN_PREFIX)


def _is_program(name: str, archive: Archive) -> bool:
    """Return whether an unknown member is a program: it has weights, or its structure."""
    if name + SIDE_FILES[0] in archive:
        return True
    member = archive.get(name)
    if member is None or member.compressed:
        return False
    return _GRAPH_KEY in bytes(archive.data[member.offset : member.end][:_HEAD])
