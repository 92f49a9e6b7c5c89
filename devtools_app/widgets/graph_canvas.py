"""The graph view's canvas: selection, mouse and keys over a GraphView."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, Qt, Signal
from PySide6.QtGui import QFocusEvent, QMouseEvent
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from devtools_app.appearance.paint_theme import CanvasColours
from devtools_app.viewmodels.layout.placed import Placed
from devtools_app.widgets.canvas import KeyTable
from devtools_app.widgets.graph_canvas_keys import GraphKeys
from devtools_app.widgets.graph_canvas_labels import edge_words, stub_text
from devtools_app.widgets.graph_canvas_pick import NOTHING, edge_at, holder_of, item_at, stub_at
from devtools_app.widgets.graph_canvas_view import GraphView
from schema.objects.plural import plural

EDGE_REACH = 5.0  # pixels from a line that count as on it


class GraphCanvas(GraphView):
    """Shows a placed graph; supports panning, selection and opening of clusters.

    Attributes:
        selected: name of the node the user chose, empty when it was deselected
        cluster_selected: path of the cluster the user chose
        toggle_requested: path of the cluster to open or close
        activated: name of the node that was double-clicked or confirmed by Enter
        hovered: name of the node under the pointer, empty for none
        path_requested: item that was clicked with Ctrl: the other end of a path
    """

    selected = Signal(str)
    cluster_selected = Signal(object)
    toggle_requested = Signal(object)
    activated = Signal(str)
    hovered = Signal(str)
    path_requested = Signal(int)

    def __init__(self, colours: CanvasColours, parent: QWidget | None = None) -> None:
        super().__init__(colours, parent)
        self._selected_node = NOTHING  # kept while its cluster is closed
        self._found_nodes: NDArray[np.int64] | None = None
        self._lit_nodes: NDArray[np.int64] | None = None
        self._with_control = False  # the button was released with Ctrl
        self._edited: Mapping[str, str] = {}
        self._keys = GraphKeys(self)
        self.clicked_edge = NOTHING  # by the button that opens the menu
        self.clicked_ground = False  # neither box nor edge was, by that button

    @property
    def selected_item(self) -> int:
        """Return the selected item, or NOTHING."""
        return self._marks.selected

    @property
    def lit_items(self) -> NDArray[np.int64] | None:
        """Return the highlighted items, None without a highlight."""
        return self._marks.lit

    @override
    def forget_marks(self) -> None:
        self._selected_node, self._found_nodes, self._lit_nodes = NOTHING, None, None
        self._mark_edited()

    @override
    def renew_marks(self, placed: Placed) -> None:
        if self._selected_node != NOTHING:
            self._marks.selected = int(placed.item_of_node[self._selected_node])
        elif self._marks.selected >= 0 and not np.isfinite(placed.boxes[self._marks.selected, 0]):
            self._marks.selected = NOTHING
        self._mark_found()
        self._mark_lit()
        self._mark_edited()

    def set_selected(self, name: str, *, show: bool = True) -> None:
        """Mark a node as selected without emitting `selected`; an empty name removes the mark.

        Args:
            name: of the node; inside a closed cluster, that cluster is marked
            show: pan if the node is not visible
        """
        placed = self._placed
        node = placed.scene.index.get(name, NOTHING) if placed is not None else NOTHING
        self.mark_node(node, show=show)

    def mark_node(self, node: int, *, show: bool = True) -> None:
        """Mark a node by its number, as ``set_selected`` does by its name."""
        placed = self._placed
        self._selected_node = node
        self._marks.selected = NOTHING
        if placed is not None and node != NOTHING:
            self._marks.selected = int(placed.item_of_node[node])
            if show:
                self.show_item(self._marks.selected)
        self.describe()
        self.update()

    def mark_item(self, item: int) -> None:
        """Mark a node or cluster without emitting it."""
        self._marks.selected, self._selected_node = item, NOTHING
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

    def set_lit(self, nodes: Iterable[int] | None) -> None:
        """Highlight nodes by their numbers; None ends the highlight."""
        self._lit_nodes = None if nodes is None else np.array(sorted(nodes), np.int64)
        self._mark_lit()
        self.update()

    def _mark_lit(self) -> None:
        placed, lit = self._placed, self._lit_nodes
        self._marks.lit = None
        if placed is not None and lit is not None:
            self._marks.lit = np.unique(placed.item_of_node[lit])

    def _mark_found(self) -> None:
        placed, found = self._placed, self._found_nodes
        self._marks.searching = found is not None
        self._marks.found = np.zeros(0, np.int64)
        if placed is not None and found is not None:
            self._marks.found = np.unique(placed.item_of_node[found])

    def set_edited(self, edits: Mapping[str, str]) -> None:
        """Mark the nodes that edits of the recipe are about, each with those edits.

        A closed cluster is marked for the nodes inside.
        """
        if edits != self._edited:
            self._edited = edits
            self._mark_edited()
            self.describe()
            self.update()

    @property
    def edited_items(self) -> tuple[int, ...]:
        """Return the marked items."""
        return tuple(self._marks.edited.tolist())

    def _mark_edited(self) -> None:
        placed, self._marks.edited = self._placed, np.zeros(0, np.int64)
        if placed is not None and self._edited:
            index = placed.scene.index
            nodes = [index[name] for name in self._edited if name in index]
            self._marks.edited = np.unique(placed.item_of_node[np.array(nodes, np.int64)])

    def _edits_of(self, item: int) -> str:
        """Return the edits about a node, or how many nodes of a cluster have some."""
        placed = self._placed
        if placed is None or item not in self._marks.edited:
            return ""
        if item < placed.node_count:
            return f"Edited: {self._edited[placed.scene.names[item]]}"
        index = placed.scene.index
        inside = [name for name in self._edited if name in index]
        count = sum(int(placed.item_of_node[index[name]]) == item for name in inside)
        return f"Edited: {plural(count, 'node')} inside"

    @override
    def drawn_summary(self) -> str:
        text, count = super().drawn_summary(), len(self._marks.edited)
        return f"{text}, {count} edited" if count else text

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
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._with_control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        super().mouseReleaseEvent(event)
        self._with_control = False

    @override
    def click(self, at: QPointF) -> None:
        placed = self._placed
        if placed is None:
            return
        stub = stub_at(placed, *self._world(at)) if self._is_drawing(at) else NOTHING
        if stub != NOTHING and int(placed.stubs.other[stub]) >= 0:
            self.select_item(int(placed.stubs.other[stub]))  # jump to the other end
            return
        item = self._item_at(at)
        if self._with_control:
            self.path_requested.emit(item)
            return
        self._select_below(item)

    @override
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        placed = self._placed
        if placed is None or event.button() != Qt.MouseButton.LeftButton:
            return
        self.activate(self._item_at(self.spot(event.position())))

    @override
    def choose_for_menu(self, at: QPointF) -> bool:
        item, placed = self._item_at(at), self._placed
        self.clicked_edge = NOTHING
        if placed is None:
            return True
        if self._is_ground(item):
            self.clicked_edge = self._edge_at(at)
        self.clicked_ground = item == self.clicked_edge == NOTHING
        if item != NOTHING and self.clicked_edge == NOTHING:
            self._select_below(item)
        return True

    def _select_below(self, item: int) -> None:
        """Select what is below the pointer; a second click has to meet it."""
        self.hold()
        self.select_item(item, show=False)

    @override
    def keys_open_menu(self) -> None:
        self.clicked_edge, self.clicked_ground = NOTHING, False

    def _is_ground(self, item: int) -> bool:
        """Return whether an item is not a box: an open cluster, or nothing."""
        placed = self._placed
        if placed is None or item == NOTHING:
            return True
        return item >= placed.node_count and placed.path_of(item) in placed.expanded

    def _edge_at(self, at: QPointF) -> int:
        placed = self._placed
        if placed is None or not self._is_drawing(at):
            return NOTHING
        return edge_at(placed, *self._world(at), EDGE_REACH / self._camera.sx)

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

    def _is_drawing(self, at: QPointF) -> bool:
        """Return whether a point of the drawing is in the drawing, not beside it."""
        room = self.room()
        return at.x() < room.width() and at.y() < room.height()

    def _item_at(self, at: QPointF) -> int:
        placed = self._placed
        if placed is None or not self._is_drawing(at):
            return NOTHING
        return item_at(placed, *self._world(at))

    @override
    def hit(self, at: QPointF) -> int:
        """Return the node or closed cluster at a point of the drawing."""
        item = self._item_at(at)
        return NOTHING if self._is_ground(item) else item

    @override
    def mark_hovered(self, item: int) -> None:
        placed = self._placed
        self._marks.hovered = item
        is_node = placed is not None and 0 <= item < placed.node_count
        self.hovered.emit(placed.scene.names[item] if placed is not None and is_node else "")

    @override
    def tip_at(self, at: QPointF) -> str:
        placed = self._placed
        if placed is None or not self._is_drawing(at):
            return ""
        x, y = self._world(at)
        stub = stub_at(placed, x, y)
        if stub != NOTHING:
            return stub_text(placed, stub)
        item = item_at(placed, x, y)
        edge = self._edge_at(at) if self._is_ground(item) else NOTHING
        if edge != NOTHING:
            return edge_words(placed, edge)
        if item == NOTHING:
            return ""
        if item < placed.node_count:
            scene = placed.scene
            lines = (scene.labels[item], scene.sublabels[item], scene.names[item])
            lines = (*lines, self._edits_of(item))
            return "\n".join(dict.fromkeys(line for line in lines if line))
        info = placed.scene.cluster_info(placed.path_of(item))
        count = int(placed.scene.tree.count[item - placed.node_count])
        nodes = "" if "node" in info.detail else f"{plural(count, 'node')} inside"
        lines = (info.title, info.detail, nodes, info.inward, info.outward, self._edits_of(item))
        return "\n".join(filter(None, lines))
