"""Round steps and labels for axes of time, bytes and counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from inspector.units import Quantity, Unit, choose_unit

_MOST_TICKS = 200  # a damaged range must not create endless marks


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis: position and label."""

    value: float
    label: str


def decimal_step(span: float, requested: int) -> float:
    """Return 1, 2 or 5 times a power of ten that divides a span into about `requested` parts."""
    if span <= 0 or not math.isfinite(span):
        return 1.0
    rough = span / max(requested, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    for factor in (1.0, 2.0, 5.0):
        if factor * power >= rough * 0.999:
            return factor * power
    return 10.0 * power


def binary_step(span: float, requested: int) -> float:
    """Return a power of two, at least 1, that divides a span into about `requested` parts."""
    rough = max(span / max(requested, 1), 1.0)
    return 2.0 ** math.ceil(math.log2(rough) - 0.001)


def ticks(
    low: float, high: float, requested: int, quantity: Quantity, choice: str = "auto"
) -> list[Tick]:
    """Return marks between two values with labels in one unit.

    Args:
        low: least value seen
        high: largest value seen
        requested: about how many
        quantity: TIME is cut decimally, SIZE in powers of two, counts in integers
        choice: unit of the labels, ``auto`` for that of the largest value
    """
    span = high - low
    if quantity is Quantity.SIZE:
        step = binary_step(span, requested)
    else:
        step = decimal_step(span, requested)
        if quantity in (Quantity.COUNT, Quantity.TICKS):
            step = max(1.0, math.ceil(step))
    unit = choose_unit(quantity, max(abs(low), abs(high)), choice)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    last = min(last, first + _MOST_TICKS)
    return [_tick(number * step, step, unit) for number in range(first, last + 1)]


def _tick(value: float, step: float, unit: Unit) -> Tick:
    decimals = _decimals(step / unit.factor)
    return Tick(value, f"{value / unit.factor:,.{decimals}f} {unit.symbol}".rstrip())


def _decimals(step: float) -> int:
    """Return how many decimals distinguish neighbouring marks, exactly for powers of two."""
    for decimals in range(10):
        scaled = step * 10**decimals
        if abs(scaled - round(scaled)) < 1e-6 * max(scaled, 1.0) and round(scaled) >= 1:
            return decimals
        if decimals >= 2 and scaled >= 10:
            return decimals
    return 9
