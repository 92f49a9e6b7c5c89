"""The structure view: headers, tables and members of every file, with their bytes."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QModelIndex, QPoint, Qt
from PySide6.QtGui import QColor, QGuiApplication, QKeyEvent
from PySide6.QtWidgets import QAbstractItemView, QLineEdit, QMenu, QTreeView, QVBoxLayout, QWidget
from typing_extensions import override

from devtools_app.appearance.theme import FontSize, set_role
from devtools_app.jobs.latest import Latest
from devtools_app.state.state import State
from devtools_app.viewmodels.structure_search import StructureMatch, find_before, find_next
from devtools_app.views.editing import add_tensors
from devtools_app.views.pane import Pane
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.views.structure_model import StructureModel
from devtools_app.widgets.beside import Beside
from devtools_app.widgets.column_fit import ColumnFit, ColumnWidth
from devtools_app.widgets.exports import Exports, text_format
from devtools_app.widgets.files import Done, unreported
from devtools_app.widgets.filter_box import FilterBox
from devtools_app.widgets.folded_columns import FoldedColumns
from devtools_app.widgets.hex_view import HexView
from inspector.files.session import Session
from inspector.render.delimited import write_table
from inspector.structure.files import plan_value, structure
from inspector.structure.node import StructureNode
from inspector.tables.filter import FilterError, parse_filter
from inspector.tables.selection import Selection, SelectionKind
from inspector.tables.structure import MOST_LINES, TITLES, line_cell, line_table
from inspector.tables.table import Table

# name, type, value, offset, bytes
_WIDTHS = (
    ColumnWidth(196, 280, 420),
    ColumnWidth(80, 112, 220),  # XnnpackBackend
    ColumnWidth(144, 170, 420),  # 7,060,281 bytes, stored
    ColumnWidth(76, 80, 100),
    ColumnWidth(76, 84, 110),
)
_VALUE = 2
_TREE = 68, 60  # percent of the room, with text of the usual size and twice as large


class _Tree(QTreeView):
    """A tree in which Return opens and closes."""

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            index = self.currentIndex().siblingAtColumn(0)
            self.setExpanded(index, not self.isExpanded(index))
            return
        super().keyPressEvent(event)


class StructurePane(Pane):
    """A tree that is loaded lazily, and the bytes of the selected row.

    Keys: arrows navigate and open, Return opens or closes, F3 and Shift+F3 go to the next match and
    the one before, Ctrl+G goes to an offset of the file.
    """

    def __init__(self, context: ViewContext) -> None:
        super().__init__(context, "Structure")
        self.model = StructureModel()
        self.tree = _Tree()
        self.hex = HexView(context.theme, "Bytes of the chosen field")
        self._files: dict[str, memoryview] = {}
        self._shown_data: memoryview | None = None
        self._reported = ""
        self._nodes: tuple[StructureNode, ...] = ()
        self._finding = Latest("structure search", self)
        self._exports = Exports(self)
        self._finding.ready.connect(self._show_found)
        self._finding.ended.connect(self.busy.stop)
        self.busy.cancelled.connect(self._finding.cancel)
        self._prepare_tree()
        self._add_search()
        self.add_tool(FoldedColumns(self._fit, lambda: TITLES), right=True)
        self._fit.fold()
        self.offset = QLineEdit()
        self.offset.setPlaceholderText("offset   0x1f0")
        self.offset.setAccessibleName("Go to an offset")
        self.offset.setToolTip("Go to an offset of the bytes shown, decimal or 0x…  (Ctrl+G)")
        self.offset.setMaximumWidth(130)
        self.offset.returnPressed.connect(self._go_to_offset)
        self.add_tool(self.offset, right=True)
        self.add_keys("Ctrl+G", self._focus_offset)
        side = QWidget()
        layout = QVBoxLayout(side)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.hex)
        self.splitter = Beside(self.tree, side, *_TREE, context.theme)
        self.set_content(self.splitter)
        context.theme.follow(self._restyle)
        self._restyle()

    def _add_search(self) -> None:
        self.search = FilterBox("Find in the structure")
        self.search.setPlaceholderText("find   /regex/")
        self.search.setToolTip(
            "Words must all occur in a line's name, type or value; lines are opened as needed.\n"
            "/conv|relu/ is a regular expression. Return: the next one, Shift+F3: the one before."
        )
        self.search.left.connect(lambda: self.seek(1))
        self.add_tool(self.search, right=True)
        self.add_button("", "Match before", lambda: self.seek(-1), icon="up", right=True)
        self.add_button("", "Next match", lambda: self.seek(1), icon="down", right=True)
        self.add_keys("F3", lambda: self.seek(1))
        self.add_keys("Shift+F3", lambda: self.seek(-1))

    def _prepare_tree(self) -> None:
        tree = self.tree
        tree.setModel(self.model)
        tree.setAccessibleName("Structure of the files")
        tree.setUniformRowHeights(True)
        tree.setAllColumnsShowFocus(True)
        tree.setTextElideMode(Qt.TextElideMode.ElideMiddle)  # many names differ in their ends
        tree.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        tree.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        tree.header().setStretchLastSection(False)
        self._fit = ColumnFit(tree)
        tree.selectionModel().currentChanged.connect(self._moved)
        tree.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        tree.customContextMenuRequested.connect(self._menu)

    def _restyle(self) -> None:
        palette = self.theme.palette
        mono = self.theme.mono(FontSize.NORMAL)
        self.model.set_looks(QColor(palette.muted), QColor(palette.bad), mono)
        self._fit.set_columns([one.scaled(self.theme.scale) for one in _WIDTHS])

    # -- state -----------------------------------------------------------------------------

    @override
    def show_session(self, session: Session, state: State) -> None:
        """Show the files of the session of a state."""
        self._files = {file.path: file.data for file in session.files}
        self.request(state.open_session, lambda: structure(session))

    @override
    def show_result(self, result: object) -> None:
        """Show the files, the first one open."""
        if not isinstance(result, tuple):
            return
        self._shown_data = None
        self._nodes = result
        self.model.set_nodes(result)
        for row in range(min(self.model.rowCount(), 4)):
            self.tree.expand(self.model.index(row, 0))
        self.show_content()
        if self.model.rowCount():
            self.tree.setCurrentIndex(self.model.index(0, 0))
        self.show_selection(self.state)

    # -- bytes -----------------------------------------------------------------------------

    def _moved(self, current: QModelIndex, _previous: QModelIndex) -> None:
        node = self.model.node(current)
        if node is not None:
            self._show_bytes(node)

    def _show_bytes(self, node: StructureNode) -> None:
        text = [node.name, node.type, *self._hidden_value(node), node.meaning]
        if node.position is not None:
            text.append(f"at {node.position:#x} ({node.position:,})")
        if node.nbytes is not None:
            text.append(f"{node.nbytes:,} bytes")
        self._report(" · ".join(word for word in text if word), failed=node.failed)
        if node.data is None or node.offset is None:
            return
        base = max(node.base, 0)
        if node.data is not self._shown_data:
            self._shown_data = node.data
            self.hex.show_data(node.data, base)
        self.hex.mark(base + node.offset, node.nbytes or 0)

    def _hidden_value(self, node: StructureNode) -> list[str]:
        """Return the value of a line where its column has no room."""
        return [line_cell(node, _VALUE)] if self._fit.is_hidden(_VALUE) else []

    def _menu(self, at: QPoint) -> None:
        index = self.tree.indexAt(at)
        node = self.model.node(index)
        if node is None:
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        text = "\t".join(filter(None, (node.name, node.type, node.text)))
        menu.addAction("Copy the line", lambda: QGuiApplication.clipboard().setText(text))
        found = self._selection_of(index, node)
        if found:
            add_tensors(menu, found, self.context)
        menu.popup(self.tree.viewport().mapToGlobal(at))

    def _selection_of(self, index: QModelIndex, node: StructureNode) -> Selection:
        """Return the selection of the line in other views: a value of a plan or part of a file."""
        way: list[str] = []
        above = index
        while above.isValid():
            one = self.model.node(above)
            way.append(one.name if one is not None else "")
            above = above.parent()
        value = plan_value(tuple(reversed(way)), self.state.session)
        if value is not None:
            method, number = value
            return Selection(SelectionKind.VALUE, method, value=number)
        path = next((path for path, data in self._files.items() if data is node.data), None)
        if path is None or node.position is None or not node.nbytes:
            return Selection()
        return Selection(SelectionKind.PART, part=f"{path}@{node.position}+{node.nbytes}")

    def _report(self, text: str, *, failed: bool = False) -> None:
        self.note.setText(text)
        self.note.setToolTip(text)
        set_role(self.note, "role", "bad" if failed else "muted")

    def _focus_offset(self) -> None:
        self.offset.setFocus()
        self.offset.selectAll()

    def _go_to_offset(self) -> None:
        try:
            offset = int(self.offset.text().strip().replace(",", ""), 0)
        except ValueError:
            self._report("an offset is a number such as 496 or 0x1f0", failed=True)
            return
        self.hex.go_to(offset)
        self.hex.setFocus()

    @override
    def show_selection(self, state: State) -> None:
        """Show the bytes of a part that was chosen in the size view."""
        selection = state.selection
        if selection.kind is not SelectionKind.PART or selection.part == self._reported:
            return
        self._reported = selection.part
        path, _, place = selection.part.rpartition("@")
        data = self._files.get(path)
        offset, _, size = place.partition("+")
        if data is None or not (offset.isdigit() and size.isdigit()):
            return
        self._shown_data = data
        self.hex.show_data(data)
        self.hex.mark(int(offset), int(size))
        self._report(f"{Path(path).name} · {int(size):,} bytes at {int(offset):#x}")

    # -- search ----------------------------------------------------------------------------

    def start_find(self) -> None:
        """Focus the search field."""
        self.search.setFocus()
        QLineEdit.selectAll(self.search)

    @property
    def finding(self) -> bool:
        """Return whether a search is running."""
        return self._finding.busy

    def seek(self, by: int) -> None:
        """Search the next or previous match in a thread."""
        try:
            requested = parse_filter(self.search.text(), Table())
        except FilterError as error:
            self.search.show_error(str(error))
            return
        self.search.show_error("")
        if not requested:
            self.tree.setFocus()
            return
        nodes, at = self._nodes, self.model.way_to(self.tree.currentIndex())
        look = find_next if by > 0 else find_before
        self.busy.start("Searching the structure")
        self._finding.submit(lambda token: look(nodes, requested, at, token.check))

    def _show_found(self, result: object) -> None:
        if not isinstance(result, StructureMatch):
            return
        if not result.way:
            rest = "" if result.complete else f" in the first {MOST_LINES:,} lines"
            self._report(f"nothing found{rest}", failed=True)
            return
        index = self.model.index_of(result.way)
        self.tree.setCurrentIndex(index)
        self.tree.scrollTo(index, QAbstractItemView.ScrollHint.PositionAtCenter)

    @override
    def shut_down(self) -> None:
        """Stop running threads; called once before the window closes."""
        self._finding.close()
        super().shut_down()

    def export_to(self, path: Path, done: Done = unreported) -> bool:
        """Begin to write the visible rows as TSV or CSV by the suffix."""
        kind = text_format(path)
        rows: list[tuple[int, StructureNode]] = []
        index = self.model.index(0, 0)
        while index.isValid():
            node = self.model.node(index)
            if node is not None:
                rows.append((_depth(index), node))
            index = self.tree.indexBelow(index)
        table = line_table(rows)
        rows_of_table = range(table.length)
        self._exports.start(path, lambda out: write_table(table, rows_of_table, out, kind), done)
        return True


def _depth(index: QModelIndex) -> int:
    depth = 0
    while (index := index.parent()).isValid():
        depth += 1
    return depth


SPEC = ViewSpec("structure", "Structure", Area.CENTRE, StructurePane, "structure")
