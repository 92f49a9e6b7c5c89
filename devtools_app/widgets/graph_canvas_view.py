"""Camera and content of the graph canvas: the graph shown, and its visible part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PySide6.QtCore import QPointF, QSize
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from devtools_app.appearance.paint_theme import CanvasColours
from devtools_app.viewmodels.canvas_data import GraphOverlay
from devtools_app.viewmodels.layout.camera import Camera, fitted
from devtools_app.viewmodels.layout.cluster_tree import ClusterPath
from devtools_app.viewmodels.layout.placed import Placed
from devtools_app.widgets.graph_canvas_paint import GraphDrawing, Marks
from devtools_app.widgets.graph_canvas_pick import NOTHING
from devtools_app.widgets.graph_canvas_text import TextCache
from devtools_app.widgets.legend import Legend
from devtools_app.widgets.minimap import Minimap
from devtools_app.widgets.zoom_canvas import ZoomCanvas

NEAREST = 4.0
READABLE_SCALE = 0.8  # a large graph opens at its beginning at this scale
_EDGE = 12  # distance of legend and map from the border
_FIT_MARGIN = 32.0
_SHRINK = 0.6  # of its scale, at most, a whole graph gives way to the legend
_LARGEST_IMAGE = 16000  # pixels of one side of an exported whole graph


class GraphView(ZoomCanvas):
    """Shows a placed graph through a camera, with legend and map."""

    def __init__(self, colours: CanvasColours, parent: QWidget | None = None) -> None:
        super().__init__(colours, "Graph", parent)
        self._placed: Placed | None = None
        self._overlay = GraphOverlay()
        self._drawing: GraphDrawing | None = None
        self._texts = TextCache()
        self._marks = Marks()
        self._placing = False  # the camera waits for a size
        self._last_width = 0
        self.legend = Legend(colours, self)
        self.minimap = Minimap(colours, self)
        self.minimap.hide()
        self.minimap.moved.connect(self._centre_on_point)

    @property
    def placed(self) -> Placed | None:
        """Return the graph shown."""
        return self._placed

    def set_graph(self, placed: Placed | None, anchor: ClusterPath | None = None) -> None:
        """Replace the graph; None clears it.

        Args:
            placed: the graph with its layout
            anchor: an opened or closed cluster, whose position on the screen is kept
        """
        before, self._placed = self._placed, placed
        same = before is not None and placed is not None and before.scene is placed.scene
        if not same:
            self._marks = Marks()
            self._placing = True
            self.forget_marks()
        elif anchor is not None and before is not None and placed is not None:
            self._keep_in_place(before, placed, anchor)
        if same and placed is not None:
            self.renew_marks(placed)
        self._marks.hovered = self._hovered = NOTHING
        self._prepare()
        self.describe()

    def update_scene(self, placed: Placed) -> None:
        """Show the same graph with other labels or sizes; camera and marks are kept."""
        self._placed = placed
        self.renew_marks(placed)
        self._prepare()

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
        self._overlay = overlay
        self.legend.set_entries(overlay.legend)
        self._prepare()
        self.describe()

    def _prepare(self) -> None:
        placed = self._placed
        self._drawing = None
        if placed is not None and not self.is_empty():
            fits = self._overlay.nodes in (None, len(placed.scene.names))
            overlay = self._overlay if fits else GraphOverlay()
            drawing = GraphDrawing(placed, overlay, self.colours, self._texts)
            self._drawing = drawing
            self.minimap.set_graph(drawing.look, (placed.width, placed.height), self.colours)
        self._arrange()
        self._moved()

    @override
    def colours_changed(self) -> None:
        self._texts.clear()
        self.legend.set_colours(self.colours)
        self._prepare()

    @override
    def is_empty(self) -> bool:
        return self._placed is None or not len(self._placed.scene.names)

    @override
    def accessible_summary(self) -> str:
        placed = self._placed
        if placed is None or self.is_empty():
            return self.message
        closed = int(placed.collapsed.sum())
        text = (
            f"{len(placed.nodes)} of {len(placed.scene.names)} nodes shown, "
            f"{closed} closed and {len(placed.clusters) - closed} open clusters, "
            f"{len(placed.edges)} connections"
        )
        if self._overlay.title:
            text += f", coloured by {self._overlay.title}"
        if self._marks.selected >= 0:
            text += f". Selected: {placed.title_of(self._marks.selected)}"
        return text

    def _limits(self) -> tuple[float, float]:
        placed = self._placed
        if placed is None:
            return 0.01, NEAREST
        whole = min(self.width() / max(placed.width, 1.0), self.height() / max(placed.height, 1.0))
        return min(whole * 0.5, 0.5), NEAREST

    @override
    def set_camera(self, camera: Camera) -> None:
        self._camera = camera
        self._placing = False
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
            view = self._camera.view(self.width(), self.height())
            self.minimap.set_view(*view, caption)
            self.minimap.setVisible(self._needs_map(placed, view))

    def _needs_map(self, placed: Placed, view: tuple[float, float, float, float]) -> bool:
        """Return whether part of the graph is out of view and a map fits the canvas."""
        if self.width() < 520 or self.height() < 300 or self.is_empty():
            return False
        left, top, right, bottom = view
        return left > 0 or top > 0 or right < placed.width or bottom < placed.height

    @override
    def fit(self) -> None:
        placed = self._placed
        if placed is None:
            return
        box = (0.0, 0.0, placed.width, placed.height)
        camera = self._clear_of_legend(self._fitted(box, 1.25), placed)
        beside = self._fitted_beside_legend(box)
        covered = -camera.x * camera.sx < self._legend_end()
        self.set_camera(beside if covered and beside.sx >= camera.sx * _SHRINK else camera)

    def _legend_end(self) -> float:
        """Return the left edge of the space beside the legend."""
        return 0.0 if self.legend.isHidden() else self.legend.geometry().right() + 2.0 * _EDGE

    def _fitted_beside_legend(self, box: tuple[float, float, float, float]) -> Camera:
        left = self._legend_end()
        screen = (max(self.width() - left, 1.0), float(self.height()))
        camera = fitted(box, screen, _FIT_MARGIN, (self._limits()[0], 1.25))
        return camera.panned(left, 0.0)

    def _fitted(self, box: tuple[float, float, float, float], most: float) -> Camera:
        screen = (float(self.width()), float(self.height()))
        return fitted(box, screen, _FIT_MARGIN, (self._limits()[0], most))

    def _clear_of_legend(self, camera: Camera, placed: Placed) -> Camera:
        """Move a narrow graph to the right of the legend if it fits."""
        if self.legend.isHidden():
            return camera
        left = -camera.x * camera.sx
        requested = self.legend.geometry().right() + 2.0 * _EDGE
        room = self.width() - requested - placed.width * camera.sx - _EDGE
        return camera.panned(requested - left, 0.0) if left < requested and room >= 0 else camera

    def _open_view(self, placed: Placed) -> None:
        """Show the whole graph, or the beginning of a large one at a readable scale."""
        self.fit()
        if self._camera.sx >= READABLE_SCALE:
            return
        first = placed.boxes[int(placed.item_of_node[0])]
        scale = READABLE_SCALE
        y = float(first[1]) - _FIT_MARGIN / scale
        if placed.width * scale + 2 * _FIT_MARGIN <= self.width():
            x = (placed.width - self.width() / scale) / 2
            camera = self._clear_of_legend(Camera(x, y, scale, scale), placed)
            self.set_camera(self._uncovered(camera, placed))
            return
        x = float(first[0] + first[2] / 2) - self.width() / 2 / scale
        camera = Camera(max(x, -max(self._legend_end(), 2 * _EDGE) / scale), y, scale, scale)
        self.set_camera(self._uncovered(camera, placed))

    def _uncovered(self, camera: Camera, placed: Placed) -> Camera:
        """Move the drawing to the right if a box would begin below the legend."""
        end = self._legend_end() / camera.sx + camera.x
        bottom = self.legend.geometry().bottom() / camera.sy + camera.y
        boxes = placed.boxes[np.isfinite(placed.boxes[:, 0])]
        under = (boxes[:, 1] < bottom) & (boxes[:, 0] < end)
        under &= boxes[:, 0] + boxes[:, 2] > camera.x
        if self.legend.isHidden() or not under.any():
            return camera
        most = self.width() / 4  # the first box stays well inside
        return camera.panned(min((end - float(boxes[under, 0].min())) * camera.sx, most), 0.0)

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
        if placed is None or item < 0:
            return
        x, y, width, height = placed.boxes[item].tolist()
        left, top, right, bottom = self._camera.view(self.width(), self.height())
        margin = 24 / self._camera.sx
        inside_x = left + margin <= x and x + min(width, right - left) <= right
        inside_y = top + margin <= y and y + min(height, 60.0) <= bottom - margin
        if not (inside_x and inside_y):
            tall = min(height, 200.0)
            self.set_camera(
                self._camera.centred(x + width / 2, y + tall / 2, self.width(), self.height())
            )

    @override
    def zoom(self, factor: float, at: QPointF | None = None) -> None:
        at = at or QPointF(self.width() / 2, self.height() / 2)
        self.set_camera(self._camera.zoomed(factor, at.x(), at.y(), self._limits()))

    def _centre_on_point(self, x: float, y: float) -> None:
        self.set_camera(self._camera.centred(x, y, self.width(), self.height()))

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        self._placing = False

    @override
    def paint_content(self, painter: QPainter, size: QSize) -> None:
        if self._drawing is not None:
            self._drawing.paint(painter, size, self._camera, self._marks)

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
        size = QSize(round(placed.width + 64), round(placed.height + 64))
        most = _LARGEST_IMAGE / max(size.width(), size.height())
        camera, self._camera = self._camera, Camera(-32.0, -32.0, 1.0, 1.0)
        try:
            self.write_image(path, min(scale, most), size, extras=False)
        finally:
            self._camera = camera

    @override
    def resized(self) -> None:
        self._arrange()
        self._keep_selected()
        self._show_view()

    def _keep_selected(self) -> None:
        """Pan just enough where a narrower canvas would cut off the selected box."""
        width, self._last_width = self._last_width, self.width()
        placed, item = self._placed, self._marks.selected
        if placed is None or item < 0 or self._placing or self.width() >= width:
            return
        x, _, wide, _ = placed.boxes[item].tolist()
        right = (x + wide - self._camera.x) * self._camera.sx
        over = right + _EDGE - self.width()
        if over > 0 and right <= width:
            self.set_camera(self._camera.panned(-over, 0.0))

    def _arrange(self) -> None:
        """Place legend and map; set the initial view once the size is known."""
        self.legend.move(_EDGE, _EDGE)
        if self.is_empty():
            self.minimap.hide()
        self.minimap.set_room(self.size())
        self.minimap.move(
            self.width() - self.minimap.width() - _EDGE,
            self.height() - self.minimap.height() - _EDGE,
        )
        if self._placing and self._placed is not None and self.width() > 1 and not self.is_empty():
            self._open_view(self._placed)
            self._move_to(self._marks.selected)
            self._placing = True  # until it is painted the widget may get another size
