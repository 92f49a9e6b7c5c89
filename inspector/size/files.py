"""The parts of every file of a session: programs, external data, bundled programs, records."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import overload

from typing_extensions import override

from inspector.files.bundled import inner_program
from inspector.files.session import LoadedFile, Session
from inspector.size.owners import FilePart, FileSize, cover, program_parts, program_size
from schema import bundled, flat_tensor
from schema.bundled import BundledFile
from schema.errors import FormatError
from schema.etrecord import RecordFile
from schema.flat_tensor import FlatTensor
from schema.flatbuf.extents import Extent, extents
from schema.objects.identity_cache import identity_cache
from schema.program import ProgramFile


@dataclass(frozen=True, slots=True)
class SizedFile:
    """A file of a session and its parts.

    Attributes:
        file: the file
        size: its parts, None if unknown
        problem: why they are unknown, else empty
    """

    file: LoadedFile
    size: FileSize | None
    problem: str = ""


class PlacedParts(Sequence[tuple[LoadedFile, FilePart]]):
    """The parts of files whose parts are known, each with its file, which is put to it on access.

    Raises: IndexError on access to none
    """

    def __init__(self, files: Iterable[SizedFile]) -> None:
        self._files = [(one.file, one.size.parts) for one in files if one.size is not None]
        self._ends = list(accumulate(len(parts) for _, parts in self._files))

    @override
    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, index: int) -> tuple[LoadedFile, FilePart]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[LoadedFile, FilePart]]: ...
    @override
    def __getitem__(
        self, index: int | slice
    ) -> tuple[LoadedFile, FilePart] | list[tuple[LoadedFile, FilePart]]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        number = bisect_right(self._ends, at)
        file, parts = self._files[number]
        return file, parts[at - self._ends[number]]

    @override
    def __iter__(self) -> Iterator[tuple[LoadedFile, FilePart]]:
        for file, parts in self._files:
            for part in parts:
                yield file, part


@identity_cache
def session_sizes(session: Session) -> tuple[SizedFile, ...]:
    """Return the parts of every file whose format defines the purpose of its bytes.

    Traces consist entirely of event tables and debug buffers have no structure; both
    are one part.
    """
    return tuple(_sized(session, file) for file in session.files)


def _sized(session: Session, file: LoadedFile) -> SizedFile:
    if file.artifact is None:
        return SizedFile(file, None, file.error)
    try:
        parts = _parts(session, file)
    except FormatError as error:
        return SizedFile(file, None, str(error))
    if isinstance(parts, FileSize):
        return SizedFile(file, parts)
    return SizedFile(file, FileSize(len(file.data), cover(parts, file.data)))


def _parts(session: Session, file: LoadedFile) -> list[FilePart] | FileSize:
    artifact = file.artifact
    if isinstance(artifact, ProgramFile):
        return program_size(artifact, file.data, session.external)
    if isinstance(artifact, FlatTensor):
        return flat_tensor_parts(artifact, file.data)
    if isinstance(artifact, BundledFile):
        return bundled_parts(artifact, file.data, session.external)
    if isinstance(artifact, RecordFile):
        return record_parts(artifact)
    whole = "events" if file.kind == "etdump" else "logged tensors"
    return [FilePart(whole, whole, 0, len(file.data), (whole,))]


def flat_tensor_parts(data: FlatTensor, buffer: memoryview) -> list[FilePart]:
    """Return the owned runs of external data; gaps are left to `cover`."""
    reader, table, base = flat_tensor.root_table(buffer)
    parts = [FilePart("root offset and identifier", "header", 0, 8, ("tables",))]
    if data.header is not None:
        parts.append(FilePart("extended header", "header", 8, data.header.length, ("tables",)))
    parts += [_table_part(extent) for extent in extents(reader, table, base)]
    start = data.header.segment_base_offset if data.header is not None else 0
    for number, segment in enumerate(data.segments):
        keys = [entry for entry in data.entries if entry.segment_index == number]
        at = start + max(segment.offset, 0)
        if not keys:
            part = FilePart(f"segment {number}", "unreferenced segment", at, len(segment.data))
            parts.append(replace(part, shelf=("segments", part.name)))
        for entry in keys:
            kind = "constant" if entry.layout is not None else "named data"
            nbytes = entry.size
            parts.append(FilePart(entry.key, kind, at + entry.offset, nbytes, (kind, entry.key)))
    return parts


def _table_part(extent: Extent) -> FilePart:
    kind = "vtable" if extent.kind == "vtable" else "table"
    return FilePart(extent.path, kind, extent.offset, extent.nbytes, ("tables", extent.path))


def bundled_parts(
    data: BundledFile, buffer: memoryview, external: tuple[object, ...] = ()
) -> list[FilePart]:
    """Return the owned runs of a bundled program, those of the program inside included."""
    reader, table, base = bundled.root_table(buffer)
    parts: list[FilePart] = []
    for extent in extents(reader, table, base):
        if extent.kind == "blob" and extent.path == "BundledProgram.program":
            parts.append(FilePart("length of the program", "table", extent.offset, 4, ("tables",)))
        elif extent.kind == "blob":
            path = extent.path.removeprefix("BundledProgram.")
            group = ("test cases", *path.split(".")[:2])
            parts.append(FilePart(path, "test case", extent.offset, extent.nbytes, group))
        else:
            parts.append(_table_part(extent))
    return parts + _inner_parts(data, external)


def _inner_parts(data: BundledFile, external: tuple[object, ...]) -> list[FilePart]:
    start = data.program_offset
    program = inner_program(data)
    if program is None:
        return [FilePart("program", "program", start, len(data.program), ("program",))]
    inside = cover(program_parts(program, data.program, external), data.program)
    shelves = {part.shelf: ("program", *part.shelf) for part in inside}
    return [replace(part, offset=part.offset + start, shelf=shelves[part.shelf]) for part in inside]


def record_parts(record: RecordFile) -> list[FilePart]:
    """Return the members of a record, each with its local header; the directory is the rest."""
    parts: list[FilePart] = []
    for member in record.members:
        group = tuple(member.name.split("/"))
        if member.offset > member.header:
            head = f"header of {member.name}"
            size = member.offset - member.header
            parts.append(FilePart(head, "header", member.header, size, (*group, "header")))
        parts.append(FilePart(member.name, "member", member.offset, member.packed, group))
    end = max((part.offset + part.nbytes for part in parts), default=0)
    total = len(record.archive.data)
    return [*parts, FilePart("directory", "header", end, total - end, ("directory",))]
