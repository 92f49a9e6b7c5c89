"""The timeline and flame view's canvas: selection, mouse and keys over a TimelineView."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QPointF, Qt, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from devtools_app.appearance.paint_theme import CanvasColours
from devtools_app.widgets.canvas import KeyTable
from devtools_app.widgets.timeline_canvas_paint import LABELS, RULER
from devtools_app.widgets.timeline_canvas_view import TimelineView


class TimelineCanvas(TimelineView):
    """Shows events in lanes; supports panning and selection.

    Attributes:
        selected: row of the event the user chose, -1 when it was deselected
        activated: row of the event confirmed by Enter
        hovered: row of the event under the pointer, -1 for none
        span_selected: begin and end of a selected time span; equal when it was removed
    """

    selected = Signal(int)
    activated = Signal(int)
    hovered = Signal(int)
    span_selected = Signal(float, float)

    def __init__(self, colours: CanvasColours, parent: QWidget | None = None) -> None:
        super().__init__(colours, parent)
        self._spanning = False

    def set_selected(self, events: Iterable[int], *, show: bool = True) -> None:
        """Mark events as selected without emitting a signal."""
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
        """Mark a span of time without emitting a signal."""
        self._marks.span = span
        self.update()

    def select(self, event: int) -> None:
        """Select an event and emit it."""
        self.set_selected([event] if event >= 0 else [])
        self.selected.emit(event)

    @override
    def keys(self) -> KeyTable:
        key, zoom = Qt.Key, super().keys()
        return {
            **zoom,
            key.Key_W: zoom[key.Key_Plus],
            key.Key_S: zoom[key.Key_Minus],
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
    def clear_selection(self) -> bool:
        """Deselect the span first, then the event; return whether one was selected."""
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
    def wheel(self, at: QPointF, dx: float, dy: float, *, shift: bool) -> None:
        if shift or abs(dx) > abs(dy):
            self.pan(dx or dy, 0.0)
        elif at.x() < LABELS:
            self.pan(0.0, dy / 2)
        else:
            super().wheel(at, dx, dy, shift=shift)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        self._spanning = shift or event.position().y() < RULER

    @override
    def drag(self, start: QPointF, at: QPointF) -> None:
        if self._spanning:
            self.set_span((self.time_at(start.x()), self.time_at(at.x())))
        else:
            super().drag(start, at)

    @override
    def drop(self) -> None:
        if self._spanning and self._marks.span is not None:
            self.span_selected.emit(*sorted(self._marks.span))

    @override
    def click(self, at: QPointF) -> None:
        self.select(self.hit(at))

    @override
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        data, row = self._data, self.hit(event.position())
        if data is not None and row >= 0:
            self.zoom_to(float(data.start[row]), float(data.end[row]))

    @override
    def choose_for_menu(self, at: QPointF) -> bool:
        item = self.hit(at)
        if item >= 0:
            self.select(item)
        return item >= 0

    @override
    def mark_hovered(self, item: int) -> None:
        self._marks.hovered = item
        self.hovered.emit(item)
