"""One module a view; each draws a view-model and can only ask. The table of all views is VIEWS."""

from __future__ import annotations

from devtools_app.views import (
    files,
    findings,
    graph,
    issues,
    log,
    memory,
    node,
    notes,
    operators,
    overview,
    partitions,
    sessions,
    size,
    source,
    structure,
    timeline,
)
from devtools_app.views.spec import Area, ViewSpec

# the centre in the order of its tabs, then the docks of each side in their order
VIEWS: tuple[ViewSpec, ...] = (
    overview.SPEC,
    graph.SPEC,
    timeline.SPEC,
    memory.SPEC,
    size.SPEC,
    partitions.SPEC,
    source.SPEC,
    structure.SPEC,
    sessions.SPEC,
    files.SPEC,
    findings.SPEC,
    node.SPEC,
    notes.SPEC,
    operators.SPEC,
    issues.SPEC,
    log.SPEC,
)


def views_in(area: Area) -> tuple[ViewSpec, ...]:
    """Return the views of one side of the window, in order."""
    return tuple(view for view in VIEWS if view.area is area)


def view_named(name: str) -> ViewSpec | None:
    """Return a view by its name, None when there is none."""
    return next((view for view in VIEWS if view.name == name), None)
