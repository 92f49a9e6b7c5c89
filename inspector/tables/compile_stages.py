"""The stages of a compile as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from inspector.jobs.messages import Ended, Outcome, StageProgress
from inspector.recipes.compile_job import REPORT
from inspector.tables.reports import table_of_report
from inspector.tables.rows import RowField, ns, row_table
from inspector.tables.selection import Units
from inspector.tables.table import Table, Total, badge_column, number_column, text_column
from inspector.units import NS_PER_S, Quantity

_FIELDS = (
    RowField("stage"),
    RowField("method"),
    RowField("time", Quantity.TIME, Total.SUM),
    RowField("nodes", Quantity.COUNT, missing=""),
)
_TONES = {"done": "good", "running": "accent", "cancelled": "warn"}


def stage_table(
    stages: Sequence[StageProgress], running_seconds: float, outcome: Outcome | None
) -> Table:
    """Return stage, method, state, time and nodes.

    Args:
        stages: in order; the last one may be running
        running_seconds: its duration so far
        outcome: of the compile, None while it runs
    """
    times = [running_seconds if one.seconds is None else one.seconds for one in stages]
    state = badge_column(
        "state",
        [_state(one, outcome) for one in stages],
        tone=lambda value: _TONES.get(str(value), "bad"),
    )
    return Table(
        (
            text_column("stage", [one.stage for one in stages], width=12),
            text_column("method", [one.method for one in stages], width=14),
            state,
            number_column("time", [seconds * NS_PER_S for seconds in times], Quantity.TIME),
            text_column("nodes", [_count(one.nodes) for one in stages], width=8),
        ),
        len(stages),
        keys=[(one.stage, one.method) for one in stages],
        noun="stages",
    )


def compile_table(stages: Sequence[Mapping[str, Any]]) -> Table:
    """Return one row per stage of a finished compile, from its report."""
    rows = [(one["stage"], one["method"], ns(one["time_ms"]), one["nodes"]) for one in stages]
    return row_table(_FIELDS, rows, "stages", keys=[row[:2] for row in rows])


def compile_stages(folder: Path, _units: Units) -> Table:
    """Return the stages in the report of a compile.

    Raises: FormatError for a folder without one; OSError
    """
    what = "the report of a compile"
    return table_of_report(folder, REPORT, what, lambda report: compile_table(report["stages"]))


def _count(nodes: int | None) -> str:
    """Return a count; empty for a stage without a graph."""
    return "" if nodes is None else f"{nodes:,}"


def _state(stage: StageProgress, outcome: Outcome | None) -> str:
    if stage.seconds is not None:
        return "done"
    if outcome is None:
        return "running"
    if outcome.ended is Ended.FINISHED:
        return "done"
    return outcome.ended.value
