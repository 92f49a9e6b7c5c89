"""In a small window the panels shrink in favour of the central view, and grow back."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtWidgets import QDockWidget, QMainWindow
from typing_extensions import override

_SIDES = {
    Qt.DockWidgetArea.LeftDockWidgetArea: Qt.Orientation.Horizontal,
    Qt.DockWidgetArea.RightDockWidgetArea: Qt.Orientation.Horizontal,
    Qt.DockWidgetArea.BottomDockWidgetArea: Qt.Orientation.Vertical,
}
_CENTRE = {Qt.Orientation.Horizontal: 430, Qt.Orientation.Vertical: 320}
_MIDDLE = 0.6  # of the width of the window; panels at the sides give way before
_LEAST = {Qt.Orientation.Horizontal: 160, Qt.Orientation.Vertical: 120}

Area = Qt.DockWidgetArea


def shares(extents: Mapping[Area, int], short: int, least: int) -> dict[Area, int]:
    """Return the reduced sizes of sides that free space for the middle, the larger ones first.

    Args:
        extents: size of each side
        short: missing size of the middle
        least: smallest size of a side
    """
    found = dict(extents)
    for _pixel in range(short):
        largest = max(found, key=found.__getitem__, default=None)
        if largest is None or found[largest] <= least:
            break
        found[largest] -= 1
    return found


class DockRoom(QObject):
    """Keeps the centre of a window usable when it is resized."""

    def __init__(self, window: QMainWindow, docks: Mapping[str, QDockWidget]) -> None:
        super().__init__(window)
        self._window = window
        self._docks = docks
        self._requested: dict[Area, int] = {}  # size of a side before it gave way
        self._given: dict[Area, int] = {}  # what it was left with
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.timeout.connect(self.make)
        window.installEventFilter(self)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._window and event.type() is QEvent.Type.Resize:
            self.arrange_soon()
        return False

    def arrange_soon(self) -> None:
        """Do so after the layout is complete."""
        self._soon.start(0)

    def make(self) -> None:
        """Shrink or restore the panels; panels moved by the user are not changed."""
        for way in Qt.Orientation:
            self._make(way)

    def _make(self, way: Qt.Orientation) -> None:
        docks = {area: dock for area, dock in self._outer().items() if _SIDES[area] is way}
        middle = self._window.centralWidget()
        if not docks or middle is None or not middle.isVisible():
            return
        sizes = {area: _extent(dock, way) for area, dock in docks.items()}
        if way is Qt.Orientation.Horizontal:
            wanted = max(_CENTRE[way], round(_MIDDLE * self._window.width()))
            short = wanted - middle.width()
        else:
            short = _CENTRE[way] - middle.height()
        requested = self._smaller(sizes, short, way) if short > 0 else self._larger(sizes, -short)
        changed = [area for area, size in requested.items() if size != sizes[area]]
        if changed:
            self._window.resizeDocks(
                [docks[area] for area in changed], [requested[area] for area in changed], way
            )

    def _smaller(self, sizes: dict[Area, int], short: int, way: Qt.Orientation) -> dict[Area, int]:
        requested = shares(sizes, short, _LEAST[way])
        for area, size in requested.items():
            if size != sizes[area]:
                if self._given.get(area) != sizes[area]:
                    self._requested[area] = sizes[area]
                self._given[area] = size
        return requested

    def _larger(self, sizes: dict[Area, int], spare: int) -> dict[Area, int]:
        requested = dict(sizes)
        for area, size in sizes.items():
            if area not in self._given:
                continue
            if self._given[area] != size:  # somebody moved it: that is what is wanted now
                del self._given[area], self._requested[area]
                continue
            more = min(spare, self._requested[area] - size)
            spare -= more
            requested[area] = self._given[area] = size + more
            if requested[area] == self._requested[area]:
                del self._given[area], self._requested[area]
        return requested

    def _outer(self) -> dict[Area, QDockWidget]:
        """Return one visible panel of each side."""
        found: dict[Area, QDockWidget] = {}
        for dock in self._docks.values():
            area = self._window.dockWidgetArea(dock)
            if area in _SIDES and not dock.isHidden() and not dock.isFloating():
                front = not dock.visibleRegion().isEmpty()
                if area not in found or front:
                    found[area] = dock
        return found


def _extent(dock: QDockWidget, way: Qt.Orientation) -> int:
    return dock.width() if way is Qt.Orientation.Horizontal else dock.height()
