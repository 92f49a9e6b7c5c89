"""Delegation: operator counts, delegates, facts of their payloads."""

from __future__ import annotations

from inspector.files.session import Session
from inspector.graph.delegation import MethodDelegation, analyse_delegation
from inspector.tables.query import QueryError
from inspector.tables.rows import RowField, row_table
from inspector.tables.selection import Selection, SelectionKind, Units
from inspector.tables.table import Table, Total
from inspector.units import Quantity

_COUNTS = (
    RowField("operator", mono=True),
    RowField("delegated", Quantity.COUNT, Total.SUM),
    RowField("not delegated", Quantity.COUNT, Total.SUM),
)
_DELEGATES = (
    RowField("delegate", Quantity.COUNT),
    RowField("backend"),
    RowField("nodes", Quantity.COUNT, Total.SUM),
    RowField("computing nodes", Quantity.COUNT, Total.SUM),
    RowField("payload", Quantity.SIZE, Total.SUM),
    RowField("named data", Quantity.SIZE, Total.SUM),
    RowField("called by"),
    RowField("compile specs"),
    RowField("format"),
)
_FACTS = (RowField("delegate", Quantity.COUNT), RowField("fact"), RowField("value"))


def operator_counts(entry: MethodDelegation) -> Table:
    """Return how often each operator was delegated, and how often not."""
    rows = [(row.op_type, row.delegated, row.non_delegated) for row in entry.by_operator]
    return row_table(_COUNTS, rows, "operators", keys=[row[0] for row in rows])


def delegate_table(entry: MethodDelegation) -> Table:
    """Return one row per delegate: backend, nodes, bytes, the instructions that call it."""
    rows = [
        (
            one.index,
            one.backend_id,
            len(one.nodes),
            one.computing,
            one.nbytes,
            one.named_bytes,
            ", ".join(map(str, one.calls)),
            ", ".join(f"{key}={value}" for key, value in one.compile_specs.items()),
            one.payload.format if one.payload is not None else "",
        )
        for one in entry.delegates
    ]
    return row_table(_DELEGATES, rows, "delegates", keys=_keys(entry, [row[0] for row in rows]))


def payload_table(entry: MethodDelegation) -> Table:
    """Return the facts of each payload, one fact per row."""
    rows = [
        (one.index, key, str(value))
        for one in entry.delegates
        if one.payload is not None
        for key, value in one.payload.summary.items()
        if value != ""
    ]
    return row_table(_FACTS, rows, "facts", keys=_keys(entry, [row[0] for row in rows]))


def _keys(entry: MethodDelegation, delegates: list[int]) -> list[Selection]:
    return [Selection(SelectionKind.DELEGATE, entry.method, delegate=index) for index in delegates]


def _entry(session: Session, method: str) -> MethodDelegation:
    for entry in analyse_delegation(session):
        if entry.method == method:
            return entry
    raise QueryError("delegation needs a program or an ETRecord")


def delegation(session: Session, method: str, _units: Units) -> Table:
    """Return how often each operator of a method was delegated.

    Raises: QueryError when no file has delegation data
    """
    return operator_counts(_entry(session, method))


def delegates(session: Session, method: str, _units: Units) -> Table:
    """Return the delegates of a method.

    Raises: QueryError when no file has delegation data
    """
    return delegate_table(_entry(session, method))


def payloads(session: Session, method: str, _units: Units) -> Table:
    """Return the facts of the payloads of a method.

    Raises: QueryError when no file has delegation data
    """
    return payload_table(_entry(session, method))
