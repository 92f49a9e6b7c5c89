"""Magnitude of a column, which determines unit and decimals."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from inspector.units import as_number


def magnitude(values: Iterable[object] | NDArray[Any]) -> float:
    """Return the largest absolute finite number among values, or 0.0."""
    if isinstance(values, np.ndarray):
        array = cast("NDArray[Any]", values)
        if array.dtype.kind in "iuf":
            return _array_magnitude(array)
    numbers = (abs(number) for value in values if (number := as_number(value)) is not None)
    return max(numbers, default=0.0)


def has_size(values: Iterable[object] | NDArray[Any]) -> bool:
    """Return whether a finite number among values is not 0; ends at the first of them."""
    if isinstance(values, np.ndarray):
        array = cast("NDArray[Any]", values)
        if array.dtype.kind in "iuf":
            return _array_magnitude(array) > 0.0
    return any(as_number(value) for value in values)


def has_numbers(values: Iterable[object] | NDArray[Any]) -> bool:
    """Return whether there is a finite number among values."""
    if isinstance(values, np.ndarray):
        array = cast("NDArray[Any]", values)
        if array.dtype.kind in "iuf":
            return bool(np.isfinite(array).any())
    return any(as_number(value) is not None for value in values)


def _array_magnitude(array: NDArray[Any]) -> float:
    if array.dtype.kind == "f":
        array = array[np.isfinite(array)]
    if array.size == 0:
        return 0.0
    return max(abs(float(array.max())), abs(float(array.min())))
