"""Draw a treemap: cells by colour, headers of open parts, labels that fit, marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QPainter, QPen

from devtools_app.appearance.paint_theme import CanvasColours, ink_on, mix, qcolor, readable
from devtools_app.viewmodels.canvas_data import TreemapData
from devtools_app.viewmodels.layout.treemap import HEADER, Cell
from devtools_app.widgets.batch import draw_rects
from devtools_app.widgets.graph_canvas_text import TextCache
from inspector.units import format_bytes, format_share

CRUMBS = 30.0  # height of the path above the map
STRENGTH = 0.62  # of a colour on the ground
_NAME_FROM = (38.0, 16.0)  # width and height; smaller cells have no name
_TWO_LINES = 34.0  # height from which a name and a size fit
_SHORTEST = 6  # characters a shortened name must have left


@dataclass(slots=True)
class TreemapMarks:
    """Marked parts by number; -1 for none."""

    selected: int = -1
    hovered: int = -1


class TreemapDrawing:
    """All precomputed parts for drawing one layout with one palette."""

    def __init__(
        self, data: TreemapData, cells: Sequence[Cell], colours: CanvasColours, texts: TextCache
    ) -> None:
        self.data, self.cells, self.colours = data, cells, colours
        self._texts = texts
        self.boxes = np.array([cell.box for cell in cells], np.float64).reshape(-1, 4)
        self._fills = [self._fill(cell) for cell in cells]
        self._open = np.array([cell.is_open for cell in cells], np.bool_)
        self._many = np.array([cell.part < 0 for cell in cells], np.bool_)
        numbers: dict[str, int] = {}
        self._which = np.array(
            [numbers.setdefault(fill, len(numbers)) for fill in self._fills], np.int64
        )
        self._kinds = list(numbers)

    def _fill(self, cell: Cell) -> str:
        c = self.colours
        if cell.part < 0:
            return c.surface
        own = c.reference(int(self.data.colour[cell.part]))
        return mix(c.surface, own, 0.16 if cell.is_open else STRENGTH)

    def paint(self, painter: QPainter, marks: TreemapMarks) -> None:
        """Draw all cells and marks."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.setPen(Qt.PenStyle.NoPen)
        for chosen in (self._open, ~self._open & ~self._many):
            self._paint_cells(painter, chosen)
        self._paint_gathered(painter)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        for at in np.flatnonzero(self._open).tolist():
            self._paint_header(painter, at)
        self._paint_names(painter)
        self._paint_marks(painter, marks)

    def _paint_cells(self, painter: QPainter, chosen: np.ndarray) -> None:
        """Fill cells of equal depth together: outer ones are first in the list."""
        depths = np.array([cell.depth for cell in self.cells], np.int64)
        for depth in np.unique(depths[chosen]).tolist():
            level = chosen & (depths == depth)
            for number, fill in enumerate(self._kinds):
                rows = level & (self._which == number)
                if rows.any():
                    painter.setBrush(qcolor(fill))
                    draw_rects(painter, _apart(self.boxes[rows]))

    def _paint_gathered(self, painter: QPainter) -> None:
        if not self._many.any():
            return
        c = self.colours
        ground = QBrush(qcolor(mix(c.surface, c.muted, 0.14)))
        hatch = QBrush(qcolor(mix(c.surface, c.muted, 0.6)), Qt.BrushStyle.BDiagPattern)
        for brush in (ground, hatch):
            painter.setBrush(brush)
            draw_rects(painter, _apart(self.boxes[self._many]))

    def _paint_header(self, painter: QPainter, at: int) -> None:
        cell, c = self.cells[at], self.colours
        x, y, width, _ = cell.box
        fill = self._fills[at]
        pixels = 12
        font, metrics = self._texts.font(c, pixels, bold=True)
        baseline = y + (HEADER + metrics.ascent() - metrics.descent()) / 2 + 0.5
        name = self.data.names[cell.part]
        text, taken = self._texts.fitted(c, name, width - 12, pixels, bold=True)
        painter.setFont(font)
        painter.setPen(qcolor(ink_on(fill)))
        painter.drawText(QPointF(x + 6, baseline), text)
        size, wide = self._texts.fitted(c, format_bytes(cell.nbytes), 1000, 11)
        if taken + wide + 24 < width:
            painter.setFont(self._texts.font(c, 11)[0])
            painter.setPen(qcolor(readable(c.muted, fill, ink_on(fill))))
            painter.drawText(QPointF(x + width - wide - 7, baseline), size)

    def _paint_names(self, painter: QPainter) -> None:
        large = (self.boxes[:, 2] >= _NAME_FROM[0]) & (self.boxes[:, 3] >= _NAME_FROM[1])
        for at in np.flatnonzero(large & ~self._open).tolist():
            self._paint_name(painter, at)

    def _paint_name(self, painter: QPainter, at: int) -> None:
        cell, c = self.cells[at], self.colours
        x, y, width, height = cell.box
        name = self.data.names[cell.part] if cell.part >= 0 else f"{cell.count:,} smaller parts"
        text, wide = self._texts.fitted(c, name, width - 10, 11)
        if len(text) < min(_SHORTEST, len(name)):
            return
        fill = self._fills[at]
        metrics = self._texts.font(c, 11)[1]
        if cell.part < 0:
            under = QRectF(x + 3, y + 3, wide + 6, metrics.height())
            painter.fillRect(under, qcolor(c.surface, 0.85))
        painter.setFont(self._texts.font(c, 11)[0])
        painter.setPen(qcolor(ink_on(fill)))
        painter.drawText(QPointF(x + 5, y + 3 + metrics.ascent()), text)
        size = format_bytes(cell.nbytes)
        if height < _TWO_LINES or self._texts.fitted(c, size, width - 10, 11)[0] != size:
            return
        if cell.part < 0:
            return
        painter.setPen(qcolor(readable(mix(fill, ink_on(fill), 0.75), fill, ink_on(fill))))
        painter.drawText(QPointF(x + 5, y + 3 + metrics.ascent() + metrics.height()), size)

    def _paint_marks(self, painter: QPainter, marks: TreemapMarks) -> None:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        chosen = ((marks.hovered, self.colours.text, 1.2), (marks.selected, self.colours.accent, 3))
        for part, colour, width in chosen:
            box = self.box_of(part)
            if box is not None:
                painter.setPen(QPen(qcolor(colour), width))
                x, y, wide, high = box
                painter.drawRect(QRectF(x + 1, y + 1, max(wide - 2, 2.0), max(high - 2, 2.0)))

    def box_of(self, part: int) -> tuple[float, float, float, float] | None:
        """Return the rectangle of a visible part."""
        if part < 0:
            return None
        return next((cell.box for cell in self.cells if cell.part == part), None)

    def cell_at(self, at: QPointF) -> Cell | None:
        """Return the innermost cell at a point of the screen."""
        b = self.boxes
        hit = (b[:, 0] <= at.x()) & (at.x() < b[:, 0] + b[:, 2])
        hit &= (b[:, 1] <= at.y()) & (at.y() < b[:, 1] + b[:, 3])
        found = np.flatnonzero(hit)
        return self.cells[int(found[-1])] if len(found) else None


def _apart(boxes: np.ndarray) -> np.ndarray:
    """Return cells with a gap of a pixel between those large enough for it."""
    gap = np.where((boxes[:, 2] > 5) & (boxes[:, 3] > 5), 1.0, 0.35)
    drawn = boxes.copy()
    drawn[:, 2:] = np.maximum(drawn[:, 2:] - gap[:, None], 0.5)
    return drawn


def share_label(nbytes: int, whole: int) -> str:
    """Return a size, its exact bytes and its share."""
    share = format_share(nbytes / whole) if whole else "0 %"
    return f"{format_bytes(nbytes)} ({nbytes:,} B) · {share}"
