"""Base of all canvases: theme, keys, hover, accessibility, export."""

from __future__ import annotations

import errno
import math
from collections.abc import Callable, Mapping
from pathlib import Path

from PySide6.QtCore import (
    QBuffer,
    QEvent,
    QIODevice,
    QPoint,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QAccessible,
    QContextMenuEvent,
    QHelpEvent,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget
from typing_extensions import override

from devtools_app.appearance.look import BASE_SIZE
from devtools_app.appearance.paint_theme import CanvasColours, qcolor
from devtools_app.widgets.accessible import announce, set_accessible_role
from devtools_app.widgets.files import write_binary_file

_PLAIN = Qt.KeyboardModifier.KeypadModifier | Qt.KeyboardModifier.ShiftModifier
NOTHING = -1
KeyTable = Mapping[int, Callable[[], None]]


class Canvas(QWidget):
    """A widget that paints itself; a subclass implements paint_content and drawn_summary.

    All sizes and points of a drawing are pixels at the usual size of text. Larger text enlarges
    the drawing as a whole, so that the room for it has fewer of these pixels than the widget.

    Signals:
        menu_requested(at): position at which to open a menu for the selection

    Attributes:
        colours: roles of the palette in use
        role: of the drawing for screen readers
        as_table: where a table has the same facts
    """

    menu_requested = Signal(QPoint)
    role = QAccessible.Role.Chart
    as_table = ""

    def __init__(self, colours: CanvasColours, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.colours = colours
        self._hovered = NOTHING
        self._actions: KeyTable | None = None
        self._announced = ""
        set_accessible_role(self, self.role)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)

    def set_colours(self, colours: CanvasColours) -> None:
        """Change the palette or the size of text."""
        before, self.colours = self.colours.scale, colours
        self.colours_changed()
        if colours.scale != before:
            self.resized()
        self.update()

    def resized(self) -> None:
        """Adapt to another room; called after the widget or the text changed its size."""

    @property
    def drawn_size(self) -> QSize:
        """Return the room for the drawing."""
        return self._in_drawing(self.size())

    def _in_drawing(self, size: QSize) -> QSize:
        scale = self.colours.scale
        return QSize(math.ceil(size.width() / scale), math.ceil(size.height() / scale))

    def spot(self, at: QPointF | QPoint) -> QPointF:
        """Return the point of the drawing at a pixel of the widget."""
        return QPointF(at) / self.colours.scale

    def colours_changed(self) -> None:
        """Drop caches that depend on colours; called after the palette changed."""

    def is_empty(self) -> bool:
        """Return whether the canvas has no content."""
        return True

    def paint_content(self, painter: QPainter, size: QSize) -> None:
        """Draw the content in a room of a size; the background is already drawn."""

    def drawn_summary(self) -> str:
        """Return one sentence about the content, which is not empty."""
        return ""

    def selected_summary(self) -> str:
        """Return the selection as text, empty without one."""
        return ""

    def accessible_summary(self) -> str:
        """Return a description: the drawing, the selection, and the table with the same facts."""
        if self.is_empty():
            return "Nothing to draw"
        parts = [self.drawn_summary()]
        if chosen := self.selected_summary():
            parts.append(f"Selected: {chosen}")
        if self.as_table:
            parts.append(f"As a table: {self.as_table}")
        return ". ".join(parts)

    def describe(self) -> None:
        """Update the accessible description; a new selection is read out if it has the keyboard."""
        self.setAccessibleDescription(self.accessible_summary())
        chosen = "" if self.is_empty() else self.selected_summary()
        if chosen != self._announced:
            self._announced = chosen
            if self.hasFocus():
                announce(self, chosen)

    # keys and pointer

    def keys(self) -> KeyTable:
        """Return the descriptions of keys while there is content."""
        return {}

    def clear_selection(self) -> bool:
        """Deselect; return whether an item was selected, so that a second Esc is passed on."""
        return False

    def hit(self, at: QPointF) -> int:
        """Return the number of the item at a point of the drawing, or NOTHING."""
        return NOTHING

    def choose_for_menu(self, at: QPointF) -> bool:
        """Select what is at a point of the drawing; return whether a menu belongs there."""
        return False

    def keys_open_menu(self) -> None:
        """Prepare a menu of the selection, opened by the keyboard."""

    def mark_hovered(self, item: int) -> None:
        """Mark the item under the pointer and emit it."""

    def tip_at(self, at: QPointF) -> str:
        """Return the hover text for a point of the drawing."""
        item = self.hit(at)
        return self.hover_text(item) if item != NOTHING else ""

    def hover_text(self, item: int) -> str:
        """Return the hover text of an item."""
        return ""

    def hover(self, item: int) -> None:
        """Set the item under the pointer."""
        if item != self._hovered:
            self._hovered = item
            self.mark_hovered(item)
            self.update()

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.clear_selection():
            return
        if self._actions is None:
            self._actions = self.keys()
        action = self._actions.get(event.key())
        if action is None or self.is_empty() or event.modifiers() & ~_PLAIN:
            super().keyPressEvent(event)
            return
        action()

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self.hover(self.hit(self.spot(event.position())))

    @override
    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        by_keys = event.reason() == QContextMenuEvent.Reason.Keyboard
        if by_keys:
            self.keys_open_menu()
        if by_keys or self.choose_for_menu(self.spot(event.pos())):  # keys mean what is selected
            self.menu_requested.emit(event.pos())

    @override
    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.hover(NOTHING)

    @override
    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), self.tip_at(self.spot(event.pos())), self)
            return True
        return super().event(event)

    @override
    def sizeHint(self) -> QSize:
        return QSize(800, 500)

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(200, 120)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            self.paint(painter, self.size())
            if self.hasFocus():
                self._paint_focus(painter)

    def paint(self, painter: QPainter, size: QSize) -> None:
        """Draw background and content."""
        painter.fillRect(QRect(0, 0, size.width(), size.height()), qcolor(self.colours.surface))
        painter.save()
        painter.scale(self.colours.scale, self.colours.scale)
        painter.setFont(self.colours.sized(BASE_SIZE))
        if not self.is_empty():
            self.paint_content(painter, self._in_drawing(size))
        painter.restore()

    def _paint_focus(self, painter: QPainter) -> None:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(qcolor(self.colours.accent, 0.7), 1.0))
        painter.drawRect(QRectF(0.5, 0.5, self.width() - 1.0, self.height() - 1.0))

    def paint_extras(self, painter: QPainter, size: QSize) -> None:
        """Draw the child widgets into an exported image."""

    def _paint_export(self, painter: QPainter, size: QSize, *, extras: bool) -> None:
        self.paint(painter, size)
        if extras and not self.is_empty():
            self.paint_extras(painter, size)

    def render_to_image(
        self, scale: float = 2.0, size: QSize | None = None, *, extras: bool = True
    ) -> QImage:
        """Return an image of the canvas.

        Args:
            scale: pixels of the image per pixel of the widget
            size: of the drawing; that of the widget by default
            extras: with the legend
        """
        size = size or self.size()
        image = QImage(
            max(round(size.width() * scale), 1),
            max(round(size.height() * scale), 1),
            QImage.Format.Format_RGB32,
        )
        image.setDevicePixelRatio(scale)
        with QPainter(image) as painter:
            self._paint_export(painter, size, extras=extras)
        return image

    def render_to_png(self, path: str | Path, scale: float = 2.0) -> None:
        """Write an image of the canvas.

        Raises: OSError when the file cannot be written
        """
        _save(self.render_to_image(scale), path)

    def render_to_svg(self, path: str | Path) -> None:
        """Write the canvas as SVG, with text as text.

        Raises: OSError when the file cannot be written
        """
        self._write_svg(path, self.size(), extras=True)

    def write_image(self, path: str | Path, scale: float, size: QSize, *, extras: bool) -> None:
        """Write an image of any size: SVG for the suffix .svg, else PNG.

        Raises: OSError when the file cannot be written
        """
        if Path(path).suffix.lower() == ".svg":
            self._write_svg(path, size, extras=extras)
        else:
            _save(self.render_to_image(scale, size, extras=extras), path)

    def _write_svg(self, path: str | Path, size: QSize, *, extras: bool) -> None:
        buffer = QBuffer()
        generator = QSvgGenerator()
        generator.setOutputDevice(buffer)
        generator.setSize(size)
        generator.setViewBox(QRect(0, 0, size.width(), size.height()))
        generator.setTitle(self.accessibleName())
        generator.setDescription(self.accessible_summary())
        with QPainter(generator) as painter:
            self._paint_export(painter, size, extras=extras)
        write_binary_file(Path(path), buffer.data().data())


def _save(image: QImage, path: str | Path) -> None:
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    if not image.save(buffer, "PNG"):  # pyright: ignore[reportCallIssue, reportArgumentType]  # the stub wants bytes, Qt takes str
        raise OSError(errno.ENOMEM, "the image is too large", str(path))
    write_binary_file(Path(path), buffer.data().data())
