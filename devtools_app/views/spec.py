"""The contract between the window and its views."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from PySide6.QtWidgets import QWidget

from devtools_app.appearance.theme import Theme
from devtools_app.jobs.imports import Imports
from devtools_app.jobs.window_jobs import WindowJobs
from devtools_app.state.panel_layout import Showing
from devtools_app.state.requests import Ask
from devtools_app.state.state import State
from devtools_app.state.store import Store
from devtools_app.state.tab_groups import TabGroup
from devtools_app.widgets.empty_state import Need
from devtools_app.widgets.files import Done, PathChooser, unreported
from devtools_app.widgets.log_panel import LogStore

if TYPE_CHECKING:
    from inspector.files.session import Session


class Area(str, Enum):
    """Areas of views."""

    CENTRE = "centre"  # a tab of the groups of the view
    LEFT = "left"
    RIGHT = "right"
    BOTTOM = "bottom"


@dataclass(frozen=True, slots=True, eq=False)
class ViewContext:
    """Services that a view may use.

    Attributes:
        store: the state; a view may update its part of it (overlay, filter, expanded)
        theme: colours, fonts and icons; connect ``theme.changed`` where they are used
        ask: sends a request to the window
        log: the log of the program
        jobs: followers by the name of the job
        paths: asks for files and folders
        imports: modules that are imported off the GUI thread
    """

    store: Store
    theme: Theme
    ask: Ask
    log: LogStore
    jobs: WindowJobs = field(default_factory=WindowJobs)
    paths: PathChooser = field(default_factory=PathChooser)
    imports: Imports = field(default_factory=Imports)


@runtime_checkable
class View(Protocol):
    """Protocol of view widgets."""

    def show_state(self, state: State) -> None:
        """Show a state. Called when the view is visible and the state has changed.

        Must return within 16 ms; slower computations use ``Computed``.
        """
        ...


@runtime_checkable
class CanFind(Protocol):
    """A view with a search or filter field for Ctrl+F."""

    def start_find(self) -> None:
        """Focus the search field."""
        ...


@runtime_checkable
class CanStep(Protocol):
    """A view in which ``.`` and ``,`` go to the next and previous item."""

    def step(self, by: int) -> bool:
        """Choose the next (1) or previous (-1) item; return whether it exists."""
        ...


@runtime_checkable
class CanExport(Protocol):
    """A view that writes its tables itself; the window exports an image of any view."""

    def export_to(self, path: Path, done: Done = unreported) -> bool:
        """Begin to write the content as TSV or CSV by the suffix; return whether there is any.

        ``done`` is called with the path once the file is there.
        """
        ...


@runtime_checkable
class CanDraw(Protocol):
    """A view that draws itself into a file better than a screenshot would."""

    def save_image(self, path: Path) -> None:
        """Write PNG or SVG by the suffix.

        Raises: OSError
        """
        ...


@runtime_checkable
class CanTakeFocus(Protocol):
    """A view that chooses which of its widgets gets the focus."""

    def take_focus(self) -> None:
        """Focus the widget to begin with."""
        ...


@runtime_checkable
class CanBegin(Protocol):
    """A view with a job that can be started from elsewhere."""

    def begin(self) -> None:
        """Start the job of the view for the current session, unless its result is there."""
        ...


@runtime_checkable
class CanClose(Protocol):
    """A view that owns threads."""

    def shut_down(self) -> None:
        """Stop them; called once before the window closes."""
        ...


def needs_nothing(_session: Session) -> Need | None:
    """Return None: the view shows any session."""
    return None


def always_possible(_session: Session) -> str:
    """Return an empty string: a file or a run may fill the view."""
    return ""


@dataclass(frozen=True, slots=True)
class ViewSpec:
    """One entry of the table of views.

    Attributes:
        name: short, stable, used in settings and workspaces
        title: on the tab or dock
        area: of the window
        make: builds the widget, which implements View; called when it is first shown
        icon: name in the icon set
        needs: missing requirements of a session, or None
        without_session: whether the view is shown without sessions
        action: name of the action of the plus button on a dock, may be empty
        showing: when a panel at a side is shown by default
        groups: of tabs in the middle that have the view; a panel may be a tab as well
        never: why no file and no run can fill the view of this kind of session; such a view is not
            among the tabs. Empty where in doubt.
        module: that is imported before the view is shown, may be empty
    """

    name: str
    title: str
    area: Area
    make: Callable[[ViewContext], QWidget]
    icon: str
    needs: Callable[[Session], Need | None] = needs_nothing
    without_session: bool = False
    action: str = ""
    groups: tuple[TabGroup, ...] = ()
    never: Callable[[Session], str] = always_possible
    showing: Showing = Showing.ALWAYS
    module: str = ""


def tabs_of(views: Iterable[ViewSpec]) -> dict[TabGroup, tuple[ViewSpec, ...]]:
    """Return the views in the middle by their group, in order; groups without views are left out.

    A view in the middle that names no group is one to look at.
    """
    found: dict[TabGroup, tuple[ViewSpec, ...]] = {}
    for view in views:
        usual = (TabGroup.LOOK,) if view.area is Area.CENTRE else ()
        for group in view.groups or usual:
            found[group] = (*found.get(group, ()), view)
    return {group: found[group] for group in TabGroup if group in found}


def never_filled(views: Iterable[ViewSpec], session: Session | None) -> dict[str, str]:
    """Return the views that nothing can fill for a session, with the reason."""
    if session is None:
        return {}
    return {view.name: reason for view in views if (reason := view.never(session))}


def entry(  # noqa: PLR0913 - one line of the table of views
    name: str,
    title: str,
    area: Area,
    icon: str,
    *,
    without_session: bool = False,
    action: str = "",
    groups: tuple[TabGroup, ...] = (),
    never: Callable[[Session], str] = always_possible,
    showing: Showing = Showing.ALWAYS,
) -> ViewSpec:
    """Return the entry of a view in the table, without importing the view."""
    module = f"devtools_app.views.{name}"

    def full() -> ViewSpec:
        found: ViewSpec = import_module(module).SPEC
        return found

    return ViewSpec(
        name,
        title,
        area,
        lambda context: full().make(context),
        icon,
        lambda session: full().needs(session),
        without_session,
        action,
        groups,
        never,
        showing,
        module,
    )
