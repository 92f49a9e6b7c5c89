"""Distances between two tensors: full precision, NaN and infinity counted, without rounding."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Pieces = Callable[[], Iterator[tuple[NDArray[Any], NDArray[Any]]]]
PIECE = 1 << 15  # elements that are converted at a time

# dtype -> bits of its fraction and its smallest exponent
_FLOATS = {
    "float64": (52, -1022),
    "float32": (23, -126),
    "float16": (10, -14),
    "bfloat16": (7, -126),
    "float8_e4m3fn": (3, -6),
    "float8_e4m3fnuz": (3, -7),
    "float8_e5m2": (2, -14),
    "float8_e5m2fnuz": (2, -15),
}
# ErrorSums in another order differ by some units in the last place; a wrong kernel by far more.
_RELATIVE = {
    "float64": 1e-9,
    "float32": 1e-4,
    "float16": 5e-3,
    "bfloat16": 4e-2,
    "float8_e4m3fn": 0.25,
    "float8_e4m3fnuz": 0.25,
    "float8_e5m2": 0.5,
    "float8_e5m2fnuz": 0.5,
    "quantized": 0.02,
}


@dataclass(frozen=True, slots=True)
class Tolerance:
    """When an element counts as different.

    Attributes:
        relative: share of the largest magnitude of the reference; None for one by dtype
        absolute: added to it
    """

    relative: float | None = None
    absolute: float = 0.0

    def bound(self, largest: float, dtype: str) -> float:
        """Return the largest difference within the tolerance."""
        share = self.relative if self.relative is not None else _RELATIVE.get(dtype, 0.0)
        return self.absolute + share * largest


def coarser(one: str, other: str) -> str:
    """Return the dtype with the larger tolerance, the first where one of them has none."""
    known = {one, other} <= _RELATIVE.keys()
    return max(one, other, key=_RELATIVE.__getitem__) if known else one


_NEAR_ZERO = 1e-3  # of the root mean square
_MOST_ULP = 2.0**53  # of a relative difference of 1, in float64


@dataclass(frozen=True, slots=True)
class Metrics:
    """Distance of a tensor from its reference.

    Places where either is not finite are left out of all but the counts and
    ``out_of_tolerance``; there, equal infinities and two NaN agree.

    Units: snr_db decibels, infinite without error; ulp units in the last place of the
        reference's dtype; out_of_tolerance a share of the elements

    Attributes:
        elements: number of elements
        max_abs: largest absolute difference
        max_rel: largest difference relative to the reference, where that is not zero
        mse: mean squared difference
        l1: sum of absolute differences
        snr_db: signal to noise; None where the reference is zero throughout, or where no two
            elements are finite and some differ
        cosine: of the angle between the two; None where one is zero throughout
        ulp: largest difference in units of the last place; None for integers
        out_of_tolerance: share of elements further apart than the tolerance
        nan: elements that are not a number
        nan_reference: those of the reference
        inf: elements that are infinite
        inf_reference: those of the reference
    """

    elements: int
    max_abs: float
    max_rel: float
    mse: float
    l1: float
    snr_db: float | None
    cosine: float | None
    ulp: float | None
    out_of_tolerance: float
    nan: int
    nan_reference: int
    inf: int
    inf_reference: int

    @property
    def noise(self) -> float:
        """Return the root mean square of the difference beside that of the reference."""
        if self.snr_db is None:
            return math.inf if self.mse else 0.0
        return 10 ** (-self.snr_db / 20)

    @property
    def odd(self) -> int:
        """Return how many elements are NaN or infinite in one of the two only, at least."""
        return abs(self.nan - self.nan_reference) + abs(self.inf - self.inf_reference)

    @property
    def largest(self) -> float | None:
        """Return the largest absolute difference, None where none of the pairs is finite."""
        unknown = self.odd and self.snr_db is None and not self.max_abs
        return None if unknown else self.max_abs

    def words(self, digits: int = 4) -> str:
        """Return how far apart the two are, and which elements are finite in one alone."""
        size = self.largest
        odd = [
            f", with {one:,} {kind} elements where {before:,} are expected"
            for kind, one, before in (
                ("infinite", self.inf, self.inf_reference),
                ("NaN", self.nan, self.nan_reference),
            )
            if one != before
        ]
        off = "off by itself" if size is None else f"off by {size:.{digits}g} by itself"
        return "".join((off, *odd))

    @property
    def near_zero(self) -> bool:
        """Return whether the largest relative error is of an element near zero.

        There a small error is many units of the last place: the element is a thousandth of the root
        mean square of the reference at most, as the error that it has and the largest show.
        """
        if not self.ulp or self.snr_db is None or not math.isfinite(self.snr_db):
            return False
        size = math.sqrt(self.mse) * 10 ** (self.snr_db / 20)
        is_zero = self.ulp > self.max_rel * _MOST_ULP  # max_rel leaves zeros out
        return is_zero or self.max_abs <= _NEAR_ZERO * size * self.max_rel


@dataclass(frozen=True, slots=True)
class ErrorSums:
    """ErrorSums over the elements of tensors and their references; those of several tensors add up.

    Attributes:
        elements: number of elements
        finite: of them where both are finite; the other sums are of these
        wrong: elements further apart than the tolerance
        noise: squared differences
        signal: squared references
        length: absolute differences
        other: squared values
        product: of values and references
        max_abs: largest absolute difference
        max_rel: largest relative one
        ulp: largest one in units of the last place
        nan: elements that are not a number
        nan_reference: those of the reference
        inf: elements that are infinite
        inf_reference: those of the reference
    """

    elements: int = 0
    finite: int = 0
    wrong: int = 0
    noise: float = 0.0
    signal: float = 0.0
    length: float = 0.0
    other: float = 0.0
    product: float = 0.0
    max_abs: float = 0.0
    max_rel: float = 0.0
    ulp: float = 0.0
    nan: int = 0
    nan_reference: int = 0
    inf: int = 0
    inf_reference: int = 0

    def __add__(self, more: ErrorSums) -> ErrorSums:
        """Return the sums over the elements of both; of largest values the larger."""
        pairs = ((one.name, getattr(self, one.name), getattr(more, one.name)) for one in _SUMS)
        return ErrorSums(*(max(a, b) if name in _LARGEST else a + b for name, a, b in pairs))

    @property
    def is_unknown(self) -> bool:
        """Return whether no two elements could be compared: all that differ are not finite."""
        return self.finite == 0 and self.wrong > 0

    def metrics(self, dtype: str) -> Metrics:
        """Return the distance of these sums.

        Args:
            dtype: of the reference
        """
        return Metrics(
            elements=self.elements,
            max_abs=self.max_abs,
            max_rel=self.max_rel,
            mse=self.noise / max(self.finite, 1),
            l1=self.length,
            snr_db=None if self.is_unknown else _decibels(self.signal, self.noise),
            cosine=_cosine(self.signal, self.other, self.product),
            ulp=self.ulp if dtype in _FLOATS else None,
            out_of_tolerance=self.wrong / max(self.elements, 1),
            nan=self.nan,
            nan_reference=self.nan_reference,
            inf=self.inf,
            inf_reference=self.inf_reference,
        )


_SUMS = fields(ErrorSums)
_LARGEST = ("max_abs", "max_rel", "ulp")


def measure(
    reference: NDArray[Any],
    found: NDArray[Any],
    dtype: str,
    allowed: Tolerance,
    kind: str = "",
) -> Metrics:
    """Return the distance of a tensor from its reference.

    Args:
        reference: values
        found: values of the same shape
        dtype: dtype of the reference
        allowed: when an element counts as different
        kind: key of the tolerance; the dtype if empty
    """
    a, b = (np.ascontiguousarray(each).ravel() for each in (reference, found))
    ends = [(at, at + PIECE) for at in range(0, a.size, PIECE)]
    distance = Distance(dtype, allowed, kind)
    distance.add(lambda: ((a[start:end], b[start:end]) for start, end in ends))
    return distance.metrics()


class Distance:
    """Accumulates distances of tensors, a piece at a time, so that no whole tensor is converted.

    Args:
        dtype: dtype of the reference
        allowed: when an element counts as different
        kind: key of the tolerance; the dtype if empty
    """

    def __init__(self, dtype: str, allowed: Tolerance, kind: str = "") -> None:
        self._dtype, self._kind, self._allowed = dtype, kind or dtype, allowed
        self._elements = self._finite = self._wrong = 0
        self._special = np.zeros(4, np.int64)  # NaN and infinity, found and reference
        self._largest = np.zeros(3)  # absolute, relative, units of the last place
        self._sums = np.zeros(5)  # noise, signal, size of the error, of both, product

    def add(self, pieces: Pieces, quantum: float = 0.0) -> None:
        """Add a tensor; the tolerance is a share of its own largest magnitude.

        Args:
            pieces: gives the pieces of reference and found, twice
            quantum: scale of quantized values, allowed in addition; 0 for none
        """
        largest = 0.0
        for reference, found in pieces():
            a, b = reference.astype(np.float64), found.astype(np.float64)
            size = np.abs(a[np.isfinite(a) & np.isfinite(b)])
            largest = max(largest, float(size.max(initial=0.0)))
        # Half of it times a sum in another order may round to the next one: 2 ** -20 is float32's.
        bound = self._allowed.bound(largest, self._kind) + quantum * (1 + 2**-20)
        for reference, found in pieces():
            self._add(reference, found, bound)

    def _add(self, reference: NDArray[Any], found: NDArray[Any], bound: float) -> None:
        exact = reference.dtype.kind in "biu" and found.dtype.kind in "biu"
        a, b = reference.astype(np.float64), found.astype(np.float64)
        finite = np.isfinite(a) & np.isfinite(b)
        whole = bool(finite.all())
        x, y = (a, b) if whole else (a[finite], b[finite])
        with np.errstate(over="ignore", invalid="ignore"):
            error = np.abs(y - x)
            noise, signal, other, product = (
                float(np.einsum("i,i", one, two))  # np.dot wakes threads, which costs more
                for one, two in ((error, error), (x, x), (y, y), (x, y))
            )
        size = np.abs(x)
        wrong = int(np.count_nonzero(error > bound))
        if exact and not bound:  # differences of large integers are lost in float64
            wrong = max(wrong, int(np.count_nonzero(np.not_equal(reference, found))))
        self._wrong += wrong + (0 if whole else _mismatches(a, b, finite))
        self._elements += int(a.size)
        self._finite += len(x)
        self._sums += (noise, signal, float(error.sum()), other, product)
        found_largest = float(error.max(initial=0.0)), _relative(error, size)
        ulp = _ulp(error, size, self._dtype) or 0.0
        self._largest = np.maximum(self._largest, (*found_largest, ulp))
        if not whole:
            counts = [np.isnan(b).sum(), np.isnan(a).sum(), np.isinf(b).sum(), np.isinf(a).sum()]
            self._special += np.array(counts, np.int64)

    def sums(self) -> ErrorSums:
        """Return the accumulated sums, from which ``ErrorSums.metrics`` computes distances."""
        noise, signal, length, other, product = self._sums.tolist()
        largest: list[float] = self._largest.tolist()
        special: list[int] = self._special.tolist()
        counts = (self._elements, self._finite, self._wrong)
        sums = noise, signal, length, other, product
        return ErrorSums(*counts, *sums, largest[0], largest[1], largest[2], *special)

    def metrics(self) -> Metrics:
        """Return the accumulated distances."""
        return self.sums().metrics(self._dtype)


def _mismatches(a: Floats, b: Floats, finite: NDArray[np.bool_]) -> int:
    """Return the number of elements that are non-finite in both and differ."""
    rest = ~finite
    same = (a[rest] == b[rest]) | (np.isnan(a[rest]) & np.isnan(b[rest]))
    return int(np.count_nonzero(~same))


def _relative(error: Floats, size: Floats) -> float:
    there = size > 0
    return float((error[there] / size[there]).max(initial=0.0)) if there.any() else 0.0


def _decibels(signal: float, noise: float) -> float | None:
    if noise == 0.0:
        return math.inf
    return 10 * math.log10(signal / noise) if signal > 0 else None


def _cosine(signal: float, other: float, product: float) -> float | None:
    length = math.sqrt(signal) * math.sqrt(other)
    return product / length if 0 < length < math.inf else None


def is_floating(dtype: str) -> bool:
    """Return whether values are quantities, not indices, classes or truth values."""
    return dtype in _FLOATS or dtype.startswith("complex")


def _ulp(error: Floats, size: Floats, dtype: str) -> float | None:
    known = _FLOATS.get(dtype)
    if known is None:
        return None
    bits, smallest = known
    if not len(error):
        return 0.0
    exponent = np.maximum(np.frexp(size)[1] - 1, smallest)
    return float((error / np.ldexp(1.0, exponent - bits)).max(initial=0.0))
