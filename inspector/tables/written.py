"""Lists of results of verbs: files, names of ported scripts, partitioners, sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inspector.tables.rows import RowField, row_table
from inspector.tables.table import Table, Total
from inspector.units import Quantity

_FILES = (RowField("file", mono=True), RowField("kind"), RowField("size", Quantity.SIZE, Total.SUM))
_NAMES = (
    RowField("file", mono=True),
    RowField("cell", Quantity.COUNT, missing=""),
    RowField("line", Quantity.COUNT, missing=""),
    RowField("name", mono=True),
    RowField("ours", mono=True),
    RowField("verdict"),
    RowField("remedy"),
)
_PARTITIONERS = (
    RowField("name", mono=True),
    RowField("class", mono=True),
    RowField("module", mono=True),
    RowField("is"),
    RowField("not usable here because"),
    RowField("install", mono=True),
)


def written_files(rows: Sequence[tuple[str, str, int]]) -> Table:
    """Return files: path, kind and bytes of each."""
    return row_table(_FILES, rows, "files", keys=[row[0] for row in rows])


def name_table(rows: Sequence[Sequence[Any]]) -> Table:
    """Return names of a ported script: line, replacement, and remedy."""
    return row_table(_NAMES, rows, "names")


def partitioner_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return partitioners of a toolchain: what each is, why not usable, what would install it."""
    names = ("alias", "class", "module", "summary", "why_not", "install")
    cells = [tuple(one[name] for name in names) for one in rows]
    return row_table(_PARTITIONERS, cells, "partitioners")


def graph_sizes(rows: Sequence[tuple[str, int]]) -> Table:
    """Return exported graphs with their number of nodes."""
    return row_table((RowField("graph"), RowField("nodes", Quantity.COUNT)), rows, "graphs")


def section_table(kept: Sequence[str], dropped: Sequence[str]) -> Table:
    """Return the sections of a report, and whether each is in it."""
    rows = [(title, "yes") for title in kept] + [(title, "no") for title in dropped]
    return row_table((RowField("section"), RowField("in the report")), rows, "sections")
