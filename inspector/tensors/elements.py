"""The elements of a tensor where they are stored, read piece by piece and never copied whole.

An ordinal counts the elements in the order of memory; a place is an index for each dimension.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from schema.dtypes.scalar_type import numel, scalar_type, to_float64

Array = NDArray[Any]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
PIECE = 1 << 20  # elements at a time: 8 MiB as float64


class Elements(ABC):
    """Elements of a tensor.

    Attributes:
        sizes: shape
        order: dimensions from the outermost in memory to the innermost
    """

    def __init__(self, sizes: tuple[int, ...], order: tuple[int, ...]) -> None:
        self.sizes = sizes
        self.order = order

    @property
    def count(self) -> int:
        """Return the number of elements."""
        return numel(self.sizes)

    @abstractmethod
    def piece(self, start: int, stop: int) -> Array:
        """Return the values of ordinals from start to before stop."""

    @abstractmethod
    def at(self, places: Ints) -> Array:
        """Return the values at places.

        Shapes: places int64[n, rank]
        """

    def pieces(self, size: int = PIECE) -> Iterator[tuple[int, Array]]:
        """Yield (first ordinal, values) of consecutive pieces."""
        for start in range(0, self.count, size):
            yield start, self.piece(start, min(start + size, self.count))

    def places(self, ordinals: Ints) -> Ints:
        """Return the places of ordinals.

        Shapes: int64[n] -> int64[n, rank]
        """
        found = np.empty((len(ordinals), len(self.sizes)), np.int64)
        rest = ordinals
        for dimension in reversed(self.order):
            rest, found[:, dimension] = np.divmod(rest, max(self.sizes[dimension], 1))
        return found


class StoredElements(Elements):
    """Elements in a buffer, at strides."""

    def __init__(
        self,
        data: memoryview,
        code: int,
        sizes: tuple[int, ...],
        strides: tuple[int, ...],
    ) -> None:
        """Store where the elements are.

        Args:
            data: from the first to the last element
            code: scalar type
            sizes: shape
            strides: in elements

        Raises: ValueError if the buffer is too short or numpy has no such values
        """
        ranked = sorted(range(len(sizes)), key=lambda one: (-strides[one], one))
        super().__init__(sizes, tuple(ranked))
        item = scalar_type(code).item_bytes
        extent = 1 + sum((size - 1) * step for size, step in zip(sizes, strides, strict=True))
        needed = item * extent if self.count else 0
        if not item or to_float64(np.zeros(item, np.uint8), code) is None:
            raise ValueError(f"{scalar_type(code).name} has no values to show")
        if len(data) < needed:
            raise ValueError(f"{len(data):,} bytes, and the shape has {needed:,}")
        self._code, self._item = code, item
        self._raw = np.reshape(np.frombuffer(data, np.uint8, needed), (-1, item))
        self._strides = np.array(strides, np.int64)
        self._dense = extent == self.count

    @override
    def piece(self, start: int, stop: int) -> Array:
        if not self._dense:
            return self.at(self.places(np.arange(start, stop)))
        return self._values(self._raw[start:stop])

    @override
    def at(self, places: Ints) -> Array:
        return self._values(self._raw[places @ self._strides])

    def _values(self, raw: NDArray[np.uint8]) -> Array:
        found = to_float64(np.ravel(raw), self._code)
        assert found is not None  # checked in the beginning
        return found


class NibbleElements(Elements):
    """Unsigned integers of 4 bits, two to a byte, the first in its lower half."""

    def __init__(self, data: memoryview, sizes: tuple[int, ...]) -> None:
        """Store where the elements are.

        Raises: ValueError if the buffer is too short
        """
        super().__init__(sizes, tuple(range(len(sizes))))
        if 2 * len(data) < self.count:
            raise ValueError(f"{len(data):,} bytes, and the shape has {self.count:,} halves of one")
        self._raw = np.frombuffer(data, np.uint8)
        self._strides = np.array(row_major(sizes), np.int64)

    @override
    def piece(self, start: int, stop: int) -> Array:
        return self._values(np.arange(start, stop))

    @override
    def at(self, places: Ints) -> Array:
        return self._values(places @ self._strides)

    def _values(self, ordinals: Ints) -> NDArray[np.uint8]:
        pairs = self._raw[ordinals >> 1]
        return np.where(ordinals & 1, pairs >> 4, pairs & 0xF)


class RealElements(Elements):
    """Quantized integers as the real values they stand for."""

    def __init__(self, stored: Elements, scale: Floats, zero: Floats, run: int) -> None:
        """Store the parameters.

        Args:
            stored: the integers, row-major
            scale: of each channel or group
            zero: zero point of each, or one for all
            run: consecutive elements that share a scale
        """
        super().__init__(stored.sizes, stored.order)
        self._stored, self._scale, self._zero, self._run = stored, scale, zero, run
        self._strides = np.array(row_major(stored.sizes), np.int64)

    @override
    def piece(self, start: int, stop: int) -> Array:
        return self._real(self._stored.piece(start, stop), np.arange(start, stop))

    @override
    def at(self, places: Ints) -> Array:
        return self._real(self._stored.at(places), places @ self._strides)

    def _real(self, integers: Array, ordinals: Ints) -> Floats:
        which = ordinals // self._run % len(self._scale)
        zero = self._zero[which] if len(self._zero) > 1 else self._zero
        return (integers.astype(np.float64) - zero) * self._scale[which]


class DifferenceElements(Elements):
    """Elements of one tensor less those of another of the same shape."""

    def __init__(self, one: Elements, other: Elements) -> None:
        """Store both.

        Raises: ValueError if the shapes differ
        """
        super().__init__(one.sizes, one.order)
        if one.sizes != other.sizes:
            raise ValueError(f"{list(one.sizes)} is not the shape {list(other.sizes)}")
        self.one, self.other = one, other

    @override
    def piece(self, start: int, stop: int) -> Array:
        if self.one.order == self.other.order:
            return _apart(self.one.piece(start, stop), self.other.piece(start, stop))
        return self.at(self.places(np.arange(start, stop)))

    @override
    def at(self, places: Ints) -> Array:
        return _apart(self.one.at(places), self.other.at(places))


def _apart(one: Array, other: Array) -> Floats:
    """Return one less other; equal infinities differ by nothing, integers are exact."""
    with np.errstate(invalid="ignore", over="ignore"):
        found = one.astype(np.float64) - other.astype(np.float64)
        if one.dtype.kind in "iu" and other.dtype.kind in "iu":
            exact = one.astype(np.int64) - other.astype(np.int64)  # modulo 2**64
            return np.where(np.abs(found) < 2.0**62, exact, found)
    found[one == other] = 0.0
    return found


def row_major(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a dense tensor whose last dimension is innermost."""
    return tuple(math.prod(sizes[place + 1 :]) for place in range(len(sizes)))


def strides_of(sizes: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a dense tensor by its dimensions from the outermost in memory.

    Raises: ValueError if the order is not one of its dimensions
    """
    order = order or tuple(range(len(sizes)))
    if sorted(order) != list(range(len(sizes))):
        raise ValueError(f"the order {list(order)} is not one of {len(sizes)} dimensions")
    steps = row_major(tuple(sizes[dimension] for dimension in order))
    return tuple(steps[order.index(dimension)] for dimension in range(len(sizes)))
