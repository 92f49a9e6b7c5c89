"""The runs of one row: a dot a run, a band from p10 to p90 and a line at p50."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QToolTip, QWidget
from typing_extensions import override

from devtools_app.shell.theme import FontSize, Theme
from inspector.tables.units import (
    Quantity,
    choose_unit,
    column_formatter,
    exact_text,
    format_time,
    plural,
)

Floats = NDArray[np.float64]
_MARGIN, _DOT, _MOST_DOTS, _HEAD = 10, 6.0, 2000, 24
_NEAR = 12.0


class SamplePlot(QWidget):
    """Shows the samples of one row; hovering a dot tells its run and its exact time."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._title = ""
        self._samples: Floats = np.zeros(0)
        self._unit = "auto"
        self.setMouseTracking(True)
        self.setMinimumWidth(150)
        self.setAccessibleName("Time of each run")
        theme.changed.connect(self.update)

    def show_samples(self, title: str, samples: Floats | None, unit: str = "auto") -> None:
        """Show the runs of another row.

        Args:
            title: what the row is
            samples: time of each run in ns, None when there is none
            unit: how times are shown
        """
        self._title = title
        self._samples = np.zeros(0) if samples is None else samples[np.isfinite(samples)]
        self._unit = unit
        self.setAccessibleDescription(self._spoken())
        self.update()

    def _spoken(self) -> str:
        if not len(self._samples):
            return "no times"
        shown = ", ".join(format_time(float(one), self._unit) for one in self._samples[:20])
        more = "…" if len(self._samples) > 20 else ""
        return f"{self._title}, {len(self._samples)} runs: {shown}{more}"

    @override
    def sizeHint(self) -> QSize:
        return QSize(210, 120)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        palette = self._theme.palette
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.fillRect(self.rect(), QColor(palette.raised))
            painter.setPen(QPen(QColor(palette.line), 1.0))
            painter.drawLine(0, 0, 0, self.height())
            if not len(self._samples):
                painter.setPen(QColor(palette.muted))
                words = "Choose a row to see\nthe time of each run"
                painter.drawText(self.rect(), int(Qt.AlignmentFlag.AlignCenter), words)
                return
            self._paint_head(painter)
            self._paint_runs(painter)

    def _paint_head(self, painter: QPainter) -> None:
        palette = self._theme.palette
        font = self._theme.sans(FontSize.SMALL, strong=True)
        count = len(self._samples)
        runs = plural(count, "run")
        small = self._theme.sans(FontSize.SMALL)
        right = QFontMetrics(small).horizontalAdvance(runs) + 8
        box = QRectF(_MARGIN, 4, self.width() - 2 * _MARGIN, _HEAD - 4)
        painter.setFont(small)
        painter.setPen(QColor(palette.muted))
        middle = int(Qt.AlignmentFlag.AlignVCenter)
        painter.drawText(box, middle | int(Qt.AlignmentFlag.AlignRight), runs)
        painter.setFont(font)
        painter.setPen(QColor(palette.text))
        room = int(box.width()) - right
        title = QFontMetrics(font).elidedText(self._title, Qt.TextElideMode.ElideMiddle, room)
        painter.drawText(box, middle, title)

    def _paint_runs(self, painter: QPainter) -> None:
        palette = self._theme.palette
        area, low, high = self._area(), *self._range()
        p10, p50, p90 = (float(one) for one in np.percentile(self._samples, (10, 50, 90)))
        top, bottom = self._y(p90, area, low, high), self._y(p10, area, low, high)
        band = QRectF(area.left(), top, area.width(), max(1.0, bottom - top))
        painter.fillRect(band, QColor(palette.hover))
        painter.setPen(QPen(QColor(palette.accent), 1.5))
        middle = self._y(p50, area, low, high)
        painter.drawLine(QPointF(area.left(), middle), QPointF(area.right(), middle))
        self._paint_marks(painter, area, ((high, "max"), (p50, "p50"), (low, "min")))
        fill = QColor(palette.accent)
        fill.setAlphaF(0.75 if len(self._samples) < 200 else 0.35)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(fill)
        for point in self._dots(area, low, high):
            painter.drawEllipse(point, _DOT / 2, _DOT / 2)

    def _paint_marks(
        self, painter: QPainter, area: QRectF, marks: tuple[tuple[float, str], ...]
    ) -> None:
        """Write the values at the left, as far as they do not lie on each other."""
        low, high = self._range()
        font = self._theme.mono(FontSize.SMALL)
        height = QFontMetrics(font).height()
        unit = choose_unit(Quantity.TIME, high, self._unit)
        text = column_formatter(Quantity.TIME, unit, high)
        painter.setFont(font)
        painter.setPen(QColor(self._theme.palette.muted))
        taken: list[float] = []
        order = (marks[0], marks[2], marks[1]) if high > low else (marks[1],)
        for value, name in order:
            y = self._y(value, area, low, high)
            if any(abs(y - other) < height for other in taken):
                continue
            taken.append(y)
            box = QRectF(_MARGIN, y - height / 2, area.left() - _MARGIN - 8, height)
            words = f"{name} {text(value)} {unit.symbol}"
            painter.drawText(box, int(Qt.AlignmentFlag.AlignRight), words)

    def _area(self) -> QRectF:
        metrics = QFontMetrics(self._theme.mono(FontSize.SMALL))
        left = _MARGIN + metrics.horizontalAdvance("max 000.00 ms") + 8
        half = metrics.height() / 2
        top = _HEAD + half + 2
        return QRectF(
            left, top, max(20.0, self.width() - left - _MARGIN), self.height() - top - half - 8
        )

    def _range(self) -> tuple[float, float]:
        return float(self._samples.min()), float(self._samples.max())

    def _y(self, value: float, area: QRectF, low: float, high: float) -> float:
        share = 0.5 if high <= low else (value - low) / (high - low)
        return area.bottom() - share * area.height()

    def _dots(self, area: QRectF, low: float, high: float) -> list[QPointF]:
        count = len(self._samples)
        step = max(1, count // _MOST_DOTS)
        gap = area.width() / count
        return [
            QPointF(
                area.left() + (number + 0.5) * gap,
                self._y(float(self._samples[number]), area, low, high),
            )
            for number in range(0, count, step)
        ]

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if not len(self._samples):
            return
        area, low, high = self._area(), *self._range()
        count = len(self._samples)
        number = int((event.position().x() - area.left()) / area.width() * count)
        if not 0 <= number < count:
            QToolTip.hideText()
            return
        value = float(self._samples[number])
        if abs(self._y(value, area, low, high) - event.position().y()) > _NEAR and count < 40:
            QToolTip.hideText()
            return
        words = f"run {number + 1}: {exact_text(value, Quantity.TIME)}"
        QToolTip.showText(event.globalPosition().toPoint(), words, self)
