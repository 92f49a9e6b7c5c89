"""Common parts of tables and trees: title, filter, count, empty state, style, copy, export."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QFontMetrics, QGuiApplication, QKeyEvent, QKeySequence, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QLabel,
    QMenu,
    QSizePolicy,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from devtools_app.appearance.theme import Theme, set_role
from devtools_app.qtmodels.cells import cell_looks
from devtools_app.qtmodels.row_marks import RowMarks
from devtools_app.qtmodels.table_model import TableModel
from devtools_app.qtmodels.tree_model import TreeModel
from devtools_app.widgets.badge_delegate import BadgeDelegate
from devtools_app.widgets.cell_delegate import CellDelegate, NameDelegate
from devtools_app.widgets.column_fit import ColumnFit
from devtools_app.widgets.elided_label import ElidedLabel
from devtools_app.widgets.empty_state import EmptyState, Need
from devtools_app.widgets.exports import Exports, text_format
from devtools_app.widgets.files import AskSave, Done, ask_save, unreported
from devtools_app.widgets.filter_box import FilterBox
from devtools_app.widgets.folded_columns import FoldedColumns
from devtools_app.widgets.share_bar import ShareDelegate
from inspector.render.delimited import tsv, write_table
from inspector.tables.filter import FilterError, parse_filter
from inspector.tables.magnitude import has_size
from inspector.tables.table import Column, ColumnKind, Table

_LOG = logging.getLogger(__name__)
_NO_MATCH = "No row matches the filter"
_ROW_PAD = 9


class ItemPanel(QWidget):
    """A table or tree with its filter line; see TableView and TreeView.

    Signals:
        row_chosen(row): the user moved to another row; a row of the table, not a place on screen
        row_activated(row): the user pressed Return on a row or double-clicked it
        filter_changed(text): the user typed another filter

    Attributes:
        name: name of the rows, also for screen readers
        ask_path: asks for the path of an export; replaced in tests
        more_actions: adds actions for the row of a key to the context menu
    """

    _fit: ColumnFit  # of the view, set before this part is built

    row_chosen = Signal(int)
    row_activated = Signal(int)
    filter_changed = Signal(str)

    def __init__(
        self, theme: Theme, name: str, view: QAbstractItemView, model: TableModel | TreeModel
    ) -> None:
        super().__init__()
        self.name = name
        self.ask_path: AskSave = ask_save
        self.more_actions: Callable[[QMenu, Hashable], object] | None = None
        self._theme = theme
        self._view = view
        self._any_model = model
        self._delegates: dict[ColumnKind, CellDelegate] = {
            ColumnKind.SHARE: ShareDelegate(theme, model, self),
            ColumnKind.BADGE: BadgeDelegate(theme, model, self),
            ColumnKind.NUMBER: CellDelegate(model, self),
            ColumnKind.TEXT: NameDelegate(model, self),
        }
        self._filter = FilterBox(f"Filter {name}")
        self._count = ElidedLabel()
        self._count.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        self._more = FoldedColumns(
            self._fit, lambda: [column.title for column in self.rows.columns]
        )
        self._fit.fold()
        self._message: EmptyState | None = None  # built when first seen: most tables get rows first
        self._need = Need(f"No {name}")
        self._marked: Mapping[int, str] = {}
        self._exports = Exports(self)
        self._lay_out()
        self._prepare_view()
        self._filter.filter_changed.connect(self._filter_typed)
        self._filter.left.connect(self._view.setFocus)
        theme.follow(self._restyle)
        self._restyle()

    @property
    def rows(self) -> Table:
        """Return the table behind the panel; for a tree, the table of its nodes."""
        raise NotImplementedError

    def shown_rows(self) -> list[int]:
        """Return the rows shown, in the order shown."""
        return self.row_lister()()

    def row_lister(self) -> Callable[[], list[int]]:
        """Return a function that lists the rows shown now, which may be called in a thread."""
        raise NotImplementedError

    def selected_rows(self) -> list[int]:
        """Return the rows selected, in the order shown."""
        raise NotImplementedError

    def add_tool(self, widget: QWidget, *, right: bool = False) -> None:
        """Add a control to the filter line, behind the filter or at the right end.

        The filter and all behind it move when the panel gets wider or narrower; see `add_first`.
        """
        index = self._tools.count() if right else self._tools.indexOf(self._count)
        self._tools.insertWidget(index, widget)

    def add_first(self, widget: QWidget) -> None:
        """Add a control at the left end of the filter line.

        What is for the chosen row belongs there: choosing one can open the Node panel, and the
        button must not move away while the pointer is on its way.
        """
        self._tools.insertWidget(0, widget)

    def set_title(self, title: str) -> None:
        """Show a title before the filter."""
        self._title.setText(title)
        self._title.setVisible(bool(title))

    def set_need(self, need: Need) -> None:
        """Set the empty state: the content of the panel and the file that fills it."""
        if need != self._need:
            self._need = need
            self._refresh()

    def mark_rows(self, words: Mapping[int, str]) -> None:
        """Mark rows of the table until it is replaced, each with the reason on hover."""
        self._marked = words
        icon = self._theme.icon("pencil", "accent") if words else None
        self._any_model.set_marks(RowMarks(words, icon))

    def hide_tools(self, *, folds: bool = False) -> None:
        """Hide the filter line, for short lists; without it all columns are shown.

        Args:
            folds: columns without room are hidden nevertheless; a right click on the headings
                lists them
        """
        self._fit.fold(on=folds)
        self._bar.setVisible(False)

    def start_find(self) -> None:
        """Put the cursor into the filter."""
        self._filter.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._filter.selectAll()

    def set_filter_text(self, text: str) -> None:
        """Set the filter from another view or the state; `filter_changed` is not emitted."""
        self._filter.show_text(text)
        self._apply_filter(text)

    def copy(self) -> None:
        """Copy the selected rows, unrounded, tab-separated, with a header."""
        rows = self.selected_rows()
        if rows:
            QGuiApplication.clipboard().setText(tsv(self.rows, rows))

    def export_to(self, path: Path, done: Done = unreported) -> bool:
        """Begin to write all shown rows to a file: CSV for the suffix .csv, else TSV."""
        kind, rows, table = text_format(path), self.row_lister(), self.rows
        self._exports.start(path, lambda out: write_table(table, rows(), out, kind), done)
        return True

    def export(self) -> None:
        """Ask for a file and write all shown rows to it."""
        suggested = f"{self.name.replace(' ', '_')}.tsv"
        filters = "Tab-separated (*.tsv);;Comma-separated (*.csv)"
        path = self.ask_path(self, f"Export {self.name}", suggested, filters)
        if path is not None:
            self.export_to(path)

    def _lay_out(self) -> None:
        self._title = QLabel()
        self._title.setVisible(False)
        set_role(self._count, "role", "muted")
        self._bar = QWidget()
        self._stack = QStackedWidget()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._bar)
        layout.addWidget(self._stack, 1)
        self._tools = QHBoxLayout(self._bar)
        self._tools.setContentsMargins(8, 5, 8, 5)
        self._tools.setSpacing(8)
        self._tools.addWidget(self._title)
        self._tools.addWidget(self._filter, 1)
        self._filter.setMaximumWidth(320)
        self._tools.addWidget(self._count)
        self._tools.addWidget(self._more)
        self._tools.addStretch(1)
        self._stack.addWidget(self._view)

    def _prepare_view(self) -> None:
        view = self._view
        view.setModel(self._any_model)
        view.setAccessibleName(self.name)
        view.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        view.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        view.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        view.customContextMenuRequested.connect(
            lambda at: self._whole_menu().popup(view.viewport().mapToGlobal(at))
        )
        view.installEventFilter(self)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        # the view itself would copy one cell as shown; people want rows, unrounded
        if (
            isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.KeyPress
            and event.matches(QKeySequence.StandardKey.Copy)
        ):
            self.copy()
            return True
        return super().eventFilter(watched, event)

    def scroll_to_top(self) -> None:
        """Show the first rows."""
        self._view.scrollToTop()

    def current_row(self) -> int:
        """Return the row of the cursor, or -1."""
        raise NotImplementedError

    def current_key(self) -> Hashable | None:
        """Return the key of the row of the cursor, or None."""
        row = self.current_row()
        return None if row < 0 else self.rows.key(row)

    def _whole_menu(self) -> QMenu:
        menu = self._menu()
        key = self.current_key()
        if self.more_actions is not None and key is not None:
            menu.addSeparator()
            self.more_actions(menu, key)
        return menu

    def _menu(self) -> QMenu:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        index = self._view.currentIndex()
        if index.isValid():
            cell = str(index.data() or "")
            menu.addAction("Copy rows\tCtrl+C", self.copy)
            menu.addAction(
                f"Copy “{_short(cell)}”", lambda: QGuiApplication.clipboard().setText(cell)
            )
            if self.rows.columns[index.column()].is_text and cell and self._bar.isVisible():
                menu.addAction(f"Filter by “{_short(cell)}”", lambda: self._filter_by(cell))
            menu.addSeparator()
        if self.rows.length:
            menu.addAction(f"Export {self.name}…", self.export)
        if self.rows.columns:
            menu.addSeparator()
            self._add_sorting(menu)
            menu.addMenu(self._more.columns_menu())
        return menu

    def _add_sorting(self, menu: QMenu) -> None:
        """Add actions that sort by the column of the cursor, if there is one."""

    def _filter_by(self, cell: str) -> None:
        self._filter.show_text(cell)
        self._filter_typed(cell)

    def _filter_typed(self, text: str) -> None:
        self._apply_filter(text)
        self.filter_changed.emit(text)

    def _apply_filter(self, text: str) -> None:
        try:
            self._any_model.set_filter(parse_filter(text, self.rows))
        except FilterError as error:
            self._filter.show_error(str(error))
        else:
            self._filter.show_error("")
        self._refresh()

    def _rows_changed(self) -> None:
        """Keep the filter for new rows; the hint is computed once per table."""
        self._filter.set_example(_example(self.rows))
        self._apply_filter(self._filter.text())

    def _refresh(self) -> None:
        total, shown = self._total_count(), self._shown_count()
        noun = self.rows.noun if total != 1 else self.rows.noun.removesuffix("s")
        wrong = self._filter.accessibleDescription()
        many = f"{shown:,} of {total:,} {noun}" if shown != total else f"{total:,} {noun}"
        self._count.setText(wrong or many)
        set_role(self._count, "role", "bad" if wrong else "muted")
        self._show_rows_or_need()

    def _show_rows_or_need(self) -> None:
        """Show the rows, or without any what would fill the panel."""
        if not self._is_empty():
            self._stack.setCurrentWidget(self._view)
        elif self._message is not None or self.isVisible():
            if self._message is None:
                self._message = EmptyState(self._theme)
                self._stack.addWidget(self._message)
            self._message.show_need(Need(_NO_MATCH) if self._any_model.filtered else self._need)
            self._stack.setCurrentWidget(self._message)

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._message is None:
            self._show_rows_or_need()

    def _shown_count(self) -> int:
        raise NotImplementedError

    def _total_count(self) -> int:
        return int(self.rows.counted().sum())

    def _is_empty(self) -> bool:
        """Return whether no row is shown, counted or not."""
        raise NotImplementedError

    def _delegate_for(self, column: Column) -> CellDelegate:
        return self._delegates[column.kind]

    def _row_height(self) -> int:
        return QFontMetrics(self._theme.sans()).height() + _ROW_PAD

    def _restyle(self) -> None:
        theme = self._theme
        self._title.setFont(theme.sans(strong=True))
        self._filter.setFont(theme.mono())
        self._any_model.set_looks(cell_looks(theme.palette, theme.sans(), theme.mono()))
        self.mark_rows(self._marked)


def _example(table: Table) -> str:
    """Return a condition on a numeric column, preferably one with a unit; may be empty."""
    numbers = [one for one in table.columns if one.kind is ColumnKind.NUMBER]
    measured = next((one for one in numbers if one.unit and has_size(one.values)), None)
    number = measured or next(iter(numbers), None)
    least = "1" if measured is None else "0.1"
    return "" if number is None else f"{number.title.replace(' ', '')}>{least}"


def _short(text: str) -> str:
    text = text.replace("&", "&&")
    return text if len(text) <= 40 else text[:39] + "…"
