"""Group the rows of a table: a tree with one node a group and its rows below."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from inspector.tables.row_order import Order, RowOrder, as_floats
from inspector.tables.table import (
    Column,
    ColumnKind,
    Keys,
    Table,
    Total,
    full_bar,
    text_column,
)
from inspector.tables.tree import MOST_BELOW, TOP, Tree
from inspector.units import Formatter, as_number, below

_OWNERS = ("delegate",)  # columns
NO_OWNER = ("", "—")  # what text columns say where there is nothing to say


@dataclass(frozen=True, slots=True)
class GroupKey:
    """The key of a group in a grouped table.

    Attributes:
        label: common to its rows
    """

    label: str


class _GroupedKeys(Keys):
    """The groups, then the rows of a table."""

    def __init__(self, labels: Sequence[str], table: Table, shown: Order) -> None:
        self._groups = tuple(map(GroupKey, labels))
        self._table = table
        self._shown = shown
        self._find_row = table.finder()
        self._place = np.full(table.length, -1, np.int64)
        self._place[shown] = np.arange(len(shown)) + len(labels)

    @override
    def __len__(self) -> int:
        return len(self._groups) + len(self._shown)

    @override
    def at(self, row: int) -> Hashable:
        if row < len(self._groups):
            return self._groups[row]
        return self._table.key(int(self._shown[row - len(self._groups)]))

    @override
    def find(self, key: Hashable) -> int:
        if isinstance(key, GroupKey):
            return self._groups.index(key) if key in self._groups else -1
        row = self._find_row(key)
        return int(self._place[row]) if row >= 0 else -1


def group_rows(order: RowOrder, by: int, shown: Order) -> Tree:
    """Return the shown rows of a table grouped by a text column.

    Groups come in the order of their first row. The first column of the tree holds the labels of
    the groups and, below them, the first column of the table; what other columns show of a
    group follows from their ``total``. Grouped by owner, rows without one stand beside the groups.

    Args:
        order: the table, with what sorting it computed before
        by: index of a text column
        shown: rows to group, in their order
    """
    table = order.table
    factors = order.factors(by)
    loose = table.columns[by].title in _OWNERS
    blank = np.array([loose and one in NO_OWNER for one in factors.labels], np.bool_)
    grouped = ~blank[factors.codes[shown]]
    codes, start = np.unique(factors.codes[shown][grouped], return_index=True)
    codes = codes[np.argsort(start)]
    group_of = np.full(len(factors.labels), TOP, np.int64)
    group_of[codes] = np.arange(len(codes))
    groups = group_of[factors.codes[shown]]
    labels = [factors.labels[code] for code in cast("list[int]", codes.tolist())]
    counted = grouped & table.counted()[shown]
    counts = np.bincount(groups[counted], minlength=len(codes))
    sizes = np.bincount(groups[grouped], minlength=len(codes)).tolist()
    first = table.columns[0]
    names = [f"no {table.columns[by].title}" if one in NO_OWNER else one for one in labels]
    heads = [_head(*one) for one in zip(names, counts.tolist(), sizes, strict=True)]
    leaves = [first.cell(row) for row in shown.tolist()]
    name = replace(text_column(first.title, [*heads, *leaves], mono=first.mono), width=first.width)
    rest = [_with_totals(column, groups, len(codes), shown) for column in table.columns[1:]]
    parents = np.concatenate([np.full(len(codes), TOP, np.int64), groups])
    keys = _GroupedKeys(labels, table, shown)
    muted = _muted(table, len(codes), shown)
    rows = Table((name, *rest), len(parents), keys, muted, table.noun)
    return Tree(rows, parents)


def _head(label: str, count: int, size: int) -> str:
    """Return the label of a group with the number of its rows that count, if it has any."""
    note = "; a filter lists them" if size > MOST_BELOW else ""
    return f"{label}  ({count:,}{note})" if count else label


def _muted(table: Table, groups: int, shown: Order) -> NDArray[np.bool_] | None:
    if table.muted is None:
        return None
    return np.concatenate([np.zeros(groups, np.bool_), table.muted[shown]])


def _with_totals(column: Column, groups: NDArray[np.int64], count: int, shown: Order) -> Column:
    values = column.values
    least: NDArray[np.float64] | None = None
    if column.kind in (ColumnKind.NUMBER, ColumnKind.SHARE):
        numbers = as_floats(values)[shown]
        totals, bounds = _bounded_totals(column, groups, count, shown)
        both: Sequence[Any] | NDArray[Any] = np.concatenate([totals, numbers])
        least = None if column.least is None else np.concatenate([bounds, column.least[shown]])
    else:
        cells = [values[row] for row in shown.tolist()]
        both = [*_common(column, cells, groups, count), *cells]
    text = _blank_if_missing(column)
    full = full_bar(both) if column.kind is ColumnKind.SHARE else column.full
    parts = None  # rows have other numbers here
    return replace(
        column, values=both, text=text, sort_by=None, full=full, least=least, parts=parts
    )


def _bounded_totals(
    column: Column, groups: NDArray[np.int64], count: int, shown: Order
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the totals of groups, and what those below one step of a clock are less than."""
    weights = _weights(column, groups, count, shown)
    totals = _totals(column.total, as_floats(column.values)[shown] * weights, groups, count)
    if column.least is None or column.total is not Total.SUM:
        return totals, np.zeros(count)
    steps = column.least[shown] * weights
    largest = _totals(Total.MAX, steps, groups, count)
    bounds = _totals(Total.SUM, steps, groups, count)
    return totals, np.where((totals >= 0) & (totals < largest), bounds, 0.0)


