"""The graph view's canvas: selection, mouse and keys over a GraphView."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from PySide6.QtCore import QPointF, Qt, Signal
from PySide6.QtGui import QFocusEvent, QMouseEvent
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from devtools_app.appearance.paint_theme import CanvasColours
from devtools_app.viewmodels.layout.placed import Placed
from devtools_app.widgets.canvas import KeyTable
from devtools_app.widgets.graph_canvas_keys import GraphKeys
from devtools_app.widgets.graph_canvas_labels import stub_text
from devtools_app.widgets.graph_canvas_pick import NOTHING, holder_of, item_at, stub_at
from devtools_app.widgets.graph_canvas_view import GraphView
from inspector.units import plural


class GraphCanvas(GraphView):
    """Shows a placed graph; supports panning, selection and opening of clusters.

    Attributes:
        selected: name of the node the user chose, empty when it was deselected
        cluster_selected: path of the cluster the user chose
        toggle_requested: path of the cluster to open or close
        activated: name of the node that was double-clicked or confirmed by Enter
        hovered: name of the node under the pointer, empty for none
    """

    selected = Signal(str)
    cluster_selected = Signal(object)
    toggle_requested = Signal(object)
    activated = Signal(str)
    hovered = Signal(str)

    def __init__(self, colours: CanvasColours, parent: QWidget | None = None) -> None:
        super().__init__(colours, parent)
        self._selected_node = NOTHING  # kept while its cluster is closed
        self._found_nodes: np.ndarray | None = None
        self._keys = GraphKeys(self)

    @property
    def selected_item(self) -> int:
        """Return the selected item, or NOTHING."""
        return self._marks.selected

    @override
    def forget_marks(self) -> None:
        self._selected_node, self._found_nodes = NOTHING, None

    @override
    def renew_marks(self, placed: Placed) -> None:
        if self._selected_node != NOTHING:
            self._marks.selected = int(placed.item_of_node[self._selected_node])
        elif self._marks.selected >= 0 and not np.isfinite(placed.boxes[self._marks.selected, 0]):
            self._marks.selected = NOTHING
        self._mark_found()

    def set_selected(self, name: str, *, show: bool = True) -> None:
        """Mark a node as selected without emitting `selected`; an empty name removes the mark.

        Args:
            name: of the node; inside a closed cluster, that cluster is marked
            show: pan if the node is not visible
        """
        placed = self._placed
        node = placed.scene.index.get(name, NOTHING) if placed is not None else NOTHING
        self._selected_node = node
        self._marks.selected = NOTHING
        if placed is not None and node != NOTHING:
            self._marks.selected = int(placed.item_of_node[node])
            if show:
                self.show_item(self._marks.selected)
        self.describe()
        self.update()

    def select_item(self, item: int, *, show: bool = True) -> None:
        """Select a node or cluster and emit it."""
        placed = self._placed
        if placed is None:
            return
        self._marks.selected = item
        self._selected_node = item if 0 <= item < placed.node_count else NOTHING
        if item >= 0 and show:
            self.show_item(item)
        if item >= placed.node_count:
            self.cluster_selected.emit(placed.path_of(item))
        else:
            self.selected.emit(placed.scene.names[item] if item >= 0 else "")
        self.describe()
        self.update()

    def set_found(self, names: Iterable[str] | None) -> None:
        """Mark the nodes found by a search; None ends the search."""
        placed = self._placed
        self._found_nodes = None
        if names is not None and placed is not None:
            index = placed.scene.index
            found = sorted(index[name] for name in names if name in index)
            self._found_nodes = np.array(found, np.int64)
        self._mark_found()
        self.update()

    def _mark_found(self) -> None:
        placed, found = self._placed, self._found_nodes
        self._marks.searching = found is not None
        self._marks.found = np.zeros(0, np.int64)
        if placed is not None and found is not None:
            self._marks.found = np.unique(placed.item_of_node[found])

    @override
    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    @override
    def keys(self) -> KeyTable:
        return {**super().keys(), **self._keys.table()}

    @override
    def clear_selection(self) -> bool:
        found = self._marks.selected != NOTHING
        if found:
            self.select_item(NOTHING)
        return found

    @override
    def click(self, at: QPointF) -> None:
        placed = self._placed
        if placed is None:
            return
        x, y = self._world(at)
        stub = stub_at(placed, x, y)
        if stub != NOTHING and int(placed.stubs.other[stub]) >= 0:
            self.select_item(int(placed.stubs.other[stub]))  # jump to the other end
            return
        self.select_item(item_at(placed, x, y), show=False)

    @override
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        placed = self._placed
        if placed is None or event.button() != Qt.MouseButton.LeftButton:
            return
        self.activate(item_at(placed, *self._world(event.position())))

    @override
    def choose_for_menu(self, at: QPointF) -> bool:
        placed = self._placed
        if placed is not None:
            item = item_at(placed, *self._world(at))
            if item != NOTHING:
                self.select_item(item, show=False)
        return True

    def activate(self, item: int) -> None:
        """Open or close a cluster, or emit `activated` for a node."""
        placed = self._placed
        if placed is None or item < 0:
            return
        if item >= placed.node_count:
            self.toggle_requested.emit(placed.path_of(item))
        else:
            self.activated.emit(placed.scene.names[item])

    def close_around(self, item: int) -> None:
        """Request closing the cluster around an item, or the item if it is an open cluster."""
        placed = self._placed
        if placed is None or item < 0:
            return
        is_open = item >= placed.node_count and placed.path_of(item) in placed.expanded
        cluster = item if is_open else holder_of(placed, item)
        if cluster != NOTHING:
            self.toggle_requested.emit(placed.path_of(cluster))

    def _world(self, at: QPointF) -> tuple[float, float]:
        return self._camera.to_world(at.x(), at.y())

    @override
    def hit(self, at: QPointF) -> int:
        """Return the node or closed cluster at a point of the screen."""
        placed = self._placed
        if placed is None:
            return NOTHING
        item = item_at(placed, *self._world(at))
        opened = item >= placed.node_count and placed.path_of(item) in placed.expanded
        return NOTHING if opened else item

    @override
    def mark_hovered(self, item: int) -> None:
        placed = self._placed
        self._marks.hovered = item
        is_node = placed is not None and 0 <= item < placed.node_count
        self.hovered.emit(placed.scene.names[item] if placed is not None and is_node else "")

    @override
    def tip_at(self, at: QPointF) -> str:
        placed = self._placed
        if placed is None:
            return ""
        x, y = self._world(at)
        stub = stub_at(placed, x, y)
        if stub != NOTHING:
            return stub_text(placed, stub)
        item = item_at(placed, x, y)
        if item == NOTHING:
            return ""
        if item < placed.node_count:
            scene = placed.scene
            lines = (scene.labels[item], scene.sublabels[item], scene.names[item])
            return "\n".join(dict.fromkeys(line for line in lines if line))
        info = placed.scene.cluster_info(placed.path_of(item))
        count = int(placed.scene.tree.count[item - placed.node_count])
        nodes = "" if "node" in info.detail else f"{plural(count, 'node')} inside"
        return "\n".join(filter(None, (info.title, info.detail, nodes)))
