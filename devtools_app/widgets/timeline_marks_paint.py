"""Draw what is marked on a timeline: found events, and numbered marks of spans of time."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPen

from devtools_app.appearance.paint_theme import CanvasColours, ink_on, mix, qcolor
from devtools_app.viewmodels.layout.camera import Camera
from devtools_app.viewmodels.layout.timeline_found import FoundEvents
from devtools_app.widgets.batch import draw_rects
from devtools_app.widgets.graph_canvas_text import TextCache

FLAG = 15.0  # width and height of the number of a mark
_LINE = 1.6
_STRIP = 4.0  # height


def paint_found(
    painter: QPainter,
    found: FoundEvents,
    lane: int,
    camera: Camera,
    area: QRectF,
    colours: CanvasColours,
) -> None:
    """Draw rings around found events of a lane, and a strip below those that are narrow.

    Args:
        painter: to draw with
        found: the events
        lane: of them
        camera: the visible part
        area: of the lane, beside its name
        colours: the palette
    """
    wide, narrow = found.view(lane, camera.x, camera.sx, max(int(area.width()), 1))
    if len(narrow):
        strips = np.empty((len(narrow), 4))
        strips[:, 0] = area.left() + narrow[:, 0]
        strips[:, 2] = np.maximum(narrow[:, 1] - narrow[:, 0], 2.0)
        strips[:, 1], strips[:, 3] = area.bottom() - _STRIP, _STRIP
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(qcolor(colours.warn))
        draw_rects(painter, strips)
    if not len(wide):
        return
    boxes = np.empty((len(wide), 4))
    left, right = np.maximum(wide[:, 0], -4.0), np.minimum(wide[:, 1], area.width() + 4.0)
    boxes[:, 0], boxes[:, 2] = area.left() + left + 0.5, np.maximum(right - left - 1.5, 1.5)
    boxes[:, 1], boxes[:, 3] = area.top() + 0.5, area.height() - 1.0
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(qcolor(colours.warn), _LINE))
    draw_rects(painter, boxes)


def flag_box(start: float, camera: Camera, labels: float, ruler: float) -> QRectF:
    """Return the place of the number of a mark in the ruler."""
    x = labels + (start - camera.x) * camera.sx
    return QRectF(x, ruler - FLAG - 1, FLAG, FLAG)


def paint_flags(
    painter: QPainter,
    size: QSize,
    flags: tuple[tuple[float, float], ...],
    camera: Camera,
    place: tuple[float, float],
    look: tuple[CanvasColours, TextCache],
) -> None:
    """Draw marks: a band in the ruler, lines through the lanes and a number.

    Args:
        painter: to draw with
        size: of the canvas
        flags: span of each mark
        camera: the visible part
        place: width of the lane names and height of the ruler
        look: palette and strings
    """
    labels, ruler = place
    colours, texts = look
    ink = mix(colours.surface, colours.text, 0.8)
    painter.save()
    painter.setClipRect(QRectF(labels, 0, size.width() - labels, size.height()))
    for number, (start, end) in enumerate(flags, 1):
        box = flag_box(start, camera, labels, ruler)
        right = labels + (end - camera.x) * camera.sx
        painter.fillRect(
            QRectF(box.left(), ruler - 4, max(right - box.left(), 2.0), 3), qcolor(ink)
        )
        painter.setPen(QPen(qcolor(ink, 0.6), 1, Qt.PenStyle.DashLine))
        for x in (box.left(), right):
            painter.drawLine(QPointF(x, ruler), QPointF(x, size.height()))
        painter.fillRect(box, qcolor(ink))
        painter.setFont(texts.font(colours, 11)[0])
        painter.setPen(qcolor(ink_on(ink)))
        painter.drawText(box, int(Qt.AlignmentFlag.AlignCenter), str(number))
    painter.restore()
