"""Drawn numbers of a comparison: errors along the program, and one tensor's differences."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QImage, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from devtools_app.shell.theme import FontSize, Theme

Floats = NDArray[np.float64]
_LEFT, _EDGE, _NEAR = 48, 10, 16.0
_LEGEND = 20  # room for what line and dots mean
_LINE, _OWN, _BAD = "largest difference", "of it added by the node", "more than the tolerance"
_COUNTED = "run − reference, elements (log)"
_WHERE = "where: redder is further apart"
_ALIGN_RIGHT = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)


class GrowthPlot(QWidget):
    """Errors along the program on a scale of decades: all of it as a line, one's own as dots.

    Signals:
        chosen(place): a row was clicked
    """

    chosen = Signal(int)

    def __init__(self, theme: Theme, floor: float) -> None:
        super().__init__()
        self._theme = theme
        self._floor = floor
        self._total: Floats = np.zeros(0)
        self._own: Floats = np.zeros(0)
        self._bad: frozenset[int] = frozenset()
        self._current = -1
        self.setMinimumHeight(130)
        self.setAccessibleName("Error along the program")
        theme.changed.connect(self.update)

    def show_errors(self, total: Floats, own: Floats, bad: frozenset[int]) -> None:
        """Show other errors.

        Args:
            total: decades above the floor, one a row; NaN is missing
            own: likewise
            bad: rows that leave the tolerance by themselves
        """
        self._total, self._own, self._bad = total, own, bad
        known = np.isfinite(total)
        worst = int(np.nanargmax(total)) if known.any() else -1
        self.setAccessibleDescription(
            f"{int(known.sum())} outputs, the largest error at row {worst + 1},"
            f" {len(bad)} leave the tolerance by themselves"
        )
        self.update()

    def show_current(self, place: int) -> None:
        """Mark a row."""
        self._current = place
        self.update()

    @override
    def sizeHint(self) -> QSize:
        return QSize(600, 150)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        if not len(self._total):
            return
        area = self._area()
        place = round((event.position().x() - area.left()) / self._step(area))
        self.chosen.emit(max(0, min(len(self._total) - 1, place)))

    def _area(self) -> QRectF:
        wide, high = self.width() - _LEFT - _EDGE, self.height() - _LEGEND - 14
        return QRectF(_LEFT, _LEGEND + 6, max(1, wide), max(1, high))

    def _step(self, area: QRectF) -> float:
        return area.width() / max(1, len(self._total) - 1)

    def _top(self) -> float:
        known = self._total[np.isfinite(self._total)]
        return max(2.0, float(np.ceil(known.max(initial=2.0))))

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        palette = self._theme.palette
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), QColor(palette.raised))
            if not len(self._total):
                return
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setFont(self._theme.sans(FontSize.SMALL))
            area, top = self._area(), self._top()
            self._paint_scale(painter, area, top)
            if 0 <= self._current < len(self._total):
                x = area.left() + self._current * self._step(area)
                painter.setPen(QPen(QColor(palette.accent), 1.0))
                painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))
            self._paint_errors(painter, area, top)
            self._paint_legend(painter)

    def _paint_legend(self, painter: QPainter) -> None:
        """Say in one line what is drawn; red is spoken of only where there is some."""
        palette = self._theme.palette
        middle, left = _LEGEND / 2 + 2, float(_LEFT)
        parts = [(_LINE, palette.muted, 0.0), (_OWN, palette.accent, 2.0)]
        parts += [(_BAD, palette.bad, 4.0)] if self._bad else []
        for words, colour, radius in parts:
            if radius:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(QColor(colour))
                painter.drawEllipse(QPointF(left + 6, middle), radius, radius)
            else:
                painter.setPen(QPen(QColor(colour), 1.2))
                painter.drawLine(QPointF(left, middle), QPointF(left + 12, middle))
            painter.setPen(QColor(palette.muted))
            wide = painter.fontMetrics().horizontalAdvance(words)
            box = QRectF(left + 18, middle - 10, wide + 2, 20)
            painter.drawText(box, int(Qt.AlignmentFlag.AlignVCenter), words)
            left += wide + 36

    def _paint_scale(self, painter: QPainter, area: QRectF, top: float) -> None:
        palette = self._theme.palette
        for decade in range(0, int(top) + 1, 3):
            y = area.bottom() - area.height() * decade / top
            painter.setPen(QPen(QColor(palette.line), 1.0))
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
            painter.setPen(QColor(palette.muted))
            power = decade + int(np.log10(self._floor))
            box = QRectF(0, y - 8, _LEFT - 6, 16)
            painter.drawText(box, _ALIGN_RIGHT, f"1e{power}" if decade else "0")

    def _paint_errors(self, painter: QPainter, area: QRectF, top: float) -> None:
        palette, step = self._theme.palette, self._step(area)

        def at(place: int, value: float) -> QPointF:
            y = area.bottom() - area.height() * min(value, top) / top
            return QPointF(area.left() + place * step, y)

        painter.setPen(QPen(QColor(palette.muted), 1.2))
        known = np.flatnonzero(np.isfinite(self._total))
        points = [at(int(place), float(self._total[place])) for place in known]
        painter.drawPolyline(points)
        painter.setPen(Qt.PenStyle.NoPen)
        for place in np.flatnonzero(np.isfinite(self._own)):
            bad = int(place) in self._bad
            painter.setBrush(QColor(palette.bad if bad else palette.accent))
            radius = 4.0 if bad else 2.0
            painter.drawEllipse(at(int(place), float(self._own[place])), radius, radius)


class DifferencePlot(QWidget):
    """The differences of one tensor: how many are how large, and where they are."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._counts: NDArray[np.int64] = np.zeros(0, np.int64)
        self._heat: Floats = np.zeros((0, 0))
        self._reach = 0.0
        self._words = "Choose a row to see its differences"
        self.setMinimumSize(220, 150)
        self.setAccessibleName("Differences of the tensor")
        theme.changed.connect(self.update)

    def show_words(self, words: str) -> None:
        """Say why there is nothing to see."""
        self._counts, self._heat, self._words = np.zeros(0, np.int64), np.zeros((0, 0)), words
        self.setAccessibleDescription(words)
        self.update()

    def show_differences(self, counts: NDArray[np.int64], reach: float, heat: Floats) -> None:
        """Show another tensor.

        Args:
            counts: elements a bin, from -reach to reach
            reach: largest difference
            heat: size of the difference by place, 0 to 1
        """
        self._counts, self._reach, self._heat = counts, reach, heat
        self.setAccessibleDescription(f"{int(counts.sum()):,} elements, up to {reach:.4g} apart")
        self.update()

    @override
    def sizeHint(self) -> QSize:
        return QSize(320, 260)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        palette = self._theme.palette
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), QColor(palette.raised))
            painter.setFont(self._theme.sans(FontSize.SMALL))
            if not len(self._counts):
                painter.setPen(QColor(palette.muted))
                center = int(Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap)
                painter.drawText(self.rect().adjusted(12, 12, -12, -12), center, self._words)
                return
            half, room = self.height() / 2, self.width() - 2 * _EDGE
            painter.setPen(QColor(palette.muted))
            words = painter.fontMetrics().elidedText(_COUNTED, Qt.TextElideMode.ElideRight, room)
            painter.drawText(QPointF(_EDGE, 16), words)
            self._paint_bars(painter, QRectF(_EDGE, 24, room, half - 46))
            box = QRectF(_EDGE, half + 18, self.width() - 2 * _EDGE, half - 26)
            painter.setPen(QColor(palette.muted))
            painter.drawText(QPointF(_EDGE, half + 12), _WHERE)
            self._paint_heat(painter, box)

    def _paint_bars(self, painter: QPainter, area: QRectF) -> None:
        palette = self._theme.palette
        sizes = np.log1p(self._counts.astype(np.float64))
        top, width = float(sizes.max()) or 1.0, area.width() / len(sizes)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(palette.accent))
        for place, size in enumerate(sizes):
            height = area.height() * float(size) / top
            left = area.left() + place * width
            painter.drawRect(QRectF(left, area.bottom() - height, max(1.0, width - 1), height))
        painter.setPen(QColor(palette.muted))
        line = QRectF(area.left(), area.bottom() + 2, area.width(), 16)
        painter.drawText(line, int(Qt.AlignmentFlag.AlignLeft), f"-{self._reach:.3g}")
        painter.drawText(line, int(Qt.AlignmentFlag.AlignHCenter), "0")
        painter.drawText(line, int(Qt.AlignmentFlag.AlignRight), f"{self._reach:.3g}")

    def _paint_heat(self, painter: QPainter, area: QRectF) -> None:
        if not self._heat.size:
            return
        low, high = QColor(self._theme.palette.surface), QColor(self._theme.palette.bad)
        ends = [np.array([one.red(), one.green(), one.blue()], np.float64) for one in (low, high)]
        shares = np.sqrt(self._heat)[..., None]
        colours = (ends[0] + (ends[1] - ends[0]) * shares).astype(np.uint8)
        pixels = np.ascontiguousarray(colours)
        rows, columns = self._heat.shape
        image = QImage(pixels.data, columns, rows, 3 * columns, QImage.Format.Format_RGB888)
        painter.drawImage(area, image.copy())
