"""The docks around the central view, with a title line of our own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise

from PySide6.QtCore import QByteArray, QEvent, QSize, Qt, QTimer
from PySide6.QtGui import QAction, QEnterEvent
from PySide6.QtWidgets import (
    QDockWidget,
    QHBoxLayout,
    QLabel,
    QMainWindow,
    QTabBar,
    QTabWidget,
    QToolButton,
    QWidget,
)
from typing_extensions import override

from devtools_app.appearance.theme import Theme, set_role
from devtools_app.shell.dock_room import DockRoom
from devtools_app.shell.view_host import ViewHost
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.fields import ToolButton

_SIDES = {
    Area.LEFT: Qt.DockWidgetArea.LeftDockWidgetArea,
    Area.RIGHT: Qt.DockWidgetArea.RightDockWidgetArea,
    Area.BOTTOM: Qt.DockWidgetArea.BottomDockWidgetArea,
}
_EXTENTS = {
    Area.LEFT: (230, Qt.Orientation.Horizontal),
    Area.RIGHT: (300, Qt.Orientation.Horizontal),
    Area.BOTTOM: (240, Qt.Orientation.Vertical),
}
_HEIGHTS = {"sessions": 92, "files": 142}  # of the left column; the others share the rest
_REST = 230
_TWO_SESSIONS = 150
LAYOUT_VERSION = 2


class _Title(QWidget):
    """Name of a dock with buttons to float and to hide it; can be dragged like any title."""

    def __init__(self, dock: Dock, theme: Theme, action: QAction | None) -> None:
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
        theme.changed.connect(self._restyle)
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


class Dock(QDockWidget):
    """A dock with a view host inside.

    Attributes:
        host: the place of the view
    """

    def __init__(
        self,
        spec: ViewSpec,
        context: ViewContext,
        window: QMainWindow,
        action: QAction | None = None,
    ) -> None:
        super().__init__(spec.title, window)
        self.setObjectName(f"dock_{spec.name}")
        self.setAccessibleName(spec.title)
        self.host = ViewHost(spec, context)
        self.setWidget(self.host)
        self._title = _Title(self, context.theme, action)
        self.setTitleBarWidget(self._title)
        # Qt only moves a panel behind another tab off the window: Tab would go through all of it
        self.visibilityChanged.connect(self.host.set_in_front)

    def set_compact(self, on: bool) -> None:
        """Hide the title where a tab shows the name."""
        self._title.set_compact(on)

    def bring_up(self) -> None:
        """Show the dock, in front of others in its place, and give it the focus."""
        self.show()
        self.raise_()
        self.host.set_in_front(True)
        self.host.give_focus()


class Docks:
    """All docks of the window, by name of their view."""

    def __init__(
        self,
        window: QMainWindow,
        context: ViewContext,
        specs: Iterable[ViewSpec],
        actions: Mapping[str, QAction],
    ) -> None:
        self._window = window
        self._stowed: QByteArray | None = None
        self.by_name = {
            spec.name: Dock(spec, context, window, actions.get(spec.action)) for spec in specs
        }
        self._room = DockRoom(window, self.by_name)
        self._soon = QTimer(window)
        self._soon.setSingleShot(True)
        self._soon.timeout.connect(self._sync_titles)
        for dock in self.by_name.values():
            dock.visibilityChanged.connect(self._later)
            dock.topLevelChanged.connect(self._later)
            dock.dockLocationChanged.connect(self._later)
        window.setDockOptions(
            QMainWindow.DockOption.AllowTabbedDocks | QMainWindow.DockOption.AllowNestedDocks
        )
        window.setTabPosition(Qt.DockWidgetArea.AllDockWidgetAreas, QTabWidget.TabPosition.North)
        window.setCorner(Qt.Corner.BottomLeftCorner, Qt.DockWidgetArea.BottomDockWidgetArea)
        window.setCorner(Qt.Corner.BottomRightCorner, Qt.DockWidgetArea.RightDockWidgetArea)
        self.reset()

    @property
    def hosts(self) -> tuple[ViewHost, ...]:
        """Return the places of the views in docks."""
        return tuple(dock.host for dock in self.by_name.values())

    def reset(self) -> None:
        """Reset all docks to their default places."""
        self._stowed = None
        sides = {
            area: [dock for dock in self.by_name.values() if dock.host.spec.area is area]
            for area in _SIDES
        }
        for area, docks in sides.items():
            self._place(area, docks)
        for area, docks in sides.items():
            self._size(area, docks)
        self._room.arrange_soon()

    def show_two_sessions(self) -> None:
        """Widen the area for two compared sessions if needed."""
        dock = self.by_name.get("sessions")
        if dock is None or dock.isFloating() or dock.isHidden() or dock.height() >= _TWO_SESSIONS:
            return
        self._window.resizeDocks([dock], [_TWO_SESSIONS], Qt.Orientation.Vertical)

    def stow(self) -> None:
        """Hide all panels while they are empty."""
        if self._stowed is None:
            self._stowed = self._window.saveState(LAYOUT_VERSION)
            for dock in self.by_name.values():
                dock.hide()

    def unstow(self) -> None:
        """Restore the panels."""
        if self._stowed is not None:
            self._window.restoreState(self._stowed, LAYOUT_VERSION)
            self._stowed = None
            self._room.arrange_soon()

    def _later(self, *_what: object) -> None:
        self._soon.start(0)  # Qt knows who shares a place only after it has moved everything

    def _sync_titles(self) -> None:
        for dock in self.by_name.values():
            others = [one for one in self._window.tabifiedDockWidgets(dock) if one.isVisible()]
            shares = any(not one.isFloating() for one in others) or self._in_tabs(dock)
            dock.set_compact(shares and not dock.isFloating())
        self.name_tab_rows()

    def _in_tabs(self, dock: Dock) -> bool:
        return any(not one.isHidden() for one in self._window.tabifiedDockWidgets(dock))

    def name_tab_rows(self) -> None:
        """Name the tab rows that Qt creates for panels in one place; hide stale ones.

        Qt 6.11 can create two rows for one place and continue with the last; the other would stay
        visible with its old names.
        """
        groups = {frozenset(self._sharing(dock)) for dock in self.by_name.values()}
        used: dict[frozenset[str], QTabBar] = {}
        for row in self._tab_rows():
            row.setAccessibleName("Panels in one place")
            row.setDrawBase(False)
            names = frozenset(row.tabText(tab) for tab in range(row.count()))
            if names in groups:
                used[names] = row
        for row in self._tab_rows():
            if row.count():
                row.setVisible(row in used.values())

    def _sharing(self, dock: Dock) -> list[str]:
        docks = [dock, *self._window.tabifiedDockWidgets(dock)]
        return [one.windowTitle() for one in docks if not one.isHidden()]

    def save(self) -> str:
        """Return the layout as a string; that of the stowed panels when they are stowed."""
        stowed = self._stowed
        state = self._window.saveState(LAYOUT_VERSION) if stowed is None else stowed
        return bytes(state.toBase64().data()).decode("ascii")

    def restore(self, text: str) -> bool:
        """Restore a saved layout; return whether it was valid."""
        data = QByteArray.fromBase64(text.encode("ascii", "ignore"))
        if not text or not self._window.restoreState(data, LAYOUT_VERSION):
            return False
        if self._stowed is not None:
            self._stowed = None
            self.stow()
        self._room.arrange_soon()
        return True

    def _place(self, area: Area, docks: list[Dock]) -> None:
        for dock in docks:
            dock.setFloating(False)
            self._window.addDockWidget(_SIDES[area], dock)
            dock.show()
        if area is Area.LEFT:
            for upper, lower in pairwise(docks):
                self._window.splitDockWidget(upper, lower, Qt.Orientation.Vertical)
            return
        for other in docks[1:]:
            self._window.tabifyDockWidget(docks[0], other)

    def _tab_rows(self) -> list[QTabBar]:
        direct = Qt.FindChildOption.FindDirectChildrenOnly
        return self._window.findChildren(QTabBar, options=direct)

    def _size(self, area: Area, docks: list[Dock]) -> None:
        if area is Area.LEFT:
            heights = [_HEIGHTS.get(dock.host.spec.name, _REST) for dock in docks]
            self._window.resizeDocks(docks, heights, Qt.Orientation.Vertical)
        else:
            for first in docks[:1]:
                first.raise_()
        extent, way = _EXTENTS[area]
        self._window.resizeDocks(docks[:1], [extent] * len(docks[:1]), way)
