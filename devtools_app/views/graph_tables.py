"""The facts of the graph view as tables beside the drawing: nodes, edges, boundaries, values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from devtools_app.jobs.latest import Latest
from devtools_app.views.editing import offer_edits_of_rows
from devtools_app.views.spec import ViewContext
from devtools_app.widgets.beside import Beside
from devtools_app.widgets.empty_state import Need
from devtools_app.widgets.exports import Exports, text_format
from devtools_app.widgets.files import Done, unreported
from devtools_app.widgets.table_view import TableView
from devtools_app.widgets.toolbar_combo import ToolbarCombo
from inspector.files.session import Session
from inspector.graph.model_graph import ModelGraph
from inspector.render.delimited import write_table
from inspector.tables.graph import edge_table, node_table
from inspector.tables.query import QueryError
from inspector.tables.registry import build
from inspector.tables.row_order import RowOrder
from inspector.tables.selection import Selection, SelectionKind, Units
from inspector.tables.table import Table

_NODES, _EDGES, _BOUNDARIES, _VALUES = "nodes", "edges", "boundaries", "node-data"
_CHOICES = [
    ("nodes", _NODES),
    ("edges", _EDGES),
    ("boundaries", _BOUNDARIES),
    ("values of a file", _VALUES),
]


@dataclass(frozen=True, slots=True, eq=False)
class Tabled:
    """The subject of the tables.

    Attributes:
        session: of the graph
        method: name
        graph: that is drawn
        units: of times and sizes
    """

    session: Session
    method: str
    graph: ModelGraph
    units: Units


class GraphTables(QObject):
    """A panel with one table at a time; built in a thread while it is visible.

    Attributes:
        chosen: name of the node of the row the user moved to
        table: the table
    """

    chosen = Signal(str)

    def __init__(self, context: ViewContext, parent: QObject) -> None:
        super().__init__(parent)
        self.table = TableView(context.theme, "graph facts")
        self.lists = ToolbarCombo(context.theme, "list", "Which facts of the graph to list")
        self.lists.show_choices(_CHOICES, _NODES)
        self.lists.activated.connect(lambda _index: self._build())
        self.table.add_tool(self.lists, right=True)
        self.table.row_chosen.connect(self._row_chosen)
        self.table.hide()
        offer_edits_of_rows(self.table, context)
        self._shown: Tabled | None = None
        self._exports = Exports(self.table)
        self._built: tuple[object, ...] = ()
        self._latest = Latest("tables of the graph", self)
        self._latest.ready.connect(self._ready)

    def around(self, drawing: QWidget) -> Beside:
        """Return the drawing with the table beside or below it."""
        return Beside(drawing, self.table)

    @property
    def working(self) -> bool:
        """Return whether a table is being built."""
        return self._latest.busy

    def toggle(self) -> None:
        """Show or hide the table; it has the keyboard while it is new."""
        self.table.setVisible(self.table.isHidden())
        self._build()
        if not self.table.isHidden():
            self.table.setFocus()

    def show(self, shown: Tabled | None) -> None:
        """List the facts of another graph."""
        self._shown = shown
        self._build()

    def mark(self, node: str) -> None:
        """Move to the row of a node, if it has one."""
        shown = self._shown
        if shown is not None and not self.table.isHidden() and node:
            graph = shown.graph.name if self.lists.currentData() == _NODES else ""
            if graph:
                key = Selection(SelectionKind.NODE, shown.method, graph, node)
                self.table.show_current(key)

    def export_to(self, path: Path, done: Done = unreported) -> bool:
        """Begin to write the table as TSV or CSV; without one on the screen that of the edges."""
        shown, kind = self._shown, text_format(path)
        if not self.table.isHidden() or shown is None:
            return self.table.export_to(path, done)

        def write(out: TextIO) -> None:
            edges = edge_table(shown.method, shown.graph, shown.units)
            write_table(edges, range(edges.length), out, kind)

        self._exports.start(path, write, done)
        return True

    def shut_down(self) -> None:
        """Stop the thread."""
        self._latest.close()

    def _build(self) -> None:
        shown, name = self._shown, str(self.lists.currentData())
        if shown is None or self.table.isHidden():
            return
        key = (shown.session, shown.method, shown.graph, shown.units, name)
        if key != self._built:
            self._built = key
            self._latest.submit(lambda _token: _table(shown, name))

    def _ready(self, result: object) -> None:
        if isinstance(result, RowOrder):
            self.table.set_need(Need("Nothing to list"))
            self.table.show_table(result)
        elif isinstance(result, str):
            self.table.set_need(Need("Nothing to list", result))
            self.table.show_table(Table())

    def _row_chosen(self, row: int) -> None:
        key = self.table.rows.key(row)
        if isinstance(key, Selection) and key.node:
            self.chosen.emit(key.node)


def _table(shown: Tabled, name: str) -> RowOrder | str:
    """Return a table, or why there is none."""
    if name == _NODES:
        return RowOrder(node_table(shown.method, shown.graph))
    if name == _EDGES:
        return RowOrder(edge_table(shown.method, shown.graph, shown.units))
    try:
        found = build(name, shown.session, shown.method, shown.units)
    except QueryError as error:
        return str(error)
    return RowOrder(found) if isinstance(found, Table) else "not a table of rows"
