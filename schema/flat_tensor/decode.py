"""Reads ``.ptd`` files.

The current layout and that of 0.6 have the same signatures and version 0; only the shape of the
root table distinguishes them. Source: flat_tensor.fbs, flat_tensor_header.h.
"""

from __future__ import annotations

import struct
from typing import Any

from schema.errors import FormatError, Notes, Severity
from schema.flat_tensor.model import Entry, FileSegment, FlatTensor, FlatTensorHeader, TensorLayout
from schema.flat_tensor.tables import (
    FLAT_TENSOR,
    OLD_FLAT_TENSOR,
    DataSegment,
    NamedData,
    OldRoot,
    OldTensor,
    Root,
)
from schema.flatbuf.header import HeaderField, header_field
from schema.flatbuf.reader import Reader
from schema.flatbuf.spec import Spec
from schema.objects.cyclic_gc import gc_suspended

Buffer = bytes | bytearray | memoryview
MAGIC = b"FH01"
_EMPTY = memoryview(b"")
HEADER_AT, HEADER_BYTES = 8, 40  # after root offset and file identifier
_HEADER = struct.Struct("<4sIQQQQ")


def sniff(head: bytes) -> bool:
    """Return whether these first bytes are those of external data."""
    return head[4:6] == b"FT" and len(head) >= 8 and head[6:8].isdigit()


@gc_suspended()
def decode(buffer: Buffer, *, file: str = "") -> FlatTensor:
    """Read external data; the bytes stay views into the buffer.

    Raises: FormatError if it is not external data or its tables cannot be read
    """
    data = memoryview(buffer).toreadonly()
    try:
        return _decode(data, Notes(file))
    except FormatError as error:
        raise error.in_file(file) from None


def header_fields(buffer: Buffer, *, file: str = "") -> tuple[HeaderField, ...]:
    """Return the fields before the flatbuffer.

    Raises: FormatError if the file is shorter than its header
    """
    head = bytes(memoryview(buffer)[:64])
    rows = (
        ("root offset", 0, "I", "position of the root table"),
        ("file_identifier", 4, "4s", "names the format"),
        ("magic", 8, "4s", "names the extended header"),
        ("length", 12, "I", "bytes of the extended header"),
        ("flatbuffer_offset", 16, "Q", "first byte after the padded header"),
        ("flatbuffer_size", 24, "Q", "bytes of the flatbuffer without the header"),
        ("segment_base_offset", 32, "Q", "position of the segments, 0 if there are none"),
        ("segment_data_size", 40, "Q", "bytes of all segments and the gaps between them"),
    )
    try:
        return tuple(header_field(head, *row) for row in rows)
    except FormatError as error:
        raise error.in_file(file) from None


def root_table(data: memoryview) -> tuple[Reader, Spec[Any], int]:
    """Return a reader, the field table of the root and where its offset is, for walking.

    Raises: FormatError if the header or the root cannot be read
    """
    header = _header(data)
    reader = Reader(data, header.flatbuffer_offset + header.flatbuffer_size)
    entries, _ = reader.slots(reader.follow(0))
    # Today's root has three slots; that of 0.6 has five, and the last two are always written.
    return reader, OLD_FLAT_TENSOR if any(entries[3:5]) else FLAT_TENSOR, 0


def _header(data: memoryview) -> FlatTensorHeader:
    head = bytes(data[: HEADER_AT + HEADER_BYTES])
    if not sniff(head):
        raise FormatError(
            "the identifier FT01", repr(head[4:8])[1:], field="file_identifier", offset=4
        )
    if head[8:12] == MAGIC and len(head) < HEADER_AT + HEADER_BYTES:
        expected = f"a file of {HEADER_AT + HEADER_BYTES} bytes or more"
        raise FormatError(expected, f"{len(head)}; it was cut short", field="header", offset=8)
    if head[8:12] != MAGIC:
        raise FormatError("the header FH01", repr(head[8:12])[1:], field="header", offset=8)
    _, length, *places = _HEADER.unpack_from(head, HEADER_AT)
    if length < HEADER_BYTES:
        raise FormatError(
            "a header of 40 bytes or more", str(length), field="header.length", offset=12
        )
    header = FlatTensorHeader(length, *places)
    end = header.flatbuffer_offset + header.flatbuffer_size
    if end > len(data):
        raise FormatError(
            f"a flatbuffer that ends at byte {end}",
            f"a file of {len(data)} bytes; it was cut short",
            field="header.flatbuffer_size",
            offset=24,
        )
    return header


