"""Findings of a session, one sentence per row."""

from __future__ import annotations

from inspector.files.session import Session
from inspector.findings.attempts import command_of
from inspector.findings.session import findings
from inspector.tables.rows import ns
from inspector.tables.selection import Units
from inspector.tables.table import Table, badge_column, number_column, text_column
from inspector.units import Quantity


def finding_table(session: Session, _units: Units) -> Table:
    """Return the findings of a session, the most important first."""
    found = findings(session)
    columns = (
        badge_column("tone", [one.tone.value for one in found], tone=str),
        text_column("severity", [one.tone.severity for one in found]),
        text_column("finding", [one.text for one in found], width=90),
        text_column("detail", [one.detail or None for one in found], missing=""),
        number_column("saves", [ns(one.saves_ms) for one in found], Quantity.TIME, missing="—"),
        number_column(
            "saves bytes", [one.saves_bytes for one in found], Quantity.SIZE, missing="—"
        ),
        text_column("try", [command_of(session, one) or None for one in found], missing=""),
        text_column("view", [one.view for one in found]),
        text_column("method", [one.method or None for one in found], missing=""),
    )
    return Table(columns, len(found), noun="findings")
