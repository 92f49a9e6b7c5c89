"""A panel that follows the selection: it comes with one and goes with Esc."""

from __future__ import annotations

from PySide6.QtCore import QObject

from devtools_app.shell.docks import Dock
from devtools_app.state.panel_layout import Showing
from devtools_app.state.state import State


class FollowingPanel(QObject):
    """Shows the Node panel while something is selected, unless the user decided otherwise.

    Attributes:
        showing: whether the panel follows, or the user has opened or closed it
    """

    def __init__(self, dock: Dock, parent: QObject) -> None:
        super().__init__(parent)
        self._dock = dock
        self._selected = False
        self.showing = Showing.FOLLOWS
        dock.toggleViewAction().triggered.connect(self._toggled)
        dock.closed.connect(self._closed)
        dock.brought_up.connect(self._brought_up)

    @property
    def name(self) -> str:
        """Return the name of the panel."""
        return self._dock.host.spec.name

    def show_state(self, old: State, new: State) -> None:
        """Follow a change of the selection; the keyboard stays where it is."""
        self._selected = bool(new.selection)
        if old.selection != new.selection or old.sessions != new.sessions:
            self.arrange()

    def arrange(self) -> None:
        """Show or hide the panel by the selection."""
        if self.showing is not Showing.FOLLOWS or self._dock.isFloating():
            return
        if self._selected != self._dock.isHidden():
            return
        if self._selected:
            self._dock.host.postpone_first()
            self._dock.show_quietly()
        else:
            self._dock.hide()

    def open_if_named(self, name: str) -> None:
        """Show the panel because the user asked for one of this name; it stays while empty."""
        if name == self.name:
            self.showing = Showing.FOLLOWS if self._selected else Showing.ALWAYS

    def restore(self, showing: Showing) -> None:
        """Restore the choices of the user."""
        self.showing = showing
        if showing is Showing.FOLLOWS:
            self.arrange()

    def _toggled(self, on: bool) -> None:
        self.showing = Showing.ALWAYS if on else Showing.NEVER

    def _brought_up(self) -> None:
        if self.showing is Showing.NEVER:
            self.showing = Showing.FOLLOWS

    def _closed(self) -> None:
        self.showing = Showing.NEVER
