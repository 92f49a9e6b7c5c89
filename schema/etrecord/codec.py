"""Opens and writes records, unchanged or with replaced members."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from schema.errors import FormatError, Issue, Severity
from schema.etrecord import members as m
from schema.etrecord.archive.container import Archive, open_archive
from schema.etrecord.archive.zip_write import Content, write_archive
from schema.etrecord.graph.json_text import Json, parse_json
from schema.etrecord.parts.maps import Problems, read_count_map, read_delegate_map, read_handle_map
from schema.etrecord.record import RecordFile
from schema.objects.cyclic_gc import gc_suspended

Buffer = bytes | bytearray | memoryview
T = TypeVar("T")
_SHOWN = 5  # names that an issue lists


@gc_suspended()
def decode(buffer: Buffer, *, file: str = "") -> RecordFile:
    """Open a record; stored members stay views into the buffer.

    Raises: FormatError if it is not a zip archive or has no marker member
    """
    data = memoryview(buffer).toreadonly()
    try:
        archive = open_archive(data)
    except FormatError as error:
        raise FormatError("a zip archive", _first_bytes(data, error), file=file) from None
    if not any(member.name == m.MARKER for member in archive.members):
        names = ", ".join(member.name[:60] for member in archive.members[:_SHOWN]) or "none"
        raise FormatError(f"a member {m.MARKER} of an ETRecord", f"members {names}", file=file)
    return _Opening(archive, file).record()


def encode(record: RecordFile) -> bytes:
    """Return a record of stored members with the bytes of every readable member unchanged."""
    return write_archive(_contents(record, {}))


def replace_members(record: RecordFile, changes: Mapping[str, bytes | None]) -> RecordFile:
    """Return a record with members replaced, appended, or removed if None."""
    return decode(write_archive(_contents(record, changes)), file=record.file)


def replace_member(record: RecordFile, name: str, data: bytes | None) -> RecordFile:
    """Return a record with one member replaced, appended, or removed if None."""
    return replace_members(record, {name: data})


class _Opening:
    """Reads the small members of a record, each one separately."""

    def __init__(self, archive: Archive, file: str) -> None:
        self._archive = archive
        self._file = file
        self._issues = list(archive.issues)

    def record(self) -> RecordFile:
        handles = self._map(m.HANDLES, read_handle_map)
        delegates = self._map(m.DELEGATES, read_delegate_map)
        counts = self._map(m.COUNTS, read_count_map)
        graph_id = self._json(m.GRAPH_ID)
        roles = m.roles_of(self._archive)
        if not roles.edge:
            self._issues.append(Issue(Severity.WARNING, m.EDGE, "the record has no edge program"))
        if graph_id is not None and not isinstance(graph_id, int):
            self._issues.append(Issue(Severity.WARNING, m.GRAPH_ID, "it is not an integer"))
            graph_id = None
        return RecordFile(
            self._archive,
            roles,
            handles,
            delegates,
            counts,
            graph_id,
            self._file,
            tuple(self._issues),
        )

    def _map(self, name: str, read: Callable[[Json, Problems], T]) -> T | None:
        tree = self._json(name)
        if tree is None:
            return None
        problems: Problems = []
        result = read(tree, problems)
        self._issues += [Issue(Severity.WARNING, name, text) for text in problems[:_SHOWN]]
        return result

    def _json(self, name: str) -> Json:
        """Return a JSON member, None if missing, or, with an issue, if unreadable."""
        if name not in self._archive:
            return None
        try:
            return parse_json(self._archive.read(name), self._archive.budget, name)
        except FormatError as error:
            self._issues.append(Issue(Severity.ERROR, name, str(error)))
            return None


def _contents(record: RecordFile, changes: Mapping[str, bytes | None]) -> Iterator[Content]:
    archive = record.archive
    names = archive.sound_names()
    if m.MARKER not in names:
        yield Content(m.MARKER, b"")
    for name in names:
        data = changes[name] if name in changes else archive.read(name)
        member = archive.get(name)
        if data is not None and member is not None:
            yield Content(name, data, member.stamp)
    for name, data in changes.items():
        if data is not None and name not in archive:
            yield Content(name, data)


def _first_bytes(data: memoryview, error: FormatError) -> str:
    return str(error) if bytes(data[:2]) == b"PK" else f"first bytes {bytes(data[:8])!r}"
