"""The map of a whole graph in a corner; dragging it moves the view."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import QAccessible, QImage, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from devtools_app.appearance.paint_theme import CanvasColours, mix, qcolor
from devtools_app.viewmodels.layout.camera import Camera, fitted
from devtools_app.widgets.accessible import set_accessible_role
from devtools_app.widgets.batch import draw_rects
from devtools_app.widgets.graph_canvas_style import BoxGroup, GraphLook

LARGEST_MAP = QSize(148, 158)  # with text of the usual size, as all lengths here
_PAD = 8
_CAPTION = 22


class Minimap(QWidget):
    """Draws all boxes once into an image, and the visible area over it.

    Attributes:
        moved: (x, y) of the requested centre of the canvas, in graph coordinates
    """

    moved = Signal(float, float)

    def __init__(self, colours: CanvasColours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._colours = colours
        self._look: GraphLook | None = None
        self._world = (0.0, 0.0, 1.0, 1.0)
        self._seen = QRectF()
        self._caption = ""
        self._drawing: QImage | None = None
        self.setFixedSize(self._largest())
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        set_accessible_role(self, QAccessible.Role.Graphic)
        self.setAccessibleName("Map of the graph")

    def set_graph(self, look: GraphLook, size: tuple[float, float], colours: CanvasColours) -> None:
        """Show a different graph or palette; size is width and height of the graph."""
        self._look, self._colours = look, colours
        self._world = (0.0, 0.0, max(size[0], 1.0), max(size[1], 1.0))
        self._drawing = None
        self.update()

    def set_colours(self, colours: CanvasColours) -> None:
        """Use another palette or size of text."""
        self._colours = colours
        self.setFixedSize(self._largest())
        self._drawing = None
        self.update()

    def set_room(self, height: int) -> None:
        """Limit the height, in pixels."""
        size = self._largest()
        size.setHeight(min(size.height(), height))
        if size != self.size():
            self.setFixedSize(size)
            self._drawing = None

    def _largest(self) -> QSize:
        return LARGEST_MAP * self._colours.scale

    def _drawn_size(self) -> QSizeF:
        return QSizeF(self.size()) / self._colours.scale

    def set_view(self, left: float, top: float, right: float, bottom: float, caption: str) -> None:
        """Show the visible area of the canvas."""
        self._seen = QRectF(left, top, right - left, bottom - top)
        self._caption = caption
        self.setAccessibleDescription(caption)
        self.update()

    def _camera(self) -> Camera:
        size = self._drawn_size()
        screen = (size.width(), size.height() - _CAPTION)
        return fitted(self._world, screen, _PAD, (0.0, 1.0))

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            self.paint(painter, self.devicePixelRatioF())

    def paint(self, painter: QPainter, ratio: float = 2.0) -> None:
        """Draw the map with its upper left corner at the origin."""
        c, size = self._colours, self._drawn_size()
        ratio *= c.scale
        painter.scale(c.scale, c.scale)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(qcolor(c.line), 1))
        painter.setBrush(qcolor(c.raised, 0.96))
        painter.drawRoundedRect(QRectF(0.5, 0.5, size.width() - 1, size.height() - 1), 4, 4)
        if self._look is None:
            return
        if self._drawing is None or self._drawing.devicePixelRatio() != ratio:
            self._drawing = self._drawn(self._look, ratio)
        painter.drawImage(QPointF(0, 0), self._drawing)
        self._paint_view(painter)
        painter.setFont(c.sized(11))
        painter.setPen(qcolor(c.muted))
        box = QRectF(_PAD, size.height() - _CAPTION, size.width() - 2 * _PAD, _CAPTION - 4)
        painter.drawText(box, int(Qt.AlignmentFlag.AlignVCenter), self._caption)

    def _paint_view(self, painter: QPainter) -> None:
        camera, size = self._camera(), self._drawn_size()
        x, y = camera.to_screen(self._seen.x(), self._seen.y())
        box = QRectF(x, y, self._seen.width() * camera.sx, self._seen.height() * camera.sy)
        frame = QRectF(3, 3, size.width() - 6, size.height() - _CAPTION - 2)
        box = box.intersected(frame)
        if box.width() < 5 or box.height() < 5:  # a small part of a large graph must still be seen
            middle = box.center()
            box = QRectF(middle.x() - 3, middle.y() - 3, 6, 6)
        painter.setPen(QPen(qcolor(self._colours.accent), 1.6))
        painter.setBrush(qcolor(self._colours.accent, 0.1))
        painter.drawRect(box)

    def _drawn(self, look: GraphLook, ratio: float) -> QImage:
        size = self._drawn_size()
        image = QImage(
            round(size.width() * ratio),
            round(size.height() * ratio),
            QImage.Format.Format_ARGB32_Premultiplied,
        )
        image.setDevicePixelRatio(ratio)
        image.fill(Qt.GlobalColor.transparent)
        camera = self._camera()
        with QPainter(image) as painter:
            painter.setPen(Qt.PenStyle.NoPen)
            for group in look.regions:
                self._paint_group(painter, group, camera, strength=0.12)
            for group in look.boxes:
                self._paint_group(painter, group, camera, strength=0.6)
        return image

    def _paint_group(
        self, painter: QPainter, group: BoxGroup, camera: Camera, *, strength: float
    ) -> None:
        painter.setBrush(qcolor(mix(group.fill, group.border, strength)))
        boxes = np.empty_like(group.boxes)
        boxes[:, 0] = (group.boxes[:, 0] - camera.x) * camera.sx
        boxes[:, 1] = (group.boxes[:, 1] - camera.y) * camera.sy
        boxes[:, 2:] = np.maximum(group.boxes[:, 2:] * camera.sx, 0.7)
        draw_rects(painter, boxes)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._move_to(event)

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._move_to(event)

    def _move_to(self, event: QMouseEvent) -> None:
        at = event.position() / self._colours.scale
        self.moved.emit(*self._camera().to_world(at.x(), at.y()))
        event.accept()
