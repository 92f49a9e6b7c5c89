"""Controls with the habits people expect: the wheel scrolls, Return presses.

Qt's wheel changes the value of the box under the pointer, also while a form is scrolled over it,
and its buttons take only Space outside of dialogs.
"""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent, QWheelEvent
from PySide6.QtWidgets import QComboBox, QDoubleSpinBox, QPushButton, QSpinBox, QToolButton
from typing_extensions import override


class ComboBox(QComboBox):
    """A combo box without the wheel; that of its open list works."""

    @override
    def wheelEvent(self, e: QWheelEvent) -> None:
        e.ignore()


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


class PushButton(QPushButton):
    """A button that Return presses."""

    def __init__(self, text: str = "") -> None:
        super().__init__(text)
        self.setAutoDefault(True)


class ToolButton(QToolButton):
    """A button of a line of tools that Return presses."""

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        else:
            super().keyPressEvent(event)