def _weights(
    column: Column, groups: NDArray[np.int64], count: int, shown: Order
) -> NDArray[np.float64]:
    """Return the part of the runs of its group that a row is of: 1 where all are of the same."""
    if column.parts is None or column.total is not Total.SUM:
        return np.ones(len(shown))
    block, runs = column.parts.block[shown], column.parts.runs
    pairs = np.unique(np.stack((groups, block), 1)[groups >= 0], axis=0)
    known = np.append(np.bincount(pairs[:, 0], runs[pairs[:, 1]], minlength=count), np.nan)
    return runs[block] / known[groups]  # the last is of rows without a group


def _blank_if_missing(column: Column) -> Formatter:
    if column.total is not Total.NONE or column.is_text:
        return column.text
    plain = column.text

    def text(value: object) -> str:
        return "" if as_number(value) is None else plain(value)

    return text


def _totals(
    total: Total, numbers: NDArray[np.float64], groups: NDArray[np.int64], count: int
) -> NDArray[np.float64]:
    inside = groups >= 0
    there = ~np.isnan(numbers) & inside
    lacking = np.bincount(groups[inside & ~there], minlength=count) > 0
    numbers, groups = numbers[there], groups[there]
    result = np.full(count, np.nan)
    if total is Total.NONE or numbers.size == 0:
        return result
    found = np.bincount(groups, minlength=count) > 0
    if total in (Total.SUM, Total.COMPLETE):
        known = found & ~lacking if total is Total.COMPLETE else found
        result[known] = np.bincount(groups, numbers, minlength=count)[known]
        return result
    by_group = np.lexsort((numbers, groups))
    ends = np.flatnonzero(np.diff(groups[by_group], append=count))
    starts = np.concatenate([[0], ends[:-1] + 1])
    low, high = numbers[by_group[starts]], numbers[by_group[ends]]
    same = np.where(low == high, low, np.nan)
    result[found] = {Total.MIN: low, Total.MAX: high, Total.SAME: same}[total]
    return result


def _common(
    column: Column, cells: Sequence[object], groups: NDArray[np.int64], count: int
) -> list[object]:
    if column.total is not Total.SAME:
        return [""] * count
    seen: list[set[object]] = [set() for _ in range(count)]
    for group, cell in zip(cast("list[int]", groups.tolist()), cells, strict=True):
        if group >= 0:
            seen[group].add(cell)
    return [next(iter(values)) if len(values) == 1 else "" for values in seen]


def total_text(column: Column, shown: Order) -> str:
    """Return the total of all shown rows of a column, as shown for a group."""
    if column.is_text or column.total is Total.NONE:
        return ""
    totals, bounds = _bounded_totals(column, np.zeros(len(shown), np.int64), 1, shown)
    found, bound = float(totals[0]), float(bounds[0])
    if np.isnan(found):
        return ""
    return below(bound, column.least_of) if bound else column.text(found)
