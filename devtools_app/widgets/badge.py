"""A small outlined label: exact, inferred, measured, missing."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QSizePolicy,
    QWidget,
)
from typing_extensions import override

from devtools_app.appearance.theme import FontSize, Theme
from devtools_app.widgets.sign import SIGNED, draw_sign

BADGE_PAD = 5
_SIGN = 7


def paint_badge(painter: QPainter, box: QRectF, text: str, theme: Theme, tone: str) -> None:
    """Draw an outlined word; a tone colours both."""
    ink = theme.palette.tone(tone) if tone else theme.palette.muted
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(QColor(ink if tone else theme.palette.edge), 1.0))
    painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 3.0, 3.0)
    inside = box.adjusted(sign_width(tone), 0, 0, 0)
    if tone in SIGNED:
        top = box.y() + (box.height() - _SIGN) / 2
        draw_sign(painter, theme, tone, QRectF(box.x() + BADGE_PAD, top, _SIGN, _SIGN))
    painter.setPen(QColor(ink))
    painter.setFont(theme.sans(FontSize.SMALL))
    painter.drawText(inside, int(Qt.AlignmentFlag.AlignCenter), text)
    painter.restore()


def sign_width(tone: str) -> int:
    """Return the room that the sign of a tone takes before the word of a badge."""
    return _SIGN + 3 if tone in SIGNED else 0


def paint_key(painter: QPainter, box: QRectF, key: str, theme: Theme) -> None:
    """Draw the name of a key at the right end of a button."""
    metrics = QFontMetrics(theme.sans(FontSize.SMALL))
    width, height = metrics.horizontalAdvance(key) + 2 * BADGE_PAD, metrics.height() + 2
    left, top = box.right() - width - 7, box.y() + (box.height() - height) / 2
    paint_badge(painter, QRectF(left, top, width, height), key, theme, "")


def key_width(key: str, theme: Theme) -> int:
    """Return the width of the name of a key at the end of a button."""
    metrics = QFontMetrics(theme.sans(FontSize.SMALL))
    return metrics.horizontalAdvance(key) + 2 * BADGE_PAD + 14


class Badge(QWidget):
    """A word in an outline, with the reason on hover."""

    def __init__(self, theme: Theme, text: str = "", tone: str = "", reason: str = "") -> None:
        super().__init__()
        self._theme = theme
        self._text = ""
        self._tone = ""
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.set_badge(text, tone, reason)
        theme.changed.connect(self.updateGeometry)

    @property
    def text(self) -> str:
        """Return the word."""
        return self._text

    def set_badge(self, text: str, tone: str = "", reason: str = "") -> None:
        """Replace the word; hide if it is empty."""
        self._text, self._tone = text, tone
        self.setToolTip(reason)
        self.setAccessibleName(f"{text}: {reason}" if reason else text)
        if not text or self.parentWidget() is not None:  # alone it would be a window for a moment
            self.setVisible(bool(text))
        self.updateGeometry()
        self.update()

    @override
    def sizeHint(self) -> QSize:
        metrics = badge_metrics(self, self._theme)
        width = metrics.horizontalAdvance(self._text) + 2 * BADGE_PAD + sign_width(self._tone)
        return QSize(width, metrics.height() + 2)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            room = self.width() - 2 * BADGE_PAD - sign_width(self._tone)
            right = Qt.TextElideMode.ElideRight
            shown = badge_metrics(self, self._theme).elidedText(self._text, right, room + 1)
            paint_badge(painter, QRectF(self.rect()), shown, self._theme, self._tone)


def badge_metrics(widget: QWidget, theme: Theme) -> QFontMetrics:
    """Return the measures of the words of badges."""
    return QFontMetrics(theme.sans(FontSize.SMALL), widget)
