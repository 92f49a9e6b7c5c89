"""The title line of a panel, with the buttons to float and to hide it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QAction, QEnterEvent
from PySide6.QtWidgets import QDockWidget, QHBoxLayout, QLabel, QToolButton, QWidget
from typing_extensions import override

from devtools_app.appearance.theme import Theme, set_role
from devtools_app.widgets.fields import ToolButton


def counted(title: str, count: int) -> str:
    """Return a title with a number behind it, without one for 0."""
    return f"{title} ({count:,})" if count else title


class DockTitle(QWidget):
    """Name of a dock with buttons to float and to hide it; can be dragged like any title."""

    def __init__(self, dock: QDockWidget, theme: Theme, action: QAction | None) -> None:
        super().__init__()
        self._theme = theme
        self._compact = False
        self._dock = dock
        self.setObjectName("dockTitle")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._label = QLabel(dock.windowTitle())
        set_role(self._label, "role", "muted")
        self._float = self._button("float", lambda: dock.setFloating(not dock.isFloating()))
        self._hide = self._button("hide", dock.close)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(12, 4, 6, 2)
        layout.setSpacing(2)
        layout.addWidget(self._label)
        layout.addStretch(1)
        layout.addWidget(self._float)
        layout.addWidget(self._hide)
        self._more = self._extra(action) if action is not None else None
        if self._more is not None:
            layout.addWidget(self._more)
        dock.windowTitleChanged.connect(self._label.setText)
        theme.follow(self._restyle)
        self._restyle()

    def set_compact(self, on: bool) -> None:
        """Hide the title if a tab shows the name."""
        if on != self._compact:
            self._compact = on
            if self._more is not None:
                self._more.setVisible(not on)  # else the keyboard would stop at nothing
            self.setFixedHeight(0 if on else super().sizeHint().height())
            self.updateGeometry()

    @override
    def sizeHint(self) -> QSize:
        return QSize(0, 0) if self._compact else super().sizeHint()

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(0, 0) if self._compact else super().minimumSizeHint()

    def _extra(self, action: QAction) -> QToolButton:
        button = ToolButton()
        button.setIcon(self._theme.icon("plus", "muted"))
        button.setToolTip(action.toolTip())
        button.setAccessibleName(action.text().rstrip("…"))
        button.setEnabled(action.isEnabled())
        button.clicked.connect(lambda: action.trigger())
        action.enabledChanged.connect(button.setEnabled)
        self._theme.changed.connect(lambda: button.setIcon(self._theme.icon("plus", "muted")))
        return button

    def _button(self, what: str, pressed: Callable[[], object]) -> QToolButton:
        button = ToolButton()
        button.setAccessibleName(f"{what.capitalize()} {self._dock.windowTitle()}")
        button.setToolTip(f"{what.capitalize()} {self._dock.windowTitle()}")
        button.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        button.clicked.connect(lambda: pressed())
        policy = button.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        button.setSizePolicy(policy)
        button.hide()
        return button

    def _show_buttons(self, on: bool) -> None:
        # keyboards reach the same through View > Panels
        self._float.setVisible(on)
        self._hide.setVisible(on)

    @override
    def enterEvent(self, event: QEnterEvent) -> None:
        self._show_buttons(True)

    @override
    def leaveEvent(self, event: QEvent) -> None:
        self._show_buttons(False)

    def _restyle(self) -> None:
        self._float.setIcon(self._theme.icon("float", "muted"))
        self._hide.setIcon(self._theme.icon("close", "muted"))
