"""Units of time of a trace and of a report."""

from __future__ import annotations

from enum import Enum

from inspector.trace import timing


class TimeScale(Enum):
    """A unit of event times; cycles are not time and cannot be converted."""

    NS = "ns"
    US = "us"
    MS = "ms"
    S = "s"
    CYCLES = "cycles"


def as_time_scale(scale: object) -> TimeScale:
    """Return a unit given as a TimeScale, as its value, or as another library's enum of it.

    Raises: ValueError for an unknown unit
    """
    return TimeScale(getattr(scale, "value", scale))


def divisor(source: TimeScale, target: TimeScale) -> float:
    """Return the divisor from source ticks to target units.

    Raises: RuntimeError if one of them is cycles and the other a time
    """
    if (source is TimeScale.CYCLES) != (target is TimeScale.CYCLES):
        raise RuntimeError(
            "For TimeScale in cycles both the source and target time scale have to be in cycles."
        )
    return timing.scale_factor(source.value, target.value)
