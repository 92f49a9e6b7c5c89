"""Interval arithmetic over whole columns: nesting and gaps between events."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
DEEPEST = 12  # deeper nesting is drawn in the last level


def stack_levels(start: Floats, end: Floats) -> Ints:
    """Return the level of each event, so that no two on one level overlap.

    Shapes: start, end float64[events], sorted by start, longer ones first; int64[events]
    """
    levels = np.zeros(len(start), np.int64)
    left = np.arange(len(start))
    for level in range(DEEPEST):
        levels[left] = level
        if len(left) < 2:
            break
        # An event goes deeper when it begins before something earlier on this level ended.
        latest = np.maximum.accumulate(end[left])
        deeper = np.zeros(len(left), np.bool_)
        deeper[1:] = start[left[1:]] < latest[:-1]
        if not deeper.any():
            break
        left = left[deeper]
    return levels


def gaps(
    outer_start: Floats, outer_end: Floats, start: Floats, end: Floats
) -> tuple[Floats, Floats]:
    """Return the intervals inside the outer ones that no inner one covers.

    Shapes: outer_start, outer_end float64[outer], disjoint; start, end float64[inner]
    """
    order = np.argsort(outer_start, kind="stable")
    outer_start, outer_end = outer_start[order], outer_end[order]
    inner = np.argsort(start, kind="stable")
    start, end = start[inner], end[inner]
    # Ends of outer intervals act as events of no length: gaps never reach across them.
    begins = np.concatenate([outer_start, start, outer_end])
    ends = np.concatenate([outer_start, end, outer_end])
    order = np.lexsort((ends, begins))
    begins, ends = begins[order], np.maximum.accumulate(ends[order])
    low, high = ends[:-1], begins[1:]
    around = np.searchsorted(outer_start, low, side="right") - 1
    inside = (around >= 0) & (high > low)
    inside[inside] &= high[inside] <= outer_end[around[inside]]
    return low[inside], high[inside]


def inside_of(
    outer: tuple[Ints, Floats, Floats], inner: tuple[Ints, Floats, Floats]
) -> NDArray[np.bool_]:
    """Return which inner intervals lie in an outer one of the same key.

    Args:
        outer: key, start and end of each; those of a key are disjoint
        inner: likewise

    Shapes: bool[inner]
    """
    count = len(outer[0])
    keys, begins = np.concatenate([outer[0], inner[0]]), np.concatenate([outer[1], inner[1]])
    ends = np.concatenate([outer[2], inner[2]])
    order = np.lexsort((np.arange(len(keys)) >= count, begins, keys))
    # the last outer interval that began at or before each one
    latest = np.maximum.accumulate(np.where(order < count, np.arange(len(order)), -1))
    holder = order[latest]
    found = np.zeros(len(keys), np.bool_)
    found[order] = (latest >= 0) & (keys[holder] == keys[order]) & (ends[order] <= ends[holder])
    return found[count:]
