"""Rows of a table of small whole numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def unique_rows(columns: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the different rows, the first place of each, and which of them each row is.

    Several times faster than ``np.unique`` of rows, for small numbers.
    """
    low = columns.min(axis=0, initial=0)
    span = columns.max(axis=0, initial=0) - low + 1
    code = np.zeros(len(columns), np.int64)
    for at in range(columns.shape[1]):
        code = code * int(span[at]) + columns[:, at] - low[at]
    _, first, which = np.unique(code, return_index=True, return_inverse=True)
    return columns[first], first, np.ravel(which).astype(np.int64)
