"""Draw a placed graph: regions, lines, boxes, bars, marks, text, by level of detail."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen

from devtools_app.appearance.colours import contrast
from devtools_app.appearance.paint_theme import CanvasColours, ink_on, mix, qcolor
from devtools_app.viewmodels.canvas_data import GraphOverlay
from devtools_app.viewmodels.layout.camera import Camera
from devtools_app.viewmodels.layout.lines import placed_lines, seen_lines
from devtools_app.viewmodels.layout.placed import Placed
from devtools_app.widgets.batch import draw_lines, draw_rects
from devtools_app.widgets.graph_canvas_edits import paint_edited
from devtools_app.widgets.graph_canvas_labels import GraphLabels
from devtools_app.widgets.graph_canvas_style import STRIPE, BoxGroup, graph_look
from devtools_app.widgets.graph_canvas_text import TextCache

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BORDERS, CURVES, ROUND, ARROWS = 0.15, 0.35, 0.45, 0.5  # scales from which they are drawn
_RADIUS = 4.0
_BAR, _BAR_EDGE = 5.0, 1.5  # height of a share bar, and its distance from the border
_TRACK = 0.45  # opacity of what a share bar is a part of
_FOUND = 2.4  # pixels of the outline of what a search found
_VEIL = 0.78  # opacity of what lies over all that is not highlighted
_ARROW = 5.0
_MANY_MARKED = 0.35  # share of marked nodes above which emphasis would dim the graph


@dataclass(slots=True, eq=False)
class Marks:
    """Marked items.

    Attributes:
        selected: item, -1 for none
        hovered: item, -1 for none
        found: items found by a search
        searching: whether a search is active, so that other items are dimmed
        lit: highlighted items, None without a highlight; the others are faint
        edited: items that the edits of a recipe are about
    """

    selected: int = -1
    hovered: int = -1
    found: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    searching: bool = False
    lit: Ints | None = None
    edited: Ints = field(default_factory=lambda: np.zeros(0, np.int64))


class GraphDrawing:
    """All precomputed parts for drawing one placed graph with one overlay and palette."""

    def __init__(
        self,
        placed: Placed,
        overlay: GraphOverlay,
        colours: CanvasColours,
        texts: TextCache,
        ghosts: Floats | None = None,
    ) -> None:
        """Prepare the parts; ghosts are dashed boxes of what is only in another graph."""
        self.placed, self.colours = placed, colours
        self._ghosts = np.zeros((0, 4)) if ghosts is None else ghosts
        self.look = graph_look(placed, overlay, colours)
        marked = placed.edge_emphasised
        self._lines = placed_lines(placed)
        # where nearly every line is marked, the marks say little and must not drown the boxes
        self._emphasis = 0.8 if int(marked.sum()) <= _MANY_MARKED * len(marked) else 0.5
        self._stub_lines = placed.stubs.lines(placed.boxes)
        self._bars = self._share_bars()
        self._labels = GraphLabels(placed, self.look, colours, texts)

    def _share_bars(self) -> list[tuple[str, Floats, Ints]]:
        """Return share bars and their items by colour."""
        shares = self.look.shares
        items = np.concatenate([group.items for group in self.look.boxes] or [np.zeros(0, int)])
        items = items[shares[items] >= 0]
        boxes = self.placed.boxes[items]
        left = boxes[:, 0] + STRIPE + _BAR_EDGE
        room = boxes[:, 2] - STRIPE - 2 * _BAR_EDGE
        top = boxes[:, 1] + boxes[:, 3] - _BAR - _BAR_EDGE
        high = np.full(len(items), _BAR)
        self._track_items = items
        self._tracks = np.ascontiguousarray(np.stack([left, top, room, high], axis=1))
        table = self._tracks.copy()
        table[:, 2] = np.maximum(room * shares[items], 1.5)
        fills = {group.fill for group in self.look.boxes}
        colours = sorted({self._bar_colour(fill) for fill in fills})
        number = {fill: colours.index(self._bar_colour(fill)) for fill in fills}
        numbers = [number.get(fill, -1) for fill in self.look.fills]  # -1: only of open boxes
        which = np.array(numbers, np.int64)[self.look.fill[items]]
        found: list[tuple[str, Floats, Ints]] = []
        for at in np.unique(which).tolist():
            chosen = (which == at) & (shares[items] > 0)
            found.append((colours[at], table[chosen], items[chosen]))
        return found

    def _bar_colour(self, fill: str) -> str:
        """Return the accent, or a colour that contrasts with the fill of a box."""
        return self.colours.accent if contrast(self.colours.accent, fill) > 3.0 else ink_on(fill)

    def paint(self, painter: QPainter, size: QSize, camera: Camera, marks: Marks) -> None:
        """Draw the visible part."""
        view = camera.view(size.width(), size.height())
        painter.save()
        painter.scale(camera.sx, camera.sy)
        painter.translate(-camera.x, -camera.y)
        near = camera.sx >= ROUND
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, camera.sx >= CURVES)
        for group in self.look.regions:
            self._paint_group(painter, group, view, camera.sx, rounded=near, region=True)
        self._paint_lines(painter, view, camera.sx, marks)
        self._paint_ghosts(painter, view)
        for group in self.look.boxes:
            self._paint_group(painter, group, view, camera.sx, rounded=near)
        self._paint_bars(painter, view, camera.sx)
        self._paint_stubs(painter, view, camera.sx)
        if marks.lit is not None:
            self._paint_lit(painter, view, camera.sx, marks.lit)
        self._paint_marks(painter, view, camera.sx, marks)
        painter.restore()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        self._labels.paint(painter, size, camera, marks.lit)

    def _paint_group(
        self,
        painter: QPainter,
        group: BoxGroup,
        view: tuple[float, float, float, float],
        scale: float,
        *,
        rounded: bool,
        region: bool = False,
    ) -> None:
        boxes = seen(group.boxes, view)
        if not len(boxes):
            return
        painter.setBrush(qcolor(group.fill))
        if scale < BORDERS:
            # without a border the fill must still tell what is what
            share = 0.12 if region else 0.6 if group.fill == self.colours.raised else 0.25
            painter.setBrush(qcolor(mix(group.fill, group.border, share)))
            painter.setPen(Qt.PenStyle.NoPen)
        else:
            painter.setPen(cosmetic(group.border, group.width))
        if not rounded:
            draw_rects(painter, boxes)
            return
        for x, y, width, height in boxes.tolist():
            painter.drawRoundedRect(QRectF(x, y, width, height), _RADIUS, _RADIUS)

    def _paint_ghosts(self, painter: QPainter, view: tuple[float, float, float, float]) -> None:
        boxes = seen(self._ghosts, view)
        if len(boxes):
            pen = cosmetic(qcolor(self.colours.muted, 0.7), 1.0)
            pen.setStyle(Qt.PenStyle.DashLine)
            painter.setPen(pen)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            draw_rects(painter, boxes)

    def _paint_lines(
        self,
        painter: QPainter,
        view: tuple[float, float, float, float],
        scale: float,
        marks: Marks,
    ) -> None:
        c = self.colours
        lines = self._lines.smooth if scale >= CURVES else self._lines.coarse
        strength = 0.8 if scale >= BORDERS else 0.45
        if marks.searching:
            strength *= 0.5
        painter.setPen(cosmetic(mix(c.surface, c.muted, strength), 1.2 if scale >= CURVES else 1))
        draw_lines(painter, lines.seen(view))
        draw_lines(painter, seen_lines(self._stub_lines, view))
        warning = mix(c.surface, c.warn, self._emphasis * (0.5 if marks.searching else 1.0))
        painter.setPen(cosmetic(warning, 1.3 if scale >= CURVES else 1.0))
        draw_lines(painter, self._lines.marked.seen(view))
        if scale >= ARROWS:
            self._paint_arrows(painter, view)

    def _paint_arrows(self, painter: QPainter, view: tuple[float, float, float, float]) -> None:
        tips = self._lines.arrows
        inside = (tips[:, 0] >= view[0] - 9) & (tips[:, 0] <= view[2] + 9)
        inside &= (tips[:, 1] >= view[1] - 9) & (tips[:, 1] <= view[3] + 9)
        path = QPainterPath()
        for x, y, dx, dy in tips[inside].tolist():
            bx, by = x - dx * _ARROW, y - dy * _ARROW
            wx, wy = -dy * _ARROW * 0.55, dx * _ARROW * 0.55
            path.moveTo(x, y)
            path.lineTo(bx + wx, by + wy)
            path.lineTo(bx - wx, by - wy)
            path.closeSubpath()
        painter.fillPath(path, qcolor(mix(self.colours.surface, self.colours.muted, 0.9)))

    def _paint_bars(
        self,
        painter: QPainter,
        view: tuple[float, float, float, float],
        scale: float,
        inside: NDArray[np.bool_] | None = None,
    ) -> None:
        """Draw stripes and share bars, of all items or only of some.

        Shapes: inside bool[items]
        """
        if scale < BORDERS:
            return
        track = mix(self.colours.surface, self.colours.muted, 0.5)
        tracks = [(qcolor(track, _TRACK), self._tracks, self._track_items)]
        solid = [(qcolor(one), boxes, items) for one, boxes, items in self.look.stripes]
        bars = [(qcolor(one), boxes, items) for one, boxes, items in self._bars]
        painter.setPen(Qt.PenStyle.NoPen)
        for colour, boxes, items in (*solid, *tracks, *bars):
            painter.setBrush(colour)
            draw_rects(painter, seen(boxes if inside is None else boxes[inside[items]], view))

    def _paint_stubs(
        self, painter: QPainter, view: tuple[float, float, float, float], scale: float
    ) -> None:
        boxes = seen(self.placed.stubs.boxes, view)
        if not len(boxes) or scale < BORDERS:
            return
        c = self.colours
        painter.setPen(cosmetic(mix(c.line, c.muted, 0.4), 1.0))
        painter.setBrush(qcolor(c.surface))
        if scale < ROUND:
            draw_rects(painter, boxes)
            return
        for x, y, width, height in boxes.tolist():
            painter.drawRoundedRect(QRectF(x, y, width, height), height / 2, height / 2)

    def _paint_lit(
        self, painter: QPainter, view: tuple[float, float, float, float], scale: float, lit: Ints
    ) -> None:
        """Draw a veil over all, and the highlighted boxes and the lines between them over it."""
        left, top, right, bottom = view
        veil = QRectF(left, top, right - left, bottom - top)
        painter.fillRect(veil, qcolor(self.colours.surface, _VEIL))
        inside = np.zeros(len(self.placed.boxes), np.bool_)
        inside[lit] = True
        ends = inside[self.placed.edges]
        between = ends[:, 0] & ends[:, 1]
        painter.setPen(cosmetic(self.colours.accent, 1.6))
        draw_lines(painter, self._lines.smooth.of(between))
        draw_lines(painter, self._lines.marked.of(between))
        for group in self.look.boxes:
            chosen = inside[group.items]
            if chosen.any():
                some = replace(group, items=group.items[chosen], boxes=group.boxes[chosen])
                self._paint_group(painter, some, view, scale, rounded=scale >= ROUND)
        self._paint_bars(painter, view, scale, inside)

    def _paint_marks(
        self,
        painter: QPainter,
        view: tuple[float, float, float, float],
        scale: float,
        marks: Marks,
    ) -> None:
        c = self.colours
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if len(marks.found):
            self._paint_found(painter, view, scale, marks.found)
        for item, strength in ((marks.hovered, 0.55), (marks.selected, 1.0)):
            if item < 0 or not np.isfinite(self.placed.boxes[item, 0]):
                continue
            chosen = (self.placed.edges == item).any(axis=1)
            painter.setPen(cosmetic(qcolor(c.accent, strength), 2.0))
            draw_lines(painter, self._lines.smooth.of(chosen))
            draw_lines(painter, self._lines.marked.of(chosen))
            painter.setPen(cosmetic(qcolor(c.accent, strength), 2.8 if strength == 1.0 else 1.6))
            x, y, width, height = grown(self.placed.boxes[item : item + 1], scale)[0].tolist()
            painter.drawRoundedRect(QRectF(x, y, width, height), _RADIUS, _RADIUS)
        if len(marks.edited):
            paint_edited(painter, scale, self.placed.boxes[marks.edited], c)

    def _paint_found(
        self, painter: QPainter, view: tuple[float, float, float, float], scale: float, found: Ints
    ) -> None:
        boxes = seen(grown(self.placed.boxes[found], scale), view)
        painter.setPen(cosmetic(self.colours.warn, _FOUND))
        painter.setBrush(qcolor(self.colours.warn, 0.18))
        if scale < BORDERS:  # outlines of small boxes fill them: 50,000 take 30 ms, without 8
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(qcolor(self.colours.warn))
        draw_rects(painter, boxes)
        painter.setBrush(Qt.BrushStyle.NoBrush)


def cosmetic(colour: str | QColor, width: float) -> QPen:
    """Return a pen whose width does not scale with the drawing."""
    pen = QPen(qcolor(colour) if isinstance(colour, str) else colour, width)
    pen.setCosmetic(True)
    pen.setJoinStyle(Qt.PenJoinStyle.MiterJoin)
    return pen


def seen(boxes: Floats, view: tuple[float, float, float, float]) -> Floats:
    """Return the boxes that touch a part of the world: left, top, right, bottom."""
    left, top, right, bottom = view
    kept = (boxes[:, 0] <= right) & (boxes[:, 0] + boxes[:, 2] >= left)
    kept &= (boxes[:, 1] <= bottom) & (boxes[:, 1] + boxes[:, 3] >= top)
    return boxes if kept.all() else boxes[kept]


def grown(boxes: Floats, scale: float, least: float = 5.0) -> Floats:
    """Return boxes enlarged to be visible: at least some pixels in each direction."""
    size = np.maximum(boxes[:, 2:], least / scale)
    corner = boxes[:, :2] - (size - boxes[:, 2:]) / 2
    return np.ascontiguousarray(np.concatenate([corner, size], axis=1))


def centre(boxes: Floats, item: int) -> QPointF:
    """Return the middle of a box."""
    x, y, width, height = boxes[item].tolist()
    return QPointF(x + width / 2, y + height / 2)
