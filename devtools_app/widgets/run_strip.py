"""The time of each run on one line: how far the mean above it can be trusted, at a glance."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QAccessible, QColor, QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget
from typing_extensions import override

from devtools_app.appearance.theme import FontSize, Theme
from devtools_app.viewmodels.layout.axis import ticks
from devtools_app.viewmodels.run_marks import RunMarks
from devtools_app.widgets.accessible import set_accessible_role
from inspector.units import Quantity

_DOT, _CROSS, _EDGE = 2.5, 3.0, 8  # pixels: radius, half of a side, free at both ends
_TICK_ROOM = 84  # pixels that a label of the axis needs
_SPREAD = 3  # pixels by which neighbours lie above and below the line


class RunStrip(QWidget):
    """A dot per steady run, a cross per run that is left out; the whole text is on hover."""

    def __init__(self, theme: Theme, marks: RunMarks) -> None:
        super().__init__()
        self._theme = theme
        self._marks = marks
        small = QFontMetrics(theme.sans(FontSize.SMALL))
        self._line = 2 * (_SPREAD + _CROSS) + 2
        self.setFixedHeight(int(self._line) + small.height() + 2)
        self.setMinimumWidth(160)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        set_accessible_role(self, QAccessible.Role.Chart)
        self.setAccessibleName("Time of each run")
        self.setAccessibleDescription(marks.words)
        self.setToolTip(marks.words)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        palette, marks = self._theme.palette, self._marks
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            middle = self._line / 2
            painter.setPen(QPen(QColor(palette.line), 1))
            painter.drawLine(QPointF(0, middle), QPointF(self.width(), middle))
            self._paint_axis(painter)
            fill = QColor(palette.accent)
            fill.setAlphaF(0.7)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(fill)
            for number, time in enumerate(marks.steady.tolist()):
                up = _SPREAD * ((number * 2) % 5 - 2) / 2  # repeated times do not hide each other
                painter.drawEllipse(QPointF(self._at(time), middle + up), _DOT, _DOT)
            painter.setPen(QPen(QColor(palette.muted), 1.4))
            for time in marks.left_out.tolist():
                self._paint_cross(painter, self._at(min(time, marks.high)), middle)

    def _paint_axis(self, painter: QPainter) -> None:
        palette, marks = self._theme.palette, self._marks
        font = self._theme.sans(FontSize.SMALL)
        metrics = QFontMetrics(font)
        painter.setFont(font)
        painter.setPen(QColor(palette.muted))
        wanted = max(2, self.width() // _TICK_ROOM)
        free = 0.0
        for tick in ticks(marks.low, marks.high, wanted, Quantity.TIME):
            width, at = metrics.horizontalAdvance(tick.label), self._at(tick.value)
            left = min(max(at - width / 2, 0.0), self.width() - width)
            if left >= free:
                box = QRectF(left, self._line, width + 2, metrics.height())
                painter.drawText(box, Qt.AlignmentFlag.AlignLeft, tick.label)
                free = left + width + 8

    def _paint_cross(self, painter: QPainter, x: float, y: float) -> None:
        for sign in (-1, 1):
            start = QPointF(x - _CROSS, y - sign * _CROSS)
            painter.drawLine(start, QPointF(x + _CROSS, y + sign * _CROSS))

    def _at(self, time: float) -> float:
        marks = self._marks
        share = (time - marks.low) / (marks.high - marks.low)
        return _EDGE + share * max(self.width() - 2 * _EDGE, 1)
