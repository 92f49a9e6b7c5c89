"""A strip below the memory plan: the time of each instruction, on the same axis."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QBrush,
    QColor,
    QHelpEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget
from typing_extensions import override

from devtools_app.appearance.paint_theme import mix, qcolor
from devtools_app.appearance.theme import FontSize, Theme
from devtools_app.viewmodels.layout.camera import Camera
from devtools_app.widgets.accessible import set_accessible_role
from devtools_app.widgets.batch import draw_rects
from devtools_app.widgets.memory_canvas_paint import LEFT, RIGHT
from inspector.profile.instruction_times import InstructionTimes
from inspector.units import Quantity, exact_text, format_time

_HEIGHT, _TOP, _BOTTOM = 62, 18, 4  # with text of the usual size
_LEAST = 1.0  # pixels of an instruction that took any time
_PLAIN = 2.0  # pixels of a step from which each is drawn by itself


class TimeStrip(QWidget):
    """Draws a bar for each instruction; hatched where its time is missing.

    Signals:
        step_selected(step): the user clicked on an instruction
    """

    step_selected = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._times = InstructionTimes(np.zeros(0))
        self._camera = Camera()
        self._step: int | None = None
        self._unit = "auto"
        set_accessible_role(self, QAccessible.Role.Chart)
        self.setAccessibleName("Time of each instruction")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.follow(self._restyle)
        self._restyle()

    def _restyle(self) -> None:
        self.setFixedHeight(round(_HEIGHT * self._theme.scale))
        self.update()

    def show_times(self, times: InstructionTimes, unit: str = "auto") -> None:
        """Show the times of another method."""
        self._times, self._unit = times, unit
        known = times.mean_ns[np.isfinite(times.mean_ns)]
        words = times.reason or (
            f"{len(known):,} of {len(times.mean_ns):,} instructions have a time,"
            f" the longest takes {format_time(float(known.max()), unit)}."
            " As a table: Operators"
        )
        self.setAccessibleDescription(words)
        self.update()

    def set_step(self, step: int | None) -> None:
        """Mark a step; `step_selected` is not emitted."""
        self._step = step
        self.update()

    def follow(self, camera: Camera) -> None:
        """Show the steps that the plan above shows."""
        self._camera = camera
        self.update()

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(200, round(_HEIGHT * self._theme.scale))

    # ---- the user
    def step_at(self, x: float) -> int | None:
        """Return the instruction at a pixel, None outside."""
        plot = self._plot()
        step = int(np.floor(self._camera.x + (x - plot.left()) / self._step_width))
        inside = plot.left() <= x <= plot.right() and 0 <= step < len(self._times.mean_ns)
        return step if inside else None

    def text_of(self, step: int) -> str:
        """Return the hover text of an instruction."""
        found = float(self._times.mean_ns[step])
        if not np.isfinite(found):
            reason = self._times.reason or "the trace has none of it"
            return f"instruction {step}: time missing, {reason}"
        words = ", values were logged meanwhile" if self._times.logged else ""
        exact = exact_text(round(found), Quantity.TIME)
        return f"instruction {step}: {format_time(found, self._unit)} ({exact}){words}"

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        step = self.step_at(event.position().x())
        if event.button() is Qt.MouseButton.LeftButton and step is not None:
            self.step_selected.emit(step)

    @override
    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            step = self.step_at(event.pos().x())
            text = "" if step is None else self.text_of(step)
            QToolTip.showText(event.globalPos(), text, self)
            return True
        return super().event(event)

    # ---- drawing
    def boxes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the bars of the times in pixels, and the places where they are missing.

        Shapes: float64[n, 4] both: x, y, width, height
        """
        plot = self._plot()
        lows, widths, times = self._columns(plot)
        known = np.isfinite(times)
        most = float(self._times.mean_ns[np.isfinite(self._times.mean_ns)].max(initial=0.0)) or 1.0
        high = np.maximum(np.where(known, times, 0.0) / most * plot.height(), _LEAST)
        bars = np.column_stack([lows, plot.bottom() - high, widths, high])[known]
        count = int((~known).sum())
        whole = np.full(count, plot.top()), np.full(count, plot.height())
        gaps = np.column_stack([lows[~known], whole[0], widths[~known], whole[1]])
        return bars, gaps

    def _columns(
        self, plot: QRectF
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return left side, width and time of what is drawn: a step, or those of a pixel."""
        begin, wide, times = self._camera.x, self._step_width, self._times.mean_ns
        first = max(int(begin), 0)
        last = min(int(np.ceil(begin + plot.width() / wide)), len(times))
        steps = np.arange(first, max(last, first))
        lows = np.asarray(plot.left() + (steps - begin) * wide, np.float64)
        if wide >= _PLAIN or not len(steps):
            gap = 1.0 if wide > 4 else 0.0
            return lows, np.full(len(steps), max(wide - gap, 1.0)), times[steps]
        pixels = np.floor(lows)
        starts = np.flatnonzero(np.diff(pixels, prepend=-1.0))
        return pixels[starts], np.ones(len(starts)), np.fmax.reduceat(times[steps], starts)

    def _plot(self) -> QRectF:
        scale = self._theme.scale
        width = max(self.width() - (LEFT + RIGHT) * scale, 1.0)
        top = _TOP * scale
        return QRectF(LEFT * scale, top, width, self.height() - top - _BOTTOM)

    @property
    def _step_width(self) -> float:
        """Return the pixels of a step: those of the plan above."""
        return self._camera.sx * self._theme.scale

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        palette, plot = self._theme.palette, self._plot()
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), QColor(palette.surface))
            painter.setFont(self._theme.sans(FontSize.SMALL))
            painter.setPen(QColor(palette.text))
            painter.drawText(QPointF(plot.left(), plot.top() - 6), self._title())
            known = self._times.mean_ns[np.isfinite(self._times.mean_ns)]
            if len(known):
                painter.setPen(QColor(palette.muted))
                label = format_time(float(known.max()), self._unit)
                wide = painter.fontMetrics().horizontalAdvance(label)
                baseline = plot.top() + 10 * self._theme.scale
                painter.drawText(QPointF(max(plot.left() - wide - 8, 2), baseline), label)
            painter.setClipRect(plot)
            self._paint_bars(painter, plot)

    def _title(self) -> str:
        if self._times.reason:
            return f"time of each instruction: missing, {self._times.reason}"
        return "time of each instruction" + (", values logged" if self._times.logged else "")

    def _paint_bars(self, painter: QPainter, plot: QRectF) -> None:
        palette = self._theme.palette
        bars, gaps = self.boxes()
        painter.setPen(Qt.PenStyle.NoPen)
        hatch = QBrush(qcolor(mix(palette.surface, palette.muted, 0.6)), Qt.BrushStyle.BDiagPattern)
        painter.setBrush(hatch)
        draw_rects(painter, gaps)
        painter.setBrush(qcolor(mix(palette.surface, palette.accent, 0.75)))
        draw_rects(painter, bars)
        if self._times.logged:
            over = QBrush(QColor(palette.surface), Qt.BrushStyle.FDiagPattern)
            painter.setBrush(over)
            draw_rects(painter, bars)
        if self._step is not None:
            left = plot.left() + (self._step - self._camera.x) * self._step_width
            band = QRectF(left, 0, max(self._step_width, 1.5), self.height())
            painter.setBrush(qcolor(palette.accent, 0.25))
            painter.setClipping(False)
            if band.right() > plot.left() and band.left() < plot.right():
                painter.drawRect(band)
