"""The sign of a tone: its colour, and a shape for those who see the colours alike."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from devtools_app.appearance.theme import Theme

# corners of the sign of a tone in a box of one by one; others are circles
_SHAPES = {
    "bad": ((0.5, 0.05), (1.0, 0.95), (0.0, 0.95)),
    "warn": ((0.5, 0.0), (1.0, 0.5), (0.5, 1.0), (0.0, 0.5)),
    "accent": ((0.15, 0.0), (1.0, 0.5), (0.15, 1.0)),
    "busy": ((0.15, 0.0), (1.0, 0.5), (0.15, 1.0)),
}
_RINGS = ("muted", "off")
SIGNED = ("good", "warn", "bad", "busy", "off")  # tones that have one in a badge


def draw_sign(painter: QPainter, theme: Theme, tone: str, box: QRectF) -> None:
    """Draw the sign of a tone: its colour, and a shape for those who see the colours alike."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    colour = QColor(tone if tone.startswith("#") else theme.palette.tone(tone))
    is_ring = tone in _RINGS
    painter.setPen(QPen(colour, 1.5) if is_ring else Qt.PenStyle.NoPen)
    painter.setBrush(Qt.BrushStyle.NoBrush if is_ring else colour)
    corners = _SHAPES.get(tone)
    if corners is None:
        painter.drawEllipse(box)
        return
    grown = box.adjusted(-1, -1, 1, 1)  # a triangle looks smaller than a circle
    points = [
        QPointF(grown.x() + right * grown.width(), grown.y() + down * grown.height())
        for right, down in corners
    ]
    painter.drawPolygon(points)
