"""Packs rows of integer columns into one integer, to group a million rows without a Python loop."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def pack(*columns: NDArray[np.generic]) -> Ints:
    """Return one integer per row, equal if and only if all columns are."""
    packed = np.zeros(len(columns[0]), dtype=np.int64)
    most = 0  # bound of what is packed so far
    for column in columns:
        values, low, width = _narrow(column.astype(np.int64, copy=False))
        if width == 1:  # the same in all rows
            continue
        if most >= (1 << 62) // width:
            most = int(packed.max(initial=0))
        if most >= (1 << 62) // width:
            packed = np.unique(packed, return_inverse=True)[1].astype(np.int64)
            most = len(packed)
        packed *= width
        packed += values - low
        most = most * width + width - 1
    return packed


def _narrow(values: Ints) -> tuple[Ints, int, int]:
    """Return a column, its minimum and its range, small enough to pack."""
    low = int(values.min(initial=0))
    width = int(values.max(initial=0)) - low + 1
    if width < 1 << 62:
        return values, low, width
    values = np.unique(values, return_inverse=True)[1].astype(np.int64)
    return values, 0, len(values) + 1


def distinct(keys: Ints) -> tuple[Ints, Ints]:
    """Return the distinct keys, sorted, and the place of each key among them.

    Keys that lie close together are counted in a table: a million are sorted in ten times the time.
    """
    table = _table(keys)
    if table is None:
        values, place = np.unique(keys, return_inverse=True)
        return values, np.ravel(place).astype(np.int64)
    at, low, width = table
    seen = np.zeros(width, np.bool_)
    seen[at] = True
    places = np.cumsum(seen, dtype=np.int64) - 1
    return np.flatnonzero(seen) + low, places[at]


def _table(keys: Ints) -> tuple[Ints, int, int] | None:
    """Return keys counted from 0, the least key and the size of a table of all; None for far ones.

    Keys come from files and may be any: no table is larger than what it is of.
    """
    if not len(keys):
        return None
    low = int(keys.min())
    width = int(keys.max()) - low + 1
    return (keys - low, low, width) if width <= len(keys) else None


def ranks(keys: Ints) -> tuple[Ints, Ints]:
    """Return the rank of each key by first appearance, and the first row of each rank."""
    values, place = distinct(keys)
    first = np.empty(len(values), np.int64)
    first[place[::-1]] = np.arange(len(keys) - 1, -1, -1)  # of equal ones the first stays
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[place], first[order]
