"""The drawing of the graph view: one graph or two, and the selection in it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QStackedWidget

from devtools_app.appearance.theme import Theme
from devtools_app.viewmodels.graph_building import DrawnGraph
from devtools_app.viewmodels.layout.cluster_tree import ClusterPath
from devtools_app.viewmodels.layout.placed import Placed
from devtools_app.viewmodels.pair_scene import DrawnPair
from devtools_app.viewmodels.scene import GraphScene
from devtools_app.viewmodels.scene_search import delegate_item, selected_nodes, whole_delegate
from devtools_app.views.graph_boxes import Boxes
from devtools_app.widgets.graph_canvas import GraphCanvas
from devtools_app.widgets.graph_canvas_pick import NOTHING, in_order
from devtools_app.widgets.graph_pair import GraphPairView
from devtools_app.widgets.image import save_image
from inspector.tables.selection import Selection, SelectionKind, node_selection


class GraphArea(QStackedWidget):
    """One graph, or two beside each other; nodes are known by name or by number in the drawing.

    Attributes:
        pair_made: there is a view of two graphs now (GraphPairView), which few ever need
        canvas: draws one graph
        one: the graph that is drawn, None while two are or none is
        pair: the two that are drawn, None else
        name: of the first graph
    """

    pair_made = Signal(object)

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme = theme
        self.canvas = GraphCanvas(theme.canvas)
        self._both: GraphPairView | None = None
        self.one: DrawnGraph | None = None
        self.pair: DrawnPair | None = None
        self.name = name
        self._box_chosen = False  # last, by the user; a selection has no box of a module
        self.addWidget(self.canvas)
        self._note_boxes(self.canvas)

    def _note_boxes(self, canvas: GraphCanvas) -> None:
        canvas.cluster_selected.connect(lambda _path: self._choose_box(True))
        canvas.selected.connect(lambda _name: self._choose_box(False))

    def _choose_box(self, chosen: bool) -> None:
        self._box_chosen = chosen

    @property
    def both(self) -> GraphPairView:
        """Return the view of two graphs."""
        if self._both is None:
            self._both = GraphPairView(self._theme)
            self.addWidget(self._both)
            for canvas in self._both.canvases:
                self._note_boxes(canvas)
            self.pair_made.emit(self._both)
        return self._both

    @property
    def canvases(self) -> tuple[GraphCanvas, ...]:
        """Return all canvases, drawn on or not."""
        return (self.canvas, *(() if self._both is None else self._both.canvases))

    @property
    def front(self) -> GraphCanvas:
        """Return the canvas that takes the keys."""
        return self.canvas if self.pair is None else self.both.canvases[0]

    @property
    def placed(self) -> Placed | None:
        """Return the layout of the drawing."""
        shown = self.pair or self.one
        return None if shown is None else shown.placed

    @property
    def graph(self) -> GraphScene | None:
        """Return nodes and edges of the drawing, those of both graphs for two."""
        if self.pair is not None:
            return self.pair.union.scene
        return None if self.one is None else self.one.graph

    @property
    def boxes(self) -> Boxes | None:
        """Return the layout with the selected item."""
        placed = self.placed
        return None if placed is None else Boxes(placed, self.front.selected_item)

    def clear(self) -> None:
        """Show nothing."""
        self.one = self.pair = None
        if self._both is not None:
            self._both.clear()
        self.canvas.set_graph(None)

    def show_one(self, drawn: DrawnGraph, anchor: ClusterPath | None, subject: object) -> bool:
        """Draw one graph; return whether it is another than before.

        Args:
            drawn: the graph in its layout
            anchor: box to hold in its place
            subject: its subject; all of another one is brought into view
        """
        before, self.one, self.pair = self.one, drawn, None
        self.setCurrentWidget(self.canvas)
        same = before is not None and before.graph is drawn.graph
        if before is None or before.overlay is not drawn.overlay:
            self.canvas.take_overlay(drawn.overlay)
        if same and before is not None and before.scene is not drawn.scene:
            self.canvas.update_scene(drawn.placed)
        else:
            self.canvas.set_graph(drawn.placed, anchor, subject=subject)
        return not same

    def show_pair(
        self, drawn: DrawnPair, titles: tuple[str, str], anchor: ClusterPath | None
    ) -> bool:
        """Draw two graphs; return whether they are others than before.

        Args:
            drawn: the graphs in their layout
            titles: of both
            anchor: box to hold in its place
        """
        same = self.pair is not None and self.pair.union is drawn.union
        self.one, self.pair = None, drawn
        self.both.show_pair(drawn, titles, anchor)
        self.setCurrentWidget(self.both)
        return not same

    # -- selection

    def node_of(self, selection: Selection) -> int:
        """Return the number of the selected node, or NOTHING."""
        if self.pair is not None:
            return self.both.place_of(0, selection.node)
        names = self.names_of(selection)
        return NOTHING if self.one is None or not names else self.one.scene.index[names[0]]

    def names_of(self, selection: Selection) -> tuple[str, ...]:
        """Return the nodes of one graph that a selection refers to."""
        if self.one is None:
            return ()
        return selected_nodes(self.one.graph, selection, self.one.index, self.name)

    def chosen_node(self, name: str, method: str) -> Selection | None:
        """Return the selection of a node of one graph; None where one is not drawn."""
        if self.one is None:
            return None
        if not name:
            return Selection()
        node = self.one.graph.graph.nodes[self.one.scene.index[name]]
        return node_selection(node, method, self.name)

    def chosen_beside(self, side: int, name: str, method: str) -> Selection | None:
        """Return the selection of a node of two; None for one that the first graph lacks."""
        own = name if side == 0 else self.both.node_at(0, self.both.place_of(1, name))
        if own:
            return Selection(SelectionKind.NODE, method, self.name, own)
        return None if name else Selection()

    def chosen_box(self, path: object, method: str) -> Selection | None:
        """Return the selection of the box of a delegate; None for other boxes."""
        if self.one is None or not isinstance(path, tuple):
            return None
        region = self.one.graph.clusters.regions.get(path)
        if region is None or region.delegate is None:
            return None
        return Selection(SelectionKind.DELEGATE, method, delegate=region.delegate)

    def mark(self, selection: Selection, *, again: bool) -> None:
        """Show the selection; of a selected delegate call, the whole delegate.

        Shown ``again`` in another layout, it leaves a box that the user has chosen since.
        """
        if again and self._box_chosen and self.front.selected_item != NOTHING:
            return
        self._box_chosen = False
        if self.pair is not None:
            self.both.mark(self.node_of(selection))
            return
        names = self.names_of(selection)
        if not self._mark_delegate(selection, names):
            self.canvas.set_selected(names[0] if names else "")

    def _mark_delegate(self, selection: Selection, names: tuple[str, ...]) -> bool:
        drawn = self.one
        if drawn is None:
            return False
        delegate = selection.delegate if selection.kind is SelectionKind.DELEGATE else None
        if delegate is None:
            delegate = whole_delegate(drawn.graph, names)
        item = None if delegate is None else delegate_item(drawn.graph, drawn.placed, delegate)
        if item is None:
            return False
        blocked = self.canvas.blockSignals(True)
        self.canvas.select_item(item)
        self.canvas.blockSignals(blocked)
        return True

    def step(self, by: int) -> bool:
        """Select the next or previous node in program order; return whether there was one."""
        front = self.front
        if front.placed is None:
            return False
        item = in_order(front.placed, front.selected_item, by)
        if item == NOTHING:
            return False
        front.select_item(item)
        return True

    # -- marks and pictures

    def set_found(self, names: tuple[str, ...] | None) -> None:
        """Mark the matches of a search."""
        for canvas in self.canvases:
            canvas.set_found(names)

    def set_lit(self, nodes: frozenset[int] | None) -> None:
        """Highlight nodes, None to end that."""
        for canvas in self.canvases:
            canvas.set_lit(nodes if canvas.placed is not None else None)

    def save(self, path: Path) -> None:
        """Write all that is drawn as PNG or SVG, by the suffix of the name.

        Raises: OSError if the file cannot be written
        """
        if self.pair is not None:
            save_image(self.both, path)
        else:
            self.canvas.render_whole(path)
