"""Requirements of a gate and their results, and its history."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from inspector.experiments.gates.history import read_history
from inspector.experiments.gates.judging import Judgement
from inspector.tables.query import QueryError
from inspector.tables.rows import RowField, row_table
from inspector.tables.selection import Units
from inspector.tables.table import Table
from inspector.units import Quantity

_NAMES = ("requirement", "met", "value", "unit", "operator", "bound", "ratio", "text", "judged")


def requirement_table(found: Sequence[Judgement]) -> Table:
    """Return one row per requirement: whether it is met, the value, and the bound."""
    rows = [tuple(one.content()[name] for name in _NAMES) for one in found]
    return row_table([RowField(name) for name in _NAMES], rows, "requirements")


def history(path: Path, units: Units) -> Table:
    """Return a row for each run in a history of a gate, with its figures in base units.

    Raises: QueryError for a folder; FormatError, OSError
    """
    if path.is_dir():
        raise QueryError(f"{path} is a folder: expected the history of a gate, a file")
    runs = read_history(path)
    metrics = tuple(dict.fromkeys(name for run in runs for name in run.figures))
    fields = (
        RowField("date"),
        RowField("program"),
        RowField("sha256", mono=True),
        RowField("met"),
        *(RowField(name, Quantity.PLAIN) for name in metrics),
        RowField("failed"),
    )
    rows = [
        (
            run.date,
            run.program,
            run.sha256[:12],
            "met" if run.met else "not met",
            *(run.figures.get(name) for name in metrics),
            ", ".join(run.failed),
        )
        for run in runs
    ]
    return row_table(fields, rows, "runs", units=units)
