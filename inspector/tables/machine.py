"""The machine that programs are built and measured on: what disturbs times, installed packages."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.roofline.disturbances import Disturbance, Effect
from inspector.tables.rows import RowField, row_table
from inspector.tables.table import Table
from inspector.units import Quantity
from schema.vendors.environments import Environment

_TONES = {
    Effect.SEVERE.value: "bad",
    Effect.MODERATE.value: "warn",
    Effect.FINE.value: "good",
}
_DISTURBANCE = (
    RowField("severity", tone=lambda value: _TONES.get(str(value), "muted")),
    RowField("what"),
    RowField("found"),
    RowField("what helps", missing="—"),
)
_ENVIRONMENT = (
    RowField("name"),
    RowField("interpreter", mono=True),
    RowField("packages", Quantity.COUNT),
    RowField("created"),
)


def disturbance_table(found: Sequence[Disturbance]) -> Table:
    """Return one row per fact about a machine that may disturb measurements."""
    rows = [(one.severity.value, one.what, one.text, one.remedy or None) for one in found]
    return row_table(_DISTURBANCE, rows, "facts")


def environment_table(found: Sequence[Environment]) -> Table:
    """Return one row per environment of a vendor's packages."""
    rows = [(one.name, str(one.python), len(one.packages), one.created) for one in found]
    return row_table(_ENVIRONMENT, rows, "environments")
