"""Sorting and filtering a table by an index array; the table itself never changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from inspector.tables.filter import Filter, FilterTerm, matches
from inspector.tables.table import Categories, Column, Table

Order = NDArray[np.int64]
Mask = NDArray[np.bool_]
_DIGIT_RUN = re.compile(r"\d+")
SAMPLE_ROWS = 200  # widths are fitted to so many: a table may have a million rows
_NATURAL_LIMIT = 50_000  # beyond that many different texts plain order is worth its speed


@dataclass(frozen=True, slots=True)
class SortKey:
    """One column to sort by.

    Attributes:
        column: index into the columns of the table
        descending: largest first; missing values come last either way
    """

    column: int
    descending: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Factors:
    """A text column as small integers.

    Attributes:
        codes: index into labels, one per row
        labels: the distinct strings as shown
        missing: which labels stand for a missing value
    """

    codes: NDArray[np.int64]
    labels: tuple[str, ...]
    missing: Mask


def factorise(column: Column) -> Factors:
    """Return the different strings of a column and which row has which."""
    if isinstance(column.values, Categories):
        codes = column.values.codes.astype(np.int64)
        values: Sequence[object] = column.values.labels
    else:
        seen: dict[Hashable, int] = {}
        number = seen.setdefault
        rows = cast("Iterable[Hashable]", _plain(column.values))
        codes = np.fromiter(
            (number(value, len(seen)) for value in rows), np.int64, len(column.values)
        )
        values = tuple(seen)
    missing = np.fromiter((value is None for value in values), np.bool_, len(values))
    return Factors(codes, tuple(map(column.text, values)), missing)


def _plain(values: Sequence[Any] | NDArray[Any]) -> Sequence[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else values


def text_ranks(labels: Sequence[str]) -> NDArray[np.int64]:
    """Return the rank of each string in natural order: conv_2 before conv_10, case ignored."""
    keys = [label.casefold() for label in labels]
    if len(keys) <= _NATURAL_LIMIT:
        keys = [_DIGIT_RUN.sub(_padded, key) for key in keys]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    ranks = np.empty(len(keys), np.int64)
    ranks[order] = np.arange(len(keys))
    return ranks


def _padded(match: re.Match[str]) -> str:
    return match[0].zfill(12)


class RowOrder:
    """The shown rows of a table and their order; caches data for repeated sorting.

    Attributes:
        table: to order
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self._factors: dict[int, Factors] = {}
        self._ranks: dict[int, NDArray[Any]] = {}
        self._samples: dict[int, frozenset[str]] = {}

    def prepare(self) -> RowOrder:
        """Precompute data for the first sort, filter and widths, in worker threads."""
        for index, column in enumerate(self.table.columns):
            self._sort_values(index)
            self.sample(index)
            if column.is_text:
                self.factors(index)
        return self

    def rows(self, sort: Sequence[SortKey] = (), requested: Filter | None = None) -> Order:
        """Return the shown rows in their order.

        Raises:
            TooSlowError: a regular expression took too long over the strings of the table
        """
        order = self._sorted(sort)
        if requested is None or not requested:
            return order
        return order[self.mask(requested)[order]]

    def mask(self, requested: Filter) -> Mask:
        """Return which rows a filter keeps."""
        keep = np.ones(self.table.length, np.bool_)
        for comparison in requested.comparisons:
            keep &= self._compare(comparison)
        for term in requested.terms:
            keep &= self._mentions(matches(term))
        return keep

    def factors(self, index: int) -> Factors:
        """Return a text column as codes and labels, computed once."""
        if index not in self._factors:
            self._factors[index] = factorise(self.table.columns[index])
        return self._factors[index]

    def sample(self, index: int) -> frozenset[str]:
        """Return the strings of a column in ``SAMPLE_ROWS`` rows or few more, to fit its width."""
        if index not in self._samples:
            rows = range(0, self.table.length, max(1, self.table.length // SAMPLE_ROWS))
            self._samples[index] = frozenset(map(self.table.columns[index].cell, rows))
        return self._samples[index]

    def _mentions(self, found: Callable[[Sequence[str]], Mask]) -> Mask:
        hit = np.zeros(self.table.length, np.bool_)
        for index, column in enumerate(self.table.columns):
            if column.is_text:
                factors = self.factors(index)
                hit |= found(factors.labels)[factors.codes]
        return hit

    def _compare(self, comparison: FilterTerm) -> Mask:
        index = comparison.column
        column = self.table.columns[index]
        numbers = as_floats(column.values)
        return comparison.keeps(numbers / comparison.scale(column))

    def _sorted(self, sort: Sequence[SortKey]) -> Order:
        keys = [self._sort_key(key) for key in sort]
        if not keys:
            return np.arange(self.table.length, dtype=np.int64)
        if len(keys) == 1:
            return np.argsort(keys[0], kind="stable").astype(np.int64, copy=False)
        return np.lexsort(tuple(reversed(keys))).astype(np.int64, copy=False)

    def _sort_key(self, key: SortKey) -> NDArray[Any]:
        values = self._sort_values(key.column)
        if not key.descending:
            return values
        # ~x turns the order of integers round without overflow; NaN stays last with -x
        return -values if values.dtype.kind == "f" else ~values

    def _sort_values(self, index: int) -> NDArray[Any]:
        if index not in self._ranks:
            column = self.table.columns[index]
            self._ranks[index] = self._rank(index, column)
        return self._ranks[index]

    def _rank(self, index: int, column: Column) -> NDArray[Any]:
        values = column.values if column.sort_by is None else column.sort_by
        if isinstance(values, np.ndarray):
            if values.dtype.kind in "iuf":
                return values
            if values.dtype.kind == "b":
                return values.astype(np.int8)
        if column.sort_by is not None or not column.is_text:
            return as_floats(values)
        factors = self.factors(index)
        ranks = text_ranks(factors.labels).astype(np.float64)
        ranks[factors.missing] = np.nan
        return ranks[factors.codes]


def as_floats(values: Sequence[Any] | NDArray[Any]) -> NDArray[np.float64]:
    """Return values as floating point numbers, NaN where missing."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iufb":
        return values.astype(np.float64)
    numbers = (np.nan if value is None else value for value in values)
    return np.fromiter(numbers, np.float64, len(values))
