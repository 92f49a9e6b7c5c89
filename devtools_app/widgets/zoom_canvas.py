"""A canvas seen through a camera: drag to pan, wheel to zoom, keys for both."""

from __future__ import annotations

from PySide6.QtCore import QPointF, Qt, Signal
from PySide6.QtGui import QMouseEvent, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from devtools_app.appearance.paint_theme import CanvasColours
from devtools_app.viewmodels.layout.camera import Camera
from devtools_app.widgets.canvas import NOTHING, Canvas, KeyTable

_DRAG = 4  # pixels before a press becomes a drag
WHEEL = 1.0015  # factor for each eighth of a degree
_STEP = 60.0  # pixels that a press of W, A, S or D moves the drawing
_ZOOM = 1.3


class ZoomCanvas(Canvas):
    """Keeps the camera; a subclass limits it and handles clicks.

    Attributes:
        view_changed: the camera moved
    """

    view_changed = Signal()

    def __init__(self, colours: CanvasColours, name: str, parent: QWidget | None = None) -> None:
        super().__init__(colours, name, parent)
        self._camera = Camera()
        self._whole = True  # the camera shows all and follows the widget's size
        self._last_width = 0
        self._press: QPointF | None = None
        self._pressed_item = NOTHING  # of a double click: a panel that comes may move others there
        self._dragged = False

    # camera

    @property
    def camera(self) -> Camera:
        """Return the visible part of the drawing."""
        return self._camera

    def clamped(self, camera: Camera) -> Camera:
        """Return the nearest camera that is allowed."""
        return camera

    def whole(self) -> Camera:
        """Return the camera that shows everything."""
        return self._camera

    def set_camera(self, camera: Camera) -> None:
        """Show a part of the drawing, as far as the limits allow."""
        if self.is_empty():
            return
        self._camera = self.clamped(camera)
        self._whole = False
        self.view_changed.emit()
        self.update()

    def fit(self) -> None:
        """Reset the zoom."""
        if not self.is_empty():
            self.set_camera(self.whole())
            self._whole = True

    def zoom(self, factor: float, at: QPointF | None = None) -> None:
        """Zoom in (factor above 1) or out around a point of the drawing."""

    def pan(self, dx: float, dy: float) -> None:
        """Pan by pixels."""
        self.set_camera(self._camera.panned(dx, dy))

    def focus_selection(self) -> None:
        """Zoom to the selection; if it already fills the view, reset the zoom."""

    def hold(self) -> None:
        """Keep the drawing where it is when the room changes, also if all of it is seen.

        Called before a click selects: the panel that comes with a selection makes the drawing
        narrower, and a whole one that is fitted again would have moved from below the pointer.
        """
        self._whole = False

    def selected_left(self) -> float | None:
        """Return the pixel where the selection begins, None without one."""
        return None

    @override
    def resized(self) -> None:
        """Keep the visible part after a resize, or all of it if all was visible."""
        width, self._last_width = self._last_width, self.drawn_size.width()
        whole = self.whole()
        if self._whole or (self._camera.sx <= whole.sx and self._camera.sy <= whole.sy):
            self.fit()
        elif not self.is_empty():
            self.set_camera(self._camera)
            left = self.selected_left()
            over = left + _STEP - self._last_width if left is not None and left < width else 0.0
            if over > 0:  # just what a narrower room would cut off
                self.pan(-over, 0.0)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.resized()

    # keys

    @override
    def keys(self) -> KeyTable:
        key = Qt.Key
        return {
            key.Key_W: lambda: self.pan(0, _STEP),
            key.Key_S: lambda: self.pan(0, -_STEP),
            key.Key_A: lambda: self.pan(_STEP, 0),
            key.Key_D: lambda: self.pan(-_STEP, 0),
            key.Key_Plus: lambda: self.zoom(_ZOOM),
            key.Key_Equal: lambda: self.zoom(_ZOOM),
            key.Key_Minus: lambda: self.zoom(1 / _ZOOM),
            key.Key_F: self.focus_selection,
            key.Key_Space: self.fit,
        }

    # mouse

    def wheel(self, at: QPointF, dx: float, dy: float, *, shift: bool) -> None:
        """Handle a turn of the wheel, in eighths of a degree."""
        self.zoom(WHEEL ** (dy or dx), at)

    def drag(self, start: QPointF, at: QPointF) -> None:
        """Handle a move with the button pressed; by default it pans."""
        self.setCursor(Qt.CursorShape.ClosedHandCursor)
        self.pan(at.x() - start.x(), at.y() - start.y())
        self._press = at

    def drop(self) -> None:
        """Handle the end of a drag."""

    def click(self, at: QPointF) -> None:
        """Handle a click of the left button."""

    @override
    def wheelEvent(self, event: QWheelEvent) -> None:
        delta = event.angleDelta() if not event.angleDelta().isNull() else event.pixelDelta()
        if not delta.isNull():
            shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            self.wheel(self.spot(event.position()), delta.x(), delta.y(), shift=shift)
        event.accept()

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        buttons = (Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton)
        if event.button() in buttons and not self.is_empty():
            self._press, self._dragged = self.spot(event.position()), False
            self._pressed_item = self.hit(self._press)

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        at = self.spot(event.position())
        if self._press is None:
            self.hover(self.hit(at))
        elif self._dragged or (at - self._press).manhattanLength() >= _DRAG:
            self._dragged = True
            self.drag(self._press, at)

    @override
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        pressed, self._press = self._press, None
        self.unsetCursor()
        if pressed is None:
            return
        if self._dragged:
            self.drop()
        elif event.button() == Qt.MouseButton.LeftButton:
            self.click(self.spot(event.position()))
