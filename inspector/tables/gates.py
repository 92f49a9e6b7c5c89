"""Requirements of a gate and their results, and its history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from inspector.experiments.gates.gates_file import read_gates
from inspector.experiments.gates.history import read_history, trends
from inspector.experiments.gates.quantities import BoundUnit, short
from inspector.experiments.gates.requirement import RequirementError, parse_requirement, unit_of
from inspector.experiments.gates.several import (
    MET,
    NOT_MET,
    GateSide,
    JudgedGate,
    judge_sides,
)
from inspector.files.session import Session
from inspector.tables.query import QueryError
from inspector.tables.rows import RowField, row_table
from inspector.tables.selection import Units
from inspector.tables.table import Column, MoreColumns, Table
from inspector.units import NS_PER_MS, Quantity

_TONES = {MET: "good", NOT_MET: "bad"}
_JUDGED = (
    RowField("result", tone=lambda value: _TONES.get(str(value), "warn")),
    RowField("gate", mono=True),
    RowField("program"),
    RowField("value", missing="—", mono=True),
    RowField("of", width=60),
)
_TREND = (
    RowField("metric", mono=True),
    RowField("last", mono=True),
    RowField("change", mono=True, missing=""),
    RowField("not met", Quantity.COUNT, missing=""),
    RowField("values, oldest first", mono=True, width=60),
)
_FIGURES = (
    RowField("figure", Quantity.PLAIN),
    RowField("unit"),
    RowField("operator"),
    RowField("bound", Quantity.PLAIN),
    RowField("ratio", Quantity.PLAIN, missing=""),
)
# unit of a bound -> quantity of a column, and how many of its base units one is
_BASE = {
    BoundUnit.PERCENT: (Quantity.SHARE, 0.01),
    BoundUnit.SHARE: (Quantity.SHARE, 1.0),
    BoundUnit.BYTES: (Quantity.SIZE, 1.0),
    BoundUnit.TIME: (Quantity.TIME, NS_PER_MS),
    BoundUnit.DECIBELS: (Quantity.PLAIN, 1.0),
    BoundUnit.COUNT: (Quantity.COUNT, 1.0),
    BoundUnit.NUMBER: (Quantity.PLAIN, 1.0),
}


def gates(sessions: Sequence[Session], _method: str, _units: Units, of: str) -> Table:
    """Return the requirements of a file, judged for each session by what is in its files.

    The first of several sessions is the baseline of relative requirements, as in comparisons.

    Raises: QueryError without a file; FormatError, OSError
    """
    if not of:
        raise QueryError("table 'gates' needs a file of requirements: --of gates.txt")
    sides = [GateSide(one.name, one) for one in sessions]
    return gate_table(judge_sides(read_gates(Path(of)), sides, sides[0] if sides[1:] else None))


def gate_table(found: Sequence[JudgedGate]) -> Table:
    """Return one row per requirement and program: result, value, and what it is of.

    Figures in base units, with operator and bound, are columns that are shown where they are named.
    """
    rows = [
        (
            one.result,
            one.requirement.text,
            one.side,
            None if one.judgement is None else one.judgement.value_text(),
            one.missing if one.judgement is None else one.judgement.details().strip(" ()"),
        )
        for one in found
    ]
    keys = [(one.requirement.text, one.side) for one in found]
    table = row_table(_JUDGED, rows, "gates", keys=keys)
    titles = tuple(field.title for field in _FIGURES)
    return replace(table, more=MoreColumns(titles, len(_JUDGED), lambda: _figures(found)))


def _figures(found: Sequence[JudgedGate]) -> tuple[Column, ...]:
    rows: list[tuple[object, ...]] = []
    for one in found:
        known, judged = one.requirement, one.judgement
        content = {} if judged is None else judged.content()
        unit, value = known.quantity.value, content.get("value")
        rows.append((value, unit, known.sign, known.bound, content.get("ratio")))
    return row_table(_FIGURES, rows, "gates").columns


def trend(path: Path, _units: Units) -> Table:
    """Return a row for each metric in a history of a gate: its last values and their change.

    Raises: QueryError for a folder; FormatError, OSError
    """
    if path.is_dir():
        raise QueryError(f"{path} is a folder: expected the history of a gate, a file")
    runs = read_history(path)
    names = tuple(dict.fromkeys(name for run in runs for name in run.figures))
    failed = Counter(_metric(text) for run in runs for text in run.failed)
    rows = [
        (
            one.metric,
            _figure(one.metric, one.values[-1]),
            None if one.change is None else f"{one.change:+.3g} %",
            failed[one.metric] or None,
            " → ".join(_figure(one.metric, value) for value in one.values),
        )
        for one in trends(runs, names)
    ]
    return row_table(_TREND, rows, "metrics", keys=[row[0] for row in rows])


def _figure(metric: str, value: float | None) -> str:
    return "unknown" if value is None else short(_bound_unit(metric), value)


def history(path: Path, units: Units) -> Table:
    """Return a row for each run in a history of a gate, with its figures.

    Raises: QueryError for a folder; FormatError, OSError
    """
    if path.is_dir():
        raise QueryError(f"{path} is a folder: expected the history of a gate, a file")
    runs = read_history(path)
    metrics = tuple(dict.fromkeys(name for run in runs for name in run.figures))
    figures = {name: _BASE[_bound_unit(name)] for name in metrics}
    fields = (
        RowField("date"),
        RowField("program"),
        RowField("sha256", mono=True),
        RowField("met"),
        *(RowField(name, quantity) for name, (quantity, _) in figures.items()),
        RowField("failed"),
    )
    rows = [
        (
            run.date,
            run.program,
            run.sha256[:12],
            "met" if run.met else "not met",
            *(_in_base(run.figures.get(name), base) for name, (_, base) in figures.items()),
            ", ".join(run.failed),
        )
        for run in runs
    ]
    table = row_table(fields, rows, "runs", units=units)
    return replace(table, columns=tuple(map(_with_decibels, table.columns)))


def _in_base(value: float | None, base: float) -> float | None:
    return None if value is None else value * base


def _with_decibels(column: Column) -> Column:
    named = _bound_unit(column.title) is BoundUnit.DECIBELS
    return replace(column, unit="dB", raw_unit="dB") if named else column


def _metric(requirement: str) -> str:
    """Return the metric of a requirement, empty for one of another version."""
    try:
        return parse_requirement(requirement).metric
    except RequirementError:
        return ""


def _bound_unit(metric: str) -> BoundUnit:
    """Return the unit of a metric; one of another version is a number without a unit."""
    try:
        return unit_of(metric)
    except KeyError:
        return BoundUnit.NUMBER
