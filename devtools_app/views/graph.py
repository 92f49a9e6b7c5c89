"""The graph view: the program as modules, delegates and operators."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QLineEdit
from typing_extensions import override

from devtools_app.state.state import State
from devtools_app.viewmodels.change_colours import CHANGE, held_to
from devtools_app.viewmodels.gap_colours import GAP, OWN_GAP
from devtools_app.viewmodels.graph_building import DrawnGraph, GraphSettings, build_graph
from devtools_app.viewmodels.layout.cluster_tree import (
    ROOT,
    ClusterPath,
    collapse,
    expand_all,
    reveal,
    toggle,
)
from devtools_app.viewmodels.layout.engine import LayoutCache
from devtools_app.viewmodels.opened_boxes import boxes_scope, opened_boxes, with_opened_boxes
from devtools_app.viewmodels.scene_search import (
    delegate_item,
    graph_note,
    graph_title,
    search_nodes,
    selected_nodes,
    whole_delegate,
)
from devtools_app.views.editing import show_edits
from devtools_app.views.pane import NO_SESSION, Pane
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.empty_state import Need
from devtools_app.widgets.filter_box import FilterBox
from devtools_app.widgets.graph_canvas import GraphCanvas
from devtools_app.widgets.graph_canvas_pick import NOTHING, in_order
from devtools_app.widgets.toolbar_combo import ToolbarCombo
from inspector.files.session import Session
from inspector.graph.model_graph import COMPILED, graph_names
from inspector.tables.filter import FilterError
from inspector.tables.selection import Selection, SelectionKind

_NO_GRAPH = Need(
    "No graph to draw",
    "The graph comes from an ETRecord or from the instructions of a program (.pte). Open one of"
    " them beside the files that are here.",
    "etrecord = ETRecord(); … etrecord.save('model.etrecord')",
)


class GraphPane(Pane):
    """Draws one graph of a method.

    Keys: Shift+E opens all, Shift+C closes all, Shift+R shows the selected node inside closed
    boxes, Shift+M hides modules; the canvas has further keys.
    """

    def __init__(self, context: ViewContext) -> None:
        super().__init__(context, "Graph")
        self.canvas = GraphCanvas(context.theme.canvas)
        self._cache = LayoutCache()
        self._drawn: DrawnGraph | None = None
        self._name = COMPILED
        self._flat = False
        self._anchor: ClusterPath | None = None
        self._found: tuple[str, ...] | None = None
        self._own_selection: Selection | None = None
        self._shown_selection: tuple[Selection, object] | None = None
        self._add_tools()
        self.set_content(self.canvas)
        self._connect()

    def _add_tools(self) -> None:
        self.graphs = ToolbarCombo(self.theme, "graph", "Graph to draw")
        self.graphs.activated.connect(self._graph_chosen)
        self.add_tool(self.graphs)
        self.add_button("Open all", "Open all boxes", self.open_all, keys="Shift+E")
        self.add_button("Close all", "Close all boxes", self.close_all, keys="Shift+C")
        self.flat = self.add_button(
            "Flat", "Hide the boxes of modules", self._toggle_flat, keys="Shift+M"
        )
        self.flat.setCheckable(True)
        self.reveal_button = self.add_button(
            "Reveal", "Open the boxes around the selected node", self.reveal, keys="Shift+R"
        )
        self.search = FilterBox("Find in the graph")
        self.search.setPlaceholderText("find   /regex/")
        self.search.setToolTip(
            "Words must all occur in a node's operator, name, module or weights.\n"
            "/conv|gelu/ is a regular expression. Return: the next one, Shift+F3: the one before."
        )
        self.add_tool(self.search, right=True)
        back = self.add_button("", "Match before", lambda: self._step(-1), icon="up", right=True)
        ahead = self.add_button("", "Next match", lambda: self._step(1), icon="down", right=True)
        self._steps = (back, ahead)
        self.add_keys("F3", lambda: self._step(1))
        self.add_keys("Shift+F3", lambda: self._step(-1))
        self.add_button("", "Show the whole graph (Space)", self.canvas.fit, icon="fit", right=True)
        self._show_matches()

    def _connect(self) -> None:
        self.search.filter_changed.connect(self._search)
        self.search.left.connect(lambda: self._step(1) if self._found else self.canvas.setFocus())
        self.canvas.selected.connect(self._node_chosen)
        self.canvas.cluster_selected.connect(self._cluster_chosen)
        self.canvas.toggle_requested.connect(self._toggle)
        self.theme.changed.connect(lambda: self.canvas.set_colours(self.theme.canvas))
        self.canvas.menu_requested.connect(self._menu)

    def _menu(self, at: QPoint) -> None:
        """Offer the edits of the recipe for the selection."""
        selection = self.state.selection
        if selection:
            show_edits(self.canvas, at, selection, self.context)

    # -- state -----------------------------------------------------------------------------

    @override
    def show_state(self, state: State) -> None:
        """Show a state; without a session the former drawing is dropped."""
        if state.session is None:
            self._clear(NO_SESSION)
        else:
            super().show_state(state)

    @override
    def show_session(self, session: Session, state: State) -> None:
        """Show the method, overlay and selection of a state."""
        names = graph_names(session, state.method)
        if self._name not in names:
            self._name = COMPILED
        self.graphs.show_choices([(graph_title(name), name) for name in names], self._name)
        self.graphs.setVisible(len(names) > 1)
        gap = state.gap if state.overlay in (GAP, OWN_GAP) else None
        units = (state.overlay, state.units.time, state.units.size)
        former = held_to(state) if state.overlay == CHANGE else None
        look = GraphSettings(self._name, self._flat, units, gap, former)
        expanded = opened_boxes(state.expanded, self._scope(state))
        self.request(
            (state.open_session, state.method, look, expanded),
            lambda: build_graph(session, state.method, look, expanded, self._drawn, self._cache),
        )

    def _clear(self, need: Need) -> None:
        self._drawn = None
        self.canvas.set_graph(None)
        self.show_need(need, tools=need is not NO_SESSION and self.graphs.count() > 1)

    @override
    def show_result(self, result: object) -> None:
        """Draw the result of the layout."""
        if not isinstance(result, DrawnGraph):
            self._clear(_NO_GRAPH)
            self.forget()
            return
        before, self._drawn = self._drawn, result
        same = before is not None and before.graph is result.graph
        if before is None or before.overlay is not result.overlay:
            self.canvas.set_overlay(result.overlay)  # first: the legend takes room
        if same and before is not None and before.scene is not result.scene:
            self.canvas.update_scene(result.placed)
        else:
            self.canvas.set_graph(result.placed, self._anchor)
        self._anchor = None
        self.show_content()
        if not same:
            self._search(self.search.text())
        self._shown_selection = None
        self.show_selection(self.state)

    def _show_note(self) -> None:
        if self._drawn is not None:
            current = self.state.selection.node
            self.note.setText(graph_note(self._drawn.graph, self._name, self._found, current))

    # -- opened boxes ----------------------------------------------------------------------

    def _scope(self, state: State) -> str:
        return boxes_scope(state.scope, self._name, self._flat)

    def _put(self, expanded: frozenset[ClusterPath], anchor: ClusterPath | None = None) -> None:
        state = self.state
        self._anchor = anchor
        self.store.update(expanded=with_opened_boxes(state.expanded, self._scope(state), expanded))

    def _opened(self) -> frozenset[ClusterPath]:
        return self._drawn.placed.expanded if self._drawn is not None else frozenset()

    def _toggle(self, path: object) -> None:
        if isinstance(path, tuple):
            self._put(toggle(self._opened(), path), path)

    def _selected_cluster(self) -> ClusterPath:
        content, item = self._drawn, self.canvas.selected_item
        if content is None or item < content.placed.node_count:
            return ROOT
        return content.placed.path_of(item)

    def open_all(self) -> None:
        """Open all boxes, or those inside the selected one."""
        if self._drawn is not None:
            path = self._selected_cluster()
            self._put(self._opened() | expand_all(self._drawn.scene.tree, path), path or None)

    def close_all(self) -> None:
        """Close all boxes, or those inside the selected one."""
        if self._drawn is not None:
            path = self._selected_cluster()
            closed = collapse(self._opened(), path, deep=True) if path else frozenset()
            self._put(frozenset(closed), path or None)

    def reveal(self) -> None:
        """Open the boxes around the node that is selected."""
        content = self._drawn
        if content is None:
            return
        names = selected_nodes(content.graph, self.state.selection, content.index, self._name)
        if names:
            self._reveal(names[0])

    def _reveal(self, name: str) -> None:
        content = self._drawn
        if content is not None:
            self._put(reveal(content.scene.tree, self._opened(), content.scene.index[name]))

    def _toggle_flat(self) -> None:
        self._flat = not self._flat
        self.flat.setChecked(self._flat)
        self.show_state(self.state)

    def _graph_chosen(self, _index: int) -> None:
        self._name = str(self.graphs.currentData())
        self.show_state(self.state)

    # -- selection -------------------------------------------------------------------------

    def _node_chosen(self, name: str) -> None:
        content = self._drawn
        if content is None:
            return
        if not name:
            self.select(Selection())
            return
        node = content.graph.graph.nodes[content.scene.index[name]]
        self._own_selection = Selection(
            SelectionKind.NODE,
            self.state.method,
            self._name,
            node.name,
            instruction=node.instruction,
            delegate=node.delegate,
        )
        self.select(self._own_selection)

    def _cluster_chosen(self, path: object) -> None:
        content = self._drawn
        if content is None or not isinstance(path, tuple):
            return
        region = content.graph.clusters.regions.get(path)
        if region is not None and region.delegate is not None:
            self._own_selection = Selection(
                SelectionKind.DELEGATE, self.state.method, delegate=region.delegate
            )
            self.select(self._own_selection)

    @override
    def show_selection(self, state: State) -> None:
        content = self._drawn
        mark = (state.selection, content)
        if content is None or mark == self._shown_selection:
            return
        self._shown_selection = mark
        self._show_note()
        own = state.selection == self._own_selection
        self._own_selection = None
        names = selected_nodes(content.graph, state.selection, content.index, self._name)
        self.reveal_button.setEnabled(self._is_hidden(names[:1]))
        if own:
            return
        if self._mark_delegate(state.selection, names):
            return
        self.canvas.set_selected(names[0] if names else "")

    def _is_hidden(self, names: tuple[str, ...]) -> bool:
        content = self._drawn
        if content is None or not names:
            return False
        node = content.scene.index[names[0]]
        return int(content.placed.item_of_node[node]) != node

    def _mark_delegate(self, selection: Selection, names: tuple[str, ...]) -> bool:
        """Mark a selected delegate; a selected delegate call marks all of its nodes."""
        content = self._drawn
        if content is None:
            return False
        delegate = selection.delegate if selection.kind is SelectionKind.DELEGATE else None
        if delegate is None:
            delegate = whole_delegate(content.graph, names)
        item = None if delegate is None else delegate_item(content.graph, content.placed, delegate)
        if item is None:
            return False
        blocked = self.canvas.blockSignals(True)
        self.canvas.select_item(item)
        self.canvas.blockSignals(blocked)
        return True

    # -- search ----------------------------------------------------------------------------

    def start_find(self) -> None:
        """Focus the search field."""
        self.search.setFocus()
        QLineEdit.selectAll(self.search)

    def step(self, by: int) -> bool:
        """Select the next or previous node in program order; return whether there was one."""
        content = self._drawn
        if content is None:
            return False
        item = in_order(content.placed, self.canvas.selected_item, by)
        if item == NOTHING:
            return False
        self.canvas.select_item(item)
        return True

    def _search(self, text: str) -> None:
        content = self._drawn
        self._found = None
        if content is not None:
            try:
                self._found = search_nodes(content.graph, text)
                self.search.show_error("")
            except FilterError as error:
                self.search.show_error(str(error))
        self.canvas.set_found(self._found)
        self._show_matches()

    def _show_matches(self) -> None:
        for button in self._steps:
            button.setEnabled(bool(self._found))
        self._show_note()

    def _step(self, by: int) -> None:
        content, found = self._drawn, self._found
        if content is None or not found:
            return
        current = self.state.selection.node if self.state.selection.graph == self._name else ""
        if current in found:
            at = (found.index(current) + by) % len(found)
        else:
            at = 0 if by > 0 else len(found) - 1
        self._node_chosen(found[at])
        if self._is_hidden(found[at : at + 1]):
            self._reveal(found[at])
        else:
            self.canvas.set_selected(found[at])

    # -- export ----------------------------------------------------------------------------

    def save_image(self, path: Path) -> None:
        """Write the whole graph as PNG or SVG, by the suffix of the name.

        Raises: OSError if the file cannot be written
        """
        self.canvas.render_whole(path)


def _needs(session: Session) -> Need | None:
    has_any = session.program is not None or session.record is not None
    return None if has_any else _NO_GRAPH


SPEC = ViewSpec("graph", "Graph", Area.CENTRE, GraphPane, "graph", needs=_needs)
