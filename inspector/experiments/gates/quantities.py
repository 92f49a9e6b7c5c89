"""Units of bounds and values: what users write, what is compared, what is shown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum

from inspector.units import NS_PER_MS, TYPED_SIZES, TYPED_TIMES, format_bytes, format_ms

_KIB = 1024


class BoundUnit(str, Enum):
    """Units of bounds; values are compared in the base unit."""

    PERCENT = "%"
    SHARE = "share"
    BYTES = "B"
    TIME = "ms"
    DECIBELS = "dB"
    COUNT = "count"
    NUMBER = ""


# quantity -> unit as written, in lower case -> how many base units it is
_UNITS: Mapping[BoundUnit, Mapping[str, float]] = {
    BoundUnit.PERCENT: {"%": 1.0},
    BoundUnit.SHARE: {"": 1.0, "%": 0.01},
    BoundUnit.BYTES: {"": 1, **TYPED_SIZES},
    BoundUnit.TIME: {unit: ns / NS_PER_MS for unit, ns in TYPED_TIMES.items()},
    BoundUnit.DECIBELS: {"": 1.0, "db": 1.0},
    BoundUnit.COUNT: {"": 1.0},
    BoundUnit.NUMBER: {"": 1.0},
}
_WORDS: Mapping[BoundUnit, str] = {
    BoundUnit.PERCENT: "a share in %, as 98%",
    BoundUnit.SHARE: "a share, as 0.01 or 1%",
    BoundUnit.BYTES: "bytes, as 4096, 4KiB, 4MiB or 4MB",
    BoundUnit.TIME: "a time with its unit, as 5ms or 300us",
    BoundUnit.DECIBELS: "decibels, as 40 or 40dB",
    BoundUnit.COUNT: "an integer, as 3",
    BoundUnit.NUMBER: "a number without a unit, as 1e-3",
}


def in_base(quantity: BoundUnit, number: float, unit: str) -> float | None:
    """Return a number in the base unit of its quantity, None for an unknown unit."""
    factor = _UNITS[quantity].get(unit.lower())
    return None if factor is None else number * factor


def unit_words(quantity: BoundUnit) -> str:
    """Return how a bound of this quantity is written."""
    return _WORDS[quantity]


def shown(quantity: BoundUnit, value: float) -> str:
    """Return a value in the base unit as text with its unit; bytes also unrounded."""
    if math.isinf(value):
        return "infinite" if value > 0 else "minus infinite"
    if quantity is BoundUnit.BYTES:
        exact = f"{value:,.0f} bytes"
        return exact if abs(value) < _KIB else f"{format_bytes(value)} ({exact})"
    if quantity is BoundUnit.TIME:
        return format_ms(value)
    if quantity in (BoundUnit.PERCENT, BoundUnit.SHARE):
        return f"{_percent(value if quantity is BoundUnit.PERCENT else 100 * value)} %"
    if quantity is BoundUnit.COUNT:
        return f"{value:,.0f}"
    return f"{value:.6g}{' dB' if quantity is BoundUnit.DECIBELS else ''}"


def short(quantity: BoundUnit, value: float) -> str:
    """Return a value in the base unit as text with its unit, rounded."""
    if quantity is BoundUnit.BYTES and math.isfinite(value):
        return format_bytes(value)
    return shown(quantity, value)


def _percent(value: float) -> str:
    """Return percent with one digit, more where that would make it look whole."""
    text = f"{value:.1f}"
    if text in ("100.0", "0.0") and value not in (0.0, 100.0):
        return f"{value:.6g}"
    return text
