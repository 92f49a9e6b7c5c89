"""Camera and content of the graph canvas: the graph shown, and its visible part."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPoint, QPointF, QSize
from PySide6.QtGui import QAccessible, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from devtools_app.appearance.paint_theme import CanvasColours, qcolor
from devtools_app.viewmodels.canvas_data import GraphOverlay
from devtools_app.viewmodels.layout.camera import Camera, fitted
from devtools_app.viewmodels.layout.cluster_tree import ClusterPath
from devtools_app.viewmodels.layout.placed import Placed
from devtools_app.widgets.graph_canvas_paint import GraphDrawing, Marks
from devtools_app.widgets.graph_canvas_pick import NOTHING
from devtools_app.widgets.graph_canvas_style import GraphLook
from devtools_app.widgets.graph_canvas_text import TextCache
from devtools_app.widgets.legend import Legend
from devtools_app.widgets.minimap import LARGEST_MAP, Minimap
from devtools_app.widgets.zoom_canvas import ZoomCanvas

NEAREST = 4.0
_EDGE = 12  # distance of legend and map from the border, as all below with text of the usual size
_FIT_MARGIN = 24.0
_WIDE = 640  # a narrower canvas has its legend below the drawing, and no map
_HIGH = 120  # a lower one has no legend
_LEAST_MAP = 72  # height of a map that still shows anything
_LARGEST_IMAGE = 16000  # pixels of one side of an exported whole graph


class GraphView(ZoomCanvas):
    """Shows a placed graph through a camera, with legend and map."""

    role = QAccessible.Role.Canvas
    as_table = "Shift+T lists nodes, edges and boundaries"

    def __init__(self, colours: CanvasColours, parent: QWidget | None = None) -> None:
        super().__init__(colours, "Graph", parent)
        self._placed: Placed | None = None
        self._overlay = GraphOverlay()
        self._drawing: GraphDrawing | None = None
        self._texts = TextCache()
        self._marks = Marks()
        self._subject: object = None
        self._placing = False  # the camera waits for a size
        self._last_top = 0  # in the window
        self._side = self._foot = 0  # room beside and below the drawing
        self._ghosts: NDArray[np.float64] | None = None
        self._extras = True  # legend and map
        self._bare = False  # an image of the drawing alone is painted
        self.legend = Legend(colours, self)
        self.legend.turned.connect(self._arrange)
        self.minimap = Minimap(colours, self)
        self.minimap.hide()
        self.minimap.moved.connect(self.centre_on_point)

    @property
    def placed(self) -> Placed | None:
        """Return the graph shown."""
        return self._placed

    @property
    def look(self) -> GraphLook | None:
        """Return the drawing, None without one."""
        return None if self._drawing is None else self._drawing.look

    @property
    def overlay(self) -> GraphOverlay:
        """Return the colours and their legend."""
        return self._overlay

    def set_graph(
        self,
        placed: Placed | None,
        anchor: ClusterPath | None = None,
        *,
        subject: object = None,
    ) -> None:
        """Replace the graph; None clears it.

        Args:
            placed: the graph with its layout
            anchor: an opened or closed cluster, whose position on the screen is kept
            subject: the subject of the graph; the part that is visible stays when it is read again
        """
        again, self._subject = subject is not None and subject == self._subject, subject
        before, self._placed = self._placed, placed
        same = before is not None and placed is not None and before.scene is placed.scene
        if not same:
            self._marks = Marks()
            if not again or before is None or self._whole:
                self._placing = self._whole = True
            self.forget_marks()
        elif anchor is not None and before is not None and placed is not None:
            self._keep_in_place(before, placed, anchor)
        if same and placed is not None:
            self._whole = self._placing = False
            self.renew_marks(placed)
        self._marks.hovered = self._hovered = NOTHING
        self._prepare()
        self.describe()

    def update_scene(self, placed: Placed) -> None:
        """Show the same graph with other labels or sizes; camera and marks are kept."""
        self._placed = placed
        self.renew_marks(placed)
        self._prepare()
        self.describe()

    def set_ghosts(self, boxes: NDArray[np.float64]) -> None:
        """Draw dashed boxes where another graph has nodes; shown with the next graph.

        Shapes: boxes float64[n, 4]
        """
        self._ghosts = boxes

    def leave_out_extras(self) -> None:
        """Have neither legend nor map; another widget shows them."""
        self._extras = False
        self._arrange()

    def _keep_in_place(self, before: Placed, after: Placed, anchor: ClusterPath) -> None:
        number = before.scene.tree.index.get(anchor)
        if number is None:
            return
        old, new = (p.boxes[p.node_count + number] for p in (before, after))
        if np.isfinite(old).all() and np.isfinite(new).all():
            # the middle of the upper border stays: what it opens into grows downwards
            dx = (new[0] + new[2] / 2) - (old[0] + old[2] / 2)
            dy = new[1] - old[1]
            self._camera = self._camera.panned(
                -float(dx) * self._camera.sx, -float(dy) * self._camera.sy
            )

    def forget_marks(self) -> None:
        """Drop the marks of the former graph; called before the new one is drawn."""

    def renew_marks(self, placed: Placed) -> None:
        """Update the marks after a new layout; called before it is drawn."""

    def set_overlay(self, overlay: GraphOverlay) -> None:
        """Colour nodes by another overlay and update the legend.

        An overlay with another number of nodes than the graph is applied to the next graph.
        """
        self.take_overlay(overlay)
        self._prepare()
        self.describe()

    def take_overlay(self, overlay: GraphOverlay) -> None:
        """Colour the graph that is set next by another overlay: its legend takes room first."""
        self._overlay = overlay
        self.legend.set_entries(overlay.legend)

    def _prepare(self) -> None:
        placed = self._placed
        self._drawing = None
        if placed is not None and not self.is_empty():
            fits = self._overlay.nodes in (None, len(placed.scene.names))
            overlay = self._overlay if fits else GraphOverlay()
            drawing = GraphDrawing(placed, overlay, self.colours, self._texts, self._ghosts)
            self._drawing = drawing
            self.minimap.set_graph(drawing.look, (placed.width, placed.height), self.colours)
        self._arrange()
        self._moved()

    @override
    def colours_changed(self) -> None:
        self._texts.clear()
        self.legend.set_colours(self.colours)
        self.minimap.set_colours(self.colours)
        self._prepare()

    @override
    def is_empty(self) -> bool:
        return self._placed is None or not len(self._placed.scene.names)

    @override
    def drawn_summary(self) -> str:
        placed = self._placed
        if placed is None:
            return ""
        closed = int(placed.collapsed.sum())
        text = (
            f"{len(placed.nodes)} of {len(placed.scene.names)} nodes shown, "
            f"{closed} closed and {len(placed.clusters) - closed} open clusters, "
            f"{len(placed.edges)} connections"
        )
        if self._overlay.title:
            text += f", coloured by {self._overlay.title}"
        return text

    @override
    def selected_summary(self) -> str:
        placed, item = self._placed, self._marks.selected
        return placed.title_of(item) if placed is not None and item >= 0 else ""

    def room(self) -> QSize:
        """Return the size of the part with the drawing: legend and map are beside or below it."""
        size = self.drawn_size
        return QSize(max(size.width() - self._side, 1), max(size.height() - self._foot, 1))

    def _limits(self) -> tuple[float, float]:
        placed = self._placed
        if placed is None:
            return 0.01, NEAREST
        room = self.room()
        whole = min(room.width() / max(placed.width, 1.0), room.height() / max(placed.height, 1.0))
        return min(whole * 0.5, 0.5), NEAREST

    @override
    def set_camera(self, camera: Camera) -> None:
        self._take(camera, whole=False)

    def follow(self, other: GraphView) -> None:
        """Show the same part as another canvas; the whole graph if it does so."""
        self._take(other.camera, whole=other._whole)

    def _take(self, camera: Camera, *, whole: bool) -> None:
        self._camera, self._whole, self._placing = camera, whole, False
        self._moved()

    def _moved(self) -> None:
        self._show_view()
        self.view_changed.emit()
        self.update()

    def _show_view(self) -> None:
        placed = self._placed
        if placed is not None:
            shown, total = len(placed.nodes), len(placed.scene.names)
            caption = f"{shown:,} of {total:,}" + (" nodes" if total < 1000 else "")
            percent = self._camera.sx * 100
            caption += f" · {percent:.0f} %" if percent >= 10 else f" · {percent:.1f} %"
            view = self.visible_part()
            self.minimap.set_view(*view, caption)
            self.minimap.setVisible(self._needs_map(placed, view))

    def visible_part(self) -> tuple[float, float, float, float]:
        """Return left, top, right and bottom of what is visible, in coordinates of the graph."""
        room = self.room()
        return self._camera.view(room.width(), room.height())

    def _needs_map(self, placed: Placed, view: tuple[float, float, float, float]) -> bool:
        """Return whether part of the graph is out of view and a map has room below the legend."""
        if not self._map_room() or self.is_empty():
            return False
        left, top, right, bottom = view
        return left > 0 or top > 0 or right < placed.width or bottom < placed.height

    def _map_room(self) -> int:
        """Return the pixels of height for a map, 0 if they are too few."""
        if not self._side:
            return 0
        above = 0 if self.legend.isHidden() else self.legend.geometry().bottom()
        room = self.height() - above - 2 * self._pixels(_EDGE)
        return room if room >= self._pixels(_LEAST_MAP) else 0

    def _pixels(self, length: int) -> int:
        """Return a length as pixels of the widget."""
        return round(length * self.colours.scale)

    @override
    def fit(self) -> None:
        placed = self._placed
        if placed is not None:
            self._take(self._fitted((0.0, 0.0, placed.width, placed.height), 1.25), whole=True)

    def _fitted(self, box: tuple[float, float, float, float], most: float) -> Camera:
        room = self.room()
        screen = (float(room.width()), float(room.height()))
        return fitted(box, screen, _FIT_MARGIN, (self._limits()[0], most))

    @override
    def focus_selection(self) -> None:
        item = self._marks.selected
        placed = self._placed
        if placed is None or item < 0:
            self.fit()
            return
        x, y, width, height = placed.boxes[item].tolist()
        near = self._fitted((x - 200, y - 120, width + 400, height + 240), 1.25)
        same = abs(near.sx / self._camera.sx - 1) < 0.01
        gap = np.hypot(near.x - self._camera.x, near.y - self._camera.y) * near.sx
        if same and gap < 2.0:
            self.fit()
            return
        self.set_camera(near)

    def show_item(self, item: int) -> None:
        """Pan the view to make an item visible."""
        if self._placing:
            self._arrange()
        else:
            self._move_to(item)

    def _move_to(self, item: int) -> None:
        placed = self._placed
        if placed is None or item < 0 or not np.isfinite(placed.boxes[item, 0]):
            return
        x, y, width, height = placed.boxes[item].tolist()
        left, top, right, bottom = self.visible_part()
        margin = 24 / self._camera.sx
        inside_x = left + margin <= x and x + min(width, right - left) <= right
        inside_y = top + margin <= y and y + min(height, 60.0) <= bottom - margin
        if not (inside_x and inside_y):
            tall = min(height, 200.0)
            self.centre_on_point(x + width / 2, y + tall / 2)

    @override
    def zoom(self, factor: float, at: QPointF | None = None) -> None:
        room = self.room()
        at = at or QPointF(room.width() / 2, room.height() / 2)
        self.set_camera(self._camera.zoomed(factor, at.x(), at.y(), self._limits()))

    def centre_on_point(self, x: float, y: float) -> None:
        """Show a place of the graph in the middle."""
        room = self.room()
        self.set_camera(self._camera.centred(x, y, room.width(), room.height()))

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        self._placing = False

    @override
    def paint_content(self, painter: QPainter, size: QSize) -> None:
        if self._drawing is None:
            return
        painter.save()
        if not self._bare:
            size = QSize(size.width() - self._side, size.height() - self._foot)
            painter.setClipRect(0, 0, size.width(), size.height())
        self._drawing.paint(painter, size, self._camera, self._marks)
        painter.restore()
        if self._side and not self._bare:
            painter.setPen(qcolor(self.colours.line))
            painter.drawLine(size.width(), 0, size.width(), size.height())

    @override
    def paint_extras(self, painter: QPainter, size: QSize) -> None:
        if not self.legend.isHidden():
            painter.save()
            painter.translate(self.legend.pos())
            self.legend.paint(painter)
            painter.restore()

    def render_whole(self, path: str | Path, scale: float = 1.0) -> None:
        """Write an image of the whole graph as PNG or SVG, by the suffix of the name.

        Raises: OSError when the file cannot be written
        """
        placed = self._placed
        if placed is None:
            return
        size = QSize(round(placed.width + 64), round(placed.height + 64)) * self.colours.scale
        most = _LARGEST_IMAGE / max(size.width(), size.height())
        camera, self._camera = self._camera, Camera(-32.0, -32.0, 1.0, 1.0)
        self._bare = True
        try:
            self.write_image(path, min(scale, most), size, extras=False)
        finally:
            self._camera, self._bare = camera, False

    @override
    def resized(self) -> None:
        self._arrange()
        if self._whole and not self._placing:
            self.fit()
        self._keep_selected()
        self._keep_height()
        self._show_view()

    def _keep_height(self) -> None:
        """Pan by what moved the canvas in its window, as a bar above that wraps does.

        What was clicked stays below the pointer.
        """
        top = self.mapTo(self.window(), QPoint()).y()
        moved, self._last_top = top - self._last_top, top
        if moved and not (self._whole or self._placing or self.is_empty()):
            self.set_camera(self._camera.panned(0.0, -moved / self.colours.scale))

    def _keep_selected(self) -> None:
        """Pan just enough where a narrower canvas would cut off the selected box."""
        now = self.room().width()
        width, self._last_width = self._last_width, now
        placed, item = self._placed, self._marks.selected
        if placed is None or item < 0 or self._placing or now >= width:
            return
        x, _, wide, _ = placed.boxes[item].tolist()
        right = (x + wide - self._camera.x) * self._camera.sx
        over = right + _EDGE - now
        if over > 0 and right <= width:
            self.set_camera(self._camera.panned(-over, 0.0))

    def _arrange(self) -> None:
        """Place legend and map; set the initial view once the size is known."""
        wide = self.drawn_size.width() >= _WIDE
        self._side = self._foot = 0
        self.legend.set_line(not wide)
        if self.is_empty() or not self._extras:
            self.minimap.hide()
            self.legend.setVisible(self._extras and not self.legend.isHidden())
        elif wide:
            self._arrange_side()
        else:
            self._arrange_foot()
        if self._placing and self._placed is not None and self.width() > 1 and not self.is_empty():
            self.fit()
            self._move_to(self._marks.selected)
            self._placing = self._whole = True  # until it is painted it may get another size

    def _arrange_side(self) -> None:
        legend = 0 if self.legend.isHidden() else self.legend.width()
        legend = math.ceil(legend / self.colours.scale)
        self._side = max(legend, LARGEST_MAP.width()) + 2 * _EDGE
        edge = self._pixels(_EDGE)
        left = self.width() - self._pixels(self._side) + edge
        self.legend.move(left, edge)
        self.minimap.set_room(self._map_room())
        self.minimap.move(left, self.height() - self.minimap.height() - edge)

    def _arrange_foot(self) -> None:
        if self.legend.isHidden() or self.drawn_size.height() < _HIGH:
            self.legend.move(0, self.height())
            return
        high = self.legend.heightForWidth(self.width())
        self._foot = math.ceil(high / self.colours.scale)
        self.legend.setGeometry(0, self.height() - high, self.width(), high)
