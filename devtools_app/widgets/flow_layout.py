"""A layout of a row that wraps into the next line."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem
from shiboken6 import isValid
from typing_extensions import override


class FlowLayout(QLayout):
    """Lays its items out like the words of a paragraph."""

    def __init__(self, space: int, line_space: int) -> None:
        super().__init__()
        self._items: list[QLayoutItem] = []
        self._space = space
        self._line_space = line_space
        # a page asks for them dozens of times before it is laid out
        self._heights: dict[int, int] = {}
        self._hint = self._least = QSize()

    @override
    def invalidate(self) -> None:
        self._heights.clear()
        self._hint = self._least = QSize()
        super().invalidate()

    @override
    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)
        self.invalidate()

    @override
    def count(self) -> int:
        return len(self._items)

    @override
    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    @override
    def takeAt(self, index: int) -> QLayoutItem | None:
        if not 0 <= index < len(self._items):
            return None
        self.invalidate()
        return self._items.pop(index)

    @override
    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation(0)

    @override
    def hasHeightForWidth(self) -> bool:
        return True

    @override
    def heightForWidth(self, width: int) -> int:
        if width not in self._heights:
            self._heights[width] = self._place(QRect(0, 0, width, 0), move=False)
        return self._heights[width]

    @override
    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        self._place(rect, move=True)

    @override
    def sizeHint(self) -> QSize:
        if not self._hint.isValid():
            sizes = [item.sizeHint() for item in self._live()]
            width = sum(size.width() for size in sizes) + self._space * max(0, len(sizes) - 1)
            self._hint = QSize(width, max((size.height() for size in sizes), default=0))
        return self._hint

    @override
    def minimumSize(self) -> QSize:
        if not self._least.isValid():
            found = QSize(0, 0)
            for item in self._live():
                found = found.expandedTo(item.minimumSize())
            self._least = found
        return self._least

    def _live(self) -> list[QLayoutItem]:
        """Return the items without those of a page that is being taken down."""
        return [item for item in self._items if isValid(item)]

    def _place(self, rect: QRect, *, move: bool) -> int:
        """Return the required height; place the items if they are to be moved."""
        x, y, line = 0, 0, 0
        row: list[tuple[QLayoutItem, int, QSize]] = []
        for item in self._live():
            size = item.sizeHint()
            if x and x + size.width() > rect.width():
                self._move(row, rect, y, line)
                x, y, line, row = 0, y + line + self._line_space, 0, []
            if move:
                row.append((item, x, QSize(min(size.width(), rect.width()), size.height())))
            x += size.width() + self._space
            line = max(line, size.height())
        self._move(row, rect, y, line)
        return y + line

    @staticmethod
    def _move(row: list[tuple[QLayoutItem, int, QSize]], rect: QRect, y: int, line: int) -> None:
        """Place the items of a row at its middle, as words beside a taller button."""
        for item, x, size in row:
            at = rect.topLeft() + QPoint(x, y + (line - size.height()) // 2)
            item.setGeometry(QRect(at, size))
