"""A drawing and a table: side by side if there is width, else stacked."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSplitter, QVBoxLayout, QWidget
from typing_extensions import override

from devtools_app.appearance.theme import Theme
from devtools_app.widgets.legend import Legend

_WIDE = 1.9  # width for a height from which there is room beside
_DRAWING = 60  # percent of the room at first


class Beside(QSplitter):
    """Divides the space between a drawing and the table of its items.

    Args:
        drawing: the drawing
        table: its items
        share: the room of the drawing at first, in percent
        large: the same beside a table with text twice as large, whose names are twice as wide
        theme: the size of the text, where it matters
    """

    def __init__(
        self,
        drawing: QWidget,
        table: QWidget,
        share: int = _DRAWING,
        large: int | None = None,
        theme: Theme | None = None,
    ) -> None:
        super().__init__(Qt.Orientation.Vertical)
        self._percent, self._large = share, share if large is None else large
        self._theme = theme
        self.addWidget(drawing)
        self.addWidget(table)
        self.setStretchFactor(0, share)
        self.setStretchFactor(1, 100 - share)
        self.setChildrenCollapsible(False)
        if theme is not None:
            theme.follow(self._share, size_only=True)
        self._share()

    def _share(self) -> None:
        vertical = self.orientation() == Qt.Orientation.Vertical
        room = max(self.height() if vertical else self.width(), 100)
        percent = self._percent
        if self._theme is not None and not vertical:
            larger = min(max(self._theme.scale - 1.0, 0.0), 1.0)
            percent += round(larger * (self._large - percent))
        self.setSizes([room * percent // 100, room * (100 - percent) // 100])

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
