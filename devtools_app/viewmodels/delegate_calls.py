"""Which selections mean the call of a delegate as a whole, not a node inside of it."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.files.session import Session
from inspector.graph.model_graph import ModelNode
from inspector.profile.join_index import Related
from inspector.profile.operator_rows import OperatorRow, operator_rows
from inspector.tables.selection import Selection, SelectionKind


def rows_of(
    session: Session, method: str, selection: Selection, related: Related
) -> list[OperatorRow]:
    """Return the operators of a selection; of a kernel's own event that of the kernel."""
    rows = operator_rows(session, method).of_events(related.events)
    if not rows and selection.kind is SelectionKind.EVENT:
        return operator_rows(session, method).of_calls(related.instructions)
    return rows


def called_delegate(
    selection: Selection, nodes: Sequence[ModelNode], rows: Sequence[OperatorRow]
) -> int | None:
    """Return the delegate whose call is selected, None for other selections."""
    if selection.kind is SelectionKind.EVENT and all(row.kind != "inner" for row in rows):
        return rows[0].link.delegate if rows else None
    if selection.kind is SelectionKind.INSTRUCTION and nodes:
        return nodes[0].delegate
    return None
