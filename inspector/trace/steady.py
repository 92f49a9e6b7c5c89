"""The steady set: which runs a figure is made of.

Two kinds of runs are left out, where there are five or more:

* cold ones: the first runs, while each of them is far slower than all that follow
* outliers: runs far from the others

Far is outside of three interquartile ranges from the quartiles, what a box plot calls far out
(Tukey, Exploratory Data Analysis, 1977). Runs that load pages and caches, and runs that meet
another load, are such; a spread that all runs share is not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FEW = 5  # runs below which nothing tells an outlier, nor a percentile
_RANGES = 3.0  # interquartile ranges
_LEAST_RANGE = 0.01  # of the median: runs that differ by less are alike, however alike the others
Times = NDArray[np.float64]
Mask = NDArray[np.bool_]


def steady_runs(times: Sequence[float] | Times) -> Mask:
    """Return which runs are in the steady set; all that ended where there are few.

    Args:
        times: of each run, in any unit; NaN for a run that did not end
    """
    values = np.asarray(times, np.float64)
    found = np.isfinite(values)
    if not found.any():
        return np.ones(len(values), np.bool_)
    known = values[found]
    if len(known) >= FEW:
        cold = cold_runs(known)
        low, high = _fences(known[cold:])
        steady = (known >= low) & (known <= high)
        steady[:cold] = False
        found[found] = steady
    return found


def cold_runs(times: Times) -> int:
    """Return how many of the first runs are cold; at most half of all are.

    Args:
        times: of five runs or more, all finite
    """
    slow = times > np.median(times)
    leading = len(times) // 2 if slow.all() else min(int(np.argmin(slow)), len(times) // 2)
    for count in range(leading, 0, -1):
        if times[:count].min() > _fences(times[count:])[1]:
            return count
    return 0


def _fences(times: Times) -> tuple[float, float]:
    """Return between which times a run is like the others."""
    low, middle, high = (float(one) for one in np.percentile(times, (25, 50, 75)))
    reach = _RANGES * max(high - low, _LEAST_RANGE * middle)
    return low - reach, high + reach
