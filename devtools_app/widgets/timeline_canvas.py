"""The timeline and flame view's canvas: selection, ranges, marks, mouse and keys."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from devtools_app.appearance.paint_theme import CanvasColours
from devtools_app.viewmodels.layout.timeline_found import FoundEvents
from devtools_app.widgets.canvas import NOTHING, KeyTable
from devtools_app.widgets.timeline_canvas_view import TimelineView
from devtools_app.widgets.timeline_places import LABELS, RULER

_SNAP = 7.0  # pixels within which a border of a range goes to that of an event
_GRIP = 5.0  # pixels beside a border of a range at which it can be dragged
_SMALL = 10.0  # pixels below which an event that is gone to is enlarged
_AROUND = 12.0  # how much of its surroundings is then seen, in its own lengths
Span = tuple[float, float]


class TimelineCanvas(TimelineView):
    """Shows events in lanes; supports panning, selection and ranges of time.

    Attributes:
        selected: row of the event the user chose, -1 when it was deselected
        activated: row of the event confirmed by Enter
        hovered: row of the event under the pointer, -1 for none
        span_selected: begin and end of a selected time span; equal when it was removed
        clicked: row of the event of which a menu was requested, -1 for none
        range_tool: whether dragging selects a range instead of moving the drawing
    """

    selected = Signal(int)
    activated = Signal(int)
    hovered = Signal(int)
    span_selected = Signal(float, float)

    def __init__(self, colours: CanvasColours, parent: QWidget | None = None) -> None:
        super().__init__(colours, parent)
        self.range_tool = False
        self.clicked = NOTHING
        self._current = NOTHING
        self._spanning = False
        self._anchor = 0.0
        self._shift = False

    # -- selection -------------------------------------------------------------------------

    @property
    def current(self) -> int:
        """Return the selected event that was chosen, else the first selected one, or -1.

        The same event of all runs may be selected together.
        """
        selected = self._marks.selected
        return self._current if self._current in selected else min(selected, default=NOTHING)

    def set_selected(self, events: Iterable[int], *, show: bool = True) -> None:
        """Mark events as selected without emitting a signal."""
        self._marks.selected = frozenset(events)
        if show and self._marks.selected:
            self.show_event(self.current)
        self.describe()
        self.update()

    def set_found(self, rows: NDArray[np.int64] | None) -> FoundEvents | None:
        """Mark the events that a search found; return them in the order of time."""
        data = self._data
        self._marks.found = (
            FoundEvents(data, rows) if data is not None and rows is not None else None
        )
        self.update()
        return self._marks.found

    def set_flow(self, arrows: Iterable[tuple[int, int]]) -> None:
        """Draw arrows from events that write a value to those that read it."""
        self._marks.flow = tuple(arrows)
        self.update()

    def select(self, event: int) -> None:
        """Select an event and emit it."""
        self._current = event
        self.set_selected([event] if event >= 0 else [])
        self.selected.emit(event)

    def go_to(self, event: int) -> None:
        """Select an event and bring it to a size at which it is seen."""
        data = self._data
        if data is None or event < 0:
            return
        start, end = float(data.start[event]), float(data.end[event])
        if (end - start) * self._camera.sx < _SMALL:
            room = max(end - start, 1.0) * _AROUND
            self.zoom_to(start - room, end + room)
        self.select(event)

    def slowest_call(self) -> int:
        """Return the longest call; while it is selected the next longest, and so on; or -1."""
        data = self._data
        if data is None:
            return NOTHING
        depth = np.array([lane.depth == 1 for lane in data.lanes], np.bool_)
        calls = np.flatnonzero(depth[data.lane] & ~data.unattributed)
        if not len(calls):
            return NOTHING
        order = calls[np.argsort(data.start[calls] - data.end[calls], kind="stable")]
        place = np.flatnonzero(order == self.current)
        return int(order[(int(place[0]) + 1) % len(order)]) if len(place) else int(order[0])

    # -- ranges and marks ------------------------------------------------------------------

    def set_span(self, span: Span | None) -> None:
        """Mark a span of time without emitting a signal."""
        self._marks.span = span
        self.update()

    def select_span(self, span: Span) -> None:
        """Select a span of time and emit it."""
        self.set_span((min(span), max(span)))
        self.span_selected.emit(min(span), max(span))

    def selected_extent(self) -> Span | None:
        """Return the selected range, else the time of the selected events."""
        data, rows = self._data, sorted(self._marks.selected)
        if self._marks.span is not None:
            return (min(self._marks.span), max(self._marks.span))
        if data is None or not rows:
            return None
        return float(data.start[rows].min()), float(data.end[rows].max())

    @override
    def selected_left(self) -> float | None:
        extent = self.selected_extent()
        return None if extent is None else self.pixel_of(extent[0])

    def toggle_mark(self) -> None:
        """Mark the selected range or event, or take its mark away."""
        span = self.selected_extent()
        if span is not None:
            self.mark(span)

    def mark(self, span: Span) -> None:
        """Mark a span of time, or take its mark away."""
        kept = tuple(one for one in self._marks.flags if one != span)
        added = () if len(kept) < len(self._marks.flags) else (span,)
        self.set_flags((*kept, *added))

    def set_flags(self, flags: tuple[Span, ...]) -> None:
        """Replace all marks."""
        self._marks.flags = flags
        self.update()

    def toggle_selected_pin(self) -> None:
        """Keep all events of the selected one's name at the top, or no longer."""
        if self._marks.selected:
            self.toggle_pin(self.pin_of_event(self.current))

    @override
    def focus_selection(self) -> None:
        """Zoom to the range, else to the selected events; the second time show everything."""
        span = self.selected_extent()
        if span is None:
            self.fit()
            return
        before = self._camera
        self.zoom_to(*span)
        if before == self._camera:
            self.fit()

    # -- keys ------------------------------------------------------------------------------

    @override
    def keys(self) -> KeyTable:
        key, zoom = Qt.Key, super().keys()
        return {
            **zoom,
            key.Key_W: zoom[key.Key_Plus],
            key.Key_S: zoom[key.Key_Minus],
            key.Key_M: self.toggle_mark,
            key.Key_P: self.toggle_selected_pin,
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
    def event(self, event: QEvent) -> bool:
        # Escape takes a range away before the window clears the selection
        if (
            isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.ShortcutOverride
            and event.key() == Qt.Key.Key_Escape
            and self._marks.span is not None
        ):
            event.accept()
            return True
        return super().event(event)

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

    def step(self, step: int) -> bool:
        """Select the next or previous event of the lane; return whether there was one."""
        before = self._marks.selected
        self._step(step)
        return self._marks.selected != before

    def _step(self, step: int) -> None:
        data, index = self._data, self._index
        if data is None or index is None:
            return
        if not self._marks.selected:
            self.select(self._first_seen())
            return
        to = index.neighbour(data, self.current, step)
        if to >= 0:
            self.select(to)

    def _first_seen(self) -> int:
        """Return the first event of the first lane that has one."""
        index = self._index
        if index is None:
            return -1
        lanes = (index.lane(place.lane) for place in self._places.lanes)
        return next((int(lane.event[0]) for lane in lanes if len(lane.event)), -1)

    def _change_lane(self, step: int) -> None:
        data, index = self._data, self._index
        if data is None or index is None or not self._marks.selected:
            self._step(1)
            return
        event = self.current
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
            self.activated.emit(self.current)

    # -- mouse -----------------------------------------------------------------------------

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
        self._shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        left = event.button() == Qt.MouseButton.LeftButton
        at = self.spot(event.position())
        other = self._other_border(at)
        ruled = self.range_tool or at.y() < RULER or other is not None
        self._spanning = left and (self._shift or ruled)
        self._anchor = self._snapped(at) if other is None else other

    def _other_border(self, at: QPointF) -> float | None:
        """Return the border of the range that stays when the one at a point is dragged."""
        span = self._marks.span
        if span is None or at.x() < LABELS:
            return None
        low, high = sorted(span)
        sides = [(abs(self.pixel_of(low) - at.x()), high), (abs(self.pixel_of(high) - at.x()), low)]
        away, other = min(sides)
        return other if away <= _GRIP else None

    def _snapped(self, at: QPointF) -> float:
        """Return the time at a point, or that of the border of an event beside it.

        A range ends with the events: the room around them does not belong to the run.
        """
        index, time = self._index, self.time_at(at.x())
        lane = self.lane_at(at)
        if index is None:
            return time
        time = min(max(time, index.start), index.end)
        if lane == NOTHING:
            return time
        return index.border(lane, time, _SNAP / self._camera.sx)

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        if self._press is None:
            over = self._other_border(self.spot(event.position())) is not None
            shape = Qt.CursorShape.SizeHorCursor if over else Qt.CursorShape.ArrowCursor
            if self.cursor().shape() != shape:
                self.setCursor(shape)

    @override
    def drag(self, start: QPointF, at: QPointF) -> None:
        if self._spanning:
            self.set_span((self._anchor, self._snapped(at)))
        else:
            super().drag(start, at)

    @override
    def drop(self) -> None:
        if self._spanning and self._marks.span is not None:
            self.select_span(self._marks.span)

    @override
    def click(self, at: QPointF) -> None:
        flag = self.flag_at(at)
        if flag != NOTHING:
            self.select_span(self._marks.flags[flag])
            return
        event, extent, data = self.hit(at), self.selected_extent(), self._data
        if self._shift and event >= 0 and extent is not None and data is not None:
            # from what is selected to here: the time between two events is measured
            ends = (float(data.start[event]), float(data.end[event]))
            self.select_span((min(extent[0], ends[0]), max(extent[1], ends[1])))
            return
        if at.y() >= RULER:
            if event >= 0:
                self.hold()
            self.select(event)

    @override
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        data, row = self._data, self._pressed_item
        if data is not None and row >= 0:
            self.zoom_to(float(data.start[row]), float(data.end[row]))

    @override
    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        by_keys = event.reason() == QContextMenuEvent.Reason.Keyboard
        chosen = self.current
        self.clicked = chosen if by_keys else self.hit(self.spot(event.pos()))
        super().contextMenuEvent(event)

    @override
    def choose_for_menu(self, at: QPointF) -> bool:
        item = self.hit(at)
        if item >= 0:
            self.hold()
            self.select(item)
        return not self.is_empty()

    @override
    def mark_hovered(self, item: int) -> None:
        self._marks.hovered = item
        self.hovered.emit(item)
