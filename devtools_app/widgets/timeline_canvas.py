"""The timeline and flame view's canvas: selection, mouse and keys over a TimelineView."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from PySide6.QtCore import QEvent, QPointF, Qt, Signal
from PySide6.QtGui import QHelpEvent, QKeyEvent, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QToolTip, QWidget
from typing_extensions import override

from devtools_app.widgets.paint_theme import CanvasColours
from devtools_app.widgets.timeline_canvas_paint import LABELS, RULER
from devtools_app.widgets.timeline_canvas_view import TimelineView

_DRAG = 4
_WHEEL = 1.0015
_ZOOM = 1.3
_STEP = 60.0


class TimelineCanvas(TimelineView):
    """Shows events in lanes and lets the user move and select.

    Attributes:
        selected: row of the event the user chose, -1 when the choice was taken back
        activated: row of the event on which Enter was given
        hovered: row of the event under the pointer, -1 for none
        span_selected: begin and end of a chosen span of time; equal when it was taken back
    """

    selected = Signal(int)
    activated = Signal(int)
    hovered = Signal(int)
    span_selected = Signal(float, float)

    def __init__(self, colours: CanvasColours, parent: QWidget | None = None) -> None:
        super().__init__(colours, parent)
        self._press: QPointF | None = None
        self._dragged = False
        self._spanning = False
        self._actions = self._keys()

    def set_selected(self, events: Iterable[int], *, show: bool = True) -> None:
        """Mark events as selected without telling anyone."""
        self._marks.selected = frozenset(events)
        if show and self._marks.selected:
            self.show_event(min(self._marks.selected))
        self.describe()
        self.update()

    def set_found(self, events: Iterable[int]) -> None:
        """Mark the events that a search found."""
        self._marks.found = frozenset(events)
        self.update()

    def set_span(self, span: tuple[float, float] | None) -> None:
        """Mark a span of time without telling anyone."""
        self._marks.span = span
        self.update()

    def select(self, event: int) -> None:
        """Select an event as if the user did, and tell it."""
        self.set_selected([event] if event >= 0 else [])
        self.selected.emit(event)

    def _keys(self) -> dict[int, Callable[[], None]]:
        key = Qt.Key
        return {
            key.Key_W: lambda: self.zoom(_ZOOM),
            key.Key_S: lambda: self.zoom(1 / _ZOOM),
            key.Key_Plus: lambda: self.zoom(_ZOOM),
            key.Key_Equal: lambda: self.zoom(_ZOOM),
            key.Key_Minus: lambda: self.zoom(1 / _ZOOM),
            key.Key_A: lambda: self.pan(_STEP, 0),
            key.Key_D: lambda: self.pan(-_STEP, 0),
            key.Key_F: self.focus_selection,
            key.Key_Space: self.fit,
            key.Key_Left: lambda: self._step(-1),
            key.Key_Right: lambda: self._step(1),
            key.Key_Comma: lambda: self._step(-1),
            key.Key_Period: lambda: self._step(1),
            key.Key_Up: lambda: self._change_lane(-1),
            key.Key_Down: lambda: self._change_lane(1),
            key.Key_Return: self._activate,
            key.Key_Enter: self._activate,
        }

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        plain = Qt.KeyboardModifier.KeypadModifier | Qt.KeyboardModifier.ShiftModifier
        action = self._actions.get(event.key())
        if event.key() == Qt.Key.Key_Escape and self._clear():
            return
        if action is None or self.is_empty() or event.modifiers() & ~plain:
            super().keyPressEvent(event)
            return
        action()

    def _clear(self) -> bool:
        """Take back the span, then the selection; return whether there was any."""
        if self._marks.span is not None:
            self.set_span(None)
            self.span_selected.emit(0.0, 0.0)
            return True
        if self._marks.selected:
            self.select(-1)
            return True
        return False

    def _step(self, step: int) -> None:
        data, index = self._data, self._index
        if data is None or index is None:
            return
        if not self._marks.selected:
            self.select(self._first_seen())
            return
        to = index.neighbour(data, min(self._marks.selected), step)
        if to >= 0:
            self.select(to)

    def _first_seen(self) -> int:
        """Return the first event of the first lane that has one."""
        index = self._index
        if index is None:
            return -1
        lanes = (index.lane(place.lane) for place in self._lanes)
        return next((int(lane.event[0]) for lane in lanes if len(lane.event)), -1)

    def _change_lane(self, step: int) -> None:
        data, index = self._data, self._index
        if data is None or index is None or not self._marks.selected:
            self._step(1)
            return
        event = min(self._marks.selected)
        time = float(data.start[event] + data.end[event]) / 2
        lane = int(data.lane[event]) + step
        while 0 <= lane < len(data.lanes):
            found = index.at(lane, time, self._plot() / self._camera.sx)
            if found >= 0:
                self.select(found)
                return
            lane += step

    def _activate(self) -> None:
        if self._marks.selected:
            self.activated.emit(min(self._marks.selected))

    @override
    def wheelEvent(self, event: QWheelEvent) -> None:
        delta = event.angleDelta()
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier or abs(delta.x()) > abs(delta.y()):
            self.pan(float(delta.x() or delta.y()), 0.0)
        elif event.position().x() < LABELS:
            self.pan(0.0, float(delta.y()) / 2)
        elif delta.y():
            self.zoom(_WHEEL ** delta.y(), event.position().x())
        event.accept()

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton or self.is_empty():
            return
        self._press, self._dragged = event.position(), False
        shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        self._spanning = shift or event.position().y() < RULER

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        at = event.position()
        if self._press is None:
            self._hover(at)
            return
        if not self._dragged and (at - self._press).manhattanLength() < _DRAG:
            return
        self._dragged = True
        if self._spanning:
            self.set_span((self.time_at(self._press.x()), self.time_at(at.x())))
            return
        self.setCursor(Qt.CursorShape.ClosedHandCursor)
        self.pan(at.x() - self._press.x(), at.y() - self._press.y())
        self._press = at

    @override
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        pressed, self._press = self._press, None
        self.unsetCursor()
        if pressed is None:
            return
        if self._dragged and self._spanning and self._marks.span is not None:
            self.span_selected.emit(*sorted(self._marks.span))
        elif not self._dragged:
            self.select(self.event_at(event.position()))

    @override
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        data, row = self._data, self.event_at(event.position())
        if data is not None and row >= 0:
            self.zoom_to(float(data.start[row]), float(data.end[row]))

    def _hover(self, at: QPointF) -> None:
        row = self.event_at(at)
        if row != self._marks.hovered:
            self._marks.hovered = row
            self.hovered.emit(row)
            self.update()

    @override
    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._hover(QPointF(-1, -1))

    @override
    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            row = self.event_at(QPointF(event.pos()))
            QToolTip.showText(event.globalPos(), self.words(row) if row >= 0 else "", self)
            return True
        return super().event(event)
