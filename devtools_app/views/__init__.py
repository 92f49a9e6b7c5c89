"""One module per view; each draws a view-model and sends requests. The table of all views is VIEWS.

The module of a view has its name and exports its full spec as SPEC. It is imported when the view
is first shown, so that the window appears before the readers of files are imported.
"""

from __future__ import annotations

from devtools_app.views.spec import Area, ViewSpec, entry

# the centre in the order of its tabs, then the docks of each side in their order
VIEWS: tuple[ViewSpec, ...] = (
    entry("overview", "Overview", Area.CENTRE, "overview"),
    entry("graph", "Graph", Area.CENTRE, "graph"),
    entry("timeline", "Timeline", Area.CENTRE, "timeline"),
    entry("memory", "Memory", Area.CENTRE, "memory"),
    entry("size", "Size", Area.CENTRE, "size"),
    entry("partitions", "Partitions", Area.CENTRE, "partitions"),
    entry("stages", "Stages", Area.CENTRE, "stages"),
    entry("gap", "Numeric gap", Area.CENTRE, "gap"),
    entry("compare", "Compare", Area.CENTRE, "compare"),
    entry("evaluate", "Evaluate", Area.CENTRE, "evaluate"),
    entry("roofline", "Roofline", Area.CENTRE, "roofline"),
    entry("sweep", "Sweep", Area.CENTRE, "sweep", without_session=True),
    entry("source", "Source", Area.CENTRE, "source"),
    entry("structure", "Structure", Area.CENTRE, "structure"),
    entry("sessions", "Sessions", Area.LEFT, "sessions", without_session=True, action="open"),
    entry("files", "Files", Area.LEFT, "file", action="add_files"),
    entry("findings", "Findings", Area.LEFT, "findings"),
    entry("node", "Node", Area.RIGHT, "node"),
    entry("recipe", "Recipe", Area.RIGHT, "recipe"),
    entry("notes", "Notes", Area.RIGHT, "notes"),
    entry("operators", "Operators", Area.BOTTOM, "operators"),
    entry("compile", "Compile", Area.BOTTOM, "play", without_session=True, action="compile"),
    entry("run", "Run", Area.BOTTOM, "play", without_session=True),
    entry("step", "Step", Area.BOTTOM, "step", without_session=True),
    entry("bisect", "Bisect", Area.BOTTOM, "bisect", without_session=True),
    entry("issues", "Issues", Area.BOTTOM, "issues"),
    entry("log", "Log", Area.BOTTOM, "log", without_session=True),
)


def views_in(area: Area) -> tuple[ViewSpec, ...]:
    """Return the views of one side of the window, in order."""
    return tuple(view for view in VIEWS if view.area is area)


def view_named(name: str) -> ViewSpec | None:
    """Return a view by its name, or None."""
    return next((view for view in VIEWS if view.name == name), None)
