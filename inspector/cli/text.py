"""Text tables: aligned on the unit, one unit a column, colour only on a terminal."""

from __future__ import annotations

import csv
import io
import math
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

from inspector.cli.answer import Answer, Column, Shown, Table
from inspector.render.text import TextColumn, TextTable, lines_of, printable, selected_text
from inspector.render.values import separated_rows
from schema.errors import Issue, Severity

_TIME = (("ns", 1e-6), ("µs", 1e-3), ("ms", 1.0), ("s", 1e3))
_BYTES = (("B", 1.0), ("KiB", 1024.0), ("MiB", 1024.0**2), ("GiB", 1024.0**3))
_DIGITS = 3  # after the point
_LEAST = 10**-_DIGITS
_MOST = 1e6  # in a column: beyond it a larger unit is read more easily


def render(answer: Answer, issues: Sequence[Issue], stream: TextIO) -> str:
    """Return the answer as text for a stream."""
    colour = wants_colour(stream)
    width = shutil.get_terminal_size((120, 24)).columns if stream.isatty() else 0
    blocks = ["\n".join(map(printable, answer.lines))] if answer.lines else []
    blocks += [_table(table, width, colour) for table in answer.tables]
    if issues:
        blocks.append("\n".join(_issue(issue) for issue in issues))
    return "\n\n".join(block for block in blocks if block) + "\n"


def wants_colour(stream: TextIO) -> bool:
    """Return whether escape codes are welcome: on terminals without NO_COLOR."""
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def _issue(issue: Issue) -> str:
    word = {Severity.INFO: "note", Severity.WARNING: "warning", Severity.ERROR: "error"}
    return printable(f"{word[issue.severity]}: {issue.where}: {issue.message}")


def _table(table: Table | Shown, width: int, colour: bool) -> str:
    if isinstance(table, Shown):
        laid_out = selected_text(table.title, table.selected)
        return "\n".join(lines_of(laid_out, width, colour=colour))
    shown = [_cells(column, index, table) for index, column in enumerate(table.columns)]
    laid = [
        TextColumn(column.title, head, tuple(cells), column.kind == "text", column.spare)
        for column, (head, cells) in zip(table.columns, shown, strict=True)
    ]
    rows = TextTable(table.title, tuple(laid), len(table.rows), table.total is not None)
    return "\n".join(lines_of(rows, width, colour=colour))


def _cells(column: Column, index: int, table: Table) -> tuple[str, list[str]]:
    rows = [*table.rows, table.total] if table.total is not None else list(table.rows)
    values = [row[index] for row in rows]
    if column.kind == "text":
        return column.title, ["" if value is None else printable(str(value)) for value in values]
    if column.kind == "share":
        return f"{column.title} / %", [_number(value, 0.01, 1) for value in values]
    if column.kind == "count":
        return column.title, ["—" if value is None else f"{value:,}" for value in values]
    if column.kind == "ticks":
        return f"{column.title} / ticks", [_number(value, 1.0, 0) for value in values]
    if column.kind == "number":
        return column.title, ["—" if value is None else f"{value:.4g}" for value in values]
    units = _TIME if column.kind == "time" else _BYTES
    unit, factor = _choose(units, values)
    digits = 0 if unit == "B" else _decimals(values, factor)
    return f"{column.title} / {unit}", [_measure(value, factor, digits) for value in values]


def _finite(values: Sequence[Any]) -> list[float]:
    return [abs(float(v)) for v in values if v is not None and math.isfinite(float(v))]


def _choose(units: Sequence[tuple[str, float]], values: Sequence[Any]) -> tuple[str, float]:
    """Return the unit of the largest value, a smaller one where others would not show in it."""
    finite = _finite(values)
    largest, smallest = max(finite, default=0.0), min(filter(None, finite), default=0.0)
    index = max((at for at, (_, factor) in enumerate(units) if largest >= factor), default=0)
    while index and smallest < _LEAST * units[index][1] and largest < _MOST * units[index - 1][1]:
        index -= 1
    return units[index]


def _decimals(values: Sequence[Any], factor: float) -> int:
    finite = [value / factor for value in _finite(values)]
    largest, smallest = max(finite, default=0.0), min(filter(None, finite), default=1.0)
    before = 1 if largest < 10 else math.floor(math.log10(largest)) + 1
    after = 0 if smallest >= 1 else -math.floor(math.log10(smallest))
    return max(0, min(_DIGITS, max(4 - before, after)))


def _measure(value: Any, factor: float, digits: int) -> str:  # noqa: ANN401 - any cell
    """Return a number; one too small for its digits is not shown as zero."""
    text = _number(value, factor, digits)
    if value and text.strip("-0.,") == "":
        least = f"{10**-digits:.{digits}f}"
        return f"<{least}" if value > 0 else f">-{least}"
    return text


def _number(value: Any, factor: float, digits: int) -> str:  # noqa: ANN401 - any cell
    if value is None or not math.isfinite(float(value)):
        return "—"
    return f"{float(value) / factor:,.{digits}f}"


def separated(table: Table | Shown, delimiter: str) -> Iterator[str]:
    """Yield a table as TSV or CSV, unrounded, missing cells empty."""
    if isinstance(table, Shown):
        yield from separated_rows(table.selected, delimiter)
        return
    units = {"time": " (ms)", "ticks": " (ticks)", "bytes": " (B)", "share": " (fraction)"}
    heads = [f"{column.title}{units.get(column.kind, '')}" for column in table.columns]
    yield _record(heads, delimiter)
    for row in table.rows:
        yield _record(row, delimiter)
    if table.total is not None:
        yield _record(table.total, delimiter)


def _record(row: Sequence[Any], delimiter: str) -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    cells = ("" if cell is None else cell for cell in row)
    writer.writerow([printable(cell) if isinstance(cell, str) else cell for cell in cells])
    return out.getvalue()


def stdout_is_utf8() -> None:
    """Make printing never fail on a terminal that lacks a character."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")
