"""Text of a graph: titles in boxes when zoomed in, names of regions when zoomed out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize
from PySide6.QtGui import QPainter

from devtools_app.appearance.colours import PLAIN, contrast
from devtools_app.appearance.paint_theme import CanvasColours, ink_on, qcolor, readable
from devtools_app.viewmodels.layout.camera import Camera
from devtools_app.viewmodels.layout.lines import BOTH, TO_RIGHT, placed_lines
from devtools_app.viewmodels.layout.placed import Placed
from devtools_app.viewmodels.layout.stubs import STUB_HEIGHT, STUB_WIDTH
from devtools_app.widgets.graph_canvas_style import GraphLook, title_colour
from devtools_app.widgets.graph_canvas_text import Occupied, TextCache, chip
from inspector.units import format_bytes
from schema.objects.plural import plural

REGIONS, TITLES, SUBLINES = 0.36, 0.52, 0.7  # scales from which they are drawn
SMALL, FEW = 0.25, 250  # down to this scale so many boxes have titles: whole graphs of small rooms
SMALLEST = 0.18  # likewise with large text, which leaves less room: a box as high as its letters
EDGE_TEXT, ALL_EDGES = 0.8, 1.2  # borders first, then within clusters
_TITLE, _SUB, _EDGE, _MAP = 13.0, 11.0, 10.5, 11
_INSET = 11.0
_MOST_MAP = 120  # names per frame: more overlap, and each is measured
_OPEN, _CLOSED = "▾", "▸"
_FAINT = 0.3  # opacity of text beside what is highlighted
Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Ink:
    """Text style: size in pixels, colour, weight."""

    pixels: int
    colour: str
    bold: bool = False


class GraphLabels:
    """Draws the text of one placed graph."""

    def __init__(
        self, placed: Placed, look: GraphLook, colours: CanvasColours, texts: TextCache
    ) -> None:
        self._placed, self._look, self._colours, self._texts = placed, look, colours, texts
        self._boxed = np.concatenate([placed.nodes, placed.clusters[placed.collapsed]])
        self._opened = placed.clusters[~placed.collapsed]
        self._delegates = self._crossed()
        self._taken = Occupied()  # in this frame
        self._lines = placed_lines(placed)

    def _crossed(self) -> NDArray[np.int64]:
        """Return the visible clusters that name what enters and leaves them."""
        placed = self._placed
        index, nodes = placed.scene.tree.index, placed.node_count
        crossed = [path for path, info in placed.scene.info.items() if info.inward or info.outward]
        items = np.array([nodes + index[path] for path in crossed if path in index], np.int64)
        return items[np.isfinite(placed.boxes[items, 0])]

    def paint(
        self,
        painter: QPainter,
        size: QSize,
        camera: Camera,
        lit: NDArray[np.int64] | None = None,
    ) -> None:
        """Draw all text in the camera's view, in pixels of the screen.

        Args:
            painter: with pixels as its unit
            size: of the drawing
            camera: of the view
            lit: highlighted items, None without a highlight; text of the others is faint
        """
        boxed = self._seen(self._boxed, size, camera)
        least = max(SMALL / self._colours.scale, SMALLEST)
        few = camera.sx >= least and len(boxed) <= FEW
        if camera.sx < REGIONS and not few:
            self._paint_map(painter, size, camera)
            return
        painter.setOpacity(1.0 if lit is None else _FAINT)
        for item in self._seen(self._opened, size, camera).tolist():
            self._paint_region(painter, item, camera)
        painter.setOpacity(1.0)
        if camera.sx < TITLES and not few:
            return
        if camera.sx >= EDGE_TEXT and lit is None:
            self._paint_edges(painter, size, camera)
            self._paint_crossings(painter, size, camera)
        bright = None if lit is None else set(lit.tolist())
        for item in boxed.tolist():
            painter.setOpacity(1.0 if bright is None or item in bright else _FAINT)
            self._paint_box(painter, item, camera)
        painter.setOpacity(1.0 if bright is None else _FAINT)
        self._paint_stubs(painter, size, camera)
        painter.setOpacity(1.0)

    def _seen(self, items: NDArray[np.int64], size: QSize, camera: Camera) -> NDArray[np.int64]:
        left, top, right, bottom = camera.view(size.width(), size.height())
        boxes = self._placed.boxes[items]
        kept = (boxes[:, 0] <= right) & (boxes[:, 0] + boxes[:, 2] >= left)
        kept &= (boxes[:, 1] <= bottom) & (boxes[:, 1] + boxes[:, 3] >= top)
        return items[kept]

    def _screen(self, item: int, camera: Camera) -> Box:
        x, y, width, height = self._placed.boxes[item].tolist()
        left, top = camera.to_screen(x, y)
        return left, top, width * camera.sx, height * camera.sy

    def _paint_box(self, painter: QPainter, item: int, camera: Camera) -> None:
        if item >= self._placed.node_count:
            self._paint_closed(painter, item, camera)
            return
        scene = self._placed.scene
        self._two_lines(painter, item, camera, scene.labels[item], scene.sublabels[item])

    def _paint_closed(self, painter: QPainter, item: int, camera: Camera) -> None:
        path = self._placed.path_of(item)
        info = self._placed.scene.cluster_info(path)
        count = int(self._placed.scene.tree.count[item - self._placed.node_count])
        detail = info.detail or plural(count, "node")
        title = f"{info.title} {_CLOSED}"
        self._two_lines(painter, item, camera, title, detail, owner=info.owner)

    def _two_lines(
        self,
        painter: QPainter,
        item: int,
        camera: Camera,
        title: str,
        sub: str,
        owner: int = PLAIN,
    ) -> None:
        x, y, width, height = self._screen(item, camera)
        scale = camera.sx
        room = width - 2 * _INSET * scale
        fill = self._look.fill_of(item)
        text, muted = self._inks(fill, owner)
        two = bool(sub) and scale >= SUBLINES
        title_ink = Ink(max(round(_TITLE * scale), 8), text, bold=owner >= 0)
        low = height * (0.40 if two else 0.6)
        if scale < TITLES:  # the letters are as high as the box: in its middle
            low = height / 2 + 0.36 * title_ink.pixels
        self._line(painter, title, (x + _INSET * scale, y + low), room, title_ink)
        if two:
            at = (x + _INSET * scale, y + height * 0.73)
            self._line(painter, sub, at, room, Ink(max(round(_SUB * scale), 7), muted))

    def _inks(self, fill: str, owner: int) -> tuple[str, str]:
        """Return colours of title and second line on a fill."""
        c = self._colours
        text = c.text if contrast(c.text, fill) >= 4.5 else ink_on(fill)
        if owner >= 0:
            text = readable(c.backend(owner), fill, text)
        return text, readable(c.muted, fill, ink_on(fill))

    def _line(
        self, painter: QPainter, text: str, at: tuple[float, float], room: float, ink: Ink
    ) -> None:
        """Draw a string at a baseline, elided to the available room."""
        short, _ = self._texts.fitted(self._colours, text, room, ink.pixels, bold=ink.bold)
        if short:
            painter.setFont(self._texts.font(self._colours, ink.pixels, bold=ink.bold)[0])
            painter.setPen(qcolor(ink.colour))
            painter.drawText(QPointF(*at), short)

    def _paint_region(self, painter: QPainter, item: int, camera: Camera) -> None:
        info = self._placed.scene.cluster_info(self._placed.path_of(item))
        x, y, width, _ = self._screen(item, camera)
        scale, c = camera.sx, self._colours
        fill = self._look.fill_of(item)
        bold = info.owner >= 0
        pixels, small = max(round(12.5 * scale), 8), max(round(_SUB * scale), 8)
        title = info.title if bold else f"{_OPEN} {info.title}"
        room = width - 2 * _INSET * scale
        short, taken = self._texts.fitted(c, title, room, pixels, bold=bold)
        detail, wide = self._texts.fitted_detail(c, info.detail, room - taken - 16, small)
        # of the smallest letters, which do not shrink with the region, the tops stay inside
        baseline = y + max(17.5 * scale, self._texts.font(c, pixels, bold=bold)[1].ascent())
        ink = Ink(pixels, title_colour(c, info.owner, fill), bold)
        texts = [(short, x + _INSET * scale, taken, ink)]
        if detail:
            quiet = Ink(small, title_colour(c, PLAIN, fill))
            texts.append((detail, x + width - _INSET * scale - wide, wide, quiet))
        for text, left, long, used in texts:
            # lines into the region pass under its title
            under = QRectF(left - 2, baseline - used.pixels, long + 4, used.pixels * 1.3)
            painter.fillRect(under, qcolor(fill))
            self._line(painter, text, (left, baseline), long + 2, used)

    def _paint_edges(self, painter: QPainter, size: QSize, camera: Camera) -> None:
        placed, c = self._placed, self._colours
        taken = self._taken = Occupied()
        for item in self._seen(self._boxed, size, camera).tolist():
            taken.claim(*self._screen(item, camera))
        pixels = max(round(_EDGE * camera.sx), 8)
        font, metrics = self._texts.font(c, pixels)
        painter.setFont(font)
        quiet = readable(c.muted, c.surface, c.text)
        loud = readable(c.warn, c.surface, c.text)
        for edge in self._edges_seen(size, camera).tolist():
            text = edge_text(placed, edge)
            if not text:
                continue
            x, y = camera.to_screen(*placed.label_at[edge].tolist())
            width = metrics.horizontalAdvance(text)
            x += -6 * camera.sx - width if self._lines.turns[edge] == TO_RIGHT else 6 * camera.sx
            y += 3 * camera.sy
            if taken.claim(x, y - pixels, width, pixels * 1.2):
                painter.setPen(qcolor(loud if placed.edge_emphasised[edge] else quiet))
                painter.drawText(QPointF(x, y), text)

    def _paint_crossings(self, painter: QPainter, size: QSize, camera: Camera) -> None:
        """Draw the tensors that enter and leave a delegate beside its upper and lower border."""
        c = self._colours
        pixels = max(round(_EDGE * camera.sx), 8)
        font, metrics = self._texts.font(c, pixels)
        painter.setFont(font)
        painter.setPen(qcolor(readable(c.muted, c.surface, c.text)))
        for item in self._seen(self._delegates, size, camera).tolist():
            info = self._placed.scene.cluster_info(self._placed.path_of(item))
            x, y, width, height = self._screen(item, camera)
            for text, base in ((info.inward, y - 4), (info.outward, y + height + pixels + 1)):
                wide = metrics.horizontalAdvance(text)
                for left in (x + width - wide - 2, x + 2) if text and wide <= width else ():
                    if self._taken.claim(left, base - pixels, wide, pixels):
                        under = QRectF(left - 1, base - pixels, wide + 2, pixels * 1.2)
                        painter.fillRect(under, qcolor(c.surface, 0.85))  # lines pass under it
                        painter.drawText(QPointF(left, base), text)
                        break

    def _edges_seen(self, size: QSize, camera: Camera) -> NDArray[np.int64]:
        left, top, right, bottom = camera.view(size.width(), size.height())
        at = self._placed.label_at[self._lines.labelled]
        seen = (at[:, 0] >= left) & (at[:, 0] <= right) & (at[:, 1] >= top) & (at[:, 1] <= bottom)
        if camera.sx < ALL_EDGES:
            seen &= self._lines.crossing[self._lines.labelled]
        seen &= self._lines.turns[self._lines.labelled] != BOTH
        return self._lines.labelled[seen]

    def _paint_stubs(self, painter: QPainter, size: QSize, camera: Camera) -> None:
        stubs, c = self._placed.stubs, self._colours
        left, top, right, bottom = camera.view(size.width(), size.height())
        x, y = stubs.boxes[:, 0], stubs.boxes[:, 1]
        kept = (x <= right) & (x >= left - STUB_WIDTH) & (y <= bottom) & (y >= top - STUB_HEIGHT)
        ink = Ink(max(round(10.0 * camera.sx), 7), readable(c.muted, c.surface, c.text))
        for stub in np.flatnonzero(kept).tolist():
            px, py = camera.to_screen(*stubs.boxes[stub, :2].tolist())
            at = (px + 8 * camera.sx, py + 11.5 * camera.sy)
            room = (STUB_WIDTH - 14) * camera.sx
            self._line(painter, stub_text(self._placed, stub), at, room, ink)

    def _paint_map(self, painter: QPainter, size: QSize, camera: Camera) -> None:
        """Name the regions that are large enough on the screen, outer ones first."""
        taken = Occupied()
        font, metrics = self._texts.font(self._colours, _MAP)
        painter.setFont(font)
        drawn = 0
        sizes = self._placed.boxes[self._opened, 2:] * camera.sx
        large = self._opened[(sizes[:, 0] >= 100) & (sizes[:, 1] >= 70)]
        for item in self._seen(large, size, camera).tolist():
            x, y, width, height = self._screen(item, camera)
            visible = QRectF(x, y, width, height) & QRectF(0, 0, size.width(), size.height())
            title = self._placed.title_of(item)
            short, long = self._texts.fitted(self._colours, title, visible.width() - 20, _MAP)
            if not short:
                continue
            at = QPointF(visible.x() + 4, visible.y() + 4)
            if not taken.claim(at.x(), at.y(), long + 12, metrics.height() + 6):
                continue
            chip(painter, self._colours, short, at, metrics)
            drawn += 1
            if drawn >= _MOST_MAP:
                return


def edge_text(placed: Placed, edge: int) -> str:
    """Return the label of an edge, or the number of values it stands for."""
    label_of = int(placed.edge_label_of[edge])
    nbytes = int(placed.edge_bytes[edge])
    size = format_bytes(nbytes) if nbytes >= 0 else ""
    if label_of >= 0:
        return placed.scene.edge_labels[label_of] or size
    return f"{int(placed.edge_uses[edge])} values" + (f" · {size}" if size else "")


def edge_words(placed: Placed, edge: int) -> str:
    """Return the ends and the bytes of a visible edge."""
    source, target = (placed.title_of(item) for item in placed.edges[edge].tolist())
    crossing = "\nchanges between delegates" if placed.edge_emphasised[edge] else ""
    return f"{source} → {target}\n{edge_text(placed, edge) or 'size unknown'}{crossing}"


def stub_text(placed: Placed, stub: int) -> str:
    """Return the label of a stub: the other end, or their number."""
    stubs = placed.stubs
    other, count = int(stubs.other[stub]), int(stubs.count[stub])
    if stubs.leaves[stub]:
        return f"→ {placed.title_of(other)}" if other >= 0 else f"→ {count} readers"
    return placed.title_of(other) if other >= 0 else f"+ {count} more"
