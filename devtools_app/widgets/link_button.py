"""A link as a button whose text wraps, so that a long name does not widen its panel."""

from __future__ import annotations

import re

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QPushButton, QSizePolicy
from typing_extensions import override

from devtools_app.appearance.theme import Theme
from devtools_app.widgets.text_label import breakable
from devtools_app.widgets.value_label import is_step

_LEFT = int(Qt.AlignmentFlag.AlignLeft)
_WORDS = _LEFT | int(Qt.TextFlag.TextWordWrap)
_ANYWHERE = _LEFT | int(Qt.TextFlag.TextWrapAnywhere)
_BREAKS = "[ \u200b]"
_TALLEST = 10_000  # no limit on the height while lines are counted


class LinkButton(QPushButton):
    """Text in the accent colour; underlined below the pointer, outlined with the focus."""

    def __init__(self, theme: Theme, text: str) -> None:
        super().__init__(text)
        self._theme = theme
        self._wraps: dict[tuple[str, str, int], tuple[int, int]] = {}
        policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if is_step(event):
            event.ignore()  # Qt would go on as by Tab
        else:
            super().keyPressEvent(event)

    @override
    def heightForWidth(self, width: int) -> int:
        return self._wrapped(width)[1]

    def _wrapped(self, width: int) -> tuple[int, int]:
        """Return wrap mode and height: a layout asks for each width some twenty times.

        Lines break between parts of names, inside of them only where one is too long.
        """
        key = self.text(), self.font().key(), width
        found = self._wraps.get(key)
        if found is None:
            shown, metrics = breakable(self.text()), self.fontMetrics()
            longest = max(map(metrics.horizontalAdvance, re.split(_BREAKS, shown)), default=0)
            mode = _WORDS if longest <= width else _ANYWHERE
            box = QRect(0, 0, max(20, width), _TALLEST)
            found = self._wraps[key] = mode, metrics.boundingRect(box, mode, shown).height()
        return found

    @override
    def sizeHint(self) -> QSize:
        width = self.fontMetrics().horizontalAdvance(self.text())
        return QSize(width, self.fontMetrics().height())

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(20, self.fontMetrics().height())

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        accent = QColor(self._theme.palette.accent)
        font = self.font()
        font.setUnderline(self.underMouse())
        with QPainter(self) as painter:
            painter.setFont(font)
            painter.setPen(accent)
            painter.drawText(self.rect(), self._wrapped(self.width())[0], breakable(self.text()))
            if self.hasFocus():
                painter.setPen(QPen(accent, 1.0))
                painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 2, 2)
