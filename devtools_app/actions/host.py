"""What commands and requests ask of the window; they know nothing else of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QMainWindow

if TYPE_CHECKING:
    from devtools_app.actions.commands import Commands
    from devtools_app.actions.palettes import Palettes
    from devtools_app.actions.router import Router
    from devtools_app.actions.table import Actions
    from devtools_app.jobs.window_jobs import WindowJobs
    from devtools_app.sessions.recipe_store import RecipeStore
    from devtools_app.sessions.session_controller import Notice, SessionController
    from devtools_app.shell.central_area import Centre
    from devtools_app.shell.docks import Docks
    from devtools_app.shell.status_bar import StatusLine
    from devtools_app.shell.theme import Theme
    from devtools_app.shell.view_host import ViewHost
    from devtools_app.state.store import Store
    from devtools_app.views.spec import ViewSpec
    from devtools_app.widgets.message_strip import MessageStrip


class WindowHost(QMainWindow):
    """The parts of a window that commands work with.

    Attributes:
        theme: the look
        store: the state
        controller: what is open and what is remembered
        router: does what views ask for
        jobs: what runs in processes of its own
        recipe_store: the recipes of what is open
        centre: the views in the middle
        centre_specs: which views those are, in the order of their tabs
        docks: the panels
        status: the line at the bottom
        strip: messages above the views
        palettes: Ctrl+P and Ctrl+Shift+P
        commands: what the actions do
        bound: the actions of the table
    """

    theme: Theme
    store: Store
    controller: SessionController
    router: Router
    jobs: WindowJobs
    recipe_store: RecipeStore
    centre: Centre
    centre_specs: tuple[ViewSpec, ...]
    docks: Docks
    status: StatusLine
    strip: MessageStrip
    palettes: Palettes
    commands: Commands
    bound: Actions

    def notice(self, notice: Notice) -> None:
        """Show a message above the views."""
        raise NotImplementedError

    def show_view(self, name: str) -> None:
        """Bring a view to the front and give it the keyboard."""
        raise NotImplementedError

    def show_start_page(self) -> None:
        """Show the start page over the views until one is chosen or something is opened."""
        raise NotImplementedError

    def reset_layout(self) -> None:
        """Put every panel where it belongs."""
        raise NotImplementedError

    def sync_actions(self) -> None:
        """Update the checked and enabled actions."""
        raise NotImplementedError

    def focused_host(self) -> ViewHost | None:
        """Return the place of the view that has the keyboard, else the one in front."""
        raise NotImplementedError
