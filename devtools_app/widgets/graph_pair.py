"""Two graph canvases side by side that pan, zoom and select together."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QSplitter, QVBoxLayout, QWidget
from typing_extensions import override

from devtools_app.appearance.theme import Theme, set_role
from devtools_app.viewmodels.layout.cluster_tree import ClusterPath
from devtools_app.viewmodels.pair_scene import ABSENT, DrawnPair
from devtools_app.widgets.elided_label import ElidedLabel
from devtools_app.widgets.graph_canvas import GraphCanvas
from devtools_app.widgets.graph_canvas_pick import NOTHING
from devtools_app.widgets.legend import Legend
from devtools_app.widgets.minimap import Minimap

_WIDE, _EDGE = 640, 8  # pixels from which a map has room beside both graphs; around it


class GraphPairView(QWidget):
    """Shows two aligned graphs below their titles, with one legend and one map.

    Attributes:
        chosen: (side, name of the node) chosen by the user; an empty name when deselected
        toggle_requested: path of the box to open or close
        menu_requested: (side, position in its canvas)
        path_requested: item that was clicked with Ctrl
    """

    chosen = Signal(int, str)
    toggle_requested = Signal(object)
    menu_requested = Signal(int, QPoint)
    path_requested = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._drawn: DrawnPair | None = None
        self._following = False
        self.canvases = (GraphCanvas(theme.canvas), GraphCanvas(theme.canvas))
        self.titles = (ElidedLabel(), ElidedLabel())
        self.legend = Legend(theme.canvas, line=True)
        self.minimap = Minimap(theme.canvas)
        self.minimap.setAccessibleName("Map of both graphs")
        self.minimap.moved.connect(self.canvases[0].centre_on_point)
        self._map_room = _beside(self.minimap)
        halves = QSplitter(Qt.Orientation.Horizontal)
        halves.setChildrenCollapsible(False)
        halves.setHandleWidth(1)
        for side in (0, 1):
            halves.addWidget(self._half(side))
        halves.setSizes([1, 1])
        halves.splitterMoved.connect(lambda _at, _index: self._show_map())
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        row = QHBoxLayout()
        row.setSpacing(0)
        row.addWidget(halves, 1)
        row.addWidget(self._map_room)
        layout.addLayout(row, 1)
        layout.addWidget(self.legend)
        theme.follow(self._restyle)

    def _half(self, side: int) -> QWidget:
        canvas, title = self.canvases[side], self.titles[side]
        canvas.leave_out_extras()
        canvas.setAccessibleName("Second graph" if side else "First graph")
        canvas.view_changed.connect(lambda: self._follow(side))
        canvas.selected.connect(lambda name: self._chosen(side, name))
        canvas.cluster_selected.connect(lambda path: self._cluster_chosen(side, path))
        canvas.toggle_requested.connect(self.toggle_requested)
        canvas.path_requested.connect(self.path_requested)
        canvas.menu_requested.connect(lambda at: self.menu_requested.emit(side, at))
        set_role(title, "role", "muted")
        half = QWidget()
        layout = QVBoxLayout(half)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        head = QVBoxLayout()
        head.setContentsMargins(12, 4, 12, 4)
        head.addWidget(title)
        layout.addLayout(head)
        layout.addWidget(canvas, 1)
        return half

    def _restyle(self) -> None:
        self.legend.set_colours(self._theme.canvas)
        self.minimap.set_colours(self._theme.canvas)
        for canvas in self.canvases:
            canvas.set_colours(self._theme.canvas)
        self._draw_map()

    def show_pair(
        self, drawn: DrawnPair, titles: tuple[str, str], anchor: ClusterPath | None = None
    ) -> None:
        """Show two graphs; the place in view is kept while they are the same."""
        self._drawn = drawn
        self._following = True
        for side, canvas in enumerate(self.canvases):
            part = drawn.sides[side]
            canvas.set_ghosts(part.ghosts)
            canvas.take_overlay(part.overlay)
            canvas.set_graph(part.placed, anchor)
            self.titles[side].setText(titles[side])
        self._following = False
        self.legend.set_entries(drawn.legend)
        self._draw_map()

    def clear(self) -> None:
        """Show nothing."""
        self._drawn = None
        for canvas in self.canvases:
            canvas.set_graph(None)
        self._map_room.hide()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_map()

    def _draw_map(self) -> None:
        """Draw the boxes of both graphs into the map."""
        looks = [canvas.look for canvas in self.canvases]
        one, two = looks
        if self._drawn is None or one is None or two is None:
            self._map_room.hide()
            return
        both = replace(one, boxes=one.boxes + two.boxes, regions=one.regions + two.regions)
        placed = self._drawn.placed
        self.minimap.set_graph(both, (placed.width, placed.height), self._theme.canvas)
        self._show_map()

    def _show_map(self) -> None:
        """Show the part in view, or no map where all of both is in view."""
        drawn = self._drawn
        if drawn is None:
            return
        placed = drawn.placed
        left, top, right, bottom = self.canvases[0].visible_part()
        shown, total = len(placed.nodes), len(placed.scene.names)
        caption = f"{shown:,} of {total:,} · {self.canvases[0].camera.sx * 100:.0f} %"
        self.minimap.set_view(left, top, right, bottom, caption)
        whole = left <= 0 and top <= 0 and right >= placed.width and bottom >= placed.height
        self._map_room.setVisible(not whole and self.width() >= _WIDE * self._theme.scale)

    def fit(self) -> None:
        """Show the whole of both."""
        self.canvases[0].fit()

    def place_of(self, side: int, name: str) -> int:
        """Return the number in the union of a node of one side, or NOTHING."""
        if self._drawn is None:
            return NOTHING
        part = self._drawn.sides[side]
        node = part.graph.by_name.get(name)
        return NOTHING if node is None else int(part.items[node])

    def mark(self, place: int) -> None:
        """Mark a node on both sides, and bring it into view."""
        for canvas in self.canvases:
            canvas.mark_node(place)

    def node_at(self, side: int, place: int) -> str:
        """Return the name of a node of the union on one side, empty if it is not there."""
        if self._drawn is None or place == NOTHING:
            return ""
        at = int(self._drawn.union.places[side][place])
        return "" if at == ABSENT else self._drawn.sides[side].graph.nodes[at].name

    def _follow(self, side: int) -> None:
        """Show the same part on the other side."""
        if self._following:
            return
        self._following = True
        self.canvases[1 - side].follow(self.canvases[side])
        self._following = False
        self._show_map()

    def _chosen(self, side: int, name: str) -> None:
        placed = self.canvases[side].placed
        if placed is None:
            return
        place = placed.scene.index.get(name, NOTHING) if name else NOTHING
        self.canvases[1 - side].mark_node(place, show=False)
        self.chosen.emit(side, self.node_at(side, place))

    def _cluster_chosen(self, side: int, path: object) -> None:
        other = self.canvases[1 - side].placed
        if other is not None and isinstance(path, tuple):
            item = other.node_count + other.scene.tree.index[path]
            self.canvases[1 - side].mark_item(item)


def _beside(minimap: Minimap) -> QWidget:
    """Return a column with a map at its foot."""
    column = QWidget()
    layout = QVBoxLayout(column)
    layout.setContentsMargins(_EDGE, _EDGE, _EDGE, _EDGE)
    layout.addStretch(1)
    layout.addWidget(minimap)
    column.hide()
    return column
