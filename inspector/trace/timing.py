"""Ticks to time: units, scales, and which backends count cycles instead of time."""

from __future__ import annotations

from inspector.units import TICK_UNITS
from schema.backends import backend_of

PER_SECOND = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0}
CYCLES = "cycles"


def scale_factor(source: str, target: str) -> float:
    """Return the divisor that converts source ticks to target units.

    Raises: ValueError between cycles and a time unit, or for an unknown unit
    """
    for unit in (source, target):
        if unit not in TICK_UNITS:
            raise ValueError(f"unknown time unit {unit!r}; use one of {', '.join(TICK_UNITS)}")
    if (source == CYCLES) != (target == CYCLES):
        raise ValueError("cycles cannot be converted to a time, nor a time to cycles")
    return 1.0 if source == CYCLES else PER_SECOND[source] / PER_SECOND[target]


def is_time(source: str, backend: str = "") -> bool:
    """Return whether ticks of this source, inside this backend if one is named, are time."""
    return source != CYCLES and not backend_of(backend).logs_cycles
