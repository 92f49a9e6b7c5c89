"""Buttons at the end of the tabs that show and hide the panels at the sides."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QWidget

from devtools_app.appearance.theme import Theme
from devtools_app.shell.docks import Dock
from devtools_app.widgets.fields import ToolButton


class PanelButtons(QWidget):
    """One button for each panel, pressed while the panel can be seen.

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
        layout.setContentsMargins(4, 0, 8, 0)
        layout.setSpacing(2)
        for button in self.buttons.values():
            layout.addWidget(button)
        theme.follow(self._restyle)
        self._restyle()

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
        for name, button in self.buttons.items():
            button.setIcon(self._theme.icon(self._docks[name].host.spec.icon, "muted"))
            self._show(name)
