"""Highlights and parts of the graph view: the menu, its keys, and what they show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QMenu

from devtools_app.viewmodels.graph_trace import Highlight, downstream, nodes_of, path, upstream
from devtools_app.viewmodels.layout.placed import Placed
from devtools_app.viewmodels.scene import GraphScene
from devtools_app.widgets.graph_canvas_pick import NOTHING
from inspector.graph.reach import around


@dataclass(frozen=True, slots=True, eq=False)
class ShownGraph:
    """The content of the view.

    Attributes:
        graph: nodes and edges
        placed: boxes
        item: selected box, or NOTHING
        found: nodes of a search, None without one
    """

    graph: GraphScene
    placed: Placed
    item: int
    found: tuple[str, ...] | None


class GraphFocus(QObject):
    """Highlights parts of a graph, and chooses the part that is drawn alone.

    Attributes:
        highlighted: (Highlight or None) what to highlight
        part_chosen: (names of nodes or None) what to draw alone; None for the whole
        noted: (sentence) why nothing happened
        trace: what is highlighted, or None
        part: names of the nodes drawn alone, None for the whole graph
    """

    highlighted = Signal(object)
    part_chosen = Signal()
    noted = Signal(str)

    def __init__(self, shown: Callable[[], ShownGraph | None], parent: QObject) -> None:
        super().__init__(parent)
        self._shown = shown
        self.trace: Highlight | None = None
        self.part: tuple[str, ...] | None = None

    def groups(self) -> tuple[list[tuple[str, Callable[[], None], bool]], ...]:
        """Return the commands, in groups, with their keys and whether they can be used."""
        shown = self._shown()
        chosen = shown is not None and shown.item != NOTHING
        some = chosen or self.trace is not None or bool(shown is not None and shown.found)
        highlights = [
            ("Highlight what leads here\t[", self.before, chosen),
            ("Highlight what follows\t]", self.after, chosen),
            ("Highlight the path to another box\tCtrl+click", self.before, False),
        ]
        parts = [
            ("Show only this\tX", self.only, some),
            ("Show only this and its neighbours\tZ", self.neighbours, chosen),
            ("Show the whole graph again\tShift+X", self.whole, self.part is not None),
        ]
        return highlights, parts

    def fill(self, menu: QMenu) -> None:
        """Show the commands in a menu instead of what it has."""
        menu.clear()
        for group in self.groups():
            for text, act, on in group:
                action = menu.addAction(text)
                action.triggered.connect(lambda _on=False, act=act: act())
                action.setEnabled(on)
            menu.addSeparator()

    def _put(self, trace: Highlight | None) -> None:
        self.trace = trace
        self.highlighted.emit(trace)

    def clear(self) -> bool:
        """End the highlight; return whether there was one."""
        found = self.trace is not None
        if found:
            self._put(None)
        return found

    def reset(self) -> None:
        """Forget highlight and part: another graph is shown."""
        self.trace = self.part = None
        self.highlighted.emit(None)

    def before(self) -> None:
        """Highlight what the selected box depends on."""
        self._reach(upstream)

    def after(self) -> None:
        """Highlight what depends on the selected box."""
        self._reach(downstream)

    def _reach(self, reach: Callable[[GraphScene, tuple[int, ...], str], Highlight]) -> None:
        shown = self._shown()
        if shown is None or shown.item == NOTHING:
            self.noted.emit("Select a box first")
            return
        title = shown.placed.title_of(shown.item)
        self._put(reach(shown.graph, nodes_of(shown.placed, shown.item), title))

    def path_to(self, item: int) -> None:
        """Highlight the ways between the selected box and another one."""
        shown = self._shown()
        if shown is None or item == NOTHING:
            return
        if shown.item in (NOTHING, item):
            self.noted.emit("Select another box first: a path has two ends")
            return
        ends = (shown.item, item)
        titles = (shown.placed.title_of(ends[0]), shown.placed.title_of(ends[1]))
        one, two = (nodes_of(shown.placed, end) for end in ends)
        trace = path(shown.graph, one, two, titles)
        if trace is None:
            self.noted.emit(f"No path between {titles[0]} and {titles[1]}")
        self._put(trace)

    def only(self) -> None:
        """Draw only what is highlighted, else the matches of the search, else the selection."""
        shown = self._shown()
        if shown is None:
            return
        names = shown.placed.scene.names
        if self.trace is not None:
            self._choose(tuple(names[node] for node in sorted(self.trace.nodes)))
        elif shown.item != NOTHING:
            self._choose(tuple(names[node] for node in nodes_of(shown.placed, shown.item)))
        elif shown.found:
            self._choose(shown.found)
        else:
            self.noted.emit("Select a box, or find some, to show only those")

    def neighbours(self) -> None:
        """Draw only the selected box with what it reads and what reads it."""
        shown = self._shown()
        if shown is not None and shown.item != NOTHING:
            inside = nodes_of(shown.placed, shown.item)
            names = shown.placed.scene.names
            found = around(shown.graph.graph, inside)
            self._choose(tuple(names[node] for node in sorted(found)))

    def whole(self) -> None:
        """Draw the whole graph again."""
        if self.part is not None:
            self._choose(None)

    def _choose(self, part: tuple[str, ...] | None) -> None:
        self.part = part
        self._put(None)
        self.part_chosen.emit()
