"""Pareto-optimal points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def front(rows: Sequence[Sequence[float] | None]) -> tuple[bool, ...]:
    """Return which rows are not dominated: no other is as small everywhere and smaller somewhere.

    Args:
        rows: numbers of which less is better, None for what takes no part; equal rows are all kept
    """
    found = [False] * len(rows)
    places = [place for place, row in enumerate(rows) if row is not None]
    chosen = [row for row in rows if row is not None]
    values: NDArray[np.float64] = np.array(chosen, dtype=np.float64)
    if not places or not values.shape[1]:
        return tuple(found)
    kept, count = np.empty_like(values), 0
    # Who beats a row comes before it in this order, so the best so far are enough to ask.
    for number in sorted(range(len(chosen)), key=lambda place: tuple(chosen[place])):
        row, best = values[number], kept[:count]
        if bool(((best <= row).all(axis=1) & (best < row).any(axis=1)).any()):
            continue
        kept[count] = row
        count += 1
        found[places[number]] = bool(np.isfinite(row).any())
    return tuple(found)
