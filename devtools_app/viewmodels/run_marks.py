"""Where the runs of a headline lie on a line of time. Qt-free."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.trace.run_times import RunTimes
from inspector.units import format_time
from schema.objects.plural import plural

_BEYOND = 1.0  # times the range of the steady runs that is drawn on each side of them


@dataclass(frozen=True, slots=True, eq=False)
class RunMarks:
    """Runs on a line.

    Attributes:
        steady: times of the runs of the mean
        left_out: times of the others; those above `high` are drawn at its end
        low: where the line begins
        high: where it ends
        words: what it shows

    Shapes: float64[runs]

    Units: ns
    """

    steady: NDArray[np.float64]
    left_out: NDArray[np.float64]
    low: float
    high: float
    words: str


def run_marks(runs: RunTimes, scale: float, unit: str) -> RunMarks | None:
    """Return the runs of a headline on a line, None for fewer than five steady ones.

    The line is as long as the steady runs need: a cold run that takes a hundred times as long
    would else leave all others on one point.

    Args:
        runs: the runs
        scale: ns in one of their units
        unit: how times are shown
    """
    times = np.asarray(runs.times, np.float64) * scale
    steady, others = times[runs.mask], times[~runs.mask]
    if runs.median is None:
        return None
    low, high = float(steady.min()), float(steady.max())
    room = max(high - low, 0.02 * high, 1e-9)
    inside = others[(others >= low - _BEYOND * room) & (others <= high + _BEYOND * room)]
    drawn = np.concatenate([steady, inside])
    edge = 0.05 * room
    low, high = float(drawn.min()) - edge, float(drawn.max()) + edge
    beyond = int((others > high).sum())
    if beyond:
        high += 3 * edge
    parts = [f"{plural(len(steady), 'steady run')}"]
    if len(others):
        parts.append(f"{plural(len(others), 'run')} left out (crosses)")
    if beyond:
        longest = format_time(float(others.max()), unit)
        parts.append(f"{beyond} of them beyond the end of the line, up to {longest}")
    return RunMarks(steady, others, max(low, 0.0), high, ", ".join(parts))
