"""A Qt-free table: named columns over numpy arrays or sequences, shown through formatters.

Values are in base units (nanoseconds, bytes); a column has one display unit.
Sorting and filtering never change a table: they are index arrays over it (``row_order``).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, cast, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from inspector.tables.magnitude import has_numbers, magnitude
from inspector.units import (
    MISSING,
    Formatter,
    Quantity,
    Unit,
    as_number,
    base_symbol,
    below,
    choose_unit,
    column_formatter,
    exact_text,
)

Values = Sequence[Any] | NDArray[Any]
Tone = Callable[[object], str]
_NOT_WORD = re.compile(r"\W+")


class ColumnKind(str, Enum):
    """Drawing style of the cells of a column."""

    TEXT = "text"
    NUMBER = "number"
    SHARE = "share"  # a bar and a percentage
    BADGE = "badge"  # a small outlined word


class Total(str, Enum):
    """Summary of a column for a group of rows."""

    NONE = "none"  # nothing: the values do not add up to anything
    SUM = "sum"
    COMPLETE = "complete"  # the sum, missing where one value is
    MAX = "max"
    MIN = "min"
    SAME = "same"  # the common value when all rows agree


class Categories(Sequence["str | None"]):
    """A long text column with few distinct values, stored as indices into labels.

    Attributes:
        codes: label index of each row, read only
        labels: the distinct strings, None for a missing one
    """

    __slots__ = ("codes", "labels")

    def __init__(self, codes: NDArray[np.integer[Any]], labels: Sequence[str | None]) -> None:
        if codes.size and not 0 <= int(codes.min()) <= int(codes.max()) < len(labels):
            raise ValueError("a category code has no label")
        self.codes = codes
        self.labels = tuple(labels)

    @override
    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, index: int) -> str | None: ...
    @overload
    def __getitem__(self, index: slice) -> Categories: ...
    @override
    def __getitem__(self, index: int | slice) -> str | Categories | None:
        if isinstance(index, slice):
            return Categories(self.codes[index], self.labels)
        return self.labels[int(self.codes[index])]

    @classmethod
    def of(
        cls, parts: Iterable[tuple[NDArray[np.integer[Any]], Sequence[str | None]]]
    ) -> Categories:
        """Return one column of parts with strings of their own, which may repeat each other."""
        seen: dict[str | None, int] = {}
        found = [np.zeros(0, np.int64)]
        for codes, texts in parts:
            used, which = np.unique(codes, return_inverse=True)
            codes_used = cast("list[int]", used.tolist())
            numbers = [seen.setdefault(texts[code], len(seen)) for code in codes_used]
            found.append(np.array(numbers, np.int64)[which])
        return cls(np.concatenate(found), tuple(seen))


class Keys(Sequence[Hashable], ABC):
    """Row keys created on first access, and searchable without creating all of them."""

    @abstractmethod
    def at(self, row: int) -> Hashable:
        """Return the key of an existing row."""

    @abstractmethod
    def find(self, key: Hashable) -> int:
        """Return the first row with a key, or -1."""

    @overload
    def __getitem__(self, index: int) -> Hashable: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Hashable, ...]: ...
    @override
    def __getitem__(self, index: int | slice) -> Hashable:
        if isinstance(index, slice):
            return tuple(self.at(row) for row in range(*index.indices(len(self))))
        row = index + len(self) if index < 0 else index
        if not 0 <= row < len(self):
            raise IndexError(index)
        return self.at(row)


def title_id(title: str) -> str:
    """Return the id of a column in queries and JSON that has none but its title."""
    return _NOT_WORD.sub("_", title.casefold()).strip("_") or "row"


def as_text(value: object) -> str:
    """Return a value as text, None as an empty string."""
    return MISSING if value is None else str(value)


@dataclass(frozen=True, slots=True, eq=False)
class RunParts:
    """Over which runs the times of rows are means: the total of rows of several blocks is theirs.

    Attributes:
        block: of each row
        runs: how many each block has

    Shapes: block int64[rows]; runs float64[blocks]
    """

    block: NDArray[np.int64]
    runs: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One column; create it with ``text_column``, ``number_column`` and similar.

    Attributes:
        title: heading
        values: one per row, in base units
        kind: how cells are drawn
        text: shows a value
        exact: shows a value unrounded, on hover
        unit: symbol shown behind the title, empty for none
        raw_unit: symbol of the unit that copies and exports are in
        scale: base units in one shown unit, to compare with user input
        sort_by: replaces the values for sorting
        tone: colour role of a value: empty, good, warn, bad, accent, muted or ``backend:<id>``
        total: summary shown for a group of rows
        mono: names and code, in the mono font
        width: preferred width in characters, 0 to measure
        full: the share that fills a bar: the largest one, so that small shares can be compared
        key: id in queries and JSON; by default the title in snake case
        least: for each row the value below which it is only bounded, None for none
        least_of: quantity of the bound
        parts: over which runs the values are means, None where they are of the same ones
    """

    title: str
    values: Values
    kind: ColumnKind = ColumnKind.TEXT
    text: Formatter = as_text
    exact: Formatter = as_text
    unit: str = ""
    raw_unit: str = ""
    scale: float = 1.0
    sort_by: Values | None = None
    tone: Tone | None = None
    total: Total = Total.NONE
    mono: bool = False
    width: int = 0
    full: float = 1.0
    key: str = ""
    least: NDArray[np.float64] | None = None
    least_of: Quantity = Quantity.TIME
    parts: RunParts | None = None

    def cell(self, row: int) -> str:
        """Return the value of a row as shown."""
        value = self.values[row]
        if self.least is not None:
            number = as_number(value)
            if number is not None and 0 <= number < self.least[row]:
                return below(float(self.least[row]), self.least_of)
        return self.text(value)

    @property
    def id(self) -> str:
        """Return the id of the column in queries and JSON."""
        return self.key or title_id(self.title)

    @property
    def heading(self) -> str:
        """Return the title with the unit of the column: ``p50 / ms``."""
        return f"{self.title} / {self.unit}" if self.unit else self.title

    @property
    def raw_heading(self) -> str:
        """Return the title for copies and exports: ``p50 (ns)``."""
        return f"{self.title} ({self.raw_unit})" if self.raw_unit else self.title

    @property
    def is_text(self) -> bool:
        """Return whether filters search this column."""
        return self.kind in (ColumnKind.TEXT, ColumnKind.BADGE)


