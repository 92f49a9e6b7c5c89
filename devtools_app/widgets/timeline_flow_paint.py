"""Draw the flow of data from the call that writes a value to the calls that read it."""

from __future__ import annotations

import math

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPen, QPolygonF

from devtools_app.appearance.paint_theme import CanvasColours, qcolor

_HEAD = 6.0
_FARTHEST = 4000.0  # pixels beyond the sides at which a curve ends
Arrow = tuple[float, float, float, float]


def paint_arrows(painter: QPainter, arrows: list[Arrow], colours: CanvasColours) -> None:
    """Draw arrows given by their ends in pixels."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    for x1, y1, x2, y2 in arrows:
        left, right = max(x1, -_FARTHEST), min(x2, _FARTHEST * 2)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(qcolor(colours.accent), 1.6))
        painter.drawPath(_curve(left, y1, right, y2))
        painter.setBrush(qcolor(colours.accent))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.drawPolygon(_head(right, y2))
    painter.restore()


def _curve(x1: float, y1: float, x2: float, y2: float) -> QPainterPath:
    path = QPainterPath(QPointF(x1, y1))
    bend = max(min(abs(x2 - x1) / 2, 80.0), 8.0)
    rise = min(10.0 + math.sqrt(abs(x2 - x1)), 42.0) if y1 == y2 else 0.0
    path.cubicTo(
        QPointF(x1 + bend, y1 + rise), QPointF(x2 - bend, y2 + rise), QPointF(x2 - _HEAD / 2, y2)
    )
    return path


def _head(x: float, y: float) -> QPolygonF:
    half = _HEAD / 2
    return QPolygonF([QPointF(x, y), QPointF(x - _HEAD, y - half), QPointF(x - _HEAD, y + half)])
