"""The size view's canvas: a zoomable treemap, with selection, mouse and keys."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QResizeEvent
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from devtools_app.appearance.paint_theme import CanvasColours, qcolor
from devtools_app.viewmodels.canvas_data import TreemapData
from devtools_app.viewmodels.layout.treemap import Cell, TreemapIndex, lay_out_treemap
from devtools_app.widgets.canvas import NOTHING, Canvas, KeyTable
from devtools_app.widgets.graph_canvas_text import TextCache
from devtools_app.widgets.one_selected import OneSelected
from devtools_app.widgets.treemap_canvas_paint import (
    CRUMBS,
    TreemapDrawing,
    TreemapMarks,
    share_label,
)
from inspector.units import format_bytes

_MARGIN = 8.0
_CRUMB = 12
_BETWEEN = "  ›  "


class TreemapCanvas(OneSelected, Canvas):
    """Shows parts within parts by size.

    Attributes:
        selected: number of the part the user chose, -1 when it was deselected
        activated: number of a part without children that was double-clicked or confirmed by Enter
        hovered: number of the part under the pointer, -1 for none
        root_changed: number of the part that fills the canvas
    """

    as_table = "the parts of the file, beside or below it"

    selected = Signal(int)
    activated = Signal(int)
    hovered = Signal(int)
    root_changed = Signal(int)

    def __init__(self, colours: CanvasColours, parent: QWidget | None = None) -> None:
        super().__init__(colours, "Sizes", parent)
        self._data: TreemapData | None = None
        self._index: TreemapIndex | None = None
        self._drawing: TreemapDrawing | None = None
        self._drawing_size = QSize()
        self._texts = TextCache()
        self._marks: TreemapMarks = TreemapMarks()
        self._root = 0
        self._crumbs: list[tuple[QRectF, int]] = []
        self._pressed: Cell | None = None

    @property
    def data(self) -> TreemapData | None:
        """Return the parts shown."""
        return self._data

    @property
    def root(self) -> int:
        """Return the number of the part that fills the canvas."""
        return self._root

    @property
    def marks(self) -> TreemapMarks:
        """Return the marked items."""
        return self._marks

    def set_data(self, data: TreemapData | None) -> None:
        """Replace the parts; None clears them."""
        self._data = data
        self._index = TreemapIndex(data) if data is not None else None
        self._marks = TreemapMarks()
        self._hovered, self._pressed = NOTHING, None
        self._root = 0
        self._forget()
        self.describe()

    def _forget(self) -> None:
        self._drawing = None
        self.update()

    @override
    def colours_changed(self) -> None:
        self._texts.clear()
        self._forget()

    @override
    def is_empty(self) -> bool:
        return self._data is None or not len(self._data.names) or not int(self._data.nbytes[0])

    @override
    def drawn_summary(self) -> str:
        data = self._data
        if data is None:
            return ""
        name, size = data.names[self._root], format_bytes(int(data.nbytes[self._root]))
        return f"{name}, {size}, {len(data.names) - 1:,} parts in all"

    # layout

    def drawing(self, size: QSize) -> TreemapDrawing | None:
        """Return the layout for a size, computed on first use."""
        data, index = self._data, self._index
        if data is None or index is None:
            return None
        if self._drawing is None or self._drawing_size != size:
            width = size.width() - 2 * _MARGIN
            box = (_MARGIN, CRUMBS, width, size.height() - CRUMBS - _MARGIN)
            cells = lay_out_treemap(data, index, self._root, box)
            self._drawing = TreemapDrawing(data, cells, self.colours, self._texts)
            self._drawing_size = QSize(size)
        return self._drawing

    def set_root(self, part: int) -> None:
        """Fill the canvas with a part that has children."""
        if self._index is None or part == self._root or not self._index.has_children(part):
            return
        self._root = part
        self._forget()
        self.describe()
        self.root_changed.emit(part)

    def out(self) -> None:
        """Fill the canvas with the parent of the part shown."""
        if self._data is None or self._root == 0:
            return
        before = self._root
        self.set_root(int(self._data.parent[self._root]))
        self.select(before)

    def set_selected(self, part: int, *, show: bool = True) -> None:
        """Mark a part as selected without emitting `selected`; -1 removes the mark."""
        self._marks.selected = part
        if show and part >= 0:
            self._show_part(part)
        self.describe()
        self.update()

    def _show_part(self, part: int) -> None:
        """Zoom into the nearest ancestor that shows the part as a separate cell."""
        data = self._data
        drawing = self.drawing(self.drawn_size)
        if data is None or drawing is None or drawing.box_of(part) is not None:
            return
        if part != self._root and part > 0:
            self.set_root(int(data.parent[part]))

    def select(self, part: int) -> None:
        """Select a part and emit it."""
        self.set_selected(part, show=False)
        self.selected.emit(part)

    def activate(self, part: int) -> None:
        """Zoom into a part, or emit `activated` for one without children."""
        if self._index is None or part < 0:
            return
        if self._index.has_children(part):
            self.set_root(part)
        else:
            self.activated.emit(part)

    # painting

    @override
    def paint_content(self, painter: QPainter, size: QSize) -> None:
        drawing = self.drawing(size)
        if drawing is not None:
            drawing.paint(painter, self._marks)
            self._paint_crumbs(painter, size)

    def _paint_crumbs(self, painter: QPainter, size: QSize) -> None:
        """Write the path from the root to the part shown; each name is a link."""
        data, c = self._data, self.colours
        if data is None:
            return
        self._crumbs = []
        x = _MARGIN + 2
        path = self._path(self._root)
        for part in path:
            last = part == path[-1]
            font, metrics = self._texts.font(c, _CRUMB, bold=last)
            text = self._texts.fitted(c, data.names[part], 260, _CRUMB, bold=last)[0]
            wide = metrics.horizontalAdvance(text)
            painter.setFont(font)
            painter.setPen(qcolor(c.text if last else c.accent))
            painter.drawText(QPointF(x, 20), text)
            self._crumbs.append((QRectF(x - 2, 4, wide + 4, 22), part))
            x += wide
            if not last:
                painter.setPen(qcolor(c.muted))
                painter.drawText(QPointF(x, 20), _BETWEEN)
                x += metrics.horizontalAdvance(_BETWEEN)
        whole = int(data.nbytes[0])
        sentence = share_label(int(data.nbytes[self._root]), whole)
        text, wide = self._texts.fitted(c, sentence, size.width() - x - 20, 11)
        painter.setFont(self._texts.font(c, 11)[0])
        painter.setPen(qcolor(c.muted))
        painter.drawText(QPointF(size.width() - wide - _MARGIN - 2, 20), text)

    def _path(self, part: int) -> list[int]:
        path: list[int] = []
        while self._data is not None and part >= 0:
            path.append(part)
            part = int(self._data.parent[part])
        return path[::-1]

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._forget()

    # events

    @override
    def keys(self) -> KeyTable:
        key = Qt.Key
        return {
            key.Key_Left: lambda: self._go(-1, 0),
            key.Key_Right: lambda: self._go(1, 0),
            key.Key_Up: lambda: self._go(0, -1),
            key.Key_Down: lambda: self._go(0, 1),
            key.Key_Return: lambda: self.activate(self._marks.selected),
            key.Key_Enter: lambda: self.activate(self._marks.selected),
            key.Key_Backspace: self.out,
            key.Key_Minus: self.out,
            key.Key_Plus: lambda: self.activate(self._marks.selected),
            key.Key_Equal: lambda: self.activate(self._marks.selected),
            key.Key_F: lambda: self.activate(self._marks.selected),
            key.Key_Space: lambda: self.set_root(0),
        }

    def _go(self, along: int, down: int) -> None:
        """Select the nearest cell in a direction; without a selection, the largest cell."""
        drawing = self.drawing(self.drawn_size)
        if drawing is None or not drawing.cells:
            return
        here = drawing.box_of(self._marks.selected)
        leaves = [cell for cell in drawing.cells if cell.part >= 0 and not cell.is_open]
        if here is None or not leaves:
            self.select(drawing.cells[0].part)
            return
        boxes = np.array([cell.box for cell in leaves], np.float64)
        away = boxes[:, :2] + boxes[:, 2:] / 2
        away -= np.array([here[0] + here[2] / 2, here[1] + here[3] / 2])
        ahead = away[:, 0] * along + away[:, 1] * down
        beside = np.abs(away[:, 0] * down) + np.abs(away[:, 1] * along)
        cost = np.where(ahead > 1.0, ahead + 2.0 * beside, np.inf)
        best = int(np.argmin(cost))
        if np.isfinite(cost[best]):
            self.select(leaves[best].part)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton or self.is_empty():
            return
        at = self.spot(event.position())
        for box, part in self._crumbs:
            if box.contains(at):
                self.set_root(part)
                return
        cell = self._pressed = self._cell_at(at)
        self.select(cell.part if cell is not None else -1)

    @override
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        cell = self._pressed  # a panel that came since may have moved another part there
        if cell is not None:
            # what is too small to be seen is seen by looking into the part around it
            self.activate(cell.part if cell.part >= 0 else cell.inside)

    def _cell_at(self, at: QPointF) -> Cell | None:
        drawing = self.drawing(self.drawn_size)
        return drawing.cell_at(at) if drawing is not None else None

    @override
    def hit(self, at: QPointF) -> int:
        cell = self._cell_at(at)
        return cell.part if cell is not None else NOTHING

    @override
    def tip_at(self, at: QPointF) -> str:
        cell, data = self._cell_at(at), self._data
        if cell is None or data is None:
            return ""
        if cell.part >= 0:
            return self.hover_text(cell.part)
        whole = share_label(cell.nbytes, int(data.nbytes[0]))
        return f"{cell.count:,} smaller parts of {data.names[cell.inside]}\n{whole} of all"

    @override
    def hover_text(self, item: int) -> str:
        """Return path, kind, exact size and shares of a part."""
        data = self._data
        if data is None:
            return ""
        size, around = int(data.nbytes[item]), int(data.parent[item])
        lines = [" › ".join(data.names[step] for step in self._path(item)[1:]) or data.names[item]]
        if data.kinds:
            lines.append(data.kinds[item])
        lines.append(f"{share_label(size, int(data.nbytes[0]))} of all")
        if around > 0 and int(data.nbytes[around]):
            lines.append(f"{size / int(data.nbytes[around]) * 100:.1f} % of {data.names[around]}")
        return "\n".join(lines)
