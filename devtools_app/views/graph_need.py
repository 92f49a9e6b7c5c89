"""Requirements of the graph view."""

from __future__ import annotations

from devtools_app.widgets.empty_state import Need
from inspector.files.session import Session

NO_GRAPH = Need(
    "No graph to draw",
    "The graph comes from an ETRecord, an exported program (.pt2) or the instructions of a program"
    " (.pte). Open one of them beside the files that are here.",
    "etrecord = ETRecord(); … etrecord.save('model.etrecord')",
)
NOT_READ = Need(
    "No graph can be read",
    "The files that are open have no graph of this method that can be read; what is damaged in"
    " them is under Issues. A whole ETRecord, exported program (.pt2) or program (.pte) has one.",
)


def needs(session: Session) -> Need | None:
    """Return the requirement that is missing to draw a graph, or None."""
    has_any = session.program is not None or session.record is not None
    return None if has_any else NO_GRAPH
