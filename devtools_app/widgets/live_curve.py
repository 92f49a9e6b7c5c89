"""A strip below the memory plan: bytes in use at each step, on the same axis of steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget
from typing_extensions import override

from devtools_app.viewmodels.layout.camera import Camera
from devtools_app.widgets.canvas import Canvas
from devtools_app.widgets.memory_canvas_paint import LEFT, RIGHT
from devtools_app.widgets.paint_theme import CanvasColours, mix, qcolor, readable
from inspector.tables.units import format_bytes

_TOP, _BOTTOM = 18.0, 6.0
_HEIGHT = 76


class LiveCurve(Canvas):
    """Draws the curve of live bytes; follows the camera of the plan above it.

    Attributes:
        step_selected: step that the user clicked on
    """

    step_selected = Signal(int)

    def __init__(self, colours: CanvasColours, parent: QWidget | None = None) -> None:
        super().__init__(colours, "Bytes in use", parent)
        self._live: NDArray[np.int64] = np.zeros(0, np.int64)
        self._peak: int | None = None
        self._step: int | None = None
        self._camera = Camera()
        self.setFixedHeight(_HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def show_live(self, live: NDArray[np.int64], peak: int | None) -> None:
        """Show another arena.

        Shapes: live int64[steps]
        """
        self._live, self._peak, self._step = live, peak, None
        self.describe()
        self.update()

    def set_step(self, step: int | None) -> None:
        """Mark a step without telling anyone."""
        self._step = step
        self.update()

    def follow(self, camera: Camera) -> None:
        """Show the steps that the plan above shows."""
        self._camera = camera
        self.update()

    @override
    def sizeHint(self) -> QSize:
        return QSize(600, _HEIGHT)

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(200, _HEIGHT)

    @override
    def is_empty(self) -> bool:
        return not len(self._live)

    @override
    def accessible_summary(self) -> str:
        if self._peak is None:
            return "no bytes in use"
        most = format_bytes(int(self._live.max(initial=0)))
        return f"bytes in use over {len(self._live):,} steps, at most {most} at step {self._peak}"

    def _x(self, step: float) -> float:
        return LEFT + (step - self._camera.x) * self._camera.sx

    @override
    def paint_content(self, painter: QPainter, size: QSize) -> None:
        c = self.colours
        top = float(self._live.max(initial=0)) or 1.0
        plot = QRectF(
            LEFT, _TOP, max(size.width() - LEFT - RIGHT, 1), size.height() - _TOP - _BOTTOM
        )
        painter.setFont(c.sized(11))
        painter.setPen(qcolor(readable(c.muted, c.surface, c.text)))
        painter.drawText(QPointF(LEFT, 12), "bytes in use")
        label = QRectF(0, _TOP - 8, LEFT - 8, 16)
        flags = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        painter.drawText(label, flags, format_bytes(int(top)))
        painter.setPen(QPen(qcolor(c.line), 1))
        painter.drawLine(plot.bottomLeft(), plot.bottomRight())
        painter.save()
        painter.setClipRect(plot.adjusted(0, -2, 0, 1))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.setPen(QPen(qcolor(c.accent), 1.4))
        painter.setBrush(qcolor(mix(c.surface, c.accent, 0.22)))
        painter.drawPolygon(self._outline(plot, top))
        for step, colour in ((self._peak, c.bad), (self._step, c.accent)):
            if step is not None:
                painter.fillRect(
                    QRectF(self._x(step), plot.top(), max(self._camera.sx, 1.5), plot.height()),
                    qcolor(colour, 0.35),
                )
        painter.restore()

    def _outline(self, plot: QRectF, top: float) -> QPolygonF:
        """Return the steps on show; of many on one pixel the most."""
        count = len(self._live)
        low = min(max(int(self._camera.x), 0), count)
        high = min(max(int(self._camera.x + plot.width() / self._camera.sx) + 2, low), count)
        group = max(1, int((high - low) / max(plot.width(), 1)))
        starts = np.arange(low, high, group)
        if not len(starts):
            return QPolygonF()
        most = np.maximum.reduceat(self._live[:high], starts)
        points = [QPointF(self._x(low), plot.bottom())]
        for step, value in zip(starts.tolist(), most.tolist(), strict=True):
            y = plot.bottom() - plot.height() * value / top
            points += [QPointF(self._x(step), y), QPointF(self._x(step + group), y)]
        points.append(QPointF(points[-1].x(), plot.bottom()))
        return QPolygonF(points)

    def _step_at(self, x: float) -> int | None:
        step = int(self._camera.x + (x - LEFT) / self._camera.sx)
        return step if x >= LEFT and 0 <= step < len(self._live) else None

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        step = self._step_at(event.position().x())
        if step is not None:
            text = f"step {step}: {format_bytes(int(self._live[step]))} ({self._live[step]:,} B)"
            QToolTip.showText(event.globalPosition().toPoint(), text, self)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        step = self._step_at(event.position().x())
        if step is not None:
            self.step_selected.emit(step)
