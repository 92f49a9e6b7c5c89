"""The docks around the central view, with a title line of our own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

from PySide6.QtCore import QByteArray, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QCloseEvent
from PySide6.QtWidgets import QDockWidget, QMainWindow, QTabBar, QTabWidget
from typing_extensions import override

from devtools_app.shell.dock_room import DockRoom
from devtools_app.shell.dock_title import DockTitle, counted
from devtools_app.shell.view_host import ViewHost
from devtools_app.state.panel_layout import Showing
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.empty_state import EmptyState, Need
from devtools_app.widgets.fields import leave_wheel

_SIDES = {
    Area.LEFT: Qt.DockWidgetArea.LeftDockWidgetArea,
    Area.RIGHT: Qt.DockWidgetArea.RightDockWidgetArea,
    Area.BOTTOM: Qt.DockWidgetArea.BottomDockWidgetArea,
}
_EXTENTS = {
    Area.LEFT: (216, Qt.Orientation.Horizontal),
    Area.RIGHT: (294, Qt.Orientation.Horizontal),
    Area.BOTTOM: (240, Qt.Orientation.Vertical),
}
_MIDDLE = 550  # pixels that the views keep when larger text widens the columns beside them
_HEIGHTS = {"sessions": 114}  # of the left column; the others share the rest
_REST = 2000
_SHARES = {"files": 1, "findings": 2}  # of the left column: sentences need more lines than names
_SESSION, _SESSIONS_TITLE = 80, 34  # pixels of an entry with a name and facts of two lines
_MOST_SESSIONS = 4  # that have room without scrolling
_AWAY = Need("In the middle", "The tab in front shows this.")
LAYOUT_VERSION = 4  # a layout of another version has other panels


class Dock(QDockWidget):
    """A dock with a view host inside.

    Attributes:
        host: the place of the view

    Signals:
        closed(): the user hid it
        brought_up(): its name was chosen or requested
    """

    closed = Signal()
    brought_up = Signal()

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
        self._title = DockTitle(self, context.theme, action)
        self.setTitleBarWidget(self._title)
        self._window = window
        self._theme = context.theme
        self._front = False
        self._lent = False
        self._comes_back = False  # it is shown again with its view
        self._away: EmptyState | None = None
        self.visibilityChanged.connect(self._visible)
        self.toggleViewAction().triggered.connect(self._chosen)
        self._command = QAction(self)
        self._command.setCheckable(True)
        self._command.triggered.connect(self._commanded)

    def command(self) -> QAction:
        """Return the command of the palette: hide the panel if it is seen, else bring it up."""
        self._command.setText(self.toggleViewAction().text())
        self._command.setChecked(self.in_front)
        return self._command

    def _commanded(self) -> None:
        if self.isHidden() or self.in_front:
            self.toggleViewAction().trigger()
        else:  # behind another tab: Qt would hide it
            self.bring_up()

    def _chosen(self, on: bool) -> None:
        """Bring up what a menu or the palette switched on: Qt shows it behind the others."""
        if on:
            self.bring_up()

    def set_compact(self, on: bool) -> None:
        """Hide the title where a tab shows the name."""
        self._title.set_compact(on)

    def set_count(self, count: int) -> None:
        """Show a number behind the title; none for 0."""
        title = counted(self.host.spec.title, count)
        if title != self.windowTitle():
            self.setWindowTitle(title)

    def bring_up(self, *, in_turns: bool = False) -> None:
        """Show the dock, in front of others in its place, and give it the focus.

        Args:
            in_turns: a view that is postponed stays that; it has the focus once it is there
        """
        self.brought_up.emit()
        self.show()
        self.raise_()
        if not self._lent:
            self.host.set_in_front(True)
            if not in_turns:
                self.host.resume()
            self.host.give_focus()

    @property
    def in_front(self) -> bool:
        """Return whether it can be seen: it is not hidden and not behind another tab."""
        return self._front and not self.isHidden()

    def show_quietly(self) -> None:
        """Show the dock without the focus, behind a panel that is in front in its place."""
        others = [one for one in self._window.findChildren(Dock) if one.in_front]
        self.show()
        sharing = self._window.tabifiedDockWidgets(self)  # Qt knows them of shown ones only
        next((one for one in others if one in sharing), self).raise_()

    def lend(self) -> ViewHost:
        """Return the place of the view, to be shown as a tab in the middle."""
        if not self._lent:
            self._lent = True
            self._away = self._away or EmptyState(self._theme, _AWAY)
            self.setWidget(self._away)
            self._comes_back = not self.isHidden() and not self.isFloating()
            if self._comes_back:
                self.hide()
            self.host.set_in_front(True)
        return self.host

    def take_back(self) -> None:
        """Show the view here again."""
        if self._lent:
            self._lent = False
            self.setWidget(self.host)
            self.host.set_in_front(self._front)
            if self._comes_back:
                self.show_quietly()

    @override
    def closeEvent(self, event: QCloseEvent) -> None:
        super().closeEvent(event)
        self.closed.emit()

    def _visible(self, on: bool) -> None:
        # Qt only moves a panel behind another tab off the window: Tab would go through all of it
        self._front = on
        if not self._lent:
            self.host.set_in_front(on)


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
        self._context = context
        self._stowed: QByteArray | None = None
        self._sessions = 0
        self.by_name = {
            spec.name: Dock(spec, context, window, actions.get(spec.action)) for spec in specs
        }
        self._room = DockRoom(window, self.by_name)
        self._scale = context.theme.scale
        self._before: dict[Area, int] = {}  # width of a column before large text widened it
        self._widened: dict[Area, int] = {}  # and what it was given then
        context.theme.changed.connect(self._fit_text)
        self._soon = QTimer(window)
        self._soon.setSingleShot(True)
        self._soon.timeout.connect(self._sync_titles)
        for name in _SHARES:
            if name in self.by_name:
                self.by_name[name].brought_up.connect(self._share_soon)
        for dock in self.by_name.values():
            dock.visibilityChanged.connect(self._later)
            dock.topLevelChanged.connect(self._later)
            dock.dockLocationChanged.connect(self._later)
        window.setDockOptions(
            QMainWindow.DockOption.AllowTabbedDocks | QMainWindow.DockOption.AllowNestedDocks
        )
        window.setTabPosition(Qt.DockWidgetArea.AllDockWidgetAreas, QTabWidget.TabPosition.North)
        window.setCorner(Qt.Corner.BottomLeftCorner, Qt.DockWidgetArea.LeftDockWidgetArea)
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
        for dock in self.by_name.values():
            spec = dock.host.spec
            if spec.area is not Area.BOTTOM and spec.showing is not Showing.ALWAYS:
                dock.hide()
        for area, docks in sides.items():
            self._size(area, docks)
        self._room.arrange_soon()

    def show_sessions(self, count: int) -> None:
        """Give the list room for its sessions, up to a few, if it has less; larger text needs more.

        A layout that is being restored is complete one turn of the event loop later.
        """
        self._sessions = count
        QTimer.singleShot(0, self._window, self._make_room)

    def _fit_text(self) -> None:
        """Widen the columns with the text; where the window is small the middle comes first.

        With normal text they are as before, unless they were moved meanwhile.
        """
        scale = self._context.theme.scale
        for area in (Area.LEFT, Area.RIGHT) if scale != self._scale else ():
            docks = [one for one in self.by_name.values() if one.host.spec.area is area]
            first = next((one for one in docks if not one.isHidden()), None) or docks[0]
            width = first.width()
            if scale > self._scale:
                extent = max(width, self._width(area))
                self._before.setdefault(area, width)
            elif scale <= 1.0 and self._widened.get(area) == width:
                extent = self._before[area]
            else:
                continue
            self._window.resizeDocks([first], [extent], Qt.Orientation.Horizontal)
            self._widened[area] = extent
        if scale <= 1.0:
            self._before.clear()
            self._widened.clear()
        self._scale = scale
        self.show_sessions(self._sessions)

    def _width(self, area: Area) -> int:
        """Return the width of a column by default: as wide as its text where there is room."""
        usual, scale = _EXTENTS[area][0], self._context.theme.scale
        most = (self._window.width() - round(_MIDDLE * scale)) // 2
        return max(usual, min(round(usual * scale), most))

    def _make_room(self) -> None:
        dock, high = self.by_name.get("sessions"), self._height("sessions")
        if high == _HEIGHTS["sessions"]:  # the usual height has room for one
            return
        if dock is None or dock.isFloating() or dock.isHidden() or dock.height() >= high:
            return
        self._window.resizeDocks([dock], [high], Qt.Orientation.Vertical)

    def _heights(self, column: list[Dock]) -> list[int]:
        """Return the heights of panels by default: their sum is the column, so Qt scales none."""
        found = [self._height(dock.host.spec.name) for dock in column]
        middle, rest = self._window.centralWidget(), found.count(_REST)
        whole = 0 if middle is None else self._window.statusBar().y() - middle.y()
        room = whole - sum(one for one in found if one != _REST)
        return [room // rest if one == _REST and room >= rest > 0 else one for one in found]

    def _height(self, name: str) -> int:
        """Return the height of a panel in the left column by default."""
        count, scale = self._sessions, self._context.theme.scale
        if name != "sessions" or (count < 2 and scale <= 1.0):
            return _HEIGHTS.get(name, _REST)
        return round(scale * (_SESSIONS_TITLE + _SESSION * min(count, _MOST_SESSIONS)))

    def _share_soon(self) -> None:
        """Share the left column once a panel that was brought up has its place there."""
        shown = [name for name in _SHARES if name in self.by_name and self._in_column(name)]
        QTimer.singleShot(0, self._window, lambda: self._share_column(shown))

    def _in_column(self, name: str) -> bool:
        dock = self.by_name[name]
        return not dock.isHidden() and not dock.isFloating()

    def _share_column(self, before: list[str]) -> None:
        """Share the left column between the panels that are there, if others were before."""
        names = [name for name in _SHARES if name in self.by_name and self._in_column(name)]
        docks = [self.by_name[name] for name in names]
        areas = {self._window.dockWidgetArea(dock) for dock in docks}
        if len(docks) < 2 or names == before or len(areas) > 1:
            return
        room, whole = sum(dock.height() for dock in docks), sum(_SHARES[name] for name in names)
        heights = [room * _SHARES[name] // whole for name in names]
        self._window.resizeDocks(docks, heights, Qt.Orientation.Vertical)

    def stow(self) -> None:
        """Hide all panels while they are empty."""
        if self._stowed is None:
            self._stowed = self._window.saveState(LAYOUT_VERSION)
            for dock in self.by_name.values():
                dock.hide()

    @property
    def stowed(self) -> bool:
        """Return whether all panels are hidden since they are empty."""
        return self._stowed is not None

    def unstow(self) -> bool:
        """Restore the panels; return whether they were hidden."""
        if self._stowed is None:
            return False
        for dock in self.by_name.values():
            dock.host.postpone()  # all at once take 54 ms
        self._window.restoreState(self._stowed, LAYOUT_VERSION)
        self._stowed = None
        self._room.arrange_soon()
        return True

    def _later(self, *_what: object) -> None:
        self._soon.start(0)  # Qt knows who shares a place only after it has moved everything

    def _sync_titles(self) -> None:
        for dock in self.by_name.values():
            others = [one for one in self._window.tabifiedDockWidgets(dock) if one.isVisible()]
            shares = any(not one.isFloating() for one in others) or self._in_tabs(dock)
            below = dock.host.spec.area is Area.BOTTOM and self._is_below(dock)  # it has a line
            dock.set_compact((shares or below) and not dock.isFloating())
        self.name_tab_rows()

    def _is_below(self, dock: Dock) -> bool:
        area = self._window.dockWidgetArea(dock)
        return area is Qt.DockWidgetArea.BottomDockWidgetArea and not dock.isFloating()

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
            leave_wheel(row)
            names = frozenset(row.tabText(tab) for tab in range(row.count()))
            if len(names) > 1 and names in groups:
                used[names] = row
        for row in self._tab_rows():
            is_used = row in used.values()
            row.setVisible(is_used)
            # Qt shows an empty row again, off the window
            row.setFocusPolicy(Qt.FocusPolicy.TabFocus if is_used else Qt.FocusPolicy.NoFocus)

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
            dock.show()  # a hidden one cannot share a place
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
            shown = [dock for dock in docks if not dock.isHidden()]
            self._window.resizeDocks(shown, self._heights(shown), Qt.Orientation.Vertical)
        else:
            for first in docks[:1]:
                first.raise_()
        extent, way = _EXTENTS[area]
        if way is Qt.Orientation.Horizontal:
            extent = self._width(area)
        self._window.resizeDocks(docks[:1], [extent] * len(docks[:1]), way)
