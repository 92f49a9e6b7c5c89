"""A value per step brought to the width of a drawing: the largest of each run of steps."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


def step_bins(values: Integers, low: float, high: float, most: int) -> tuple[Integers, Integers]:
    """Return the edges and the largest values of runs of steps that cover a range.

    All runs have the same number of steps, which begin at multiples of it, so that a peak neither
    vanishes nor flickers while the range moves.

    Args:
        values: of each step, which reaches from its number to the next
        low: begin of the range
        high: end of the range
        most: runs that are wanted at most

    Shapes: values int64[steps]; edges int64[runs + 1], largest int64[runs]
    """
    first, last = max(math.floor(low), 0), min(math.ceil(high), len(values))
    if first >= last:
        return np.zeros(1, np.int64), np.zeros(0, np.int64)
    size = max(math.ceil((last - first) / most), 1)
    starts = np.arange(first // size * size, last, size)
    end = min(int(starts[-1]) + size, len(values))
    return np.append(starts, end), np.maximum.reduceat(values[:end], starts)
