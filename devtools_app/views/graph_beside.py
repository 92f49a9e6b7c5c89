"""The second graph of the graph view: which one, and its drawing beside the first."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from devtools_app.appearance.theme import Theme
from devtools_app.state.state import OpenSession, State
from devtools_app.viewmodels.layout.cluster_tree import ClusterPath
from devtools_app.viewmodels.layout.engine import LayoutCache
from devtools_app.viewmodels.pair_scene import DrawnPair, PairScene, build_pair, union_scene
from devtools_app.viewmodels.scene_search import graph_title
from devtools_app.widgets.toolbar_combo import ToolbarCombo
from inspector.compare.graph_pair import GraphPair, graph_pair
from inspector.files.session import Session
from inspector.graph.model_graph import graph_names
from schema.objects.plural import plural

_JOINT = "\x1f"  # between session and graph; occurs in no name
_ALONE = "nothing"
MODE = "pair"


class GraphBeside(QObject):
    """Lets the user choose a second graph, and builds the pair.

    Attributes:
        chosen: the user chose another graph, or none
        combo: the choice
    """

    chosen = Signal()

    def __init__(self, theme: Theme, parent: QObject) -> None:
        super().__init__(parent)
        self.combo = ToolbarCombo(theme, "beside", "Graph to draw beside it")
        self.combo.activated.connect(self._activated)
        self.combo.hide()
        self._key = ""
        self._drawn: DrawnPair | None = None
        self._cache = LayoutCache()
        self._made: tuple[object, GraphPair | None, PairScene | None] | None = None

    @property
    def key(self) -> str:
        """Return which graph is chosen, empty for none."""
        return self._key

    def _activated(self, _index: int) -> None:
        self._key = str(self.combo.currentData())
        self.chosen.emit()

    def show_choices(self, state: State, name: str) -> None:
        """Offer the graphs of other sessions with the method, and the other ones of this session.

        Args:
            state: of the window
            name: of the graph that is drawn
        """
        choices = [(_ALONE, "")]
        for one in state.sessions:
            for graph in _graphs(one, state.method):
                here = one.id == state.current
                if here and graph == name:
                    continue
                words = graph_title(graph) if here else f"{one.id}  {one.session.name}"
                more = "" if here or graph == name else f" · {graph_title(graph)}"
                choices.append((words + more, f"{one.id}{_JOINT}{graph}"))
        if self._key not in {key for _, key in choices}:
            self._key = ""
        self.combo.show_choices(choices, self._key)
        self.combo.setVisible(len(choices) > 1)

    def other(self, state: State) -> tuple[OpenSession, str] | None:
        """Return session and name of the chosen graph, None without one."""
        letter, _, graph = self._key.partition(_JOINT)
        found = next((one for one in state.sessions if one.id == letter), None)
        return None if found is None else (found, graph)

    def titles(self, state: State, name: str) -> tuple[str, str] | None:
        """Return the titles of both graphs, None without a second one.

        Args:
            state: of the window
            name: of the first graph
        """
        one, other = state.open_session, self.other(state)
        if one is None or other is None:
            return None
        pairs = ((one, name), other)
        first, second = (f"{of.id}  {of.session.name} · {graph_title(g)}" for of, g in pairs)
        return first, second

    def build(
        self,
        sources: tuple[tuple[Session, str], tuple[Session, str]],
        method: str,
        expanded: frozenset[ClusterPath] | None,
    ) -> DrawnPair | None:
        """Return both graphs laid out together; called in a thread."""
        made = self._made
        if made is None or made[0] != (sources, method):
            pair = graph_pair(sources[0], sources[1], method)
            made = ((sources, method), pair, None if pair is None else union_scene(pair))
            self._made = made
        _, pair, union = made
        if pair is None or union is None:
            return None
        return build_pair(pair, union, sources, method, expanded, self._drawn, self._cache)

    def take(self, drawn: DrawnPair) -> None:
        """Take the pair that is drawn."""
        self._drawn = drawn

    def note(self) -> str:
        """Return the number of differing nodes."""
        if self._drawn is None:
            return ""
        total = sum(self._drawn.counts.values())
        return f"{plural(total, 'node')} of both differ" if total else "no node differs"


def _graphs(one: OpenSession, method: str) -> tuple[str, ...]:
    return graph_names(one.session, method) if method in one.session.methods else ()