@dataclass(frozen=True, slots=True, eq=False)
class MoreColumns:
    """Columns that are computed only where they are needed.

    Attributes:
        titles: of the columns, known without computing them
        place: index of the column that they come before
        make: computes them
    """

    titles: tuple[str, ...]
    place: int
    make: Callable[[], tuple[Column, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Columns of one length.

    Attributes:
        columns: at least one unless the table is empty
        length: number of rows
        keys: identity of each row, to find it again after a change; None means its index
        muted: rows shown dimmed (unattributed time, gaps), or None
        noun: for rows, in the plural
        more: columns beyond these, None for none
    """

    columns: tuple[Column, ...] = ()
    length: int = 0
    keys: Sequence[Hashable] | None = None
    muted: NDArray[np.bool_] | None = None
    noun: str = "rows"
    more: MoreColumns | None = None

    def __post_init__(self) -> None:
        for column in self.columns:
            if len(column.values) != self.length:
                raise ValueError(
                    f"column {column.title!r} has {len(column.values)} of {self.length} values"
                )
        if self.keys is not None and len(self.keys) != self.length:
            raise ValueError(f"{len(self.keys)} keys for {self.length} rows")

    def counted(self) -> NDArray[np.bool_]:
        """Return which rows count: those that are not derived from others."""
        return np.ones(self.length, np.bool_) if self.muted is None else ~self.muted

    def complete(self) -> Table:
        """Return the table with all columns that it can have."""
        more = self.more
        if more is None:
            return self
        columns = (*self.columns[: more.place], *more.make(), *self.columns[more.place :])
        return replace(self, columns=columns, more=None)

    def key(self, row: int) -> Hashable:
        """Return the key of a row."""
        return row if self.keys is None else self.keys[row]

    def finder(self) -> Callable[[Hashable], int]:
        """Return a function that finds the first row with a key, or -1."""
        keys, length = self.keys, self.length
        if keys is None:
            return lambda key: key if isinstance(key, int) and 0 <= key < length else -1
        if isinstance(keys, Keys):
            return keys.find
        found: dict[Hashable, int] = {}
        for row, key in enumerate(keys):
            found.setdefault(key, row)
        return lambda key: found.get(key, -1)

    def text(self, row: int, column: int) -> str:
        """Return a cell as shown."""
        return self.columns[column].cell(row)


def text_column(
    title: str,
    values: Values,
    *,
    missing: str = MISSING,
    mono: bool = False,
    total: Total = Total.SAME,
    width: int = 0,
) -> Column:
    """Return a column of names or labels; None is shown as ``missing``."""

    def text(value: object) -> str:
        return missing if value is None else str(value)

    return Column(title, values, text=text, exact=text, mono=mono, total=total, width=width)


def number_column(
    title: str,
    values: Values,
    quantity: Quantity,
    *,
    unit: Unit | str = "auto",
    missing: str = MISSING,
    total: Total = Total.NONE,
) -> Column:
    """Return a column of numbers in one unit, whose heading names none where all are missing.

    Args:
        title: name of the values
        values: in base units; None or NaN where missing
        quantity: their quantity
        unit: shared with neighbouring columns, or the symbol the user fixed, or auto
        missing: shown for missing values
        total: summary shown for a group of rows
    """
    largest = magnitude(values)
    shown = choose_unit(quantity, largest, unit) if isinstance(unit, str) else unit
    plain = column_formatter(quantity, shown, largest)

    def text(value: object) -> str:
        words = plain(value)
        return missing if words == MISSING else words

    def exact(value: object) -> str:
        return exact_text(value, quantity)

    return Column(
        title,
        values,
        ColumnKind.NUMBER,
        text,
        exact,
        unit=shown.symbol if largest or has_numbers(values) else "",
        raw_unit=base_symbol(quantity),
        scale=shown.factor,
        total=total,
    )


def share_column(
    title: str, values: Values, *, missing: str = MISSING, total: Total = Total.SUM
) -> Column:
    """Return a column of fractions of one, drawn as bars against the largest, with a percentage."""
    plain = column_formatter(Quantity.SHARE, Unit("%", 0.01), 1.0)

    def text(value: object) -> str:
        words = plain(value)
        return missing if words == MISSING else f"{words} %"

    def exact(value: object) -> str:
        return exact_text(value, Quantity.SHARE)

    return Column(
        title,
        values,
        ColumnKind.SHARE,
        text,
        exact,
        scale=0.01,
        total=total,
        width=22,
        full=full_bar(values),
    )


Floats = NDArray[np.float64]


def bounded_share(column: Column, least: Floats) -> Column:
    """Return a column of shares of a time, bounded where the time is only bounded.

    Args:
        column: shares
        least: for each row the share below which it is only bounded
    """
    return replace(column, least=least, least_of=Quantity.SHARE)


def share_of_ticks(ticks_ns: Floats, times_ns: Floats, shares: Floats) -> Floats:
    """Return the shares of ticks of clocks, in the whole that the shares of some times have.

    Args:
        ticks_ns: ticks in ns
        times_ns: times in ns
        shares: of these times in the whole
    """
    known = np.flatnonzero((shares > 0) & (times_ns > 0))
    if not len(known):
        return np.zeros(len(ticks_ns))
    return ticks_ns * (shares[known[0]] / times_ns[known[0]])


def bounds_in(whole_ns: float, bounds_ns: Floats) -> Floats:
    """Return the shares of bounds in a known whole, also where all times below it are 0.

    Args:
        whole_ns: what the shares are of, in ns; NaN or 0 if unknown
        bounds_ns: in ns
    """
    return bounds_ns / whole_ns if whole_ns > 0 else np.zeros(len(bounds_ns))


def full_bar(values: Values) -> float:
    """Return the share that fills a bar: the largest one, at most all of it."""
    return min(magnitude(values), 1.0) or 1.0


def badge_column(
    title: str,
    values: Values,
    *,
    tone: Tone | None = None,
    missing: str = "",
    explain: Formatter | None = None,
) -> Column:
    """Return a column of short outlined words; ``explain`` is shown on hover."""

    def text(value: object) -> str:
        return missing if value is None else str(value)

    return Column(
        title,
        values,
        ColumnKind.BADGE,
        text,
        explain or text,
        tone=tone,
        total=Total.SAME,
    )
