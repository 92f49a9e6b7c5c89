"""Buttons at the end of the tabs that show and hide the panels at the sides."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QMenu, QToolButton, QWidget

from devtools_app.appearance.theme import Theme
from devtools_app.shell.docks import Dock
from devtools_app.widgets.fields import ToolButton

_MARGINS, _SPACE = (4, 0, 8, 0), 2


class PanelButtons(QWidget):
    """One button for each panel, pressed while the panel can be seen; folded one with a menu.

    Signals:
        opened(name): the user showed a panel by its button
    """

    opened = Signal(str)

    def __init__(self, theme: Theme, docks: dict[str, Dock]) -> None:
        super().__init__()
        self.setAccessibleName("Panels")
        self._theme = theme
        self._docks = docks
        self.buttons = {name: self._button(name, dock) for name, dock in docks.items()}
        layout = QHBoxLayout(self)
        layout.setContentsMargins(*_MARGINS)
        layout.setSpacing(_SPACE)
        self.more = self._menu_button()
        for button in (*self.buttons.values(), self.more) if self.buttons else ():
            layout.addWidget(button)
        theme.follow(self._restyle)
        self._restyle()

    @property
    def whole_width(self) -> int:
        """Return the width with all buttons, in pixels."""
        widths = [button.sizeHint().width() for button in self.buttons.values()]
        return sum(widths) + _SPACE * (len(widths) - 1) + _MARGINS[0] + _MARGINS[2]

    def set_folded(self, *, on: bool) -> None:
        """Show one button with a menu of the panels instead of a button for each."""
        if self.buttons and on == self.more.isHidden():
            self.more.setVisible(on)
            for button in self.buttons.values():
                button.setVisible(not on)

    def _menu_button(self) -> QToolButton:
        button = ToolButton()
        button.setAccessibleName("Panels")
        button.setToolTip("Show or hide a panel at the sides")
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu = QMenu(button)
        menu.aboutToShow.connect(partial(self._fill, menu))
        button.setMenu(menu)
        button.hide()
        return button

    def _fill(self, menu: QMenu) -> None:
        menu.clear()
        for name, dock in self._docks.items():
            action = menu.addAction(dock.windowTitle())
            action.setCheckable(True)
            action.setChecked(dock.in_front)
            action.triggered.connect(partial(self._pressed, name))

    def _button(self, name: str, dock: Dock) -> QToolButton:
        button = ToolButton()
        button.setCheckable(True)
        button.setAccessibleName(f"Panel {dock.windowTitle()}")
        button.clicked.connect(partial(self._pressed, name))
        dock.visibilityChanged.connect(lambda _on: self._show(name))
        return button

    def _pressed(self, name: str, _checked: bool = False) -> None:
        dock = self._docks[name]
        if dock.in_front:
            dock.close()
        else:
            dock.bring_up()
            self.opened.emit(name)
        self._show(name)

    def _show(self, name: str) -> None:
        dock, button = self._docks[name], self.buttons[name]
        button.setChecked(dock.in_front)
        button.setToolTip(f"{'Hide' if dock.in_front else 'Show'} {dock.windowTitle()}")

    def _restyle(self) -> None:
        self.more.setIcon(self._theme.icon("layout", "muted"))
        for name, button in self.buttons.items():
            button.setIcon(self._theme.icon(self._docks[name].host.spec.icon, "muted"))
            self._show(name)
