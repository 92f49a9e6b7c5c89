"""The line over the folded panels: operators of the method, the slowest one, issues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.files.session import Session
from inspector.tables.files import all_issues
from inspector.tables.grouping import NO_OWNER
from inspector.tables.operators import DELEGATE, operators_table
from inspector.tables.selection import Units
from inspector.tables.table import Categories, Column, Table
from inspector.units import MISSING, format_share, format_time

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BelowFacts:
    """The content of the panels below the views.

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
    """Return the number of operators and the slowest of the first rows, as Operators lists them.

    ``52 · slowest: XNNPACK 1  62.9 µs  71 %, in it conv  19.6 µs  22 %``
    """
    number = f"{int(table.counted().sum()):,}"
    columns = {column.title: column for column in table.columns}
    if "mean" not in columns:
        return number
    means = np.asarray(columns["mean"].values, np.float64)
    owned, owner, spent = _slowest_delegate(columns, means)
    alone = _slowest(means, table.counted() & ~owned)
    if alone >= 0 and (not owner or means[alone] >= spent):
        return f"{number} · slowest: {_row_words(columns, alone, units)}"
    if not owner:
        return number
    inside = [owner == value for value in columns[DELEGATE].values]
    below = _slowest(means, table.counted() & np.array(inside, np.bool_))
    shares = np.asarray(columns["share of method"].values, np.float64)
    share = float(np.nansum(np.where(inside, shares, 0.0)))
    known = f"  {format_share(share)}" if share > 0 else ""
    words = f"{number} · slowest: {owner}  {format_time(spent, units.time)}{known}"
    return words if below < 0 else f"{words}, in it {_row_words(columns, below, units)}"


def _slowest_delegate(
    columns: Mapping[str, Column], means: Floats
) -> tuple[NDArray[np.bool_], str, float]:
    """Return which rows are inside of delegates, the slowest delegate, and its time."""
    values = columns[DELEGATE].values if DELEGATE in columns else ()
    if not isinstance(values, Categories):
        return np.zeros(len(means), np.bool_), "", 0.0
    owners = [label for label in values.labels if label not in NO_OWNER]
    is_owner = np.array([label in owners for label in values.labels], np.bool_)
    spent = np.bincount(values.codes, np.nan_to_num(means), minlength=len(values.labels))
    spent = np.where(is_owner, spent, -1.0)
    best = int(np.argmax(spent)) if owners else -1
    name = str(values.labels[best]) if owners and spent[best] > 0 else ""
    return is_owner[values.codes], name, float(spent[best]) if name else 0.0


def _slowest(means: Floats, among: NDArray[np.bool_]) -> int:
    """Return the row with the largest mean, -1 where none is known."""
    found = np.where(among, means, np.nan)
    return int(np.nanargmax(found)) if np.isfinite(found).any() else -1


def _row_words(columns: Mapping[str, Column], row: int, units: Units) -> str:
    share = columns["share of method"].cell(row)
    known = "" if share == MISSING else f"  {share}"
    mean = float(columns["mean"].values[row])
    return f"{columns['operator'].cell(row)}  {format_time(mean, units.time)}{known}"
