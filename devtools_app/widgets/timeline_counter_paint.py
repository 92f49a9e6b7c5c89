"""Draw counters below the lanes of a timeline: filled steps with the largest value at the left."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from devtools_app.appearance.paint_theme import CanvasColours, mix, qcolor
from devtools_app.viewmodels.canvas_data import TimelineCounter
from devtools_app.viewmodels.layout.camera import Camera
from devtools_app.viewmodels.layout.counter_bins import counter_view
from devtools_app.widgets.batch import draw_lines, draw_rects
from devtools_app.widgets.graph_canvas_text import TextCache
from inspector.units import format_quantity

_LOWEST = 1.5  # pixels of a value that is small, but not 0


def paint_counter(
    painter: QPainter,
    counter: TimelineCounter,
    camera: Camera,
    area: QRectF,
    look: tuple[CanvasColours, TextCache],
) -> None:
    """Draw the values of a counter, or that they are missing.

    Args:
        painter: to draw with
        counter: the values
        camera: the visible part
        area: of the counter, beside its name
        look: palette and strings
    """
    colours, texts = look
    if counter.missing:
        painter.setFont(texts.font(colours, 11)[0])
        painter.setPen(qcolor(colours.muted))
        middle = area.center().y() + 4
        painter.drawText(QPointF(area.left() + 8, middle), f"missing: {counter.missing}")
        return
    left, right, value = counter_view(counter, camera.x, camera.sx, max(int(area.width()), 1))
    painter.setPen(QPen(qcolor(colours.line), 1))
    painter.drawLine(QPointF(area.left(), area.bottom()), QPointF(area.right(), area.bottom()))
    seen = value > 0
    if not seen.any() or counter.top <= 0:
        return
    room = area.height() - 2.0
    height = np.maximum(value[seen] / counter.top * room, _LOWEST)
    boxes = np.empty((len(height), 4))
    boxes[:, 0] = area.left() + left[seen]
    boxes[:, 1] = area.bottom() - height
    boxes[:, 2] = (right - left)[seen]
    boxes[:, 3] = height
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(qcolor(mix(colours.surface, colours.muted, 0.35)))
    draw_rects(painter, boxes)
    painter.setPen(QPen(qcolor(colours.muted), 1.4))
    tops = np.stack([boxes[:, 0], boxes[:, 1], boxes[:, 0] + boxes[:, 2], boxes[:, 1]], axis=1)
    draw_lines(painter, tops)


def counter_label(counter: TimelineCounter) -> str:
    """Return the range of a counter in words."""
    return "" if counter.missing else f"0 to {format_quantity(counter.top, counter.quantity)}"
