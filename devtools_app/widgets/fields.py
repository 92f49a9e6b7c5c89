"""Controls with the habits people expect: the wheel scrolls, Return presses.

Qt's wheel changes the value of the box under the pointer, also while a form is scrolled over it,
and its buttons take only Space outside of dialogs.
"""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QKeyEvent, QWheelEvent
from PySide6.QtWidgets import (
    QComboBox,
    QDoubleSpinBox,
    QPushButton,
    QSpinBox,
    QStyle,
    QStyleOptionComboBox,
    QToolButton,
)
from typing_extensions import override


class ComboBox(QComboBox):
    """A combo box without the wheel; that of its open list works."""

    @override
    def wheelEvent(self, e: QWheelEvent) -> None:
        e.ignore()


class NarrowComboBox(ComboBox):
    """A combo box with room for a few letters, however long its entries are.

    Qt's own policy for this makes the list of each box when the box is made, which takes longer
    than all of the rest.
    """

    def __init__(self, letters: int) -> None:
        super().__init__()
        self._letters = letters

    @override
    def sizeHint(self) -> QSize:
        metrics, option = self.fontMetrics(), QStyleOptionComboBox()
        self.ensurePolished()
        self.initStyleOption(option)
        room = QSize(self._letters * metrics.horizontalAdvance("X"), max(metrics.height(), 14) + 2)
        kind = QStyle.ContentsType.CT_ComboBox
        return self.style().sizeFromContents(kind, option, room, self)

    @override
    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()


class SpinBox(QSpinBox):
    """A spin box without the wheel."""

    @override
    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class DoubleSpinBox(QDoubleSpinBox):
    """A spin box of decimal numbers without the wheel."""

    @override
    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


_RETURN = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


class PushButton(QPushButton):
    """A button that Return presses.

    Qt's automatic default buttons do that as well, but look like the most important one while
    they have the focus.
    """

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in _RETURN:
            self.click()
        else:
            super().keyPressEvent(event)


class ToolButton(QToolButton):
    """A button of a line of tools that Return presses."""

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in _RETURN:
            self.click()
        else:
            super().keyPressEvent(event)
