"""The content of a torch.save file without executing it: tensors, and names of the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from schema.dtypes.scalar_type import numel, scalar_type, to_float64


@dataclass(frozen=True, slots=True)
class Opaque:
    """An object of the pickle that was neither imported nor built.

    Attributes:
        name: dotted name of its class or factory
    """

    name: str


@dataclass(frozen=True, slots=True)
class TensorData:
    """A saved tensor: its layout and a view of its bytes.

    Attributes:
        scalar_type: scalar type code
        sizes: extent of each dimension
        strides: elements between neighbours in each dimension
        storage_offset: first element within the storage
        storage_key: name of the storage, shared by tensors that alias; empty without storage
        data: bytes from the first to the last element, None if the file lacks them
        big_endian: whether the elements are in big-endian order
        requires_grad: as saved
        is_parameter: whether it was saved as a parameter
    """

    scalar_type: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    storage_offset: int = 0
    storage_key: str = ""
    data: memoryview | None = None
    big_endian: bool = False
    requires_grad: bool = False
    is_parameter: bool = False

    @property
    def nbytes(self) -> int:
        """Return the bytes of all elements, each counted once for each index."""
        return numel(self.sizes) * scalar_type(self.scalar_type).item_bytes

    @property
    def dtype(self) -> str:
        """Return the name of the dtype."""
        return scalar_type(self.scalar_type).name

    @property
    def is_contiguous(self) -> bool:
        """Return whether the elements follow each other in row-major order."""
        expected = 1
        for size, stride in zip(reversed(self.sizes), reversed(self.strides), strict=True):
            if size != 1 and stride != expected:
                return numel(self.sizes) == 0
            expected *= size
        return True

    def to_numpy(self) -> npt.NDArray[Any] | None:
        """Return the elements, a view if numpy has the type; bf16 and fp8 become float32.

        None if the bytes are missing or the type cannot be converted.

        Shapes: result has ``sizes``; read-only
        """
        kind = scalar_type(self.scalar_type)
        if self.data is None or not kind.item_bytes:
            return None
        raw = np.frombuffer(self.data, np.uint8)
        if self.big_endian and kind.item_bytes > 1:
            raw = _swapped(self.data, kind.item_bytes, kind.name.startswith("complex"))
        flat = to_float64(raw, self.scalar_type)
        if flat is None:
            return None
        steps = [stride * flat.itemsize for stride in self.strides]
        return np.lib.stride_tricks.as_strided(flat, self.sizes, steps, writeable=False)


def span_elements(sizes: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Return the number of storage elements from the first to the last, both included."""
    if not all(sizes):
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))


def _swapped(data: memoryview, item: int, is_complex: bool) -> npt.NDArray[np.uint8]:
    word = item // 2 if is_complex else item
    return np.frombuffer(np.frombuffer(data, f">u{word}").astype(f"<u{word}"), np.uint8)
