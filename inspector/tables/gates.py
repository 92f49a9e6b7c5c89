"""Requirements of a gate and their results."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.experiments.gates.judging import Judgement
from inspector.tables.rows import RowField, row_table
from inspector.tables.table import Table

_NAMES = ("requirement", "met", "value", "unit", "operator", "bound", "ratio", "text", "judged")


def requirement_table(found: Sequence[Judgement]) -> Table:
    """Return one row per requirement: whether it is met, the value, and the bound."""
    rows = [tuple(one.content()[name] for name in _NAMES) for one in found]
    return row_table([RowField(name) for name in _NAMES], rows, "requirements")
