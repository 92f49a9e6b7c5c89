"""Small tables given as rows: fields are declared once and rows converted to columns."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from inspector.tables.row_order import as_floats
from inspector.tables.selection import AUTOMATIC, Units
from inspector.tables.table import (
    Column,
    Formatter,
    Table,
    Tone,
    Total,
    badge_column,
    bounded_share,
    number_column,
    share_column,
    share_of_ticks,
    text_column,
)
from inspector.units import NS_PER_MS, Quantity


@dataclass(frozen=True, slots=True)
class RowField:
    """A field of a row.

    Attributes:
        title: heading of the column
        quantity: of numbers, in base units; None for text
        total: shown for a group of rows and in the last line
        missing: shown for missing values; None for the default
        mono: names and code, in the mono font
        tone: colour role of a value; shows the string as a badge
        width: preferred width in characters, 0 to measure
        short: shows a shorter text, whole on hover; None for the text itself
    """

    title: str
    quantity: Quantity | None = None
    total: Total = Total.NONE
    missing: str | None = None
    mono: bool = False
    tone: Tone | None = None
    width: int = 0
    short: Callable[[str], str] | None = None

    def column(self, values: Sequence[Any], units: Units = AUTOMATIC) -> Column:
        """Return the column of these values."""
        if self.quantity is None and self.tone is not None:
            return badge_column(self.title, values, tone=self.tone, missing=self.missing or "")
        if self.quantity is None:
            whole = text_column(
                self.title, values, missing=self.missing or "", mono=self.mono, width=self.width
            )
            return whole if self.short is None else replace(whole, text=_shortened(self.short))
        more = {} if self.missing is None else {"missing": self.missing}
        if self.quantity is Quantity.SHARE:
            return share_column(self.title, values, total=self.total, **more)
        fixed = {Quantity.TIME: units.time, Quantity.SIZE: units.size}
        unit = fixed.get(self.quantity, "auto")
        return number_column(self.title, values, self.quantity, unit=unit, total=self.total, **more)


def _shortened(short: Callable[[str], str]) -> Formatter:
    return lambda value: "" if value is None else short(str(value))


def row_table(
    fields: Sequence[RowField],
    rows: Sequence[Sequence[Any]],
    noun: str = "rows",
    *,
    keys: Sequence[Hashable] | None = None,
    units: Units = AUTOMATIC,
) -> Table:
    """Return a table of rows.

    Args:
        fields: one per cell
        rows: cells in base units (ns, bytes, fractions of one); None is missing
        noun: for rows, in the plural
        keys: of the rows
        units: of times and sizes

    Raises: ValueError if a row has more or fewer cells than there are fields
    """
    for row in rows:
        if len(row) != len(fields):
            raise ValueError(f"{len(row)} cells for {len(fields)} columns")
    columns = tuple(
        field.column([row[place] for row in rows], units) for place, field in enumerate(fields)
    )
    return Table(columns, len(rows), keys, noun=noun)


def bounded_times(table: Table, ticks_ns: Sequence[float]) -> Table:
    """Return a table whose times, and their shares, are bounded below a step of their clock.

    Args:
        table: with a column ``mean`` and perhaps one of the share of the method
        ticks_ns: step of the clock of each row
    """
    ticks = np.array(ticks_ns, np.float64)
    found = {one.title: one for one in table.columns}
    bounded = {"mean": replace(found["mean"], least=ticks)}
    share = found.get("share of method")
    if share is not None:
        times, shares = (as_floats(one.values) for one in (found["mean"], share))
        bounded[share.title] = bounded_share(share, share_of_ticks(ticks, times, shares))
    return replace(table, columns=tuple(bounded.get(one.title, one) for one in table.columns))


def ns(ms: float | None) -> float | None:
    """Return milliseconds in nanoseconds, the base unit of times."""
    return None if ms is None else ms * NS_PER_MS
