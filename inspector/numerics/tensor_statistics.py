"""Statistics of the elements of a tensor, computed piece by piece to bound memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schema.dtypes.scalar_type import scalar_type, to_float64, widened

Array = NDArray[Any]
Facts = dict[str, float | int | None]
_PIECE = 1 << 22  # elements
_LARGE = 2.0**480  # of a larger element the square may be none
_SMALLER = 2.0**-600


@dataclass(slots=True)
class RunningMoments:
    """Sums over elements from which their statistics follow."""

    count: int = 0
    finite: int = 0
    mean: float = 0.0
    squares: float = 0.0  # of differences from the mean
    scale: float = 1.0  # of both: squares of float64 near its end are none
    low: float = np.inf
    high: float = -np.inf
    nan: int = 0
    inf: int = 0
    zero: int = 0

    def add(self, piece: Array) -> None:
        """Add a piece (Chan's parallel variance)."""
        values = widened(piece) if piece.dtype.kind in "bf" else piece
        self.count += len(values)
        if values.dtype.kind == "f":
            self.nan += int(np.isnan(values).sum())
            self.inf += int(np.isinf(values).sum())
            values = values[np.isfinite(values)]
        self.zero += int((values == 0).sum())
        if not len(values):
            return
        self.low = min(self.low, values.min().item())  # of integers exact
        self.high = max(self.high, values.max().item())
        if self.scale == 1.0 and max(-self.low, self.high) > _LARGE:
            self.scale = _SMALLER
            self.mean *= _SMALLER
            self.squares *= _SMALLER * _SMALLER
        if self.scale != 1.0:
            values = values * self.scale
        mean = float(values.mean(dtype=np.float64))
        squares = float(values.var(dtype=np.float64)) * len(values)
        gap, total = mean - self.mean, self.finite + len(values)
        self.squares += squares + gap * gap * self.finite * len(values) / total
        self.mean += gap * len(values) / total
        self.finite = total

    def facts(self) -> Facts:
        """Return the statistics; those without a finite element are None."""
        some = self.finite > 0
        mean = self.mean / self.scale
        if self.scale != 1.0:
            mean = min(max(mean, self.low), self.high)  # rounded, it may be beyond
        return {
            "count": self.count,
            "min": self.low if some else None,
            "mean": mean if some else None,
            "max": self.high if some else None,
            "std": math.sqrt(self.squares / self.finite) / self.scale if some else None,
            "nan": self.nan,
            "inf": self.inf,
            "zero": self.zero,
        }


def data_statistics(data: memoryview, code: int) -> Facts | None:
    """Return the statistics of stored elements; None for a dtype without order or real values."""
    item = scalar_type(code).item_bytes
    if not has_numbers(code) or len(data) % item:
        return None
    return _statistics(_pieces(data, code, item * _PIECE))


def has_numbers(code: int) -> bool:
    """Return whether stored elements of a type are real values."""
    item = scalar_type(code).item_bytes
    return item > 0 and to_float64(np.zeros(item, dtype=np.uint8), code) is not None


def _pieces(data: memoryview, code: int, step: int) -> Iterator[Array]:
    for at in range(0, len(data), step):
        piece = to_float64(np.frombuffer(data[at : at + step], dtype=np.uint8), code)
        if piece is not None:
            yield piece


def statistics(array: Array | None) -> Facts | None:
    """Return count, min, mean, max, standard deviation and the counts of NaN, infinity and zero.

    None without an array, or for a type without order (complex values).
    """
    return _statistics([np.ravel(array)]) if array is not None else None


def _statistics(pieces: Iterable[Array]) -> Facts | None:
    sums = RunningMoments()
    for piece in pieces:
        if piece.dtype.kind not in "biuf":
            return None
        sums.add(piece)
    return sums.facts()
