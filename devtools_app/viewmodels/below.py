"""The line over the folded panels: operators of the method, the slowest one, issues."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inspector.files.session import Session
from inspector.tables.files import all_issues
from inspector.tables.operators import operators_table
from inspector.tables.selection import Units
from inspector.tables.table import Table
from inspector.units import MISSING, format_time


@dataclass(frozen=True, slots=True)
class BelowFacts:
    """What the panels below the views have.

    Attributes:
        operators: their number and the slowest one
        issues: number of issues in the files
    """

    operators: str = ""
    issues: int = 0


def below_facts(session: Session, method: str, units: Units) -> BelowFacts:
    """Return the facts of a method."""
    table = operators_table(session, method, units).table
    return BelowFacts(operators_line(table, units), len(all_issues(session)))


def operators_line(table: Table, units: Units) -> str:
    """Return the number of operators and the slowest: ``52 · slowest: conv 19.6 µs 22 %``."""
    counted = np.ones(table.length, np.bool_) if table.muted is None else ~table.muted
    number = f"{int(counted.sum()):,}"
    columns = {column.title: column for column in table.columns}
    if "mean" not in columns:
        return number
    means = np.where(counted, np.asarray(columns["mean"].values, np.float64), np.nan)
    if not np.isfinite(means).any():
        return number
    row = int(np.nanargmax(means))
    share = columns["share of method"].cell(row)
    name, time = columns["operator"].cell(row), format_time(float(means[row]), units.time)
    known = "" if share == MISSING else f"  {share}"
    return f"{number} · slowest: {name}  {time}{known}"
