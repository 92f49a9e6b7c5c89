"""The events of a Chrome trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inspector.tables.rows import RowField, row_table
from inspector.tables.table import Table
from inspector.units import Quantity

_NS_PER_US = 1e3
_FIELDS = (
    RowField("run", Quantity.COUNT),
    RowField("lane", Quantity.COUNT),
    RowField("name"),
    RowField("category"),
    RowField("start", Quantity.TIME),
    RowField("duration", Quantity.TIME),
    RowField("instruction", Quantity.COUNT, missing=""),
)


def trace_events(trace: Mapping[str, Any]) -> Table:
    """Return one row per event that has a duration."""
    rows = [
        (
            event["pid"],
            event["tid"],
            event["name"],
            event["cat"],
            event["ts"] * _NS_PER_US,
            event["dur"] * _NS_PER_US,
            event["args"].get("instruction"),
        )
        for event in trace["traceEvents"]
        if event["ph"] == "X"
    ]
    return row_table(_FIELDS, rows, "events")
