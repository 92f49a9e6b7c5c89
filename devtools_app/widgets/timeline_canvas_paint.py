"""Draw a timeline: ruler, lanes, events, hatched unattributed time, marks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QImage, QPainter, QPen

from devtools_app.appearance.paint_theme import CanvasColours, ink_on, mix, qcolor
from devtools_app.viewmodels.canvas_data import TimelineData
from devtools_app.viewmodels.layout.axis import ticks
from devtools_app.viewmodels.layout.camera import Camera
from devtools_app.viewmodels.layout.timeline_bins import LaneView, TimelineIndex
from devtools_app.viewmodels.layout.timeline_found import FoundEvents
from devtools_app.widgets.batch import draw_rects
from devtools_app.widgets.graph_canvas_text import TextCache
from devtools_app.widgets.timeline_counter_paint import counter_label, paint_counter
from devtools_app.widgets.timeline_flow_paint import Arrow, paint_arrows
from devtools_app.widgets.timeline_marks_paint import paint_flags, paint_found
from devtools_app.widgets.timeline_places import COUNTER, LABELS, RULER, LanePlace, TimelinePlaces
from inspector.units import format_quantity

STRENGTH = 0.72  # of the colour of a call on the ground
_SHORTEST = 5  # characters a shortened name must have left
_TEXT_FROM = 34.0  # pixels of width from which an event has its name in it


@dataclass(slots=True)
class TimelineMarks:
    """Selected events, the one under the pointer, a selected span, matches, marks, data flow."""

    selected: frozenset[int] = frozenset()
    hovered: int = -1
    span: tuple[float, float] | None = None
    found: FoundEvents | None = None
    flags: tuple[tuple[float, float], ...] = ()
    flow: tuple[tuple[int, int], ...] = ()  # events, from the one that writes


class TimelineDrawing:
    """All precomputed parts for drawing one timeline with one palette."""

    def __init__(
        self, data: TimelineData, index: TimelineIndex, colours: CanvasColours, texts: TextCache
    ) -> None:
        self.data, self.index, self.colours = data, index, colours
        self._texts = texts
        self._fills = [colours.reference(reference) for reference in index.colours]

    def paint(
        self,
        painter: QPainter,
        size: QSize,
        camera: Camera,
        places: TimelinePlaces,
        marks: TimelineMarks,
    ) -> None:
        """Draw lanes and ruler; camera.y is the scroll position of the lanes."""
        painter.save()
        painter.setClipRect(QRectF(LABELS, RULER, size.width() - LABELS, size.height() - RULER))
        self._paint_grid(painter, size, camera)
        span = self._span_box(size, camera, marks)
        if span is not None:
            painter.fillRect(span, qcolor(self.colours.accent, 0.13))
        self._paint_pinned(painter, size, camera, places, marks)
        body = QRectF(LABELS, places.body, size.width() - LABELS, size.height() - places.body)
        painter.setClipRect(body)
        self._paint_lanes(painter, size, camera, places, marks)
        painter.setClipRect(QRectF(LABELS, RULER, size.width() - LABELS, size.height() - RULER))
        if self.data.logged:
            ground = qcolor(self.colours.surface, 0.6)
            painter.fillRect(painter.clipBoundingRect(), QBrush(ground, Qt.BrushStyle.FDiagPattern))
        if span is not None:
            painter.setPen(QPen(qcolor(self.colours.accent), 1))
            painter.drawLine(span.topLeft(), span.bottomLeft())
            painter.drawLine(span.topRight(), span.bottomRight())
        painter.restore()
        self._paint_names(painter, size, camera, places)
        self._paint_ruler(painter, size, camera, marks)
        look = (self.colours, self._texts)
        paint_flags(painter, size, marks.flags, camera, (LABELS, RULER), look)

    def _paint_pinned(
        self,
        painter: QPainter,
        size: QSize,
        camera: Camera,
        places: TimelinePlaces,
        marks: TimelineMarks,
    ) -> None:
        if not places.pinned:
            return
        ground = mix(self.colours.surface, self.colours.accent, 0.06)
        painter.fillRect(
            QRectF(LABELS, RULER, size.width(), places.body - RULER), qcolor(ground, 0.6)
        )
        for place in places.pinned:
            self._paint_lane(painter, size, camera, place, RULER + place.top, marks)
        painter.setPen(qcolor(self.colours.line))
        painter.drawLine(QPointF(LABELS, places.body - 1), QPointF(size.width(), places.body - 1))

    def _paint_lanes(
        self,
        painter: QPainter,
        size: QSize,
        camera: Camera,
        places: TimelinePlaces,
        marks: TimelineMarks,
    ) -> None:
        for place in places.lanes:
            top = places.body + place.top - camera.y
            if top <= size.height() and top + place.height >= places.body:
                self._paint_lane(painter, size, camera, place, top, marks)
        for one in places.counters:
            top = places.body + one.top - camera.y
            if top <= size.height() and top + one.height >= places.body:
                area = QRectF(LABELS, top, size.width() - LABELS, one.height)
                counter = self.data.counters[one.counter]
                paint_counter(painter, counter, camera, area, (self.colours, self._texts))
        if marks.flow:
            middles = {
                place.lane: places.body + place.top + place.height / 2 - camera.y
                for place in places.lanes
            }
            paint_arrows(painter, self._arrows(marks.flow, middles, camera), self.colours)

    def _arrows(
        self, flow: Iterable[tuple[int, int]], middles: dict[int, float], camera: Camera
    ) -> list[Arrow]:
        start, end, lane = self.data.start, self.data.end, self.data.lane

        def x(time: float) -> float:
            return LABELS + (time - camera.x) * camera.sx

        return [
            (
                x(float(end[one])),
                middles[int(lane[one])],
                x(float(start[to])),
                middles[int(lane[to])],
            )
            for one, to in flow
        ]

    def _paint_grid(self, painter: QPainter, size: QSize, camera: Camera) -> None:
        painter.setPen(qcolor(mix(self.colours.surface, self.colours.line, 0.55)))
        for tick in self._ticks(size, camera):
            x = round(LABELS + (tick[0] - camera.x) * camera.sx) + 0.5
            painter.drawLine(QPointF(x, RULER), QPointF(x, size.height()))

    def _ticks(self, size: QSize, camera: Camera) -> list[tuple[float, str]]:
        width = max(size.width() - LABELS, 1.0)
        base = self.index.start  # the axis counts from the first event
        low, high = camera.x - base, camera.x - base + width / camera.sx
        found = ticks(low, high, max(int(width / 110), 2), self.data.quantity)
        return [(tick.value + base, tick.label) for tick in found]

    def _paint_lane(
        self,
        painter: QPainter,
        size: QSize,
        camera: Camera,
        place: LanePlace,
        top: float,
        marks: TimelineMarks,
    ) -> None:
        device = painter.device()
        ratio = device.devicePixelRatioF() if device is not None else 1.0
        ratio *= self.colours.scale
        pixels = max(int((size.width() - LABELS) * ratio), 1)
        view = self.index.view(place.lane, camera.x, camera.sx * ratio, pixels)
        height = place.height - 1.0
        if len(view.cover):
            self._paint_density(painter, view, top, height, ratio)
        self._paint_boxes(painter, view, top, height, ratio, place.depth)
        if marks.found is not None:
            area = QRectF(LABELS, top, size.width() - LABELS, height)
            paint_found(painter, marks.found, place.lane, camera, area, self.colours)
        self._paint_marked(painter, camera, top, place, marks)

    def _paint_density(
        self, painter: QPainter, view: LaneView, top: float, height: float, ratio: float
    ) -> None:
        table = np.array([_rgb(fill) for fill in self._fills], np.float64)
        ground = np.array(_rgb(self.colours.surface), np.float64)
        share = np.where(view.cover > 0, 0.25 + 0.75 * view.cover, 0.0)[:, None]
        mixed = np.rint(ground + (table[view.colour] - ground) * share).astype(np.uint32)
        row = 0xFF000000 | mixed[:, 0] << 16 | mixed[:, 1] << 8 | mixed[:, 2]
        row = np.where(view.cover > 0, row, 0).astype(np.uint32)
        raw = row.tobytes()  # the image does not copy it
        image = QImage(raw, len(row), 1, QImage.Format.Format_ARGB32)
        painter.drawImage(QRectF(LABELS, top, len(row) / ratio, height), image)

    def _paint_boxes(
        self,
        painter: QPainter,
        view: LaneView,
        top: float,
        height: float,
        ratio: float,
        depth: int,
    ) -> None:
        if not len(view.event):
            return
        width = view.right - view.left
        boxes = np.empty((len(view.event), 4))
        boxes[:, 0] = LABELS + np.maximum(view.left, -2.0) / ratio
        right = LABELS + np.minimum(view.right, 1e5) / ratio
        boxes[:, 1], boxes[:, 3] = top, height
        boxes[:, 2] = np.maximum(right - boxes[:, 0] - (width > 4 * ratio), 0.6)
        plain = ~self.data.unattributed[view.event]
        painter.setPen(Qt.PenStyle.NoPen)
        references = self.data.colour[view.event]
        for reference in np.unique(references[plain]).tolist():
            painter.setBrush(qcolor(self._fill(reference, depth)))
            draw_rects(painter, boxes[plain & (references == reference)])
        self._paint_hatched(painter, boxes[~plain])
        self._paint_event_names(painter, view, boxes, depth)

    def _fill(self, reference: int, depth: int) -> str:
        """Return the colour of an event: lighter the deeper it lies."""
        share = 1.0 if depth == 0 else STRENGTH if depth == 1 else 0.55
        return mix(self.colours.surface, self.colours.reference(reference), share)

    def _paint_hatched(self, painter: QPainter, boxes: np.ndarray) -> None:
        if not len(boxes):
            return
        c = self.colours
        painter.setPen(QPen(qcolor(c.line), 1))
        painter.setBrush(QBrush(qcolor(mix(c.surface, c.muted, 0.75)), Qt.BrushStyle.BDiagPattern))
        draw_rects(painter, boxes + np.array([0.5, 0.5, -1.0, -1.0]))

    def _paint_event_names(
        self, painter: QPainter, view: LaneView, boxes: np.ndarray, depth: int
    ) -> None:
        pixels = 11 if boxes[0, 3] < 21 else 12
        font, metrics = self._texts.font(self.colours, pixels)
        painter.setFont(font)
        baseline = boxes[0, 1] + (boxes[0, 3] + metrics.ascent() - metrics.descent()) / 2
        for at in np.flatnonzero(boxes[:, 2] >= _TEXT_FROM).tolist():
            event = int(view.event[at])
            left = max(boxes[at, 0], LABELS)
            room = boxes[at, 0] + boxes[at, 2] - left - 10
            name = self.data.names[int(self.data.label[event])]
            text, width = self._texts.fitted(self.colours, name, room, pixels)
            hatched = bool(self.data.unattributed[event])
            if not text or (text != name and (hatched or len(text) < _SHORTEST)):
                continue
            fill = self.colours.surface
            if not hatched:
                fill = self._fill(int(self.data.colour[event]), depth)
            else:
                under = QRectF(left + 2, boxes[at, 1] + 2, width + 6, boxes[at, 3] - 4)
                painter.fillRect(under, qcolor(fill))
            painter.setPen(qcolor(ink_on(fill)))
            painter.drawText(QPointF(left + 5, baseline), text)

    def _paint_marked(
        self,
        painter: QPainter,
        camera: Camera,
        top: float,
        place: LanePlace,
        marks: TimelineMarks,
    ) -> None:
        height, lane = place.height - 1.0, place.lane
        painter.setBrush(Qt.BrushStyle.NoBrush)
        groups = (
            (frozenset((marks.hovered,)), self.colours.text, 1.0),
            (marks.selected, self.colours.accent, 2.4),
        )
        for events, colour, width in groups:
            painter.setPen(QPen(qcolor(colour), width))
            for event in events:
                if event < 0 or not self._is_in(lane, event):
                    continue
                left = LABELS + (float(self.data.start[event]) - camera.x) * camera.sx
                right = LABELS + (float(self.data.end[event]) - camera.x) * camera.sx
                left, right = max(left, -10.0), min(right, 1e5)
                painter.drawRect(QRectF(left, top, max(right - left - 1, 2.0), height))

    def _is_in(self, lane: int, event: int) -> bool:
        if lane < len(self.data.lanes):
            return int(self.data.lane[event]) == lane
        return self.index.holds(lane, event)

    def _span_box(self, size: QSize, camera: Camera, marks: TimelineMarks) -> QRectF | None:
        if marks.span is None:
            return None
        left, right = (LABELS + (time - camera.x) * camera.sx for time in sorted(marks.span))
        return QRectF(left, RULER, max(right - left, 1.0), size.height() - RULER)

    def _paint_names(
        self,
        painter: QPainter,
        size: QSize,
        camera: Camera,
        places: TimelinePlaces,
    ) -> None:
        c = self.colours
        painter.save()
        painter.fillRect(QRectF(0, RULER, LABELS, size.height()), qcolor(c.surface))
        for place in places.pinned:
            self._paint_name(painter, f"⌃ {place.label}", 8.0, RULER + place.top, place.height)
        painter.setClipRect(QRectF(0, places.body, size.width(), size.height() - places.body))
        for group in places.groups:
            top = places.body + group.top - camera.y
            painter.setFont(self._texts.font(c, 12, bold=True)[0])
            painter.setPen(qcolor(c.text))
            name = self._texts.fitted(c, group.name, size.width() - 20.0, 12, bold=True)[0]
            painter.drawText(QPointF(10, top + 16), name)
            painter.setPen(qcolor(c.line))
            painter.drawLine(QPointF(0, top - 1.5), QPointF(size.width(), top - 1.5))
        for place in places.lanes:
            indent = 12.0 + 10.0 * min(place.depth, 6)
            top = places.body + place.top - camera.y
            self._paint_name(painter, place.label, indent, top, place.height)
        for one in places.counters:
            top, counter = places.body + one.top - camera.y, self.data.counters[one.counter]
            words = counter_label(counter)
            half = min(one.height, COUNTER) / 2 if words else one.height
            self._paint_name(painter, counter.label, 12.0, top, half)
            if words:
                self._paint_name(painter, words, 12.0, top + half - 4.0, half)
        painter.setClipping(False)
        painter.setPen(qcolor(c.line))
        painter.drawLine(QPointF(LABELS - 0.5, RULER), QPointF(LABELS - 0.5, size.height()))
        painter.restore()

    def _paint_name(
        self, painter: QPainter, name: str, indent: float, top: float, height: float
    ) -> None:
        if not name:
            return
        painter.setFont(self._texts.font(self.colours, 11)[0])
        painter.setPen(qcolor(self.colours.muted))
        text = self._texts.fitted(self.colours, name, LABELS - indent - 8, 11)[0]
        painter.drawText(QPointF(indent, top + height / 2 + 4), text)

    def _paint_ruler(
        self, painter: QPainter, size: QSize, camera: Camera, marks: TimelineMarks
    ) -> None:
        c = self.colours
        painter.fillRect(QRectF(0, 0, size.width(), RULER), qcolor(c.surface))
        painter.setPen(qcolor(c.line))
        painter.drawLine(QPointF(0, RULER - 0.5), QPointF(size.width(), RULER - 0.5))
        font, metrics = self._texts.font(c, 11)
        painter.setFont(font)
        painter.setPen(qcolor(c.muted))
        taken = self._paint_span_name(painter, camera, size, marks)
        for value, label in self._ticks(size, camera):
            x = LABELS + (value - camera.x) * camera.sx
            if x < LABELS - 1:
                continue
            width = metrics.horizontalAdvance(label)
            left = min(max(x - width / 2, LABELS + 2), size.width() - width - 4)
            painter.drawLine(QPointF(x, RULER - 6), QPointF(x, RULER - 1))
            if taken is None or left + width < taken.left() or left > taken.right():
                painter.drawText(QPointF(left, RULER - 10), label)
        span = format_quantity((size.width() - LABELS) / camera.sx, self.data.quantity)
        text = self._texts.fitted(c, f"{span} shown", LABELS - 16, 11)[0]
        painter.drawText(QPointF(10, RULER - 10), text)

    def _paint_span_name(
        self, painter: QPainter, camera: Camera, size: QSize, marks: TimelineMarks
    ) -> QRectF | None:
        """Write the duration of the selected span; return the occupied rectangle."""
        if marks.span is None:
            return None
        low, high = sorted(marks.span)
        text = format_quantity(high - low, self.data.quantity)
        metrics = self._texts.font(self.colours, 11)[1]
        width = metrics.horizontalAdvance(text) + 12
        middle = LABELS + ((low + high) / 2 - camera.x) * camera.sx
        left = min(max(middle - width / 2, LABELS), size.width() - width)
        box = QRectF(left, 4, width, RULER - 9)
        painter.setBrush(qcolor(self.colours.accent))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.drawRoundedRect(box, 3, 3)
        painter.setPen(qcolor(ink_on(self.colours.accent)))
        painter.drawText(QPointF(left + 6, RULER - 10), text)
        painter.setPen(qcolor(self.colours.muted))
        return box


def _rgb(colour: str) -> tuple[int, int, int]:
    value = int(colour[1:7], 16)
    return value >> 16, value >> 8 & 255, value & 255
