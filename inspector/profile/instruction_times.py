"""The mean time of each instruction of a method, with all that runs inside of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.files.session import Session
from inspector.profile.operator_rows import operator_rows
from schema.objects.identity_cache import identity_cache


@dataclass(frozen=True, slots=True, eq=False)
class InstructionTimes:
    """Mean times over the steady runs.

    Attributes:
        mean_ns: of each instruction, NaN where none was measured
        logged: whether values were logged meanwhile: the times are not the program's
        reason: why there is none at all, empty otherwise

    Shapes: mean_ns float64[instructions]
    """

    mean_ns: NDArray[np.float64]
    logged: bool = False
    reason: str = ""


@identity_cache
def instruction_times(session: Session, method: str, count: int) -> InstructionTimes:
    """Return the time of each of a number of instructions; several traces weigh by their runs."""
    totals, weights = np.zeros(count), np.zeros(count)
    for part in operator_rows(session, method).parts:
        runs = int(part.steady.sum())
        timed = part.timed & (part.instruction >= 0) & (part.instruction < count)
        if not part.joined or not runs or not timed.any():
            continue
        steps = part.instruction[timed]
        sums = np.bincount(steps, weights=part.mean_ns[timed], minlength=count)
        there = np.bincount(steps, minlength=count) > 0
        totals += sums * runs
        weights[there] += runs
    with np.errstate(invalid="ignore"):
        mean = np.where(weights > 0, totals / np.maximum(weights, 1), np.nan)
    mean.setflags(write=False)
    reason = ""
    if not np.isfinite(mean).any():
        has_trace = bool(session.timed_dumps)
        reason = "the trace has no times of instructions" if has_trace else "no trace"
    return InstructionTimes(mean, bool(session.times_with_values), reason)
