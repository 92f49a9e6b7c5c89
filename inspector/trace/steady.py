"""The steady set: which runs a figure is made of.

A run counts unless its time lies outside of three interquartile ranges from the quartiles, which is
what a box plot calls far out (Tukey, Exploratory Data Analysis, 1977). Runs that meet another load,
and first ones that load pages and caches, are such; a spread that all runs share is not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FEW = 5  # runs below which nothing tells an outlier
_RANGES = 3.0  # interquartile ranges
_LEAST_RANGE = 0.01  # of the median: runs that differ by less are alike, however alike the others


def steady_runs(times: Sequence[float] | NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which runs are in the steady set; all of them where there are few.

    Args:
        times: of each run, in any unit
    """
    values = np.asarray(times, np.float64)
    if len(values) < FEW:
        return np.ones(len(values), np.bool_)
    low, middle, high = np.percentile(values, (25, 50, 75))
    reach = _RANGES * max(high - low, _LEAST_RANGE * middle)
    return (values >= low - reach) & (values <= high + reach)
