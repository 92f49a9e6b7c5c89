"""The panels below the views: one at a time, folded to one line or open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QMainWindow
from typing_extensions import override

from devtools_app.appearance.theme import Theme
from devtools_app.shell.docks import Dock
from devtools_app.shell.fold_bar import FoldBar
from devtools_app.state.tab_groups import TabGroup
from devtools_app.views.spec import Area

# pixels of window height, with text of the usual size, from which the first panel is open by
# default: what is changed and proved needs the room more than the operators do
OPEN_FROM = 900
OPEN_FROM_ELSEWHERE = 1200
ROWS = 9  # of the first panel where it is open by default
_ROW_PAD = 9  # around the words of a row
_AROUND = 81  # tools of the table, its header and the bar of its columns
_LEAST = 120
_SHARE = 0.45  # of the area of the window that the views keep while a panel is open
_TALL = 0.26  # of the height of a large window


class BelowPanels(QObject):
    """Opens and folds the panels; until the user chooses, the height of the window decides.

    Attributes:
        chosen: whether the user chose what is open
    """

    def __init__(
        self,
        window: QMainWindow,
        docks: Mapping[str, Dock],
        bar: FoldBar,
        theme: Theme,
        stowed: Callable[[], bool],
    ) -> None:
        """Connect to a window.

        Args:
            window: with the panels
            docks: all panels by name
            bar: the line over the panels
            theme: the look
            stowed: whether all panels are hidden since nothing is open
        """
        super().__init__(window)
        self._window, self._bar, self._theme, self._stowed = window, bar, theme, stowed
        self._docks = {
            name: dock for name, dock in docks.items() if dock.host.spec.area is Area.BOTTOM
        }
        self.chosen = False
        self._open_from = OPEN_FROM
        self._last = next(iter(self._docks), "")
        self._height = 0  # that the user gave them, 0 for the default
        self._given = 0
        self._sizing = QTimer(self)
        self._sizing.setSingleShot(True)
        self._sizing.timeout.connect(self._size)
        for name, dock in self._docks.items():
            dock.visibilityChanged.connect(partial(self._changed, name))
            dock.topLevelChanged.connect(lambda _on: self._report())
            dock.toggleViewAction().triggered.connect(self._choose)
            dock.brought_up.connect(self._choose)
        bar.pressed.connect(self.toggle)
        bar.float_pressed.connect(self._float)
        window.installEventFilter(self)
        theme.changed.connect(self.arrange)

    @property
    def open(self) -> str:
        """Return the name of the open panel, empty if all are folded."""
        return next((name for name in self._docks if self._is_open(name)), "")

    def toggle(self, name: str = "") -> None:
        """Open a panel, or fold it if it is open; by default the last one."""
        self._choose()
        name = name or self.open or self._last
        dock = self._docks.get(name)
        if dock is None:
            return
        if dock.isFloating() and not dock.isHidden():
            dock.raise_()
            dock.activateWindow()
        elif self._is_open(name):
            self.fold()
        else:
            dock.bring_up()

    def fold(self) -> None:
        """Fold the open panel to its line."""
        dock = self._docks.get(self.open)
        if dock is not None:
            if self.chosen and abs(dock.height() - self._given) > 2:
                self._height = dock.height()
            dock.hide()

    def set_group(self, group: TabGroup) -> None:
        """Decide for another group of tabs from now on."""
        self._open_from = OPEN_FROM if group is TabGroup.LOOK else OPEN_FROM_ELSEWHERE

    def arrange(self) -> None:
        """Open or fold by the height of the window, unless the user chose."""
        if self.chosen or self._stowed() or not self._docks:
            return
        if self._window.height() < self._open_from * self._theme.scale:
            self.fold()
        elif not self.open:
            self._docks[next(iter(self._docks))].show()
        self._sizing.start(0)

    def restore(self, *, chosen: bool) -> None:
        """Take panels that were restored as they are, or decide again."""
        self.chosen, self._height = chosen, 0
        self._sizing.stop()
        self.arrange()

    def reset(self) -> None:
        """Decide by the height of the window again."""
        self.chosen, self._height = False, 0
        for dock in self._docks.values():
            if not dock.isFloating():
                dock.hide()
        self.arrange()

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._window and event.type() is QEvent.Type.Resize:
            self.arrange()
        return False

    def _float(self) -> None:
        dock = self._docks.get(self.open)
        if dock is not None:
            self._choose()
            dock.setFloating(True)

    def _choose(self, *_what: object) -> None:
        self.chosen = True

    def _is_open(self, name: str) -> bool:
        dock = self._docks[name]
        below = self._window.dockWidgetArea(dock) is Qt.DockWidgetArea.BottomDockWidgetArea
        return below and not dock.isHidden() and not dock.isFloating()

    def _changed(self, name: str, visible: bool) -> None:
        if visible and self._is_open(name):
            self._last = name
            for other, dock in self._docks.items():
                if other != name and self._is_open(other):
                    dock.hide()
            self._sizing.start(0)
        self._report()

    def _report(self) -> None:
        self._bar.show_open(self.open)

    def _size(self) -> None:
        dock = self._docks.get(self.open)
        if dock is None or self._stowed():
            return
        self._given = self._height or self.default_height()
        self._window.resizeDocks([dock], [self._given], Qt.Orientation.Vertical)

    def default_height(self) -> int:
        """Return a height that has enough rows and leaves the views their part of the window."""
        window, middle = self._window, self._window.centralWidget()
        row = QFontMetrics(self._theme.sans()).height() + _ROW_PAD
        tall = max(ROWS * row + _AROUND, round(_TALL * window.height()))
        if middle is None:
            return tall
        total = window.statusBar().y() - middle.y()
        width = max(window.width() - middle.x(), 1)  # panels at the right come and go
        views = _SHARE * window.width() * window.height() / width
        room = total - self._bar.height() - round(views) - 2
        return max(_LEAST, min(tall, room))
