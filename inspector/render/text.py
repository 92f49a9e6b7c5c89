"""Tables as text: one unit a column, aligned, cut to the width of a terminal, never in a pipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inspector.tables.grouping import total_text
from inspector.tables.query import Selected
from inspector.tables.table import Column

_NARROWEST = 12
_READABLE = 18  # columns are left out before text is cut below this
_BOLD, _DIM, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"
_INDENT = "  "


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column whose cells are strings.

    Attributes:
        title: name of the values
        heading: title with the unit
        cells: one per row, and one of the total
        is_text: aligned to the left, and truncated if too wide
        spare: a terminal too narrow for all columns loses those with the highest number first;
            0 is always there
    """

    title: str
    heading: str
    cells: tuple[str, ...]
    is_text: bool
    spare: int = 0


@dataclass(frozen=True, slots=True)
class TextTable:
    """Columns of strings.

    Attributes:
        title: line above the table, empty for none
        columns: of equal length
        length: number of rows, without the total
        has_total: whether the last cells are a total, set apart
    """

    title: str
    columns: tuple[TextColumn, ...]
    length: int
    has_total: bool = False


def selected_text(title: str, selected: Selected, *, total: bool = False) -> TextTable:
    """Return rows of a table as strings, in the units of its columns.

    Args:
        title: line above the table
        selected: the rows
        total: whether a last row adds the columns up that have a total
    """
    columns = selected.table.columns
    cells = [[_cell(column, int(row)) for row in selected.rows] for column in columns]
    if selected.depths is not None and cells:
        cells[0] = [
            _INDENT * int(depth) + cell
            for depth, cell in zip(selected.depths, cells[0], strict=True)
        ]
    if total:
        for place, (column, shown) in enumerate(zip(columns, cells, strict=True)):
            shown.append("total" if place == 0 else total_text(column, selected.rows))
    laid = (
        TextColumn(column.title, printable(column.heading), tuple(shown), column.is_text, place)
        for place, (column, shown) in enumerate(zip(columns, cells, strict=True))
    )
    return TextTable(title, tuple(laid), len(selected.rows), has_total=total)


def _cell(column: Column, row: int) -> str:
    return printable(column.cell(row))


def printable(text: str) -> str:
    """Return text without control characters: those of a file must not reach the terminal."""
    return "".join(char if char.isprintable() else "�" for char in text)


def lines_of(table: TextTable, width: int, *, colour: bool) -> list[str]:
    """Return the lines of a table.

    Args:
        table: the table
        width: columns of the terminal, 0 for no limit
        colour: whether escape codes are welcome
    """
    wide = [max(map(len, (one.heading, *one.cells))) for one in table.columns]
    kept = _kept(table.columns, wide, width)
    left_out = [column.title for i, column in enumerate(table.columns) if i not in kept]
    columns = [table.columns[index] for index in kept]
    wide = _fit(columns, [wide[index] for index in kept], width)
    lines = [_line(columns, [column.heading for column in columns], wide)]
    cells = (column.cells for column in columns)
    lines += [_line(columns, row, wide) for row in zip(*cells, strict=True)]
    if table.has_total and len(lines) > 2:
        lines.insert(-1, "  ".join("-" * size for size in wide))
    if colour:
        lines[0] = f"{_DIM}{lines[0]}{_PLAIN}"
    if table.title:
        title = printable(table.title)
        lines.insert(0, f"{_BOLD}{title}{_PLAIN}" if colour else title)
    if table.length == 0:
        lines.append("(none)")
    if left_out:
        lines.append(f"(too narrow for {', '.join(left_out)}; a pipe or --format has all)")
    return lines


def _kept(columns: Sequence[TextColumn], wide: Sequence[int], width: int) -> list[int]:
    """Return which columns a terminal has room for, text cut to a readable width at most."""
    kept = list(range(len(columns)))
    spare = sorted((i for i in kept if columns[i].spare), key=lambda i: -columns[i].spare)
    for index in spare if width else ():
        cells = (min(wide[i], _READABLE) if columns[i].is_text else wide[i] for i in kept)
        if sum(cells) + 2 * (len(kept) - 1) <= width:
            break
        kept.remove(index)
    return kept


def _fit(columns: Sequence[TextColumn], wide: list[int], width: int) -> list[int]:
    """Return narrower text columns where the terminal is too narrow; pipes are never cut."""
    if not width:
        return wide
    over = sum(wide) + 2 * (len(wide) - 1) - width
    for index in sorted(range(len(wide)), key=lambda place: -wide[place]):
        if over > 0 and columns[index].is_text:
            cut = min(over, max(wide[index] - _NARROWEST, 0))
            wide[index] -= cut
            over -= cut
    return wide


def _line(columns: Sequence[TextColumn], cells: Sequence[str], wide: Sequence[int]) -> str:
    parts = [
        _cut(cell, size).ljust(size) if column.is_text else cell.rjust(size)
        for column, cell, size in zip(columns, cells, wide, strict=True)
    ]
    return "  ".join(parts).rstrip()


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else f"{text[: size - 1]}…"
