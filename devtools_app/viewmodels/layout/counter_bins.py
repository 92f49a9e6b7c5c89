"""A counter brought to pixels: the largest value of each, in runs of equal pixels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from devtools_app.viewmodels.canvas_data import TimelineCounter

Floats = NDArray[np.float64]


def counter_view(
    counter: TimelineCounter, low: float, scale: float, pixels: int
) -> tuple[Floats, Floats, Floats]:
    """Return left and right side in pixels, and the value, of what is seen of a counter.

    Args:
        counter: the values
        low: time at the left side
        scale: pixels a unit of time
        pixels: width of the screen

    Shapes: float64[n] each; pixels without a value are left out
    """
    none = np.zeros(0)
    if not len(counter.start):
        return none, none, none
    times = low + np.arange(pixels + 1) / scale
    at = np.searchsorted(counter.start, times, side="right") - 1
    first, last = np.maximum(at[:-1], 0), np.maximum(at[1:], 0)
    ends = np.stack([first, last + 1], axis=1).ravel()
    largest = np.fmax.reduceat(np.append(counter.value, np.nan), ends)[::2]
    largest[at[1:] < 0] = np.nan  # before the first value
    changes = np.flatnonzero(np.append(True, ~_same(largest[1:], largest[:-1])))
    values = largest[changes]
    right = np.append(changes[1:], pixels)
    known = ~np.isnan(values)
    return changes[known].astype(np.float64), right[known].astype(np.float64), values[known]


def value_at(counter: TimelineCounter, time: float) -> float:
    """Return the value at a time, NaN where unknown."""
    place = int(np.searchsorted(counter.start, time, side="right")) - 1
    return float(counter.value[place]) if place >= 0 else float("nan")


def _same(one: Floats, other: Floats) -> NDArray[np.bool_]:
    return (one == other) | (np.isnan(one) & np.isnan(other))
