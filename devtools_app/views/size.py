"""The size view: the purpose of every byte of the files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QPoint
from typing_extensions import override

from devtools_app.jobs.latest import Latest
from devtools_app.state.state import State
from devtools_app.viewmodels.size_map import Duplicates, SizeMap, find_duplicates, size_map
from devtools_app.views.editing import item_menu, offer_edits_of_rows
from devtools_app.views.pane import Pane
from devtools_app.views.pane_parts import CanvasImage, PanelActions
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.beside import Beside, with_legend
from devtools_app.widgets.empty_state import Need
from devtools_app.widgets.legend import Legend
from devtools_app.widgets.table_view import TableView
from devtools_app.widgets.toolbar_combo import ToolbarCombo
from devtools_app.widgets.treemap_canvas import TreemapCanvas
from devtools_app.widgets.treemap_canvas_paint import STRENGTH
from inspector.files.session import Session
from inspector.size.users import stored_users
from inspector.tables.row_order import RowOrder, SortKey
from inspector.tables.selection import Selection, SelectionKind
from inspector.tables.size import part_selection, parts_table
from inspector.units import format_bytes

_SIZE_COLUMN = 1
_DRAWING = 60, 42  # percent of the room, with text of the usual size and twice as large
_FIRST = ("pte", "bpte", "ptd", "etrecord")


@dataclass(frozen=True, slots=True, eq=False)
class _SizeContent:
    map: SizeMap
    table: RowOrder

    def part_of(self, selection: Selection) -> int | None:
        """Return the number of a selected part, None for others."""
        found = self.table.table.finder()(selection)
        return None if found < 0 else found


class SizePane(CanvasImage, PanelActions, Pane):
    """Draws the parts of one file or of all, and lists them."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__(context, "Size")
        self.canvas = TreemapCanvas(context.theme.canvas)
        self.legend = Legend(context.theme.canvas, line=True, strength=STRENGTH)
        self.table = TableView(context.theme, "parts")
        self._content: _SizeContent | None = None
        self._path: str | None = None
        self._session: Session | None = None
        self._hashing = Latest("duplicates", self)
        self._hashing.ready.connect(self._show_duplicates)
        self._hashing.failed.connect(self._hashing_failed)
        self.files = ToolbarCombo(self.theme, "file", "File to show")
        self.files.activated.connect(self._file_chosen)
        self.add_tool(self.files)
        self.hash_button = self.add_button(
            "Find duplicates",
            "Read all parts and find those with equal bytes",
            self.find_duplicates,
            keys="Shift+D",
        )
        self.add_button("Out", "Show the part around", self.canvas.out, icon="up", right=True)
        self.splitter = Beside(
            with_legend(self.canvas, self.legend), self.table, *_DRAWING, context.theme
        )
        self.set_content(self.splitter)
        self.canvas.selected.connect(self._box_chosen)
        self.canvas.menu_requested.connect(self._menu)
        self.table.row_chosen.connect(self._row_chosen)
        offer_edits_of_rows(self.table, context)
        self.theme.follow(self._restyle)

    def _restyle(self) -> None:
        self.canvas.set_colours(self.theme.canvas)
        self.legend.set_colours(self.theme.canvas)

    # -- state -----------------------------------------------------------------------------

    @override
    def show_session(self, session: Session, state: State) -> None:
        """Show the files of the session of a state."""
        if session is not self._session:
            self._session, self._path = session, _first_path(session)
            self._hashing.cancel()
        path, unit = self._path or "", state.units.size
        choices = [(Path(file.path).name, file.path) for file in session.files]
        if len(choices) > 1:
            choices.append(("all files", ""))
        self.files.show_choices(choices, path)
        self.request((state.open_session, path, unit), lambda: _build(session, path, unit))

    @override
    def show_result(self, result: object) -> None:
        """Draw the parts of a file."""
        if not isinstance(result, _SizeContent):
            return
        self._content = result
        if not result.map.parts:
            problem = "\n".join(result.map.problems) or "The files are empty."
            self.show_need(Need("This file cannot be divided into parts", problem), tools=True)
            return
        self.canvas.set_data(result.map.data)
        self.legend.set_entries(result.map.legend)
        self.table.show_table(result.table)
        self.table.sort_by(_SIZE_COLUMN, descending=True)
        self.note.setText(" · ".join((result.map.headline, *result.map.problems)))
        self.hash_button.setEnabled(True)
        self.show_content()
        self.show_selection(self.state)

    def _file_chosen(self, _index: int) -> None:
        self._path = str(self.files.currentData())
        self.show_state(self.state)

    # -- duplicates ------------------------------------------------------------------------

    def find_duplicates(self) -> None:
        """Read all parts in a thread and find those with equal bytes."""
        content = self._content
        if content is None or self._hashing.busy:
            return
        self.hash_button.setEnabled(False)
        self.note.setText("reading all bytes …")
        self._hashing.submit(lambda _token: (content, find_duplicates(content.map)))

    @property
    def hashing(self) -> bool:
        """Return whether a search for duplicates is running."""
        return self._hashing.busy

    def _show_duplicates(self, result: object) -> None:
        self.hash_button.setEnabled(True)
        if not isinstance(result, tuple) or len(result) != 2:
            return
        content, found = result
        if (
            content is not self._content
            or not isinstance(found, Duplicates)
            or self._content is None
        ):
            return
        several, unit = len(self._content.map.files) > 1, self.state.units.size
        users = None if self._session is None else stored_users(self._session)
        table = parts_table(found.parts, unit, files=several, users=users)
        self.table.show_table(table)
        again = f"{found.count:,} duplicate parts"
        text = (
            f"{again}: {format_bytes(found.wasted)} can be saved"
            if found.count
            else "no duplicates"
        )
        self.note.setText(f"{self._content.map.headline} · {text}")

    def _hashing_failed(self, error: object) -> None:
        self.hash_button.setEnabled(True)
        self.note.setText(f"the bytes could not be read: {error}")

    # -- selection -------------------------------------------------------------------------

    def _box_chosen(self, box: int) -> None:
        content = self._content
        if content is None:
            return
        number = int(content.map.leaf[box])
        if number < 0:
            self.select(Selection())
            return
        self.select(part_selection(*content.map.parts[number]))

    def _menu(self, at: QPoint) -> None:
        selection, content = self.state.selection, self._content
        number = None if content is None else content.part_of(selection)
        if content is not None and number is not None:
            name = content.map.data.names[int(content.map.box[number])]
            menu = item_menu(self.canvas, name, selection, SPEC.name, self.context)
            menu.popup(self.canvas.mapToGlobal(at))

    def _row_chosen(self, row: int) -> None:
        self.select_key(self.table.rows.key(row))

    @override
    def show_selection(self, state: State) -> None:
        content = self._content
        if content is None:
            return
        number = content.part_of(state.selection)
        if number is None or state.selection.kind is not SelectionKind.PART:
            self.canvas.set_selected(-1)
            self.table.show_current(None)
            return
        self.canvas.set_selected(int(content.map.box[number]))
        self.table.show_current(state.selection)

    @override
    def shut_down(self) -> None:
        """Stop running threads; called once before the window closes."""
        self._hashing.close()
        super().shut_down()


def _first_path(session: Session) -> str:
    """Return the file to show first: the program, else another file with parts."""
    for kind in _FIRST:
        found = next((file for file in session.files if file.kind == kind), None)
        if found is not None:
            return found.path
    return session.files[0].path if session.files else ""


def _build(session: Session, path: str, unit: str) -> _SizeContent:
    content = size_map(session, path, unit)
    several, users = len(content.files) > 1, stored_users(session)
    table = parts_table(content.parts, unit, files=several, users=users)
    order = RowOrder(table)
    order.rows((SortKey(_SIZE_COLUMN, True),))
    return _SizeContent(content, order)


SPEC = ViewSpec("size", "Size", Area.CENTRE, SizePane, "size")
