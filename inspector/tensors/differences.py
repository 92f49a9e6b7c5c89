"""Two tensors of one shape beside each other: which pairs there are, and how far apart they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from inspector.numerics.metrics import Distance, Metrics, Tolerance
from inspector.tensors.elements import PIECE, Array, DifferenceElements, Elements
from inspector.tensors.sources import TensorSource

_PIECES = PIECE >> 2
Check = Callable[[], object]


def comparable(one: TensorSource, other: TensorSource) -> tuple[Elements, Elements]:
    """Return the elements of two tensors in the same terms.

    Integers of one dtype and the same quantization are compared as stored, others as the real
    values that they stand for.

    Raises: ValueError with the reason if there are none; OSError
    """
    alike = one.dtype == other.dtype and one.quantization == other.quantization
    if alike:
        return one.elements(), other.elements()
    pair = [
        side.real() if side.quantization is not None else side.elements() for side in (one, other)
    ]
    if pair[0] is None or pair[1] is None:
        raise ValueError("the scales of the quantized one are not among these files")
    return pair[0], pair[1]


def difference(one: TensorSource, other: TensorSource) -> DifferenceElements:
    """Return a tensor less another one.

    Raises: ValueError with the reason if they cannot be compared; OSError
    """
    return DifferenceElements(*comparable(one, other))


def distance(
    apart: DifferenceElements, dtype: str, check: Check, tolerance: Tolerance | None = None
) -> Metrics:
    """Return how far a tensor is from the other one, which is the reference.

    Args:
        apart: both
        dtype: of the reference
        check: called between pieces; raises to cancel
        tolerance: when an element counts as different; by default the usual one of the dtype
    """
    found = Distance(dtype, tolerance or Tolerance())

    def pieces() -> Iterator[tuple[Array, Array]]:
        same = apart.one.order == apart.other.order
        for start, one in apart.one.pieces(_PIECES):
            check()
            if same:
                other = apart.other.piece(start, start + len(one))
            else:
                places = _places(apart.one, start, len(one))
                other = apart.other.at(places)
            yield other, one

    found.add(pieces)
    return found.metrics()


def _places(elements: Elements, start: int, count: int) -> Array:
    return elements.places(np.arange(start, start + count))


def partners(one: TensorSource, others: tuple[TensorSource, ...]) -> tuple[TensorSource, ...]:
    """Return the tensors of one shape that a tensor may be compared with, its namesakes first."""
    found = [
        other
        for other in others
        if other.sizes == one.sizes and other is not one and not other.missing
    ]
    return tuple(
        sorted(found, key=lambda other: (other.name != one.name, other.origin != one.origin))
    )
