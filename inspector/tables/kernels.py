"""The layers that ran inside delegates, with the kernels that their backend names."""

from __future__ import annotations

from inspector.files.session import Session
from inspector.profile.operator_rows import OperatorRow, operator_rows
from inspector.tables.query import QueryError
from inspector.tables.rows import RowField, bounded_times, row_table
from inspector.tables.selection import AUTOMATIC, Selection, SelectionKind, Units
from inspector.tables.table import Table, Total
from inspector.units import Quantity

_FIELDS = (
    RowField("layer", mono=True, width=28),
    RowField("kind"),
    RowField("kernel", mono=True),
    RowField("mean", Quantity.TIME, Total.SUM),
    RowField("share of method", Quantity.SHARE, Total.SUM),
    RowField("delegate"),
    RowField("node", mono=True),
    RowField("module"),
)


def kernels(session: Session, method: str, units: Units = AUTOMATIC) -> Table:
    """Return one row per layer whose backend named its kernel, in order of execution.

    Raises: QueryError for a session without a trace of such a backend
    """
    rows = [row for row in operator_rows(session, method) if row.kernel]
    if not rows:
        raise QueryError("no kernel names: no backend of this trace logs any")
    keys = [_key(method, row) for row in rows]
    table = row_table(_FIELDS, [_cells(row) for row in rows], "layers", keys=keys, units=units)
    return bounded_times(table, [row.tick_ns for row in rows])


def _cells(row: OperatorRow) -> tuple[object, ...]:
    kind, _, name = row.kernel.partition(" ")
    return (
        row.label,
        kind,
        name,
        row.mean_ns,
        row.share,
        row.delegate,
        ", ".join(row.link.nodes),
        row.module,
    )


def _key(method: str, row: OperatorRow) -> Selection:
    return Selection(SelectionKind.EVENT, method, event=row.event)
