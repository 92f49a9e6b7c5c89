"""Stored and logged tensors, with statistics of their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inspector.files.session import Session
from inspector.numerics.tensors import LoggedTensor, StoredTensor, logged_tensors
from inspector.size.constant_names import named_tensors
from inspector.tables.rows import RowField, row_table
from inspector.tables.selection import Selection, SelectionKind, Units
from inspector.tables.table import Table, Total
from inspector.tensors.sources import TensorSource
from inspector.tensors.summary import summary_of
from inspector.units import Quantity

_STATISTICS = ("min", "mean", "max", "nan", "inf")
_FIELDS = (
    RowField("shape", mono=True),
    RowField("size", Quantity.SIZE, Total.SUM),
    RowField("min", Quantity.PLAIN),
    RowField("max", Quantity.PLAIN),
    RowField("note"),
    RowField("dtype"),
    RowField("nan", Quantity.COUNT),
    RowField("inf", Quantity.COUNT),
    RowField("mean", Quantity.PLAIN),
)


def stored_json(one: StoredTensor, values: bool) -> dict[str, Any]:
    """Return the JSON of a stored tensor, with statistics of its values if requested."""
    return {
        "name": one.name,
        "method": one.method,
        "value": one.value,
        "role": one.role,
        "dtype": one.dtype,
        "sizes": list(one.sizes),
        "dim_order": list(one.dim_order),
        "bytes": one.nbytes,
        "missing": one.missing or None,
        "statistics": one.statistics() if values else None,
    }


def recorded_json(one: TensorSource, values: bool) -> dict[str, Any]:
    """Return the JSON of a weight of a recorded program, as that of a stored tensor."""
    return {
        "name": one.name,
        "method": one.method,
        "value": None,
        "role": one.origin,
        "dtype": one.dtype,
        "sizes": list(one.sizes),
        "dim_order": None,
        "bytes": one.nbytes,
        "missing": one.missing or None,
        "statistics": summary_of(one).facts if values and not one.missing else None,
    }


def logged_json(one: LoggedTensor, values: bool) -> dict[str, Any]:
    """Return the JSON of a logged tensor, with statistics of its values if requested."""
    return {
        "event": one.event,
        "instruction_id": one.instruction,
        "position": one.position,
        "output": one.is_output,
        "dtype": one.dtype,
        "sizes": list(one.sizes),
        "bytes": one.nbytes,
        "missing": one.missing or None,
        "statistics": one.statistics() if values else None,
    }


def _cells(row: Mapping[str, Any], note: str) -> tuple[Any, ...]:
    facts: Mapping[str, Any] = row["statistics"] or {}
    low, mean, high, nan, inf = (facts.get(name) for name in _STATISTICS)
    message = row["missing"] or note
    return str(row["sizes"]), row["bytes"], low, high, message, row["dtype"], nan, inf, mean


def stored_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return one row per stored tensor, from ``stored_json`` and ``recorded_json``."""
    cells = [(row["name"], *_cells(row, row["role"])) for row in rows]
    keys = [Selection(SelectionKind.VALUE, row["method"], value=row["value"]) for row in rows]
    return row_table((RowField("name", mono=True), *_FIELDS), cells, "tensors", keys=keys)


def logged_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return one row per logged tensor, from ``logged_json``."""
    cells = [(_label(row), *_cells(row, "program output" if row["output"] else "")) for row in rows]
    return row_table((RowField("event"), *_FIELDS), cells, "tensors")


def _label(row: Mapping[str, Any]) -> str:
    if row["instruction_id"] is None:
        return str(row["event"])
    return f"{row['instruction_id']} {row['event']} [{row['position']}]"


def tensors(session: Session, method: str, _units: Units) -> Table:
    """Return the constants and planned values of a method."""
    return stored_table([stored_json(one, True) for one in named_tensors(session, method)])


def logged(session: Session, _units: Units) -> Table:
    """Return the tensors that the first run logged."""
    return logged_table([logged_json(one, True) for one in logged_tensors(session, 0)])
