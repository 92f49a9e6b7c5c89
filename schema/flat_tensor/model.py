"""The external data artifact: entries, segments, header."""

from __future__ import annotations

from dataclasses import dataclass, field

from schema.dtypes.scalar_type import tensor_nbytes
from schema.errors import Issue
from schema.flatbuf.declare import i8, i32, u8


@dataclass(frozen=True, slots=True)
class TensorLayout:
    """Interpretation of the bytes of an entry.

    Attributes:
        scalar_type: scalar type code
        sizes: size of each dimension
        dim_order: outermost dimension first
    """

    scalar_type: i8
    sizes: tuple[i32, ...]
    dim_order: tuple[u8, ...]

    @property
    def nbytes(self) -> int:
        """Return the bytes of the tensor, 0 for an unknown dtype."""
        return tensor_nbytes(self.scalar_type, self.sizes)


@dataclass(frozen=True, slots=True)
class Entry:
    """A key and its bytes.

    Attributes:
        key: qualified name of a tensor, or the key a delegate looks up
        segment_index: segment with the bytes; several keys may share one
        layout: None for opaque blobs
        offset: first byte in the segment; 0 except in the layout of 0.6
        data: the bytes, clamped to the file
    """

    key: str
    segment_index: int
    layout: TensorLayout | None
    offset: int
    data: memoryview

    @property
    def size(self) -> int:
        """Return the number of bytes."""
        return len(self.data)


@dataclass(frozen=True, slots=True)
class FileSegment:
    """A run of bytes.

    Attributes:
        data: the bytes, clamped to the file if it is truncated
        offset: first byte counted from the segment base; -1 lets `encode` choose
    """

    data: memoryview
    offset: int = -1


@dataclass(frozen=True, slots=True)
class FlatTensorHeader:
    """The extended header.

    Attributes:
        length: bytes of the header itself, 40
        flatbuffer_offset: first byte after the padded header
        flatbuffer_size: bytes of the flatbuffer without the header
        segment_base_offset: first byte of the segments
        segment_data_size: bytes from the first segment to the end of the last
    """

    length: int
    flatbuffer_offset: int
    flatbuffer_size: int
    segment_base_offset: int
    segment_data_size: int


@dataclass(frozen=True, slots=True)
class FlatTensor:
    """A ``.ptd`` file.

    Attributes:
        entries: every key, tensors of the 0.6 layout first
        segments: all segments, referred to or not
        version: schema version, 0 in every file known
        tensor_alignment: None in the current layout; the alignment of tensors in 0.6
        header: positions in the file it was read from, None without a file
        file: path or label
        issues: inconsistencies that did not prevent reading
        nbytes: size of the file it was read from
    """

    entries: tuple[Entry, ...]
    segments: tuple[FileSegment, ...]
    version: int = 0
    tensor_alignment: int | None = None
    header: FlatTensorHeader | None = field(default=None, compare=False)
    file: str = field(default="", compare=False)
    issues: tuple[Issue, ...] = field(default=(), compare=False)
    nbytes: int = field(default=0, compare=False)

    def __hash__(self) -> int:
        return id(self)

    @property
    def old_layout(self) -> bool:
        """Return whether the file is laid out as 0.6 did."""
        return self.tensor_alignment is not None

    @property
    def extents(self) -> tuple[tuple[int, int], ...]:
        """Return where each segment begins and ends in the file it was read from."""
        if self.header is None:
            return ()
        starts = [self.header.segment_base_offset + segment.offset for segment in self.segments]
        ends = [start + len(s.data) for start, s in zip(starts, self.segments, strict=True)]
        return tuple(zip(starts, ends, strict=True))

    def blobs(self) -> dict[str, memoryview]:
        """Return the bytes by key."""
        return {entry.key: entry.data for entry in self.entries}
