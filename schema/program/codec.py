"""Reads and writes ``.pte`` files: header, flatbuffer, segments.

Source: program.fbs, extended_header.h.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from schema.errors import FormatError, Issue, Severity
from schema.flatbuf.reader import Reader
from schema.flatbuf.writer import write_root
from schema.objects.cyclic_gc import gc_suspended
from schema.objects.plural import plural
from schema.program import model as m
from schema.program.model import PROGRAM
from schema.program.program import ProgramFile

Buffer = bytes | bytearray | memoryview
MAGIC = b"eh00"
_HEADER = struct.Struct("<4sIQQ")
_HEADER_AT = 8  # after root offset and file identifier
_OLD_LENGTH, _NEW_LENGTH = 24, 32  # 1.0 added the size of the segment area
SEGMENT_ALIGNMENT = 128  # default of ExecutorchBackendConfig


def sniff(head: bytes) -> bool:
    """Return whether these first bytes are those of a program."""
    return len(head) >= 8 and head[4:6] == b"ET" and head[6:8].isdigit()


@gc_suspended()
def decode(buffer: Buffer, *, file: str = "") -> ProgramFile:
    """Read a program; segments stay views into the buffer.

    Raises: FormatError if it is not a program or its tables cannot be read
    """
    data = memoryview(buffer).toreadonly()
    try:
        return _decode(data, file)
    except FormatError as error:
        raise error.in_file(file) from None


def _decode(data: memoryview, file: str) -> ProgramFile:
    head = bytes(data[:64])
    if len(head) < 8:
        raise FormatError("a program of at least 8 bytes", f"{len(data)} bytes", offset=0)
    if not sniff(head):
        raise FormatError(
            "the identifier ET12", repr(head[4:8])[1:], field="file_identifier", offset=4
        )
    issues: list[Issue] = []
    identifier = head[4:8].decode("ascii")
    if identifier != "ET12":
        issues.append(
            Issue(Severity.WARNING, file, f"identifier {identifier}, read with the fields of ET12")
        )
    header = _read_header(data)
    limit = len(data) if header is None else header.program_size
    if limit > len(data):
        raise FormatError(
            f"a program of {limit} bytes",
            f"a file of {len(data)} bytes; it was cut short",
            field="header.program_size",
            offset=16,
        )
    reader = Reader(data, limit, where=file)
    table = reader.root(PROGRAM)
    segments = _segments(data, table, header, issues, file)
    issues += [*reader.issues, *_impossible_shapes(table, file)]
    return ProgramFile(table, header, segments, identifier, file, tuple(issues), len(data))


def _impossible_shapes(table: m.ProgramTable, file: str) -> list[Issue]:
    """Return an issue that names the first tensor with a size below zero."""
    bad = [
        f"value {index} of {plan.name}, {list(entry.val.sizes)}"
        for plan in table.execution_plan
        for index, entry in enumerate(plan.values)
        if isinstance(entry.val, m.Tensor) and min(entry.val.sizes, default=0) < 0
    ]
    if not bad:
        return []
    what = plural(len(bad), "tensor has a size", "tensors have sizes")
    text = f"{what} below zero, so that its bytes are unknown: first {bad[0]}"
    return [Issue(Severity.ERROR, file, text.replace("its", "their") if len(bad) > 1 else text)]


def _read_header(data: memoryview) -> m.ExtendedHeader | None:
    if len(data) < _HEADER_AT + _OLD_LENGTH or bytes(data[8:12]) != MAGIC:
        return None
    _, length, program_size, base = _HEADER.unpack_from(data, _HEADER_AT)
    if length < _OLD_LENGTH:
        raise FormatError(
            "a header of 24 bytes or more", str(length), field="header.length", offset=12
        )
    size = 0
    if length >= _NEW_LENGTH and len(data) >= _HEADER_AT + _NEW_LENGTH:
        size = struct.unpack_from("<Q", data, 32)[0]
    return m.ExtendedHeader(length, program_size, base, size)


def _segments(
    data: memoryview,
    table: m.ProgramTable,
    header: m.ExtendedHeader | None,
    issues: list[Issue],
    file: str,
) -> tuple[memoryview, ...]:
    base = 0 if header is None else header.segment_base_offset
    views: list[memoryview] = []
    for index, segment in enumerate(table.segments or ()):
        start = base + segment.offset
        end = start + segment.size
        if segment.size and base == 0:
            issues.append(_segment_issue(file, index, "the file has no segment area"))
        elif segment.size and end > len(data):
            issues.append(
                _segment_issue(file, index, f"it ends at byte {end} of a {len(data)}-byte file")
            )
        views.append(data[min(start, len(data)) : min(end, len(data))] if base else data[:0])
    return tuple(views)


def _segment_issue(file: str, index: int, why: str) -> Issue:
    return Issue(Severity.ERROR, file, f"segment {index} cannot be read completely: {why}")


def encode(program: ProgramFile, *, alignment: int = SEGMENT_ALIGNMENT) -> bytes:
    """Return the bytes of a program, with the layout of the stock emitter.

    Segment sizes are those of the stored bytes; positions in the file are recomputed. The header
    is omitted without segment bytes, as by the stock writer.
    """
    table, area = _lay_out(program, alignment)
    flat = write_root(PROGRAM, table, program.identifier.encode("ascii"))
    if len(area) == 0 and program.header is None:
        return flat
    head = with_header(flat, len(area), alignment)
    return b"".join((head, area))


def encode_parts(
    table: m.ProgramTable,
    segments: Sequence[Sequence[Buffer]],
    *,
    alignment: int = SEGMENT_ALIGNMENT,
    inside: Mapping[int, m.DataSegment] = MappingProxyType({}),
) -> tuple[Buffer, ...]:
    """Return a program as buffers to write one after the other; segment bytes are not copied.

    Args:
        table: the root table; its segment positions are recomputed
        segments: for each segment its buffers
        alignment: of segments relative to the first one, in bytes
        inside: segments without buffers: ranges of the first segment
    """
    step = math.lcm(alignment, 16)
    area: list[Buffer] = []
    places: list[m.DataSegment] = []
    end = 0
    for number, parts in enumerate(segments):
        if number in inside:  # the first segment is at 0
            places.append(inside[number])
            continue
        size = sum(memoryview(part).nbytes for part in parts)
        if size:
            start = -(-end // step) * step
            area += [bytes(start - end), *parts]
            end = start + size
        places.append(m.DataSegment(end - size if size else 0, size))
    flat = write_root(PROGRAM, replace(table, segments=tuple(places)), b"ET12")
    return (with_header(flat, end, alignment), *area) if end else (flat,)


def with_header(flat: bytes, total: int, alignment: int) -> bytes:
    """Return a flatbuffer with its header inserted, padded to where the segments start.

    Args:
        flat: the flatbuffer
        total: bytes of all segments and the gaps between them
        alignment: of the first segment, in bytes
    """
    body = bytearray(flat)
    root = struct.unpack_from("<I", body)[0] + _NEW_LENGTH
    size = len(body) + _NEW_LENGTH
    base = -(-size // alignment) * alignment if total else 0
    header = struct.pack("<4sIQQQ", MAGIC, _NEW_LENGTH, size, base, total)
    struct.pack_into("<I", body, 0, root)
    body[_HEADER_AT:_HEADER_AT] = header
    if total:
        body += bytes(base - size)
    return bytes(body)


def _lay_out(program: ProgramFile, alignment: int) -> tuple[m.ProgramTable, bytearray]:
    if program.table.segments is None:
        return program.table, bytearray()
    inside = _inside_first(program.table.segments, program.segments)
    kept = _kept_places(program.table.segments, program.segments, inside)
    area = bytearray()
    placed: list[m.DataSegment] = []
    for index, view in enumerate(program.segments):
        if index in inside:
            placed.append(inside[index])
            continue
        if len(view):
            step = math.lcm(alignment, 16)
            start = kept[index] if kept else -(-len(area) // step) * step
            area += bytes(start - len(area))
        placed.append(m.DataSegment(len(area) if len(view) else 0, len(view)))
        area += view
    return replace(program.table, segments=tuple(placed)), area


def _inside_first(
    places: tuple[m.DataSegment, ...], views: tuple[memoryview, ...]
) -> dict[int, m.DataSegment]:
    """Return the segments that are, and were before, ranges of the first one."""
    if not places or places[0].offset or places[0].size != len(views[0]):
        return {}
    first = views[0]
    return {
        index: place
        for index, place in enumerate(places)
        if index and 0 < place.size == len(views[index])
        if place.offset + place.size <= len(first)
        if first[place.offset : place.offset + place.size] == views[index]
    }


def _kept_places(
    places: tuple[m.DataSegment, ...],
    views: tuple[memoryview, ...],
    inside: Mapping[int, m.DataSegment],
) -> list[int] | None:
    # A valid layout is kept, so that rewriting a file moves nothing in it.
    end = 0
    for index, (place, view) in enumerate(zip(places, views, strict=True)):
        if index in inside:
            continue
        if place.size != len(view) or (place.size and (place.offset < end or place.offset % 16)):
            return None
        if place.size and place.offset - end > SEGMENT_ALIGNMENT * 64:
            return None
        end = place.offset + place.size if place.size else end
    return [place.offset for place in places]
