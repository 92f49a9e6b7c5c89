"""The search of the graph view: its field, its matches in order, and saved filters."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QLineEdit, QMenu, QToolButton

from devtools_app.state.store import Store
from devtools_app.viewmodels.scene import GraphScene
from devtools_app.viewmodels.scene_search import search_nodes
from devtools_app.widgets.fields import ToolButton
from devtools_app.widgets.filter_box import FilterBox
from inspector.tables.filter import FilterError

_HELP = (
    "Words must all occur in a node's operator, name, module or weights.\n"
    "/conv|gelu/ is a regular expression. Return: the next one, Shift+F3: the one before."
)
MOST_SAVED = 20
_LEAST = 120  # pixels of the field: beside it are tools of one line


class GraphSearch(QObject):
    """Finds nodes by words.

    Attributes:
        changed: the matches are others
        box: the field
        saved: button with the saved filters
        found: names of the matches, None without a search
    """

    changed = Signal()

    def __init__(self, store: Store, parent: QObject) -> None:
        super().__init__(parent)
        self._store = store
        self._graph: GraphScene | None = None
        self.found: tuple[str, ...] | None = None
        self.box = FilterBox("Find in the graph")
        self.box.setPlaceholderText("find   /regex/")
        self.box.setMinimumWidth(_LEAST)
        self.box.setToolTip(_HELP)
        self.box.filter_changed.connect(lambda _text: self.search())
        self.saved = ToolButton()
        self.saved.setAccessibleName("Saved filters")
        self.saved.setToolTip("Saved filters")
        self.saved.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.menu = QMenu(self.saved)
        self.menu.aboutToShow.connect(self._fill)
        self.saved.setMenu(self.menu)

    def set_graph(self, graph: GraphScene | None) -> None:
        """Search in another graph."""
        self._graph = graph
        self.search()

    def search(self) -> None:
        """Search again for the text of the field."""
        self.found = None
        if self._graph is not None:
            try:
                self.found = search_nodes(self._graph, self.box.text())
                self.box.show_error("")
                if self.found is None:
                    self.box.setToolTip(_HELP)
            except FilterError as error:
                self.box.show_error(str(error))
        self.changed.emit()

    def start(self) -> None:
        """Focus the field."""
        self.box.setFocus()
        QLineEdit.selectAll(self.box)

    def after(self, current: str, by: int) -> str:
        """Return the next or previous match from a node, empty without matches."""
        found = self.found
        if not found:
            return ""
        if current in found:
            return found[(found.index(current) + by) % len(found)]
        return found[0 if by > 0 else -1]

    # -- saved filters ---------------------------------------------------------------------

    def _fill(self) -> None:
        self.menu.clear()
        saved, text = self._store.state.graph_filters, self.box.text().strip()
        for one in saved:
            self.menu.addAction(one.replace("&", "&&"), lambda one=one: self.use(one))
        if saved:
            self.menu.addSeparator()
        keep = self.menu.addAction(f"Save “{text}”" if text else "Type a filter to save it")
        keep.triggered.connect(lambda _on=False: self.keep(text))
        keep.setEnabled(bool(text) and text not in saved)
        if text in saved:
            keep.setText(f"Remove “{text}”")
            keep.setEnabled(True)

    def use(self, text: str) -> None:
        """Search for a saved filter."""
        self.box.show_text(text)
        self.search()

    def keep(self, text: str) -> None:
        """Save a filter, or remove it if it is saved."""
        saved = self._store.state.graph_filters
        others = tuple(one for one in saved if one != text)
        kept = others if len(others) < len(saved) else (*others, text)[-MOST_SAVED:]
        self._store.update(graph_filters=kept)
