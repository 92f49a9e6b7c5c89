"""What to do next with a session, an action per row."""

from __future__ import annotations

from inspector.files.session import Session
from inspector.findings.next_steps import next_steps
from inspector.tables.selection import Units
from inspector.tables.table import Table, text_column


def next_step_table(session: Session, _units: Units) -> Table:
    """Return the actions that would bring most, the first one first."""
    found = next_steps(session)
    columns = (
        text_column("action", [one.text for one in found], width=60),
        text_column("brings", [one.brings for one in found], width=90),
        text_column("command", [one.command or None for one in found], missing=""),
        text_column("view", [one.view or None for one in found], missing=""),
    )
    return Table(columns, len(found), noun="actions")
