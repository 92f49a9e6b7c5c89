"""A summary of the elements of a tensor: statistics, positions, histogram, share at the limits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.numerics.tensor_statistics import Facts, RunningMoments
from inspector.tensors.elements import Array, Elements
from inspector.tensors.sources import NIBBLES, TensorSource
from schema.dtypes.scalar_type import widened

BINS = 64
_MOST = float(np.finfo(np.float64).max)
_MOST_PLACES = 20  # positions of NaN, infinity and the extremes that are listed
# dtypes of few values, where values at the ends of the range were most likely clipped
_ENDS = {
    **dict.fromkeys(("int8", "qint8", "qcint8", "qdint8"), (-128, 127)),
    **dict.fromkeys(("uint8", "quint8"), (0, 255)),
    **dict.fromkeys(NIBBLES, (0, 15)),
}
Check = Callable[[], object]


@dataclass(frozen=True, slots=True)
class ElementPlace:
    """An element by its position.

    Attributes:
        place: index for each dimension
        value: its value
    """

    place: tuple[int, ...]
    value: float


@dataclass(frozen=True, slots=True)
class ClippedRange:
    """The range of values that a quantized tensor can have, and how many are at its ends.

    Attributes:
        low: smallest stored integer
        high: largest stored integer
        at_low: elements with the smallest
        at_high: elements with the largest
        share: of the elements that have either
        usual: share that has either without any clipping
        real_low: real value of the smallest, of the widest channel; None without scales
        real_high: real value of the largest
    """

    low: int
    high: int
    at_low: int
    at_high: int
    share: float
    usual: float
    real_low: float | None = None
    real_high: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class TensorSummary:
    """Statistics of a tensor.

    Attributes:
        facts: count, min, mean, max, std, nan, inf, zero; None for values without order
        counts: elements per bin
        edges: ends of the bins
        lowest: the first elements with the smallest value
        highest: the first with the largest
        special: the first elements that are NaN or infinite
        clipped: range of a quantized tensor, None for others

    Shapes: counts int64[BINS], edges float64[BINS + 1]; both empty without a finite element
    """

    facts: Facts | None
    counts: NDArray[np.int64]
    edges: NDArray[np.float64]
    lowest: tuple[ElementPlace, ...] = ()
    highest: tuple[ElementPlace, ...] = ()
    special: tuple[ElementPlace, ...] = ()
    clipped: ClippedRange | None = None


def _unchecked() -> None:
    """Never cancel."""


def summary_of(source: TensorSource, check: Check = _unchecked) -> TensorSummary:
    """Return the statistics of a tensor as stored; reads its elements twice.

    Args:
        source: the tensor
        check: called between pieces; raises to cancel

    Raises: ValueError with the reason if there are no elements; OSError
    """
    found = summary(source.elements(), check)
    ends = _ENDS.get(source.dtype)
    if ends is None or found.facts is None or not found.facts["count"]:
        return found
    return TensorSummary(
        found.facts,
        found.counts,
        found.edges,
        found.lowest,
        found.highest,
        found.special,
        _clipped(source, ends, check),
    )


def summary(elements: Elements, check: Check = _unchecked) -> TensorSummary:
    """Return the statistics of elements; reads them twice."""
    nothing = np.zeros(0, np.int64), np.zeros(0)
    moments, special = RunningMoments(), list[ElementPlace]()
    for start, piece in elements.pieces():
        check()
        if piece.dtype.kind not in "biuf":
            return TensorSummary(None, *nothing)
        moments.add(piece)
        if len(special) < _MOST_PLACES and piece.dtype.kind == "f":
            there = np.flatnonzero(~np.isfinite(piece))[: _MOST_PLACES - len(special)]
            special += _placed(elements, start, there, piece)
    facts = moments.facts()
    low, high = facts["min"], facts["max"]
    if low is None or high is None:
        return TensorSummary(facts, *nothing, special=tuple(special))
    edges = bin_edges(float(low), float(high))
    counts = np.zeros(BINS, np.int64)
    lowest, highest = list[ElementPlace](), list[ElementPlace]()
    for start, piece in elements.pieces():
        check()
        counts += _counted(piece, edges)
        for wanted, into in ((low, lowest), (high, highest)):
            if len(into) < _MOST_PLACES:
                there = np.flatnonzero(piece == wanted)[: _MOST_PLACES - len(into)]
                into += _placed(elements, start, there, piece)
    return TensorSummary(facts, counts, edges, tuple(lowest), tuple(highest), tuple(special))


def bin_edges(low: float, high: float) -> NDArray[np.float64]:
    """Return the ends of the bins from the smallest to the largest value.

    Values that lie too close for that many numbers between them have wider bins.
    """
    if high <= low:
        low, high = low - 0.5, high + 0.5
    apart = 2 * BINS * math.ulp(max(abs(low), abs(high)))
    if high - low < apart:
        low, high = max(low - apart, -_MOST), min(high + apart, _MOST)
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.linspace(low, high, BINS + 1)
    if np.isfinite(found).all():
        return found
    return np.linspace(low / 4, high / 4, BINS + 1) * 4  # float64 near its end


def _counted(piece: Array, edges: NDArray[np.float64]) -> NDArray[np.int64]:
    wide = widened(piece)
    wide = wide[np.isfinite(wide)]
    scale = 2.0 ** -np.frexp(max(abs(edges[0]), abs(edges[-1])))[1]  # no overflow inside numpy
    found, _ = np.histogram(wide * scale, bins=BINS, range=(edges[0] * scale, edges[-1] * scale))
    return found.astype(np.int64)


def _placed(
    elements: Elements, start: int, there: NDArray[np.int64], piece: Array
) -> list[ElementPlace]:
    places = elements.places(there + start)
    return [
        ElementPlace(tuple(int(one) for one in place), piece[at].item())
        for place, at in zip(places, there, strict=True)
    ]


def _clipped(source: TensorSource, ends: tuple[int, int], check: Check) -> ClippedRange:
    at_low = at_high = 0
    elements = source.elements()
    for _, piece in elements.pieces():
        check()
        at_low += int(np.count_nonzero(piece == ends[0]))
        at_high += int(np.count_nonzero(piece == ends[1]))
    count = max(elements.count, 1)
    share = (at_low + at_high) / count
    scaling = source.scaling()
    # a scale is chosen by its smallest and largest element, which are then at the limits, with
    # those that round to them
    scales = 1 if scaling is None else len(scaling[0])
    usual = 2 * scales / count + 2 / (ends[1] - ends[0] + 1)
    if scaling is None:
        return ClippedRange(*ends, at_low, at_high, share, usual)
    scale, zero, _ = scaling
    real = [(end - zero) * scale for end in ends]
    return ClippedRange(
        *ends, at_low, at_high, share, usual, float(np.min(real[0])), float(np.max(real[1]))
    )
