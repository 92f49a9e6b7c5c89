"""Debug buffers: raw bytes of logged tensors, addressed by the offsets in a trace.

The file has no signature and no table of contents; the ETDump of the same session locates
each tensor.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from schema.dtypes.scalar_type import BY_CODE, ScalarType, numel, scalar_type, to_float64
from schema.errors import FormatError, Issue, Severity
from schema.etdump import DebugTensor, DebugValues, ETDump

Buffer = bytes | bytearray | memoryview
Ints = NDArray[np.int64]
EMPTY_OFFSET = -1  # written by the runtime for a tensor without elements
_FAR = 2.0**62  # clamp for extents that no file can have


@dataclass(frozen=True, slots=True)
class TensorView:
    """One logged tensor.

    Attributes:
        type: dtype
        sizes: size of each dimension
        strides: in elements, one a dimension
        offset: first byte in the buffer, -1 for a tensor without elements
        raw: bytes from its first to its last element, in storage order
    """

    type: ScalarType
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    raw: memoryview

    def values(self) -> NDArray[np.generic] | None:
        """Return the elements in row-major order, None if numpy has no such type.

        Shapes: sizes; floats narrower than 32 bits become float32, integers keep their type
        """
        stored = to_float64(np.frombuffer(self.raw, dtype=np.uint8), self.type.code)
        if stored is None:
            return None
        if numel(self.sizes) == 0:
            return np.zeros(self.sizes, dtype=stored.dtype)
        steps = tuple(stride * stored.itemsize for stride in self.strides)
        return np.lib.stride_tricks.as_strided(stored, self.sizes, steps, writeable=False)


@dataclass(frozen=True, slots=True)
class DebugBuffer:
    """A debug buffer file.

    Attributes:
        data: content of the file
        file: path or label
    """

    data: memoryview
    file: str = field(default="", compare=False)

    @property
    def issues(self) -> tuple[Issue, ...]:
        """Return an issue for an empty file: no values were logged."""
        if self.data:
            return ()
        words = (
            "no values were logged in this run, only times. Run again with values: etscope run"
            " --debug-level intermediate, or set_event_tracer_debug_level in a custom runner"
        )
        return (Issue(Severity.INFO, self.file, words),)

    def tensor_array(self, tensor: DebugTensor) -> TensorView:
        """Return a logged tensor by its place, sizes and strides.

        Raises: FormatError if it does not lie in the buffer or has no known size
        """
        kind = scalar_type(tensor.scalar_type)
        if not kind.item_bytes:
            raise self._error(tensor, "a dtype of known size", kind.name)
        strides = self._strides(tensor)
        if numel(tensor.sizes) == 0:
            return TensorView(kind, tensor.sizes, strides, tensor.offset, self.data[:0])
        steps = zip(tensor.sizes, strides, strict=True)
        extent = kind.item_bytes * (1 + sum((size - 1) * stride for size, stride in steps))
        total = len(self.data)
        # Strides of 0 could declare any number of elements; no runtime logs such tensors.
        requested = max(extent, kind.item_bytes * numel(tensor.sizes))
        if tensor.offset < 0 or tensor.offset + requested > total:
            found = f"{requested} bytes from offset {tensor.offset}"
            raise self._error(tensor, f"a tensor inside a buffer of {total} bytes", found)
        raw = self.data[tensor.offset : tensor.offset + extent]
        return TensorView(kind, tensor.sizes, strides, tensor.offset, raw)

    def _strides(self, tensor: DebugTensor) -> tuple[int, ...]:
        if min(tensor.sizes, default=0) < 0 or min(tensor.strides, default=0) < 0:
            raise self._error(
                tensor, "no negative sizes and strides", f"{tensor.sizes}, {tensor.strides}"
            )
        if tensor.strides or not tensor.sizes:
            if len(tensor.strides) != len(tensor.sizes):
                raise self._error(tensor, f"{len(tensor.sizes)} strides", str(len(tensor.strides)))
            return tensor.strides
        steps = [1]
        for size in reversed(tensor.sizes[1:]):
            steps.append(steps[-1] * size)
        return tuple(reversed(steps))

    def _error(self, tensor: DebugTensor, expected: str, found: str) -> FormatError:
        at = tensor.offset if tensor.offset >= 0 else None
        return FormatError(expected, found, field="tensor", offset=at, file=self.file)

    def extents(self, dump: ETDump) -> tuple[Ints, Ints]:
        """Return first byte and one past the last of each tensor that a trace logs.

        Tensors without elements and those of unknown size are skipped. An end may
        lie past the end of the buffer, which then belongs to another trace.

        Shapes: int64[n], int64[n]
        """
        return tensor_extents(dump)

    def fits(self, dump: ETDump) -> int:
        """Return one past the last byte that the trace refers to, 0 when it logs no tensor."""
        _, ends = tensor_extents(dump)
        return int(ends.max()) if len(ends) else 0


def _store_extents(values: DebugValues) -> tuple[Ints, Ints]:
    c = values.columns
    count = len(c.scalar_type)
    sizes_owner = np.repeat(np.arange(count), c.sizes_count)
    sizes = c.numbers[: len(sizes_owner)]
    strides = c.numbers[len(sizes_owner) :]
    numel = np.ones(count)
    # A damaged shape may overflow; its extent is clamped below.
    with np.errstate(over="ignore", invalid="ignore"):
        np.multiply.at(numel, sizes_owner, sizes.astype(np.float64))
    last = numel - 1  # for tensors without strides, which are dense
    strided = (c.strides_count == c.sizes_count) & (c.sizes_count > 0)
    owner = sizes_owner[np.repeat(strided, c.sizes_count)]
    paired = sizes[np.repeat(strided, c.sizes_count)].astype(np.float64) - 1
    steps = paired * strides[np.repeat(strided, c.strides_count)]
    last[strided] = np.bincount(owner, weights=steps, minlength=count)[strided]
    item = np.array([BY_CODE[code].item_bytes if code in BY_CODE else 0 for code in range(256)])
    nbytes = item[c.scalar_type.astype(np.int64) & 255] * (last + 1)
    odd = (c.strides_count != c.sizes_count) & (c.strides_count > 0)
    kept = np.flatnonzero((numel > 0) & (nbytes > 0) & (c.offset >= 0) & ~odd)
    starts: Ints = c.offset[kept]
    ends = np.minimum(starts.astype(np.float64) + nbytes[kept], _FAR).astype(np.int64)
    return starts, ends


def decode(buffer: Buffer, *, file: str = "") -> DebugBuffer:
    """Return the bytes as a debug buffer; any bytes can be one."""
    return DebugBuffer(memoryview(buffer).toreadonly(), file)


def encode(buffer: DebugBuffer) -> bytes:
    """Return the bytes of the file."""
    return bytes(buffer.data)


def tensor_extents(dump: ETDump) -> tuple[Ints, Ints]:
    """Return where each tensor that a trace logs begins and ends in its debug buffer.

    Shapes: int64[n], int64[n]
    """
    seen: set[int] = set()
    starts: list[Ints] = []
    ends: list[Ints] = []
    for run in dump.run_data:
        if id(run.events.store) not in seen:
            seen.add(id(run.events.store))
            first, last = _store_extents(run.events.values)
            starts.append(first)
            ends.append(last)
    nothing = np.zeros(0, dtype=np.int64)
    return np.concatenate([nothing, *starts]), np.concatenate([nothing, *ends])
