"""A line of text that ends in an ellipsis if it does not fit."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QToolTip
from typing_extensions import override


class ElidedLabel(QLabel):
    """A label of one line with flexible width; its tooltip is the full text."""

    def __init__(self) -> None:
        super().__init__()
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    @property
    def shown(self) -> str:
        """Return the visible part of the text."""
        metrics = QFontMetrics(self.font())
        return metrics.elidedText(self.text(), Qt.TextElideMode.ElideRight, self.width())

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(0, super().minimumSizeHint().height())

    @override
    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and not self.toolTip():
            QToolTip.showText(self.mapToGlobal(self.rect().bottomLeft()), self._left_out(), self)
            return True
        return super().event(event)

    def _left_out(self) -> str:
        return self.text() if self.shown != self.text() else ""

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            self.style().drawItemText(
                painter,
                self.rect(),
                int(Qt.AlignmentFlag.AlignVCenter),
                self.palette(),
                self.isEnabled(),
                self.shown,
                self.foregroundRole(),
            )
