"""The marks on nodes that the edits of a recipe are about: a pencil on a disc, a dashed outline."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPen

from devtools_app.appearance.paint_theme import CanvasColours, ink_on, qcolor

Floats = NDArray[np.float64]
_DISC = 15.0  # pixels of the screen where there is room
_LEAST = 4.0
_OF_BOX = 0.8  # of the height of a small box, at most


def paint_edited(painter: QPainter, scale: float, boxes: Floats, colours: CanvasColours) -> None:
    """Mark boxes at their upper right corners.

    Args:
        painter: in the coordinates of the graph
        scale: pixels of the screen for each unit of it
        boxes: float64[boxes, 4]
        colours: of the theme
    """
    outline = QPen(qcolor(colours.accent), 1.6, Qt.PenStyle.DashLine)
    outline.setCosmetic(True)
    pencil = _pencil()
    for x, y, width, height in boxes.tolist():
        if not np.isfinite(x):
            continue
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(outline)
        painter.drawRoundedRect(QRectF(x, y, width, height), 4.0, 4.0)
        size = max(min(_DISC / scale, height * _OF_BOX), _LEAST / scale)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(qcolor(colours.accent))
        middle = QPointF(x + width, y)
        painter.drawEllipse(middle, size / 2, size / 2)
        if size * scale < _DISC / 2:
            continue
        painter.save()
        painter.translate(middle)
        painter.scale(size, size)
        painter.fillPath(pencil, qcolor(ink_on(colours.accent)))
        painter.restore()


def _pencil() -> QPainterPath:
    """Return a pencil around 0, 0, one unit being the disc."""
    path = QPainterPath(QPointF(-0.28, 0.28))
    for x, y in ((-0.22, 0.08), (0.12, -0.26), (0.26, -0.12), (-0.08, 0.22)):
        path.lineTo(x, y)
    path.closeSubpath()
    return path
