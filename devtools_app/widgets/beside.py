"""A drawing and a table: side by side if there is width, else stacked."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSplitter, QVBoxLayout, QWidget
from typing_extensions import override

from devtools_app.widgets.legend import Legend

_WIDE = 1.9  # width for a height from which there is room beside
_DRAWING = 60  # percent of the room at first


class Beside(QSplitter):
    """Divides the space between a drawing and the table of its items."""

    def __init__(self, drawing: QWidget, table: QWidget, share: int = _DRAWING) -> None:
        super().__init__(Qt.Orientation.Vertical)
        self._percent = share
        self.addWidget(drawing)
        self.addWidget(table)
        self.setStretchFactor(0, share)
        self.setStretchFactor(1, 100 - share)
        self.setChildrenCollapsible(False)
        self._share()

    def _share(self) -> None:
        vertical = self.orientation() == Qt.Orientation.Vertical
        room = max(self.height() if vertical else self.width(), 100)
        self.setSizes([room * self._percent // 100, room * (100 - self._percent) // 100])

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        wide = self.width() > _WIDE * self.height()
        requested = Qt.Orientation.Horizontal if wide else Qt.Orientation.Vertical
        super().resizeEvent(event)
        if requested != self.orientation():
            self.setOrientation(requested)
            self._share()


def with_legend(drawing: QWidget, legend: Legend) -> QWidget:
    """Return a drawing with its legend in a line below it, where the legend covers no item."""
    both = QWidget()
    both.setObjectName("canvasGround")
    layout = QVBoxLayout(both)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(0)
    layout.addWidget(drawing, 1)
    layout.addWidget(legend)
    return both
