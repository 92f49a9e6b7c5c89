"""Camera and content of the timeline: the events and the visible time span."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QPointF, QSize
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from devtools_app.appearance.paint_theme import CanvasColours
from devtools_app.viewmodels.canvas_data import TimelineData
from devtools_app.viewmodels.layout.camera import Camera
from devtools_app.viewmodels.layout.counter_bins import value_at
from devtools_app.viewmodels.layout.timeline_bins import TimelineIndex
from devtools_app.widgets.canvas import NOTHING
from devtools_app.widgets.graph_canvas_text import TextCache
from devtools_app.widgets.timeline_canvas_paint import TimelineDrawing, TimelineMarks
from devtools_app.widgets.timeline_marks_paint import flag_box
from devtools_app.widgets.timeline_places import (
    LABELS,
    RULER,
    Pin,
    TimelinePlaces,
    place_lanes,
    place_pins,
)
from devtools_app.widgets.zoom_canvas import ZoomCanvas
from inspector.units import exact_text, format_quantity, format_share
from schema.objects.plural import plural

_SLACK = 3.0  # pixels beside a narrow event that still hit it
_PAD = 0.02  # free time at both ends, as a part of the whole


class TimelineView(ZoomCanvas):
    """Shows events in lanes through a camera."""

    as_table = "Operators, every event of the trace"

    def __init__(self, colours: CanvasColours, parent: QWidget | None = None) -> None:
        super().__init__(colours, "Timeline", parent)
        self._data: TimelineData | None = None
        self._index: TimelineIndex | None = None
        self._drawing: TimelineDrawing | None = None
        self._texts = TextCache()
        self._marks = TimelineMarks()
        self._places = TimelinePlaces()
        self._pins: tuple[Pin, ...] = ()
        self._flame = False

    @property
    def data(self) -> TimelineData | None:
        """Return the events shown."""
        return self._data

    @property
    def marks(self) -> TimelineMarks:
        """Return the marked items."""
        return self._marks

    def set_data(self, data: TimelineData | None, index: TimelineIndex | None = None) -> None:
        """Replace the events; None clears them.

        Args:
            data: the events
            index: of these events; by default built here, which takes 0.2 s for a million
        """
        self._data = data
        self._index = TimelineIndex(data) if index is None and data is not None else index
        self._marks = TimelineMarks(flags=self._marks.flags)
        self._hovered = self._pressed_item = NOTHING
        self._prepare()
        self.fit()
        self.describe()

    def set_flame(self, flame: bool) -> None:
        """Stack lanes without gaps, as in a flame view, or with gaps."""
        self._flame = flame
        self._prepare()

    def _prepare(self) -> None:
        self._drawing = None
        self._places = TimelinePlaces()
        if self._data is not None and self._index is not None:
            self._drawing = TimelineDrawing(self._data, self._index, self.colours, self._texts)
            self._place(self._data, self._index)
        self.update()

    def _place(self, data: TimelineData, index: TimelineIndex) -> None:
        """Place the lanes: few of them fill the room there is below what is pinned."""
        room = self.drawn_size.height()
        self._places = place_lanes(data, flame=self._flame)
        place_pins(self._places, self._pins, data, index)
        if not self._flame and self._places.tall < room - self._places.body:
            left = room - self._places.body
            self._places = place_lanes(data, flame=False, room=left)
            place_pins(self._places, self._pins, data, index)

    @override
    def resized(self) -> None:
        if self._data is not None and self._index is not None:
            self._place(self._data, self._index)
        super().resized()

    @override
    def colours_changed(self) -> None:
        self._texts.clear()
        self._prepare()

    @override
    def is_empty(self) -> bool:
        return self._data is None or not len(self._data.start)

    @override
    def drawn_summary(self) -> str:
        data, index = self._data, self._index
        if data is None or index is None:
            return ""
        whole = format_quantity(index.end - index.start, data.quantity)
        return (
            f"{plural(len(data.start), 'event')} in {plural(len(data.lanes), 'lane')} over {whole}"
        )

    @override
    def selected_summary(self) -> str:
        chosen = self._marks.selected
        if not chosen:
            return ""
        more = f" and {len(chosen) - 1} more" if len(chosen) > 1 else ""
        return self.hover_text(min(chosen)).replace("\n", ", ") + more

    def _plot(self) -> float:
        return max(self.drawn_size.width() - LABELS, 1.0)

    def _limits(self) -> tuple[float, float]:
        index = self._index
        span = max(index.end - index.start, 1e-9) if index is not None else 1.0
        least = self._plot() / (span * (1 + 2 * _PAD))
        return least, max(least * 2.0**40, least)  # far below a nanosecond of a day

    @override
    def whole(self) -> Camera:
        index = self._index
        if index is None:
            return self._camera
        span = max(index.end - index.start, 1e-9)
        return Camera(index.start - span * _PAD, 0.0, self._limits()[0], 1.0)

    @override
    def clamped(self, camera: Camera) -> Camera:
        index = self._index
        if index is None:
            return camera
        span = max(index.end - index.start, 1e-9)
        margin = span * _PAD
        most = index.end + margin - self._plot() / camera.sx
        x = min(max(camera.x, index.start - margin), max(most, index.start - margin))
        room = self.drawn_size.height() - self._places.body
        y = min(max(camera.y, 0.0), max(self._places.tall - room, 0.0))
        return replace(camera, x=x, y=y)

    def zoom_to(self, start: float, end: float) -> None:
        """Show a time span."""
        least, most = self._limits()
        span = max(end - start, 1e-12)
        scale = min(max(self._plot() / (span * 1.1), least), most)
        x = (start + end) / 2 - self._plot() / 2 / scale
        self.set_camera(replace(self._camera, x=x, sx=scale))

    def show_time(self, time: float) -> None:
        """Bring a time to the middle."""
        self.set_camera(replace(self._camera, x=time - self._plot() / 2 / self._camera.sx))

    @override
    def zoom(self, factor: float, at: QPointF | None = None) -> None:
        px = self._plot() / 2 if at is None else at.x() - LABELS
        self.set_camera(self._camera.stretched(factor, max(px, 0.0), self._limits()))

    def show_event(self, event: int) -> None:
        """Pan the view to make an event visible."""
        data = self._data
        if data is None:
            return
        start, end = float(data.start[event]), float(data.end[event])
        low, high = self._camera.x, self._camera.x + self._plot() / self._camera.sx
        if end < low or start > high:
            x = (start + end) / 2 - self._plot() / 2 / self._camera.sx
            self.set_camera(replace(self._camera, x=x))
        self._scroll_to_lane(int(data.lane[event]))

    def _scroll_to_lane(self, lane: int) -> None:
        place = self._places.lanes[lane]
        room = self.drawn_size.height() - self._places.body
        if place.top < self._camera.y or place.top + place.height > self._camera.y + room:
            self.set_camera(replace(self._camera, y=place.top - room / 2))

    @override
    def paint_content(self, painter: QPainter, size: QSize) -> None:
        if self._drawing is not None:
            self._drawing.paint(painter, size, self._camera, self._places, self._marks)

    def time_at(self, px: float) -> float:
        """Return the time at a pixel."""
        return self._camera.x + (px - LABELS) / self._camera.sx

    def pixel_of(self, time: float) -> float:
        """Return the pixel of a time."""
        return LABELS + (time - self._camera.x) * self._camera.sx

    def lane_at(self, at: QPointF) -> int:
        """Return the number of the lane at a point of the drawing, or NOTHING."""
        lanes, y = self._places.lanes, at.y() - self._places.body + self._camera.y
        if at.y() < self._places.body:
            lanes, y = self._places.pinned, at.y() - RULER
        found = (one.lane for one in lanes if one.top <= y < one.top + one.height)
        return next(found, NOTHING)

    def counter_at(self, at: QPointF) -> int:
        """Return the number of the counter at a point of the drawing, or NOTHING."""
        y = at.y() - self._places.body + self._camera.y
        if at.y() < self._places.body:
            return NOTHING
        found = (one.counter for one in self._places.counters if 0 <= y - one.top < one.height)
        return next(found, NOTHING)

    # -- pins ------------------------------------------------------------------------------

    @property
    def pins(self) -> tuple[Pin, ...]:
        """Return the lanes kept at the top."""
        return self._pins

    def set_pins(self, pins: tuple[Pin, ...]) -> None:
        """Keep lanes, or all events of a name, at the top."""
        self._pins = pins
        if self._data is not None and self._index is not None:
            self.resized()
        self.update()

    def toggle_pin(self, pin: Pin) -> None:
        """Keep something at the top, or no longer."""
        kept = tuple(one for one in self._pins if one != pin)
        self.set_pins(kept if len(kept) < len(self._pins) else (*kept, pin))

    def pin_of_lane(self, lane: int) -> Pin:
        """Return what pins a lane, or what a lane at the top is pinned by."""
        data = self._data
        if data is None or lane >= len(data.lanes):
            shown = zip(self._places.pinned, self._places.pins, strict=True)
            return next((pin for place, pin in shown if place.lane == lane), Pin())
        one = data.lanes[lane]
        return Pin(label=one.label, group=one.group, depth=one.depth)

    def pin_of_event(self, event: int) -> Pin:
        """Return what pins all events of the name of an event."""
        data = self._data
        return Pin() if data is None else Pin(data.names[int(data.label[event])], depth=1)

    def beside_lanes(self, at: QPointF) -> bool:
        """Return whether a point of the drawing is on the names of the lanes."""
        return at.x() < LABELS

    def in_span(self, at: QPointF) -> bool:
        """Return whether a point of the drawing is in the selected range."""
        span = self._marks.span
        if span is None or at.x() < LABELS:
            return False
        return min(span) <= self.time_at(at.x()) <= max(span)

    def seen(self) -> tuple[float, float]:
        """Return the span of time that is seen, without the room around all events."""
        index = self._index
        low, high = self.time_at(LABELS), self.time_at(self.drawn_size.width())
        return (low, high) if index is None else (max(low, index.start), min(high, index.end))

    def lane_name(self, lane: int) -> str:
        """Return the name of a lane with its group; of a nested one that of the lane above."""
        data = self._data
        if data is None:
            return ""
        if lane >= len(data.lanes):
            return f"all {self.pin_of_lane(lane).title}"
        named = lane
        while named > 0 and not data.lanes[named].label:
            named -= 1
        found = data.lanes[lane]
        deeper = f"level {lane - named + 1}" if lane > named else ""
        return " · ".join(filter(None, (found.group, data.lanes[named].label, deeper)))

    def longest_in(self, lane: int) -> int:
        """Return the longest event of a lane, or NOTHING."""
        data = self._data
        if data is None:
            return NOTHING
        index = self._index
        if index is None:
            return NOTHING
        own = index.lane(lane).event
        own = own[~data.unattributed[own]]
        return int(own[(data.end - data.start)[own].argmax()]) if len(own) else NOTHING

    def flag_at(self, at: QPointF) -> int:
        """Return the place of the mark whose number is at a point of the drawing, or NOTHING."""
        for place, (start, _) in enumerate(self._marks.flags):
            if at.x() >= LABELS and flag_box(start, self._camera, LABELS, RULER).contains(at):
                return place
        return NOTHING

    @override
    def hit(self, at: QPointF) -> int:
        """Return the row of the event at a point of the drawing."""
        index = self._index
        if index is None or at.x() < LABELS or at.y() < RULER:
            return NOTHING
        lane = self.lane_at(at)
        if lane == NOTHING:
            return NOTHING
        return index.at(lane, self.time_at(at.x()), _SLACK / self._camera.sx)

    @override
    def tip_at(self, at: QPointF) -> str:
        flag, counter = self.flag_at(at), self.counter_at(at)
        if counter != NOTHING:
            return self._counter_text(counter, self.time_at(at.x()) if at.x() >= LABELS else None)
        if flag == NOTHING:
            return super().tip_at(at)
        return self.span_text(f"mark {flag + 1}", self._marks.flags[flag])

    def _counter_text(self, number: int, time: float | None) -> str:
        """Return the value of a counter at a time, and where its values come from."""
        data, index = self._data, self._index
        if data is None or index is None:
            return ""
        counter = data.counters[number]
        lines = [counter.label]
        if time is not None and not counter.missing:
            value = value_at(counter, time)
            words = "missing"
            if value == value:
                exact = exact_text(value, counter.quantity)
                words = f"{format_quantity(value, counter.quantity)} ({exact})"
                if counter.top > 0:
                    words += f" · {format_share(value / counter.top)} of the largest"
            at = format_quantity(time - index.start, data.quantity)
            lines += [words, f"at {at}"]
        return "\n".join([*lines, counter.note])

    def span_text(self, name: str, span: tuple[float, float]) -> str:
        """Return the hover text of a span of time: its length, begin and end."""
        data, index = self._data, self._index
        if data is None or index is None:
            return ""
        long = span[1] - span[0]
        ends = [format_quantity(time - index.start, data.quantity) for time in span]
        exact = exact_text(long, data.quantity)
        length = f"{format_quantity(long, data.quantity)} ({exact})"
        return "\n".join([name, length, f"from {ends[0]} to {ends[1]}"])

    def holder(self, item: int) -> int:
        """Return the row of the event that an event is nested in, or NOTHING."""
        data, index = self._data, self._index
        if data is None or index is None:
            return NOTHING
        number = int(data.lane[item])
        lane, middle = data.lanes[number], float(data.start[item] + data.end[item]) / 2
        while not lane.apart and number > 0 and data.lanes[number - 1].group == lane.group:
            number -= 1
            found = index.at(number, middle, 0.0)
            if data.lanes[number].depth < lane.depth and found >= 0:
                return found if not data.unattributed[found] else NOTHING
        return NOTHING

    def _share(self, item: int) -> str:
        """Return the share of an event of the run around it; none of times with values logged."""
        data, index = self._data, self._index
        if data is None or index is None or data.logged:
            return ""
        root, outer = item, self.holder(item)
        while outer >= 0:
            root, outer = outer, self.holder(outer)
        whole, name = index.end - index.start, "all"
        if root != item:
            whole = float(data.end[root] - data.start[root])
            name = data.names[int(data.label[root])]
        share = format_share(float(data.end[item] - data.start[item]) / max(whole, 1e-12))
        return f" · {share} of {name}"

    @override
    def hover_text(self, item: int) -> str:
        """Return name, lane, duration and share of an event."""
        data, index = self._data, self._index
        if data is None or index is None:
            return ""
        lane = data.lanes[int(data.lane[item])]
        long = float(data.end[item] - data.start[item])
        begin = format_quantity(float(data.start[item]) - index.start, data.quantity)
        outer = self.holder(item)
        inside = f"in {data.names[int(data.label[outer])]}" if outer >= 0 else ""
        place = " · ".join(part for part in (lane.group, lane.label, inside) if part)
        duration = f"{format_quantity(long, data.quantity)} ({exact_text(long, data.quantity)})"
        if not long:
            duration = "shorter than a tick of its clock"
        lines = [data.names[int(data.label[item])], place, f"{duration}{self._share(item)}"]
        return "\n".join([*lines, f"begins at {begin}"])
