"""The graph view: the program as modules, delegates and operators."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QMenu, QToolButton
from typing_extensions import override

from devtools_app.state.requests import ShowStatus
from devtools_app.state.state import State
from devtools_app.viewmodels.change_colours import CHANGE, held_to
from devtools_app.viewmodels.data_colours import shown_overlay, unmatched
from devtools_app.viewmodels.gap_colours import GAP, OWN_GAP
from devtools_app.viewmodels.graph_building import DrawnGraph, GraphSettings, build_graph
from devtools_app.viewmodels.graph_trace import Highlight
from devtools_app.viewmodels.layout.engine import LayoutCache
from devtools_app.viewmodels.opened_boxes import boxes_scope
from devtools_app.viewmodels.pair_scene import DrawnPair
from devtools_app.viewmodels.scene_search import (
    graph_note,
    graph_title,
)
from devtools_app.views.edit_marks import EditMarks
from devtools_app.views.graph_area import GraphArea
from devtools_app.views.graph_beside import MODE, GraphBeside
from devtools_app.views.graph_boxes import GraphBoxes
from devtools_app.views.graph_focus import GraphFocus, ShownGraph
from devtools_app.views.graph_menu import graph_menu
from devtools_app.views.graph_need import NOT_READ, needs
from devtools_app.views.graph_search import GraphSearch
from devtools_app.views.graph_tables import GraphTables, Tabled
from devtools_app.views.pane import NO_SESSION, Pane
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.empty_state import Need
from devtools_app.widgets.files import Done, unreported
from devtools_app.widgets.graph_canvas import GraphCanvas
from devtools_app.widgets.graph_pair import GraphPairView
from devtools_app.widgets.toolbar_combo import ToolbarCombo
from inspector.files.session import Session
from inspector.graph.model_graph import COMPILED, ModelGraph, graph_names
from inspector.tables.selection import Selection, SelectionKind

_PART = " part"  # of the scope of boxes


class GraphPane(Pane):
    """Draws one graph of a method.

    Keys: Shift+E opens all, Shift+C closes all, Shift+R shows the selected node inside closed
    boxes, Shift+M hides modules, [ and ] highlight what leads to a box and what follows, X shows
    a part alone; the canvas has further keys.
    """

    def __init__(self, context: ViewContext) -> None:
        super().__init__(context, "Graph")
        self._cache = LayoutCache()
        self.beside = GraphBeside(self.theme, self)
        self.drawing = GraphArea(self.theme, COMPILED)
        self.canvas = self.drawing.canvas
        self._flat = False
        self._shown_graph = ("", "", "")  # session, method, graph
        self.boxes = GraphBoxes(self.store, lambda: self.drawing.boxes, self._scope)
        self.focus = GraphFocus(self._shown, self)
        self.search = GraphSearch(self.store, self)
        self.tables = GraphTables(context, self)
        self._match = ""  # the last one of a search in two graphs
        self._own_selection: Selection | None = None
        self._shown_selection: tuple[Selection, object] | None = None
        self._edits = EditMarks(self)
        self._add_tools()
        self.set_content(self.tables.around(self.drawing))
        self._connect()

    def _add_tools(self) -> None:
        self.graphs = ToolbarCombo(self.theme, "graph", "Graph to draw")
        self.graphs.activated.connect(self._graph_chosen)
        self.add_tool(self.graphs)
        self.add_tool(self.beside.combo)
        self.add_button(
            "Open all", "Open all boxes", self.boxes.open_all, keys="Shift+E", icon="expand"
        )
        self.add_button(
            "Close all", "Close all boxes", self.boxes.close_all, keys="Shift+C", icon="collapse"
        )
        self.flat = self.add_button(
            "Flat", "Hide the boxes of modules", self._toggle_flat, keys="Shift+M", icon="flat"
        )
        self.flat.setCheckable(True)
        self.reveal_button = self.add_button(
            "Reveal",
            "Open the boxes around the selected node",
            self.reveal,
            keys="Shift+R",
            icon="reveal",
        )
        about = "Highlight, or show a part alone"
        self.parts = self.add_button("Focus", about, lambda: None, icon="focus")
        self.parts.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu = QMenu(self.parts)
        menu.aboutToShow.connect(lambda: self.focus.fill(menu))
        self.parts.setMenu(menu)
        self.whole = self.add_button(
            "All", "Show the whole graph again", self.focus.whole, icon="undo"
        )
        self.whole.hide()
        for keys, act in (
            ("[", self.focus.before),
            ("]", self.focus.after),
            ("X", self.focus.only),
            ("Z", self.focus.neighbours),
            ("Shift+X", self.focus.whole),
        ):
            self.add_keys(keys, act)
        self._add_search()

    def _add_search(self) -> None:
        facts = "List nodes and edges"
        self.add_button("", facts, self.tables.toggle, keys="Shift+T", icon="table", right=True)
        self.add_tool(self.search.saved, right=True)
        self._keep_icon(self.search.saved, "filter")
        self.add_tool(self.search.box, right=True)
        back = self.add_button("", "Match before", lambda: self._step(-1), icon="up", right=True)
        ahead = self.add_button("", "Next match", lambda: self._step(1), icon="down", right=True)
        self._steps = (back, ahead)
        self.add_keys("F3", lambda: self._step(1))
        self.add_keys("Shift+F3", lambda: self._step(-1))
        self.add_button(
            "",
            "Show the whole graph (Space)",
            lambda: self.drawing.front.fit(),
            icon="fit",
            right=True,
        )
        self._show_matches()

    def _connect(self) -> None:
        self.search.changed.connect(self._matches_changed)
        self.search.box.left.connect(self._search_left)
        self.tables.chosen.connect(self._row_chosen)
        self.canvas.selected.connect(self._node_chosen)
        self.canvas.cluster_selected.connect(self._cluster_chosen)
        self.canvas.toggle_requested.connect(self.boxes.toggle)
        self.canvas.path_requested.connect(self.focus.path_to)
        self.theme.changed.connect(self._recolour)  # ends with the view
        self.canvas.menu_requested.connect(lambda at: self._menu(self.canvas, at))
        self.beside.chosen.connect(self._beside_chosen)
        self.drawing.pair_made.connect(self._connect_pair)
        self.focus.highlighted.connect(self._highlight)
        self.focus.part_chosen.connect(self._part_chosen)
        self.focus.noted.connect(lambda text: self.context.ask(ShowStatus(text)))
        self._edits.changed.connect(self._mark_edits)

    def _connect_pair(self, pair: GraphPairView) -> None:
        pair.chosen.connect(self._pair_node_chosen)
        pair.toggle_requested.connect(self.boxes.toggle)
        pair.path_requested.connect(self.focus.path_to)
        pair.menu_requested.connect(lambda side, at: self._menu(pair.canvases[side], at))

    def _menu(self, canvas: GraphCanvas, at: QPoint) -> None:
        """Show the menu of the clicked item."""
        selection = self.state.selection
        menu = graph_menu(canvas, selection, self.focus, self.boxes, self.context, self)
        menu.popup(canvas.mapToGlobal(at))

    def _mark_edits(self) -> None:
        """Mark the nodes that the edits of the recipe are about."""
        self.canvas.set_edited(self._edits.of(self.state, self.drawing.name))

    @override
    def shut_down(self) -> None:
        super().shut_down()
        self.tables.shut_down()
        self._edits.close()

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
        if self.drawing.name not in names:
            self.drawing.name = names[0]
        self.graphs.show_choices([(graph_title(name), name) for name in names], self.drawing.name)
        self.graphs.setVisible(len(names) > 1)
        self._mark_edits()
        self.fit_tools()
        self.beside.show_choices(state, self.drawing.name)
        if self._request_pair(session, state):
            return
        gap = state.gap if state.overlay in (GAP, OWN_GAP) else None
        units = (shown_overlay(state), state.units.time, state.units.size)
        former = held_to(state) if state.overlay == CHANGE else None
        shown = (state.current, state.method, self.drawing.name)
        if shown != self._shown_graph:
            self._shown_graph = shown
            self.focus.reset()
        self.whole.setVisible(self.focus.part is not None)
        self.fit_tools()
        text = self.context.theme.scale
        shown_part = self.focus.part
        look = GraphSettings(self.drawing.name, self._flat, units, gap, former, shown_part, text)
        expanded = self.boxes.of(state)
        self.request(
            (state.open_session, state.method, look, expanded),
            lambda: build_graph(
                session, state.method, look, expanded, self.drawing.one, self._cache
            ),
        )

    def _request_pair(self, session: Session, state: State) -> bool:
        """Request two graphs beside each other if a second one is chosen."""
        other = self.beside.other(state)
        if other is None:
            return False
        sources = (session, self.drawing.name), (other[0].session, other[1])
        expanded = self.boxes.of(state)
        self.request(
            (state.open_session, other, state.method, self.drawing.name, expanded),
            lambda: self.beside.build(sources, state.method, expanded),
        )
        return True

    def _show_pair(self, drawn: DrawnPair) -> None:
        titles = self.beside.titles(self.state, self.drawing.name)
        if titles is None:
            return
        self.beside.take(drawn)
        new = self.drawing.show_pair(drawn, titles, self.boxes.take_anchor())
        self.show_content()
        self._follow_drawing(drawn.pair.alignment.old, new=new)
        self._show_note()

    def _follow_drawing(self, graph: ModelGraph, *, new: bool) -> None:
        """Search, list and select in the drawing."""
        if new:
            self.search.set_graph(self.drawing.graph)
        if self.state.session is not None:
            shown = (self.state.session, self.state.method, graph, self.state.units)
            self.tables.show(Tabled(*shown))
        before = self._shown_selection
        self._shown_selection = None if new or before is None else (before[0], None)
        self.show_selection(self.state)

    def _clear(self, need: Need) -> None:
        self.drawing.clear()
        self.show_need(need, tools=need is not NO_SESSION and self.graphs.count() > 1)

    @override
    def show_result(self, result: object) -> None:
        """Draw the result of the layout."""
        if isinstance(result, DrawnPair):
            self._show_pair(result)
            return
        if not isinstance(result, DrawnGraph):
            self._clear(NOT_READ)
            self.forget()
            return
        before = self.drawing.one
        subject = (self._shown_graph, self.focus.part, self._flat)
        new = self.drawing.show_one(result, self.boxes.take_anchor(), subject)
        if before is None or before.overlay is not result.overlay:
            text = unmatched(self.state.session, result.look.overlay[0], result.graph)
            if text:
                self.context.ask(ShowStatus(text))
        self.show_content()
        self._follow_drawing(result.graph.graph, new=new)

    def _show_note(self) -> None:
        self.note.setText(self._note())

    def _note(self) -> str:
        found, trace = self.search.found, self.focus.trace
        if trace is not None:
            return trace.words
        if self.drawing.pair is not None:
            return self.beside.note() if found is None else f"{len(found):,} found"
        if self.drawing.graph is None:
            return ""
        words = graph_note(self.drawing.graph, self.drawing.name, found, self.state.selection.node)
        return f"a part: {words}" if self.focus.part is not None else words

    # -- opened boxes ----------------------------------------------------------------------

    def _scope(self, state: State) -> str:
        mode = (
            f"{self.drawing.name} {MODE} {self.beside.key}"
            if self.beside.key
            else self.drawing.name
        )
        mode += _PART if self.focus.part is not None else ""
        return boxes_scope(state.scope, mode, self._flat)

    def reveal(self) -> None:
        """Open the boxes around the node that is selected."""
        self.boxes.reveal(self._selected_node())

    def _selected_node(self) -> int:
        """Return the number in the drawing of the node that is selected, or NOTHING."""
        return self.drawing.node_of(self.state.selection)

    def _toggle_flat(self) -> None:
        self._flat = not self._flat
        self.flat.setChecked(self._flat)
        self.show_state(self.state)

    def _graph_chosen(self, _index: int) -> None:
        self.drawing.name = str(self.graphs.currentData())
        self.show_state(self.state)

    # -- selection -------------------------------------------------------------------------

    def _choose(self, selection: Selection | None) -> None:
        """Take over the selection in the drawing, where it is marked already."""
        if selection is not None:
            self._own_selection = selection
            self.select(selection)

    def _node_chosen(self, name: str) -> None:
        self._choose(self.drawing.chosen_node(name, self.state.method))

    def _pair_node_chosen(self, side: int, name: str) -> None:
        self._choose(self.drawing.chosen_beside(side, name, self.state.method))

    def _cluster_chosen(self, path: object) -> None:
        self._choose(self.drawing.chosen_box(path, self.state.method))

    @override
    def show_selection(self, state: State) -> None:
        drawn = self.drawing.pair or self.drawing.one
        mark = (state.selection, drawn)
        if drawn is None or mark == self._shown_selection:
            return
        again = self._shown_selection is not None and self._shown_selection[0] == mark[0]
        self._shown_selection = mark
        self._end_highlight()
        self._show_note()
        self.tables.mark(state.selection.node)
        own, self._own_selection = state.selection == self._own_selection, None
        self.reveal_button.setEnabled(self.boxes.hide(self._selected_node()))
        if not own:
            self.drawing.mark(state.selection, again=again)

    def _end_highlight(self) -> None:
        """End a highlight whose nodes the selection has left."""
        trace = self.focus.trace
        if trace is not None and self._selected_node() not in trace.nodes:
            self.focus.clear()

    # -- search ----------------------------------------------------------------------------

    def start_find(self) -> None:
        """Focus the search field."""
        self.search.start()

    def step(self, by: int) -> bool:
        """Select the next or previous node in program order; return whether there was one."""
        return self.drawing.step(by)

    def _search_left(self) -> None:
        if self.search.found:
            self._step(1)
        else:
            self.drawing.front.setFocus()

    def _matches_changed(self) -> None:
        self.drawing.set_found(self.search.found)
        self._show_matches()

    def _show_matches(self) -> None:
        for button in self._steps:
            button.setEnabled(bool(self.search.found))
        self._show_note()

    def _step(self, by: int) -> None:
        graph = self.drawing.graph
        self._match = self.search.after(self._current_match(), by)
        if graph is None or not self._match:
            return
        node = graph.scene.index[self._match]
        if self.drawing.pair is not None:
            view = self.drawing.both
            own = view.node_at(0, node)
            self._pair_node_chosen(0 if own else 1, own or view.node_at(1, node))
            view.mark(node)
        else:
            self._node_chosen(self._match)
            self.canvas.set_selected(self._match)
        if self.boxes.hide(node):
            self.boxes.reveal(node)

    def _current_match(self) -> str:
        """Return the name of the node to search on from."""
        if self.drawing.pair is not None:
            return self._match
        return self.state.selection.node if self.state.selection.graph == self.drawing.name else ""

    # -- highlight and parts ---------------------------------------------------------------

    def _shown(self) -> ShownGraph | None:
        graph, placed = self.drawing.graph, self.drawing.placed
        if graph is None or placed is None:
            return None
        return ShownGraph(graph, placed, self.drawing.front.selected_item, self.search.found)

    def _highlight(self, trace: Highlight | None) -> None:
        self.drawing.set_lit(None if trace is None else trace.nodes)
        self._show_note()

    def _part_chosen(self) -> None:
        """Draw the chosen part, with the boxes open that fit, or the whole as it was."""
        if self.focus.part is not None:
            self.boxes.forget()
        self.show_state(self.state)

    def _beside_chosen(self) -> None:
        self.focus.reset()
        self.show_state(self.state)

    # -- tables ----------------------------------------------------------------------------

    def _recolour(self) -> None:
        self.canvas.set_colours(self.theme.canvas)

    def _row_chosen(self, node: str) -> None:
        where = (self.state.method, self.drawing.name, node)
        self.select(Selection(SelectionKind.NODE, *where))

    def export_to(self, path: Path, done: Done = unreported) -> bool:
        """Begin to write the table beside the drawing, else the edges."""
        return self.tables.export_to(path, done)

    # -- export ----------------------------------------------------------------------------

    def save_image(self, path: Path) -> None:
        """Write the whole graph as PNG or SVG, by the suffix of the name.

        Raises: OSError if the file cannot be written
        """
        self.drawing.save(path)


SPEC = ViewSpec("graph", "Graph", Area.CENTRE, GraphPane, "graph", needs=needs)
