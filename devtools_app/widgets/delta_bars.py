"""Where the time went: one signed bar a row around a middle line, the largest first."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from devtools_app.shell.theme import FontSize, Theme

_ROW, _PAD, _BAR, _HEAD = 22, 12, 12, 26
_NAMES, _VALUES = 0.34, 88  # share of the width for names; pixels for values


@dataclass(frozen=True, slots=True)
class Delta:
    """One bar.

    Attributes:
        name: of the row
        value: signed; negative is to the left
        text: the value as shown
        tone: good, bad or muted
    """

    name: str
    value: float
    text: str
    tone: str


class DeltaBars(QWidget):
    """Bars with names at the left and values at the right; as many as there is room for."""

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme = theme
        self._title = ""
        self._rows: tuple[Delta, ...] = ()
        self.setAccessibleName(name)
        self.setMinimumSize(200, _HEAD + 3 * _ROW)
        theme.changed.connect(self.update)

    @property
    def rows(self) -> tuple[Delta, ...]:
        """Return the bars, the largest first."""
        return self._rows

    def show_rows(self, title: str, rows: tuple[Delta, ...]) -> None:
        """Show other bars."""
        self._title, self._rows = title, rows
        said = ", ".join(f"{one.name} {one.text}" for one in rows[:20])
        self.setAccessibleDescription(f"{title}: {said or 'no difference'}")
        self.setToolTip("\n".join(f"{one.name}: {one.text}" for one in rows[:40]))
        self.update()

    @override
    def sizeHint(self) -> QSize:
        return QSize(380, _HEAD + _ROW * min(8, max(3, len(self._rows))))

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        palette = self._theme.palette
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.fillRect(self.rect(), QColor(palette.surface))
            painter.setFont(self._theme.sans(FontSize.SMALL))
            painter.setPen(QColor(palette.muted))
            head = QRectF(_PAD, 6, self.width() - 2 * _PAD, _HEAD - 8)
            fitting = painter.fontMetrics().elidedText(
                self._title, Qt.TextElideMode.ElideRight, int(head.width())
            )
            painter.drawText(head, int(Qt.AlignmentFlag.AlignVCenter), fitting)
            room = max(0, (self.height() - _HEAD) // _ROW)
            largest = max((abs(one.value) for one in self._rows), default=0.0)
            for number, one in enumerate(self._rows[:room]):
                self._paint_row(painter, _HEAD + number * _ROW, one, largest)

    def _paint_row(self, painter: QPainter, top: int, one: Delta, largest: float) -> None:
        palette, width = self._theme.palette, self.width()
        names = width * _NAMES
        font = self._theme.sans(FontSize.SMALL)
        painter.setFont(font)
        painter.setPen(QColor(palette.text))
        text = QFontMetrics(font).elidedText(
            one.name, Qt.TextElideMode.ElideMiddle, int(names - 2 * _PAD)
        )
        align = Qt.AlignmentFlag.AlignVCenter
        box = QRectF(_PAD, top, names - 2 * _PAD, _ROW)
        painter.drawText(box, int(align | Qt.AlignmentFlag.AlignRight), text)
        middle = names + (width - names - _VALUES) / 2
        half = max(4.0, (width - names - _VALUES) / 2 - 6)
        long = half * abs(one.value) / largest if largest else 0.0
        painter.setPen(QPen(QColor(palette.line), 1.0))
        painter.drawLine(round(middle), top, round(middle), top + _ROW)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(palette.tone(one.tone)))
        left = middle - long if one.value < 0 else middle
        painter.drawRoundedRect(QRectF(left, top + (_ROW - _BAR) / 2, long, _BAR), 2, 2)
        painter.setPen(QColor(palette.muted))
        painter.setFont(self._theme.mono(FontSize.SMALL))
        box = QRectF(width - _VALUES, top, _VALUES - _PAD, _ROW)
        painter.drawText(box, int(align | Qt.AlignmentFlag.AlignRight), one.text)
