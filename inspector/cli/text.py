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

from inspector.cli.answer import Answer, Column, Table
from schema.errors import Issue, Severity

_TIME = (("ns", 1e-6), ("µs", 1e-3), ("ms", 1.0), ("s", 1e3))
_BYTES = (("B", 1.0), ("KiB", 1024.0), ("MiB", 1024.0**2), ("GiB", 1024.0**3))
_DIGITS = 3  # after the point
_LEAST = 10**-_DIGITS
_MOST = 1e6  # in a column: beyond it a larger unit is read more easily
_NARROWEST = 12
_READABLE = 18  # columns are left out before text is cut below this
_BOLD, _DIM, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"


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


def _table(table: Table, width: int, colour: bool) -> str:
    shown = [_cells(column, index, table) for index, column in enumerate(table.columns)]
    heads = [head for head, _ in shown]
    columns = [cells for _, cells in shown]
    wide = [max([len(head), *map(len, cells)]) for head, cells in zip(heads, columns, strict=True)]
    kept = _kept(table.columns, wide, width)
    left_out = [column.title for i, column in enumerate(table.columns) if i not in kept]
    titles = [table.columns[index] for index in kept]
    heads, columns = [heads[index] for index in kept], [columns[index] for index in kept]
    wide = _fit(titles, [wide[index] for index in kept], width)
    lines = [_line(titles, heads, wide)]
    lines += [_line(titles, row, wide) for row in zip(*columns, strict=True)]
    if table.total is not None and len(lines) > 2:
        lines.insert(-1, "  ".join("-" * size for size in wide))
    if colour:
        lines[0] = f"{_DIM}{lines[0]}{_PLAIN}"
    if table.title:
        title = printable(table.title)
        lines.insert(0, f"{_BOLD}{title}{_PLAIN}" if colour else title)
    if len(table.rows) == 0:
        lines.append("(none)")
    if left_out:
        lines.append(f"(too narrow for {', '.join(left_out)}; a pipe or --format has all)")
    return "\n".join(lines)


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


def printable(text: str) -> str:
    """Return text without control characters: those of a file must not reach the terminal."""
    return "".join(char if char.isprintable() else "�" for char in text)


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


def _kept(columns: Sequence[Column], wide: Sequence[int], width: int) -> list[int]:
    """Return which columns a terminal has room for, text cut to a readable width at most."""
    kept = list(range(len(columns)))
    spare = sorted((i for i in kept if columns[i].spare), key=lambda i: -columns[i].spare)
    for index in spare if width else ():
        cells = (min(wide[i], _READABLE) if columns[i].kind == "text" else wide[i] for i in kept)
        if sum(cells) + 2 * (len(kept) - 1) <= width:
            break
        kept.remove(index)
    return kept


def _fit(columns: Sequence[Column], wide: list[int], width: int) -> list[int]:
    """Return narrower text columns where the terminal is too narrow; pipes are never cut."""
    if not width:
        return wide
    over = sum(wide) + 2 * (len(wide) - 1) - width
    for index in sorted(range(len(wide)), key=lambda place: -wide[place]):
        if over > 0 and columns[index].kind == "text":
            cut = min(over, max(wide[index] - _NARROWEST, 0))
            wide[index] -= cut
            over -= cut
    return wide


def _line(columns: Sequence[Column], cells: Sequence[str], wide: Sequence[int]) -> str:
    parts = [
        _cut(cell, size).ljust(size) if column.kind == "text" else cell.rjust(size)
        for column, cell, size in zip(columns, cells, wide, strict=True)
    ]
    return "  ".join(parts).rstrip()


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else f"{text[: size - 1]}…"


def separated(table: Table, delimiter: str) -> Iterator[str]:
    """Yield a table as TSV or CSV, unrounded, missing cells empty."""
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
