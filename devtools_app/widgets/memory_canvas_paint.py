"""Draw a memory plan: addresses upwards, instructions to the right, peak and bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPen

from devtools_app.appearance.paint_theme import CanvasColours, ink_on, mix, qcolor, readable
from devtools_app.viewmodels.canvas_data import MemoryData
from devtools_app.viewmodels.layout.axis import ticks
from devtools_app.viewmodels.layout.camera import Camera
from devtools_app.viewmodels.layout.rows import unique_rows
from devtools_app.widgets.batch import draw_rects
from devtools_app.widgets.graph_canvas_text import TextCache
from inspector.units import Quantity, format_bytes

LEFT, TOP, RIGHT, BOTTOM = 84.0, 40.0, 20.0, 46.0  # around the plot
_TINT = 0.42
_NAME_FROM = (44.0, 15.0)  # pixels of width and height from which a block has its name
_LABEL = 11
_SHORTEST = 6  # characters a shortened name must have left
Floats = NDArray[np.float64]


@dataclass(slots=True)
class MemoryMarks:
    """Marked items: a selected value, the one under the pointer, a selected instruction."""

    selected: int = -1
    hovered: int = -1
    step: int | None = None


@dataclass(frozen=True, slots=True)
class _BoundName:
    """The label of a line across the plan, in pixels."""

    place: QRectF
    text: str
    colour: str


def plot_size(size: QSize) -> tuple[float, float]:
    """Return width and height of the plot inside its axes."""
    return max(size.width() - LEFT - RIGHT, 1.0), max(size.height() - TOP - BOTTOM, 1.0)


def highest(data: MemoryData) -> float:
    """Return the largest address to show, in bytes."""
    ends = data.offset + data.nbytes
    top = int(ends.max()) if len(ends) else 0
    bound = data.lower_bound_bytes or 0
    return float(max(top, data.planned_bytes, bound, data.scale_bytes, 1))


def screen_boxes(data: MemoryData, camera: Camera, size: QSize) -> Floats:
    """Return the block of every value in pixels.

    Shapes: result float64[values, 4]: x, y, width, height
    """
    height = plot_size(size)[1]
    boxes = np.empty((len(data.offset), 4))
    boxes[:, 0] = LEFT + (data.first - camera.x) * camera.sx
    boxes[:, 2] = (data.last - data.first + 1) * camera.sx
    boxes[:, 3] = data.nbytes * camera.sy
    bottom = TOP + height - (data.offset - camera.y) * camera.sy
    boxes[:, 1] = bottom - boxes[:, 3]
    return boxes


@dataclass(frozen=True, slots=True, eq=False)
class _SeenBlocks:
    """The blocks of one part of the plan in pixels.

    Attributes:
        boxes: of every value
        wide: values within the plot that may have room for a name
        wide_boxes: theirs, with a gap between them
        batches: what is painted, by fill

    Shapes: boxes float64[values, 4]; wide int64[n]; wide_boxes float64[n, 4];
    batches float64[k, 4]
    """

    boxes: Floats
    wide: NDArray[np.int64]
    wide_boxes: Floats
    batches: list[Floats]


def _spaced(boxes: Floats) -> Floats:
    """Return boxes with a gap between them, where they are large enough."""
    x, y, width, height = boxes.T
    gap = ((width > 4) & (height > 4)).astype(np.float64)
    sides = (np.maximum(side - 2 * gap, 0.8) for side in (width, height))
    return np.stack((x + gap, y + gap, *sides), axis=1)


def _on_pixels(boxes: Floats) -> Floats:
    """Return boxes without those that cover the same pixels as the one before.

    Thinner ones fill a pixel. 50,000 values in 1,000 pixels are 20 ms of painting otherwise.
    """
    fresh = np.zeros(len(boxes), np.bool_)
    fresh[:1] = True
    found: list[NDArray[np.float64]] = []
    for place, side in ((boxes[:, 0], boxes[:, 2]), (boxes[:, 1], boxes[:, 3])):
        found += [np.where(side < 1.0, np.floor(place), place), np.maximum(side, 1.0)]
    for column in found:  # a comparison of rows takes three times as long
        fresh[1:] |= column[1:] != column[:-1]
    x, width, y, height = (column[fresh] for column in found)
    return np.stack((x, y, width, height), axis=1)


class MemoryDrawing:
    """All precomputed parts for drawing one plan with one palette."""

    def __init__(self, data: MemoryData, colours: CanvasColours, texts: TextCache) -> None:
        self.data, self.colours = data, colours
        self._texts = texts
        look = np.stack([data.colour, data.strong.astype(np.int64)], axis=1)
        kinds, _, self._which = unique_rows(look)
        self._fills = [self._fill(*kind) for kind in kinds.tolist()]
        self._order = np.lexsort((data.first, data.offset, self._which))
        self._blocks: _SeenBlocks | None = None
        self._seen_at: tuple[float, ...] = ()  # where the blocks are seen

    def _fill(self, colour: int, strong: int) -> str:
        c = self.colours
        return mix(c.surface, c.reference(colour), 0.95 if strong else _TINT)

    def paint(self, painter: QPainter, size: QSize, camera: Camera, marks: MemoryMarks) -> None:
        """Draw plot, axes and marks; camera.y is the address at the lower side."""
        width, height = plot_size(size)
        plot = QRectF(LEFT, TOP, width, height)
        self._paint_axes(painter, plot, camera)
        painter.save()
        painter.setClipRect(plot.adjusted(-0.5, -1, 1, 1))
        self._paint_peak(painter, plot, camera)
        blocks = self._blocks_at(plot, camera, size)
        bounds = self._bound_names(plot, camera, blocks.boxes)
        self._paint_blocks(painter, plot, blocks, marks, bounds)
        self._paint_step(painter, plot, camera, marks)
        self._paint_bounds(painter, plot, camera)
        painter.restore()
        self._paint_bound_names(painter, bounds)
        self._paint_peak_name(painter, plot, camera)

    def _paint_axes(self, painter: QPainter, plot: QRectF, camera: Camera) -> None:
        c = self.colours
        font, metrics = self._texts.font(c, _LABEL)
        painter.setFont(font)
        grid = qcolor(mix(c.surface, c.line, 0.8))
        top, lowest = camera.y + plot.height() / camera.sy, np.inf
        for tick in ticks(camera.y, top, max(int(plot.height() / 70), 2), Quantity.SIZE):
            y = round(plot.bottom() - (tick.value - camera.y) * camera.sy) + 0.5
            painter.setPen(grid)
            painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y))
            if lowest - y < metrics.height():
                continue  # a low plot has room for one of its addresses
            lowest = y
            painter.setPen(qcolor(c.muted))
            wide = metrics.horizontalAdvance(tick.label)
            painter.drawText(QPointF(LEFT - wide - 8, y + 4), tick.label)
        right = camera.x + plot.width() / camera.sx
        for tick in ticks(camera.x, right, max(int(plot.width() / 60), 2), Quantity.COUNT):
            x = round(plot.left() + (tick.value - camera.x) * camera.sx) + 0.5
            painter.setPen(grid)
            painter.drawLine(QPointF(x, plot.top()), QPointF(x, plot.bottom()))
            painter.setPen(qcolor(c.muted))
            wide = metrics.horizontalAdvance(tick.label)
            painter.drawText(QPointF(x - wide / 2, plot.bottom() + 16), tick.label)
        wide = metrics.horizontalAdvance(self.data.step_name)
        name = QPointF(plot.center().x() - wide / 2, plot.bottom() + 34)
        painter.drawText(name, self.data.step_name)

    def _blocks_at(self, plot: QRectF, camera: Camera, size: QSize) -> _SeenBlocks:
        at = (camera.x, camera.y, camera.sx, camera.sy, size.width(), size.height())
        if self._blocks is None or self._seen_at != at:
            self._blocks, self._seen_at = self._lay_out(plot, camera, size), at
        return self._blocks

    def _lay_out(self, plot: QRectF, camera: Camera, size: QSize) -> _SeenBlocks:
        boxes = screen_boxes(self.data, camera, size)
        seen = (boxes[:, 0] <= plot.right()) & (boxes[:, 0] + boxes[:, 2] >= plot.left())
        seen &= (boxes[:, 1] <= plot.bottom()) & (boxes[:, 1] + boxes[:, 3] >= plot.top())
        painted = self._order[seen[self._order]]
        ends = np.searchsorted(self._which[painted], np.arange(1, len(self._fills)))
        batches = [_on_pixels(part) for part in np.split(_spaced(boxes[painted]), ends)]
        large = (boxes[:, 2] >= _NAME_FROM[0]) & (boxes[:, 3] >= _NAME_FROM[1])
        wide = np.flatnonzero(seen & large)
        return _SeenBlocks(boxes, wide, _spaced(boxes[wide]), batches)

    def _paint_blocks(
        self,
        painter: QPainter,
        plot: QRectF,
        blocks: _SeenBlocks,
        marks: MemoryMarks,
        bounds: Sequence[_BoundName],
    ) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        for fill, batch in zip(self._fills, blocks.batches, strict=True):
            painter.setBrush(qcolor(fill))
            draw_rects(painter, batch)
        self._paint_names(painter, plot, blocks, [one.place for one in bounds])
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for value, colour, width in (
            (marks.hovered, self.colours.text, 1.2),
            (marks.selected, self.colours.accent, 2.6),
        ):
            if 0 <= value < len(blocks.boxes):
                painter.setPen(QPen(qcolor(colour), width))
                x, y, wide, high = blocks.boxes[value].tolist()
                painter.drawRect(QRectF(x, y, max(wide, 2.0), max(high, 2.0)))

    def _paint_names(
        self, painter: QPainter, plot: QRectF, blocks: _SeenBlocks, covered: Sequence[QRectF]
    ) -> None:
        shown, boxes = blocks.wide, blocks.wide_boxes
        font, metrics = self._texts.font(self.colours, _LABEL)
        painter.setFont(font)
        for at in self._labelled(shown, boxes):
            value = int(shown[at])
            x, y, width, height = boxes[at].tolist()
            seen = QRectF(x, y, width, height).intersected(plot)
            seen = _clear_part(seen, covered)
            if seen.height() < metrics.ascent():
                continue
            lines = self.block_lines(value, seen.width() - 9, seen.height())
            fill = self._fills[int(self._which[value])]
            painter.setPen(qcolor(ink_on(fill)))
            baseline = seen.center().y() + (metrics.ascent() - metrics.descent()) / 2
            baseline -= (len(lines) - 1) * metrics.height() / 2
            for number, line in enumerate(lines):
                at = QPointF(seen.left() + 5, baseline + number * metrics.height())
                painter.drawText(at, line)

    def _labelled(self, shown: NDArray[np.int64], boxes: Floats) -> list[int]:
        """Return the blocks with room for a name; of values that share a place, one has it."""
        large = (boxes[:, 2] >= _NAME_FROM[0]) & (boxes[:, 3] >= _NAME_FROM[1])
        found: list[int] = []
        taken: dict[int, list[tuple[float, float]]] = {}  # by address
        wide = sorted(np.flatnonzero(large).tolist(), key=lambda at: -float(boxes[at, 2]))
        for at in sorted(wide, key=lambda at: self._is_number(int(shown[at]))):
            left, width = boxes[at, [0, 2]].tolist()
            beside = taken.setdefault(int(self.data.offset[shown[at]]), [])
            if all(left + width <= begin or end <= left for begin, end in beside):
                beside.append((left, left + width))
                found.append(at)
        return found

    def _is_number(self, value: int) -> bool:
        """Return whether a value has no name but its number in the program."""
        return self.data.names[value].removeprefix("v").isdecimal()

    def block_lines(self, value: int, room: float, height: float) -> list[str]:
        """Return name and size of a value within a width and height: on one line or on two."""
        name, size = self.data.names[value], format_bytes(int(self.data.nbytes[value]))
        metrics = self._texts.font(self.colours, _LABEL)[1]
        whole, ending = f"{name} · {size}", f" · {size}"
        if metrics.horizontalAdvance(whole) <= room:
            return [whole]
        short = self._name_within(name, room - metrics.horizontalAdvance(ending))
        below = height >= 2 * metrics.height() and metrics.horizontalAdvance(size) <= room
        if below or not short:
            alone = self._name_within(name, room)
            return [line for line in (alone, size if below else "") if line]
        return [short + ending]

    def _name_within(self, name: str, room: float) -> str:
        """Return a name elided to a width, empty if too little of it is left."""
        text = self._texts.fitted(self.colours, name, room, _LABEL)[0] if room > 0 else ""
        return text if len(text) >= min(_SHORTEST, len(name)) else ""

    def _peak_band(self, plot: QRectF, camera: Camera) -> QRectF | None:
        if self.data.peak_step is None:
            return None
        left = plot.left() + (self.data.peak_step - camera.x) * camera.sx
        return QRectF(left, plot.top(), max(camera.sx, 2.0), plot.height())

    def _paint_peak(self, painter: QPainter, plot: QRectF, camera: Camera) -> None:
        band = self._peak_band(plot, camera)
        if band is not None:
            painter.fillRect(band, qcolor(self.colours.bad, 0.14))

    def _paint_peak_name(self, painter: QPainter, plot: QRectF, camera: Camera) -> None:
        band = self._peak_band(plot, camera)
        if band is None or band.right() < plot.left() or band.left() > plot.right():
            return
        c = self.colours
        font, metrics = self._texts.font(c, 12)
        painter.setFont(font)
        text = f"peak {format_bytes(self.data.peak_bytes)} live"
        wide = metrics.horizontalAdvance(text)
        left = min(max(band.center().x() - wide / 2, plot.left()), plot.right() - wide)
        painter.setPen(qcolor(readable(c.bad, c.surface, c.text)))
        painter.drawText(QPointF(left, plot.top() - 24 + metrics.ascent() / 2), text)

    def _paint_step(
        self, painter: QPainter, plot: QRectF, camera: Camera, marks: MemoryMarks
    ) -> None:
        if marks.step is None:
            return
        left = plot.left() + (marks.step - camera.x) * camera.sx
        band = QRectF(left, plot.top(), max(camera.sx, 1.5), plot.height())
        painter.setPen(QPen(qcolor(self.colours.accent), 1.2))
        painter.setBrush(qcolor(self.colours.accent, 0.1))
        painter.drawRect(band)

    def _bounds(self) -> list[tuple[float, str, str, Qt.PenStyle, bool]]:
        """Return address, label, colour, pen and whether the label is above, of each line."""
        c, data = self.colours, self.data
        planner = f" ({data.planner})" if data.planner else ""
        planned = f"planned {format_bytes(data.planned_bytes)}{planner}"
        found = [(float(data.planned_bytes), planned, c.text, Qt.PenStyle.DashLine, True)]
        if data.lower_bound_bytes is not None:
            text = f"lower bound {format_bytes(data.lower_bound_bytes)}"
            colour = readable(c.good, c.surface, c.text)
            bound = float(data.lower_bound_bytes)
            found.append((bound, text, colour, Qt.PenStyle.DotLine, False))
        return found

    def _paint_bounds(self, painter: QPainter, plot: QRectF, camera: Camera) -> None:
        for address, _, colour, style, _ in self._bounds():
            y = round(plot.bottom() - (address - camera.y) * camera.sy) + 0.5
            painter.setPen(QPen(qcolor(colour), 1.3, style))
            painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y))

    def _bound_names(self, plot: QRectF, camera: Camera, boxes: Floats) -> list[_BoundName]:
        """Return the label of each line that is seen, where it covers no block if there is room."""
        metrics = self._texts.font(self.colours, _LABEL)[1]
        found: list[_BoundName] = []
        for address, text, colour, _, above in self._bounds():
            y = plot.bottom() - (address - camera.y) * camera.sy
            if not plot.top() - 1 <= y <= plot.bottom() + 1:
                continue
            wide = metrics.horizontalAdvance(text)
            top = y - 5 - metrics.ascent() if above else y + 3
            places = [
                QRectF(left - 3, top, wide + 6, metrics.height())
                for left in (plot.right() - wide - 4, plot.left() + 6, plot.center().x())
            ]
            place = next((place for place in places if _is_free(place, boxes)), places[0])
            found.append(_BoundName(place, text, colour))
        return found

    def _paint_bound_names(self, painter: QPainter, names: Sequence[_BoundName]) -> None:
        font, metrics = self._texts.font(self.colours, _LABEL)
        painter.setFont(font)
        for one in names:
            painter.fillRect(one.place, qcolor(self.colours.surface, 0.82))
            painter.setPen(qcolor(one.colour))
            baseline = one.place.top() + metrics.ascent()
            painter.drawText(QPointF(one.place.left() + 3, baseline), one.text)


def _clear_part(block: QRectF, covered: Sequence[QRectF]) -> QRectF:
    """Return the higher part of a block above or below the labels that cover it."""
    for place in covered:
        over = block.intersected(place)
        if over.isEmpty():
            continue
        if over.top() - block.top() > block.bottom() - over.bottom():
            block = block.adjusted(0, 0, 0, over.top() - block.bottom())
        else:
            block = block.adjusted(0, over.bottom() - block.top(), 0, 0)
    return block


def _is_free(place: QRectF, boxes: Floats) -> bool:
    """Return whether a label overlaps no block."""
    hit = (boxes[:, 0] < place.right()) & (boxes[:, 0] + boxes[:, 2] > place.left())
    hit &= (boxes[:, 1] < place.bottom()) & (boxes[:, 1] + boxes[:, 3] > place.top())
    return not bool(hit.any())
