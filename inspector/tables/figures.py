"""Figures of different kinds in one column: each value includes its unit."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.tables.table import Column, ColumnKind, as_text
from inspector.units import (
    MISSING,
    NS_PER_MS,
    Quantity,
    base_symbol,
    choose_unit,
    exact_text,
    format_quantity,
    plain_text,
)

# unit of an analysis -> quantity, and how many of its base units the unit is
_QUANTITIES = {
    "ms": (Quantity.TIME, NS_PER_MS),
    "bytes": (Quantity.SIZE, 1.0),
    "share": (Quantity.SHARE, 1.0),
    "FLOPs": (Quantity.OPERATIONS, 1.0),
}


class Figure(float):
    """A number in the base unit of its quantity, or with a custom unit.

    Attributes:
        quantity: PLAIN with a custom unit
        symbol: of the unit, may be empty
        choice: symbol of the unit in which it is shown, or auto
    """

    quantity: Quantity
    symbol: str
    choice: str

    def __new__(cls, value: float, unit: str) -> Figure:
        """Return a number in the unit of an analysis (ms, bytes, share, or any other)."""
        quantity, factor = _QUANTITIES.get(unit, (Quantity.PLAIN, 1.0))
        found = super().__new__(cls, value * factor)
        found.quantity = quantity
        found.symbol = unit if quantity is Quantity.PLAIN else base_symbol(quantity)
        found.choice = "auto"
        return found

    @staticmethod
    def row(values: Sequence[float | None], unit: str) -> list[Figure | None]:
        """Return numbers side by side; times are all in the unit that suits the largest."""
        found = [None if value is None else Figure(value, unit) for value in values]
        known = [one for one in found if one is not None]
        largest = max((abs(float(one)) for one in known), default=0.0)
        for one in known:
            if one.quantity is Quantity.TIME:
                one.choice = choose_unit(one.quantity, largest).symbol
        return found

    def text(self) -> str:
        """Return the number with its unit, for sentences."""
        if self.quantity is Quantity.PLAIN:
            return f"{plain_text(self)} {self.symbol}".rstrip()
        return format_quantity(self, self.quantity, self.choice)

    def exact(self) -> str:
        """Return the number unrounded."""
        if self.quantity is Quantity.PLAIN:
            return f"{float(self)!r} {self.symbol}".rstrip()
        return exact_text(float(self), self.quantity)

    def signed(self) -> str:
        """Return a difference with its sign; those of shares are in percentage points."""
        sign = "+" if self > 0 else "−" if self < 0 else ""
        if self.quantity is Quantity.SHARE:
            points = abs(self) * 100
            shown = f"{points:.1f}" if points >= 0.05 or not points else f"{points:.2g}"
            return f"{sign}{shown} points"
        return sign + self.size().text()

    def size(self) -> Figure:
        """Return the number without its sign."""
        found = Figure(abs(float(self)), "")
        found.quantity, found.symbol, found.choice = self.quantity, self.symbol, self.choice
        return found


def figure_column(
    title: str, values: Sequence[Figure | str | None], *, missing: str = MISSING
) -> Column:
    """Return a column of figures, each shown with its unit; strings are shown unchanged."""

    def text(value: object) -> str:
        if isinstance(value, Figure):
            return value.text()
        return missing if value is None else str(value)

    def exact(value: object) -> str:
        return value.exact() if isinstance(value, Figure) else as_text(value)

    return Column(title, values, ColumnKind.NUMBER, text, exact)
