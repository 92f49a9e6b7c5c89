"""Writes ``.ptd`` files in the layout of today or of 0.6."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from schema.flat_tensor.decode import HEADER_AT, HEADER_BYTES, MAGIC
from schema.flat_tensor.model import Entry, FileSegment, FlatTensor, TensorLayout
from schema.flat_tensor.tables import (
    FLAT_TENSOR,
    OLD_FLAT_TENSOR,
    DataSegment,
    NamedData,
    OldNamedData,
    OldRoot,
    OldTensor,
    Root,
)
from schema.flatbuf.writer import write_root

SEGMENT_ALIGNMENT = 128  # default of FlatTensorConfig
_PADDED_HEADER = 48  # rounded up to the alignment of the flatbuffer, 16
_WIDEST_GAP = 64 * SEGMENT_ALIGNMENT  # preserved between segments of a file that was read


@dataclass(frozen=True, slots=True)
class PlacedBlob:
    """The datum that `pack` stores under a key: bytes, and a layout when they are a tensor."""

    data: bytes | memoryview
    layout: TensorLayout | None = None


def pack(blobs: Iterable[tuple[str, PlacedBlob]]) -> FlatTensor:
    """Return external data with these keys, equal bytes stored once."""
    numbers: dict[bytes, int] = {}
    segments: list[FileSegment] = []
    entries: list[Entry] = []
    for key, blob in blobs:
        data = bytes(blob.data)
        if data not in numbers:
            numbers[data] = len(segments)
            segments.append(FileSegment(memoryview(data)))
        index = numbers[data]
        entries.append(Entry(key, index, blob.layout, 0, segments[index].data))
    return FlatTensor(tuple(entries), tuple(segments))


def encode(data: FlatTensor, *, alignment: int = SEGMENT_ALIGNMENT) -> bytes:
    """Return the bytes of external data; see `encode_parts`."""
    return b"".join(encode_parts(data, alignment=alignment))


def encode_parts(
    data: FlatTensor, *, alignment: int = SEGMENT_ALIGNMENT
) -> list[bytes | memoryview]:
    """Return external data as buffers to write one after the other; no segment is copied.

    Segments of a file that was read keep their positions in the area, which preserves alignments
    wider
    than the default; others are laid out consecutively.
    """
    places = _places(data.segments, alignment)
    total = max((place.offset + place.size for place in places), default=0)
    out = with_header(_tables(data, places), total, alignment)
    parts: list[bytes | memoryview] = [out]
    at = 0
    for place, segment in zip(places, data.segments, strict=True):
        parts += (bytes(place.offset - at), segment.data)
        at = place.offset + place.size
    return parts


def with_header(flat: bytes, total: int, alignment: int) -> bytes:
    """Return a flatbuffer with its header inserted, padded to where the segments start.

    Args:
        flat: the flatbuffer
        total: bytes of all segments and the gaps between them
        alignment: of the first segment, in bytes
    """
    size = len(flat)
    end = _PADDED_HEADER + size
    base = -(-end // alignment) * alignment
    out = bytearray(base)
    root = struct.unpack_from("<I", flat)[0] + _PADDED_HEADER
    struct.pack_into("<I4s", out, 0, root, flat[4:8])
    struct.pack_into(
        "<4sIQQQQ", out, HEADER_AT, MAGIC, HEADER_BYTES, _PADDED_HEADER, size, base, total
    )
    out[HEADER_AT + _PADDED_HEADER : end] = flat[HEADER_AT:]
    return bytes(out)


def _places(segments: tuple[FileSegment, ...], alignment: int) -> list[DataSegment]:
    kept = [DataSegment(segment.offset, len(segment.data)) for segment in segments]
    if _is_sound(kept):
        return kept
    end = 0
    chosen: list[DataSegment] = []
    for segment in segments:
        start = -(-end // alignment) * alignment
        chosen.append(DataSegment(start, len(segment.data)))
        end = start + len(segment.data)
    return chosen


def _is_sound(places: list[DataSegment]) -> bool:
    end = 0
    for place in places:
        if place.offset % 16 or not end <= place.offset <= end + _WIDEST_GAP:
            return False
        end = place.offset + place.size
    return True


def _tables(data: FlatTensor, places: list[DataSegment]) -> bytes:
    segments = tuple(places)
    if data.tensor_alignment is None:
        named = tuple(NamedData(e.key, e.segment_index, e.layout) for e in data.entries)
        return write_root(FLAT_TENSOR, Root(data.version, segments, named), b"FT01")
    tensors = tuple(_old_tensor(e, e.layout) for e in data.entries if e.layout is not None)
    blobs = tuple(OldNamedData(e.key, e.segment_index) for e in data.entries if e.layout is None)
    root = OldRoot(data.version, data.tensor_alignment, tensors, segments, blobs)
    return write_root(OLD_FLAT_TENSOR, root, b"FT01")


def _old_tensor(entry: Entry, layout: TensorLayout) -> OldTensor:
    return OldTensor(
        entry.key,
        layout.scalar_type,
        layout.sizes,
        layout.dim_order,
        entry.segment_index,
        entry.offset,
    )
