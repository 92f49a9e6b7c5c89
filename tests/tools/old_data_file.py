"""The .ptd layout of release 0.6: a table of tensors of its own, under the same magic words.

FlatTensor was {0 version, 1 tensor_alignment, 2 tensors, 3 segments, 4 named_data}, all tensors
in one segment, each with its name, layout and offset. No current writer writes it.
"""

from __future__ import annotations

import struct
from typing import Any

import flatbuffers
from executorch.exir._serialize._cord import Cord
from executorch.extension.flat_tensor.serialize.serialize import FlatTensorSerializer

HEADER_BYTES = 40
FLATBUFFER_OFFSET = 48
SEGMENT_ALIGNMENT = 128
TENSOR_ALIGNMENT = 16


def old_data_file(current: bytes) -> bytes:
    """Return the tensors of a current .ptd in the layout of release 0.6."""
    payload = FlatTensorSerializer().deserialize(Cord(current))
    area, tensors = b"", []
    for name, entry in sorted(payload.named_data.items()):
        data = bytes(payload.buffers[entry.buffer_index])
        tensors.append((name, entry.tensor_layout, len(area)))
        area += data + bytes(-len(data) % TENSOR_ALIGNMENT)
    table = _table(tensors, len(area))
    return _join(table, area)


def _table(tensors: list[tuple[str, Any, int]], nbytes: int) -> bytes:
    builder = flatbuffers.Builder(1024)
    metadata = [_tensor(builder, name, layout, offset) for name, layout, offset in tensors]
    segments = _vector(builder, [_segment(builder, nbytes)])
    names = _vector(builder, [])
    tensor_vector = _vector(builder, metadata)
    builder.StartObject(5)
    builder.PrependUint32Slot(1, TENSOR_ALIGNMENT, 0)
    builder.PrependUOffsetTRelativeSlot(2, tensor_vector, 0)
    builder.PrependUOffsetTRelativeSlot(3, segments, 0)
    builder.PrependUOffsetTRelativeSlot(4, names, 0)
    builder.Finish(builder.EndObject(), file_identifier=b"FT01")
    return bytes(builder.Output())


def _tensor(builder: flatbuffers.Builder, name: str, layout: Any, offset: int) -> int:
    key = builder.CreateString(name)
    builder.StartVector(4, len(layout.sizes), 4)
    for size in reversed(layout.sizes):
        builder.PrependInt32(size)
    sizes = builder.EndVector()
    dim_order = builder.CreateByteVector(bytes(layout.dim_order))
    builder.StartObject(6)
    builder.PrependUOffsetTRelativeSlot(0, key, 0)
    builder.PrependInt8Slot(1, int(layout.scalar_type), 0)
    builder.PrependUOffsetTRelativeSlot(2, sizes, 0)
    builder.PrependUOffsetTRelativeSlot(3, dim_order, 0)
    builder.PrependUint64Slot(5, offset, 0)  # slot 4, the segment, is 0
    return builder.EndObject()


def _segment(builder: flatbuffers.Builder, nbytes: int) -> int:
    builder.StartObject(2)
    builder.PrependUint64Slot(1, nbytes, 0)
    return builder.EndObject()


def _vector(builder: flatbuffers.Builder, items: list[int]) -> int:
    builder.StartVector(4, len(items), 4)
    for item in reversed(items):
        builder.PrependUOffsetTRelative(item)
    return builder.EndVector()


def _join(table: bytes, area: bytes) -> bytes:
    """Put the extended header behind root offset and identifier, and the tensors at the end."""
    root, body = struct.unpack_from("<I", table)[0] + HEADER_BYTES, table[8:]
    base = -(-(FLATBUFFER_OFFSET + len(body)) // SEGMENT_ALIGNMENT) * SEGMENT_ALIGNMENT
    header = struct.pack(
        "<4sIQQQQ", b"FH01", HEADER_BYTES, FLATBUFFER_OFFSET, len(body), base, len(area)
    )
    head = struct.pack("<I4s", root, b"FT01") + header
    assert len(head) == FLATBUFFER_OFFSET
    return head + body + bytes(base - FLATBUFFER_OFFSET - len(body)) + area