def _decode(data: memoryview, notes: Notes) -> FlatTensor:
    header = _header(data)
    reader, layout, base = root_table(data)
    root: Root | OldRoot = reader.root(layout, base)
    identifier = bytes(data[4:8]).decode("ascii")
    if identifier != "FT01":
        notes.add(f"identifier {identifier}, read with the fields of FT01")
    if root.version:
        notes.add(f"schema version {root.version}, read with the fields of version 0")
    segments = tuple(
        _segment(data, header, index, place, notes) for index, place in enumerate(root.segments)
    )
    entries = _entries(root, segments, notes)
    if len({entry.key for entry in entries}) < len(entries):
        notes.add("some keys appear more than once; which one is used depends on the runtime")
    return FlatTensor(
        entries,
        segments,
        root.version,
        root.tensor_alignment if isinstance(root, OldRoot) else None,
        header,
        notes.file,
        (*reader.issues, *notes.all()),
        len(data),
    )


def _segment(
    data: memoryview, header: FlatTensorHeader, index: int, place: DataSegment, notes: Notes
) -> FileSegment:
    start = header.segment_base_offset + place.offset
    end = start + place.size
    if end > len(data):
        notes.add(f"segment {index} ends at byte {end} of a {len(data)}-byte file", Severity.ERROR)
    elif place.size and start < header.flatbuffer_offset + header.flatbuffer_size:
        notes.add(f"segment {index} lies inside the tables", Severity.ERROR)
    return FileSegment(data[min(start, len(data)) : min(end, len(data))], place.offset)


def _entries(
    root: Root | OldRoot, segments: tuple[FileSegment, ...], notes: Notes
) -> tuple[Entry, ...]:
    if isinstance(root, Root):
        return tuple(_entry(item, segments, notes) for item in root.named_data)
    blobs = (NamedData(item.key, item.segment_index, None) for item in root.named_data)
    return (
        *(_old_tensor(item, segments, notes) for item in root.tensors),
        *(_entry(item, segments, notes) for item in blobs),
    )


def _entry(item: NamedData, segments: tuple[FileSegment, ...], notes: Notes) -> Entry:
    data = _segment_data(item.key, item.segment_index, segments, notes)
    layout = item.tensor_layout
    if layout is not None and layout.nbytes != len(data):
        notes.add(f"{item.key!r} needs {layout.nbytes} bytes, its segment has {len(data)}")
    return Entry(item.key, item.segment_index, layout, 0, data)


def _old_tensor(item: OldTensor, segments: tuple[FileSegment, ...], notes: Notes) -> Entry:
    name = item.fully_qualified_name
    layout = TensorLayout(item.scalar_type, item.sizes, item.dim_order)
    whole = _segment_data(name, item.segment_index, segments, notes)
    data = whole[min(item.offset, len(whole)) : min(item.offset + layout.nbytes, len(whole))]
    if len(data) != layout.nbytes:
        notes.add(
            f"{name!r} needs {layout.nbytes} bytes from byte {item.offset} of a segment of "
            f"{len(whole)}",
            Severity.ERROR,
        )
    return Entry(name, item.segment_index, layout, item.offset, data)


def _segment_data(
    key: str, index: int, segments: tuple[FileSegment, ...], notes: Notes
) -> memoryview:
    if index < len(segments):
        return segments[index].data
    if notes.room:
        notes.add(f"{key!r} is in segment {index} of {len(segments)}", Severity.ERROR)
    else:
        notes.skip(1)
    return _EMPTY
