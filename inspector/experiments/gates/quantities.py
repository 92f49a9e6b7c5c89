"""Units of bounds and values: what users write, what is compared, what is shown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum


class Quantity(str, Enum):
    """What a number is measured in; the base unit is what values are compared in."""

    PERCENT = "%"
    SHARE = "share"
    BYTES = "B"
    TIME = "ms"
    DECIBELS = "dB"
    COUNT = "count"
    NUMBER = ""


_TIMES = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "μs": 1e-3, "ms": 1.0, "s": 1e3}
_BYTES = {
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
}
_SHOWN_BYTES = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
_SHOWN_TIMES = (("s", 1e3), ("ms", 1.0), ("µs", 1e-3), ("ns", 1e-6))

# quantity -> unit as written, in lower case -> how many base units it is
_UNITS: Mapping[Quantity, Mapping[str, float]] = {
    Quantity.PERCENT: {"%": 1.0},
    Quantity.SHARE: {"": 1.0, "%": 0.01},
    Quantity.BYTES: {"": 1, **_BYTES},
    Quantity.TIME: _TIMES,
    Quantity.DECIBELS: {"": 1.0, "db": 1.0},
    Quantity.COUNT: {"": 1.0},
    Quantity.NUMBER: {"": 1.0},
}
_WORDS: Mapping[Quantity, str] = {
    Quantity.PERCENT: "a share in %, as 98%",
    Quantity.SHARE: "a share, as 0.01 or 1%",
    Quantity.BYTES: "bytes, as 4096, 4KiB, 4MiB or 4MB",
    Quantity.TIME: "a time with its unit, as 5ms or 300us",
    Quantity.DECIBELS: "decibels, as 40 or 40dB",
    Quantity.COUNT: "a whole number, as 3",
    Quantity.NUMBER: "a number without a unit, as 1e-3",
}


def in_base(quantity: Quantity, number: float, unit: str) -> float | None:
    """Return a number in the base unit of its quantity, None for a unit that is none of it."""
    factor = _UNITS[quantity].get(unit.lower())
    return None if factor is None else number * factor


def unit_words(quantity: Quantity) -> str:
    """Return how a bound of this quantity is written."""
    return _WORDS[quantity]


def shown(quantity: Quantity, value: float) -> str:
    """Return a value in the base unit as text with its unit."""
    if math.isinf(value):
        return "infinite" if value > 0 else "minus infinite"
    if quantity is Quantity.BYTES:
        return _bytes(value)
    if quantity is Quantity.TIME:
        return _time(value)
    if quantity is Quantity.PERCENT:
        return f"{_percent(value)} %"
    if quantity is Quantity.SHARE:
        return f"{_percent(100 * value)} %"
    if quantity is Quantity.COUNT:
        return f"{value:,.0f}"
    return f"{value:.6g}{' dB' if quantity is Quantity.DECIBELS else ''}"


def _bytes(value: float) -> str:
    for unit, factor in _SHOWN_BYTES:
        if abs(value) >= factor:
            return f"{value / factor:,.4g} {unit} ({value:,.0f} bytes)"
    return f"{value:,.0f} bytes"


def _time(value: float) -> str:
    unit, factor = next((each for each in _SHOWN_TIMES if abs(value) >= each[1]), _SHOWN_TIMES[-1])
    return f"{value / factor:.4g} {unit}"


def _percent(value: float) -> str:
    """Return percent with one digit, more where that would make it look whole."""
    text = f"{value:.1f}"
    if text in ("100.0", "0.0") and value not in (0.0, 100.0):
        return f"{value:.6g}"
    return text
