"""Cell data shared by both item models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QBrush, QColor, QFont

from devtools_app.appearance.colours import Palette
from devtools_app.qtmodels.roles import (
    ACCESSIBLE,
    ALIGNMENT,
    DISPLAY,
    FONT,
    FOREGROUND,
    SHARE,
    TONE,
    TOOLTIP,
)
from inspector.tables.glossary import with_definition
from inspector.tables.row_order import SortKey
from inspector.tables.table import Column, ColumnKind, Table
from inspector.units import as_number

RIGHT = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
LEFT = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
NUMBERS = (ColumnKind.NUMBER, ColumnKind.SHARE)
_LONG = 60  # characters beyond which a cell may be cut off and is repeated on hover


@dataclass(frozen=True, slots=True, eq=False)
class Looks:
    """Fonts and brushes of cells.

    Attributes:
        mono: for numbers and code
        quiet: italic, for derived rows
        muted: text colour of quiet rows
        lit: background of rows related to the selection of other views
    """

    mono: QFont
    quiet: QFont
    muted: QBrush
    highlighted: QBrush


def cell_looks(palette: Palette, sans: QFont, mono: QFont) -> Looks:
    """Return the looks for a palette and its fonts."""
    quiet = QFont(sans)
    quiet.setItalic(True)
    return Looks(mono, quiet, QBrush(QColor(palette.muted)), QBrush(QColor(palette.selection)))


def alignment(column: Column) -> int:
    """Return how the cells and the heading of a column are aligned."""
    return RIGHT if column.kind is ColumnKind.NUMBER else LEFT


def cell(table: Table, row: int, index: int, role: int, looks: Looks | None) -> object:
    """Return the data of one cell for a role."""
    column = table.columns[index]
    if role in (DISPLAY, ACCESSIBLE):
        return column.cell(row)
    if role == ALIGNMENT:
        return alignment(column)
    if role == TOOLTIP:
        return _tooltip(column, row)
    if role == SHARE:
        number = as_number(column.values[row])
        return None if number is None else min(number / column.full, 1.0)
    if role == TONE:
        return "" if column.tone is None else column.tone(column.values[row])
    if looks is None:
        return None
    return _look(table, row, column, role, looks)


def _look(table: Table, row: int, column: Column, role: int, looks: Looks) -> object:
    quiet = table.muted is not None and bool(table.muted[row])
    if role == FONT:
        if column.kind in NUMBERS:
            return looks.mono
        if quiet:
            return looks.quiet
        return looks.mono if column.mono else None
    if role == FOREGROUND:
        value = column.values[row]
        gone = value is None or value != value
        return looks.muted if quiet or gone else None
    return None


def _tooltip(column: Column, row: int) -> str | None:
    value = column.values[row]
    exact = column.exact(value)
    if column.kind in NUMBERS:
        return exact
    shown = column.text(value)
    if exact != shown or len(shown) > _LONG:
        return exact
    return None


def sort_mark(sort: Sequence[SortKey], column: int) -> str:
    """Return the suffix of a sorted column's heading: an arrow and its rank."""
    for rank, key in enumerate(sort):
        if key.column == column:
            number = f"{rank + 1}" if len(sort) > 1 else ""
            return f" {'▾' if key.descending else '▴'}{number}"
    return ""


def heading(column: Column, role: int, mark: str = "") -> object:
    """Return the data of a column heading for a role."""
    if role == DISPLAY:
        return column.heading + mark
    if role == ACCESSIBLE:
        way = {"▾": ", largest first", "▴": ", smallest first"}
        return column.heading + way.get(mark[1:2], "")
    if role == ALIGNMENT:
        return alignment(column)
    if role == TOOLTIP:
        shown = column.raw_heading if column.raw_unit else column.title
        return with_definition(column.title, shown)
    return None
