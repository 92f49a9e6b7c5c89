"""Pairs of files that belong together, with the evidence."""

from __future__ import annotations

from pathlib import PurePath

from inspector.check.session import DO_NOT_BELONG, Check, check_session
from inspector.files.session import Session
from inspector.tables.rows import RowField, row_table
from inspector.tables.selection import Units
from inspector.tables.table import Table
from inspector.units import Quantity

_WORST = DO_NOT_BELONG.replace("_", " ")
_FIELDS = (
    RowField("file", mono=True),
    RowField("with", mono=True),
    RowField("verdict", tone=lambda value: "bad" if value == _WORST else "good"),
    RowField("mismatch"),
    RowField("facts", Quantity.COUNT),
    RowField("compared"),
)


def link_table(found: Check) -> Table:
    """Return one row per pair of files: verdict, facts that agree, the first that does not."""
    rows = [
        (
            PurePath(link.first).name,
            PurePath(link.second).name,
            link.verdict.replace("_", " "),
            link.mismatch,
            link.matched,
            link.what,
        )
        for link in found.links
    ]
    return row_table(_FIELDS, rows, "pairs", keys=[(one.first, one.second) for one in found.links])


def check(session: Session, _units: Units) -> Table:
    """Return which pairs of a session's files belong together."""
    return link_table(check_session(session))
