"""Code to copy, shown completely at any width: it wraps, inside words if necessary."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QResizeEvent, QTextOption
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QSizePolicy
from typing_extensions import override

_ROOM = 10  # between the frame and the text
_LEAST = 12  # characters that are side by side in any case


class CommandText(QPlainTextEdit):
    """A few words of code in a frame; as high as its wrapped lines."""

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self.setObjectName("command")
        self.setReadOnly(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)  # the button beside it copies by keyboard
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.document().setDocumentMargin(_ROOM - 2)
        self.show_text(text)

    def show_text(self, text: str) -> None:
        """Show different code."""
        self.setPlainText(text)
        self.setAccessibleName(f"Code: {text}" if text else "No code")
        self.updateGeometry()
        self._fit()

    def lines(self) -> int:
        """Return the number of lines shown."""
        block = self.document().firstBlock()
        found = 0
        while block.isValid():
            found += max(1, block.layout().lineCount())
            block = block.next()
        return found

    def _fit(self) -> None:
        height = self.lines() * self.fontMetrics().lineSpacing() + 2 * _ROOM
        if height != self.minimumHeight():
            self.setFixedHeight(height)

    @override
    def sizeHint(self) -> QSize:
        width = max(map(self.fontMetrics().horizontalAdvance, self.toPlainText().split("\n")))
        return QSize(width + 2 * _ROOM + 6, self.minimumHeight())

    @override
    def minimumSizeHint(self) -> QSize:
        letters = self.fontMetrics().averageCharWidth() * _LEAST
        return QSize(letters + 2 * _ROOM, self.minimumHeight())

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    @override
    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._fit()
