"""The table of operators with FLOPs, bytes and the limit they are near."""

from __future__ import annotations

from collections.abc import Hashable

from inspector.files.session import Session
from inspector.graph.model_graph import COMPILED
from inspector.roofline.calibration import load_calibration
from inspector.roofline.rows import Limit, Limits, RooflineRow, limits_of, roofline
from inspector.tables.rows import RowField, row_table
from inspector.tables.selection import Selection, SelectionKind, Units
from inspector.tables.table import Table, Total
from inspector.units import Quantity
from schema.errors import FormatError

_TONES = {Limit.COMPUTE: "good", Limit.MEMORY: "accent", Limit.OVERHEAD: "warn"}


def _tone(value: object) -> str:
    word = str(value).partition(":")[0]
    return next((tone for bound, tone in _TONES.items() if bound.value == word), "muted")


_FIELDS = (
    RowField("operator", width=23),
    RowField("module", width=16),
    RowField("delegate", missing="—", width=13),
    RowField("mean", Quantity.TIME, Total.SUM),
    RowField("FLOPs", Quantity.OPERATIONS, Total.SUM),
    RowField("read", Quantity.SIZE, Total.SUM),
    RowField("written", Quantity.SIZE, Total.SUM),
    RowField("FLOPs a byte", Quantity.PLAIN),
    RowField("compute rate", Quantity.OPERATION_RATE),
    RowField("memory rate", Quantity.BANDWIDTH),
    RowField("share of limit", Quantity.SHARE),
    RowField("limit", tone=_tone),
    RowField("dtype"),
    RowField("note"),
)


def known_limits(session: Session) -> Limits:
    """Return the limits of this machine for a session; none where the calibration is unreadable."""
    try:
        calibration = load_calibration()
    except (FormatError, OSError):
        calibration = None
    return limits_of(session, calibration)


def operators_at_limits(session: Session, method: str, units: Units) -> Table:
    """Return one row per operator: FLOPs, bytes, rates and the limit it is near."""
    found = roofline(session, method, known_limits(session))
    return roofline_table(found.rows, method, units)


def roofline_table(rows: tuple[RooflineRow, ...], method: str, units: Units) -> Table:
    """Return a table of rows."""
    keys = [row_selection(row, method) for row in rows]
    return row_table(_FIELDS, [_cells(row) for row in rows], "operators", keys=keys, units=units)


def _cells(row: RooflineRow) -> tuple[object, ...]:
    work = row.work
    return (
        row.label,
        row.module,
        row.delegate or None,
        row.time_ns,
        work.flops,
        work.read,
        work.written,
        work.intensity,
        row.flops_per_s,
        row.bytes_per_s,
        row.share,
        row.words or None,
        work.dtype or None,
        note(row) or None,
    )


def note(row: RooflineRow) -> str:
    """Return why something is missing, or which sizes were used."""
    if row.work.reason:
        return row.work.reason
    return "upper bounds of dynamic sizes" if row.work.bounded else ""


def row_selection(row: RooflineRow, method: str) -> Hashable:
    """Return what a row stands for: its event, else its instruction, else its node."""
    if row.event is not None:
        kind = SelectionKind.EVENT
    elif row.instruction is not None:
        kind = SelectionKind.INSTRUCTION
    else:
        kind = SelectionKind.NODE
    return Selection(
        kind,
        method=method,
        graph=COMPILED,
        node=row.node,
        instruction=row.instruction,
        event=row.event,
        delegate=row.index,
    )
