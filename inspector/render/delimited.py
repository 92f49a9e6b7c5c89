"""Tables as text for the clipboard and for files: unrounded, in base units."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import TextIO

from inspector.tables.table import Table
from inspector.units import raw_text

_FORMULA_STARTS = ("=", "+", "-", "@")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


class TextFormat(str, Enum):
    """How columns are separated."""

    TSV = "tsv"
    CSV = "csv"


def tsv(table: Table, rows: Iterable[int], columns: Sequence[int] | None = None) -> str:
    """Return rows as tab-separated lines with a heading, as copies are put on the clipboard."""
    return "\n".join("\t".join(map(_one_line, cells)) for cells in _cells(table, rows, columns))


def write_table(table: Table, rows: Iterable[int], stream: TextIO, kind: TextFormat) -> None:
    """Write rows with a heading to an open text file."""
    stream.writelines(table_lines(table, rows, kind))


def table_lines(table: Table, rows: Iterable[int], kind: TextFormat) -> Iterator[str]:
    """Yield a heading and rows as lines.

    CSV cells that a spreadsheet would run as a formula are preceded by an apostrophe, because
    names in the table come from untrusted files.
    """
    for cells in _cells(table, rows, None):
        if kind is TextFormat.TSV:
            yield "\t".join(map(_one_line, cells)) + "\n"
        else:
            out = io.StringIO()
            csv.writer(out, lineterminator="\n").writerow(map(_no_formula, cells))
            yield out.getvalue()


def _cells(table: Table, rows: Iterable[int], columns: Sequence[int] | None) -> Iterator[list[str]]:
    picked = [table.columns[n] for n in (columns or range(len(table.columns)))]
    yield [column.raw_heading for column in picked]
    for row in rows:
        yield [_harmless(raw_text(column.values[row])) for column in picked]


def _harmless(cell: str) -> str:
    """Return a cell without control characters of terminals: names come from untrusted files."""
    return _CONTROLS.sub("\ufffd", cell)


def _one_line(cell: str) -> str:
    return cell.replace("\t", " ").replace("\r", " ").replace("\n", " ")


def _no_formula(cell: str) -> str:
    if cell.startswith(_FORMULA_STARTS) and not _is_number(cell):
        return "'" + cell
    return cell


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
