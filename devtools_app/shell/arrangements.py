"""View > Arrangements: the user's own arrangements of the panels, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QInputDialog, QMenu, QWidget

from devtools_app.sessions.session_controller import SessionController
from devtools_app.shell.layouts import GroupLayouts
from devtools_app.state.panel_layout import PanelLayout

_MOST = 60  # letters of a name in the menu


class Arrangements(QObject):
    """Saves, restores and removes arrangements; they are kept in the settings.

    Attributes:
        menu: of all arrangements
    """

    def __init__(
        self,
        parent: QWidget,
        controller: SessionController,
        panels: GroupLayouts,
        fixed: tuple[QAction, ...],
    ) -> None:
        """Build the menu.

        Args:
            parent: of the menu and the dialog
            controller: has the settings
            panels: to arrange
            fixed: actions at the end of the menu
        """
        super().__init__(parent)
        self._parent, self._controller, self._panels = parent, controller, panels
        self._fixed = fixed
        self.menu = QMenu("Arrangements", parent)
        self._remove = QMenu("Remove", parent)
        self.dialog: QInputDialog | None = None
        controller.settings_changed.connect(self._list)
        self._list()

    @property
    def named(self) -> tuple[QAction, ...]:
        """Return an action for each arrangement, which puts the panels there."""
        return tuple(one for one in self.menu.actions() if one.parent() is self.menu and one.text())

    def ask(self) -> None:
        """Ask for a name and save the panels as they are."""
        dialog = QInputDialog(self._parent)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setWindowTitle("Save arrangement")
        dialog.setAccessibleName("Save arrangement")
        dialog.setLabelText("Name of this arrangement of the panels")
        dialog.textValueSelected.connect(self.save)
        self.dialog = dialog
        dialog.open()

    def save(self, name: str) -> None:
        """Save the panels as they are under a name; an arrangement of that name is replaced."""
        name = " ".join(name.split())[:_MOST]
        if name:
            self._put({**self._controller.settings.arrangements, name: self._panels.layout()})

    def choose(self, name: str) -> None:
        """Put the panels where an arrangement has them."""
        found = self._controller.settings.arrangements.get(name)
        if found is not None:
            self._panels.arrange(found)

    def remove(self, name: str) -> None:
        """Forget an arrangement."""
        known = self._controller.settings.arrangements
        self._put({one: layout for one, layout in known.items() if one != name})

    def _put(self, arrangements: dict[str, PanelLayout]) -> None:
        settings = replace(self._controller.settings, arrangements=arrangements)
        self._controller.put_settings(settings)
        self._list()

    def _list(self, *_settings: object) -> None:
        names = sorted(self._controller.settings.arrangements, key=str.casefold)
        self.menu.clear()
        self._remove.clear()
        self._fill(self.menu, names, self.choose)
        self._fill(self._remove, names, self.remove)
        self.menu.addSeparator()
        self.menu.addActions(self._fixed)
        if names:
            self.menu.addMenu(self._remove)

    def _fill(self, menu: QMenu, names: list[str], call: Callable[[str], None]) -> None:
        for name in names:
            action = menu.addAction(name.replace("&", "&&"))
            action.triggered.connect(partial(_call, call, name))


def _call(call: Callable[[str], None], name: str, _checked: bool = False) -> None:
    call(name)
