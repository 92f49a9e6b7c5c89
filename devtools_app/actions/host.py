"""Interfaces of commands: the services below the window, and requests to the window."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QWidget

from devtools_app.appearance.theme import Theme
from devtools_app.jobs.window_jobs import WindowJobs
from devtools_app.sessions.recipe_store import RecipeStore
from devtools_app.sessions.session_controller import SessionController
from devtools_app.state.panel_layout import PanelLayouts
from devtools_app.state.requests import Ask, Notice
from devtools_app.state.store import Store
from devtools_app.state.tab_groups import Tabs
from devtools_app.widgets.files import PathChooser

if TYPE_CHECKING:
    from devtools_app.views.spec import ViewSpec


@dataclass(frozen=True, slots=True, eq=False)
class Services:
    """The parts below the window.

    Attributes:
        parent: of dialogs
        theme: the look
        store: the state
        controller: open sessions and persistent settings
        jobs: running jobs
        recipe_store: recipes of open programs
        paths: asks for files and folders
        ask: handles a request
    """

    parent: QWidget
    theme: Theme
    store: Store
    controller: SessionController
    jobs: WindowJobs
    recipe_store: RecipeStore
    paths: PathChooser
    ask: Ask


class CommandHost(Protocol):
    """Requests of commands to the window, by text and names, without access to its widgets."""

    def notice(self, notice: Notice) -> None:
        """Show a message above the views."""
        ...

    def dismiss_notice(self) -> bool:
        """Hide the message above the views; return whether there was one."""
        ...

    def show_status(self, text: str) -> None:
        """Show a sentence in the status line for a few seconds."""
        ...

    def show_view(self, name: str, *, begin: bool = False) -> None:
        """Bring a view to the front and give it the focus; start its job if asked to."""
        ...

    def show_edits(self) -> None:
        """Show the edits of the recipe on the selection in a menu."""
        ...

    def show_start_page(self) -> None:
        """Show the start page over the views until one is chosen or something is opened."""
        ...

    def step_area(self, by: int) -> None:
        """Move the keyboard to the next area of the window (1) or the one before (-1)."""
        ...

    def start_tour(self) -> None:
        """Show the first step of the tour of the sample."""
        ...

    def active_view(self) -> tuple[ViewSpec, QWidget | None] | None:
        """Return the view with the focus, else the one in front; None without views."""
        ...

    @property
    def tabs(self) -> Tabs:
        """Return the names of the views in the middle, by their group."""
        ...

    def all_actions(self) -> Iterable[QAction]:
        """Return every command for the palette, those of the table first."""
        ...

    def layouts(self) -> PanelLayouts:
        """Return where the panels are by the group of tabs, for a workspace."""
        ...

    def reset_layout(self) -> None:
        """Reset all panels to their default places."""
        ...

    def save_layout(self) -> None:
        """Ask for a name and save the arrangement of the panels."""
        ...

    def fold(self) -> None:
        """Open or fold the panel below the views."""
        ...

    def toggle_full_screen(self) -> None:
        """Toggle full screen."""
        ...

    def close(self) -> bool:
        """Close the window; return whether it is closed."""
        ...
