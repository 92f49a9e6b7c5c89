"""One module per view; each draws a view-model and sends requests. The table of all views is VIEWS.

The module of a view has its name and exports its full spec as SPEC. It is imported when the view
is first shown, so that the window appears before the readers of files are imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from devtools_app.state.panel_layout import Showing
from devtools_app.state.tab_groups import TabGroup
from devtools_app.views.spec import Area, ViewSpec, entry

if TYPE_CHECKING:
    from inspector.files.session import Session

_LOOK, _CHANGE, _PROVE = (TabGroup.LOOK,), (TabGroup.CHANGE,), (TabGroup.PROVE,)


def _only_data(session: Session) -> str:
    """Return why a session of data files alone fills no view of a program."""
    data = session.files and all(file.kind == "ptd" for file in session.files)
    return "a data file has no program, record or trace" if data else ""


def _not_compiled(session: Session) -> str:
    """Return why no run and no plan can belong to a session of exported programs or data alone."""
    kinds = {file.kind for file in session.files} - {"node_data"}
    if kinds == {"pt2"}:
        return "an exported program is not compiled: File > Compile makes a program of it"
    return _only_data(session)


def _no_record(session: Session) -> str:
    """Return why no ETRecord can belong to a session."""
    from schema.files.vendor_models import vendor_suffixes

    suffixes = tuple(vendor_suffixes())
    if any(file.path.lower().rstrip("/").endswith(suffixes) for file in session.files):
        return "a model of a vendor's own format has no ETRecord and no source"
    return _only_data(session)


def _no_gap(session: Session) -> str:
    """Return why no values of a session can be compared with a recorded graph."""
    return _no_record(session) or _not_compiled(session)


def _no_delegate(session: Session) -> str:
    """Return why nothing of a program is stepped through."""
    program = session.program
    if program is None or any(plan.delegates for plan in program.plans):
        return ""
    return "the program has no delegate to step through"


def _no_language_model(session: Session) -> str:
    """Return why a program generates no text, empty without a program that can be read."""
    from inspector.files.language_model import no_language_model

    program = session.program
    return _only_data(session) if program is None else no_language_model(program)


# the tabs of each group and the panels of each side in their order
VIEWS: tuple[ViewSpec, ...] = (
    entry("overview", "Overview", Area.CENTRE, "overview", groups=_LOOK),
    entry("graph", "Graph", Area.CENTRE, "graph", groups=_LOOK + _CHANGE, never=_only_data),
    entry("timeline", "Timeline", Area.CENTRE, "timeline", groups=_LOOK, never=_not_compiled),
    entry("memory", "Memory", Area.CENTRE, "memory", groups=_LOOK, never=_not_compiled),
    entry("size", "Size", Area.CENTRE, "size", groups=_LOOK),
    entry("partitions", "Partitions", Area.CENTRE, "partitions", groups=_LOOK, never=_only_data),
    entry("source", "Source", Area.CENTRE, "source", groups=_LOOK, never=_no_record),
    entry("structure", "Structure", Area.CENTRE, "structure", groups=_LOOK),
    entry("roofline", "Roofline", Area.CENTRE, "roofline", groups=_LOOK, never=_only_data),
    entry("backends", "Backends", Area.CENTRE, "partitions", without_session=True, groups=_LOOK),
    entry("node", "Node", Area.RIGHT, "node", showing=Showing.FOLLOWS),
    entry("recipe", "Recipe", Area.RIGHT, "recipe", groups=_CHANGE, showing=Showing.NEVER),
    entry("notes", "Notes", Area.RIGHT, "notes", showing=Showing.NEVER),
    entry("guide", "Guide", Area.RIGHT, "info", without_session=True, showing=Showing.NEVER),
    entry("stages", "Stages", Area.CENTRE, "stages", groups=_CHANGE, never=_no_record),
    entry(
        "step",
        "Step",
        Area.CENTRE,
        "step",
        without_session=True,
        groups=_CHANGE,
        never=_no_delegate,
    ),
    entry("bisect", "Bisect", Area.CENTRE, "bisect", without_session=True, groups=_CHANGE),
    entry("sweep", "Sweep", Area.CENTRE, "sweep", without_session=True, groups=_CHANGE),
    entry("compile", "Compile", Area.CENTRE, "play", without_session=True, groups=_CHANGE),
    entry("compare", "Compare", Area.CENTRE, "compare", groups=_PROVE),
    entry("gap", "Numeric gap", Area.CENTRE, "gap", groups=_PROVE, never=_no_gap),
    entry("tensor", "Tensor", Area.CENTRE, "tensor", groups=_LOOK + _PROVE),
    entry("evaluate", "Evaluate", Area.CENTRE, "evaluate", groups=_PROVE, never=_only_data),
    entry("run", "Run", Area.CENTRE, "play", without_session=True, groups=_PROVE),
    entry("gates", "Gates", Area.CENTRE, "gates", groups=_PROVE),
    entry("generate", "Generate", Area.CENTRE, "play", groups=_PROVE, never=_no_language_model),
    entry("calls", "Calls", Area.CENTRE, "timeline", groups=_PROVE, never=_not_compiled),
    entry("sessions", "Sessions", Area.LEFT, "sessions", without_session=True, action="open"),
    entry("files", "Files", Area.LEFT, "file", action="add_files"),
    # the Overview has the findings
    entry("findings", "Findings", Area.LEFT, "findings", showing=Showing.NEVER),
    entry("operators", "Operators", Area.BOTTOM, "operators"),
    entry("jobs", "Jobs", Area.BOTTOM, "jobs", without_session=True),
    entry("issues", "Issues", Area.BOTTOM, "issues"),
    entry("log", "Log", Area.BOTTOM, "log", without_session=True),
)


def view_named(name: str) -> ViewSpec | None:
    """Return a view by its name, or None."""
    return next((view for view in VIEWS if view.name == name), None)
