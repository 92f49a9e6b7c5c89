"""Cell data shared by both item models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QFontMetricsF, QIcon

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
from devtools_app.qtmodels.row_marks import RowMarks
from inspector.tables.glossary import with_definition
from inspector.tables.row_order import SortKey
from inspector.tables.table import Column, ColumnKind, Table
from inspector.units import as_number

RIGHT = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
LEFT = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
NUMBERS = (ColumnKind.NUMBER, ColumnKind.SHARE)
_LONG = 60  # characters beyond which a cell may be cut off and is repeated on hover


class Face:
    """A font with its measures, in pixels.

    Attributes:
        font: the font
        metrics: of it, rounded as Qt rounds them where it cuts text
        exact: the same, not rounded
        height: of a line
    """

    __slots__ = ("exact", "font", "height", "metrics")

    def __init__(self, font: QFont) -> None:
        self.font = font
        self.metrics = QFontMetrics(font)
        self.exact = QFontMetricsF(font)
        self.height = math.ceil(self.exact.ascent() + self.exact.descent())


@dataclass(frozen=True, slots=True, eq=False)
class Looks:
    """Fonts and colours of cells.

    Attributes:
        sans: for text
        mono: for numbers and code
        quiet: italic, for derived rows
        text: colour of text
        muted: text colour of quiet rows
        line: below the rows of a table
        selected: background of selected rows
        hovered: background of the cell below the mouse
        highlighted: background of rows related to the selection of other views
    """

    sans: Face
    mono: Face
    quiet: Face
    text: QColor
    muted: QColor
    line: QColor
    selected: QColor
    hovered: QColor
    highlighted: QColor


class DrawnCell(NamedTuple):
    """What a cell shows.

    Attributes:
        text: as shown
        face: the font of it
        ink: colour of the text
        ground: background, None for that of the view
        is_right: whether the text is at the right end
        icon: before the text, or None
    """

    text: str
    face: Face
    ink: QColor
    ground: QColor | None
    is_right: bool
    icon: QIcon | None


def cell_looks(palette: Palette, sans: QFont, mono: QFont) -> Looks:
    """Return the looks for a palette and its fonts."""
    quiet = QFont(sans)
    quiet.setItalic(True)
    return Looks(
        sans=Face(sans),
        mono=Face(mono),
        quiet=Face(quiet),
        text=QColor(palette.text),
        muted=QColor(palette.muted),
        line=QColor(palette.line),
        selected=QColor(palette.selection),
        hovered=QColor(palette.hover),
        highlighted=QColor(palette.selection),
    )


def drawn_cell(
    table: Table, row: int, index: int, looks: Looks, marks: RowMarks, *, is_highlighted: bool
) -> DrawnCell:
    """Return what one cell shows."""
    column = table.columns[index]
    quiet = table.muted is not None and bool(table.muted[row])
    return DrawnCell(
        column.cell(row),
        _face(column, looks, quiet=quiet),
        looks.muted if _is_muted(column, row, quiet=quiet) else looks.text,
        looks.highlighted if is_highlighted else None,
        column.kind is ColumnKind.NUMBER,
        marks.icon if not index and row in marks.words else None,
    )


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
        return _face(column, looks, quiet=quiet).font
    if role == FOREGROUND:
        return looks.muted if _is_muted(column, row, quiet=quiet) else None
    return None


def _face(column: Column, looks: Looks, *, quiet: bool) -> Face:
    if column.kind in NUMBERS:
        return looks.mono
    if quiet:
        return looks.quiet
    return looks.mono if column.mono else looks.sans


def _is_muted(column: Column, row: int, *, quiet: bool) -> bool:
    """Return whether a cell is of a derived row, or has no value."""
    value = column.values[row]
    return quiet or value is None or bool(value != value)


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
