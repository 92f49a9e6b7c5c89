"""A table: sorted by its headers, filtered by its box, copied and exported unrounded."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable

from PySide6.QtCore import QModelIndex, QPoint, Qt
from PySide6.QtGui import QFontMetrics, QFontMetricsF, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QHeaderView,
    QMenu,
    QTableView,
)
from typing_extensions import override

from devtools_app.appearance.theme import FontSize, Theme
from devtools_app.qtmodels.cells import NUMBERS
from devtools_app.qtmodels.table_model import TableModel
from devtools_app.widgets.badge import sign_width
from devtools_app.widgets.column_fit import ColumnFit, ColumnWidth, has_no_value
from devtools_app.widgets.elision import without_library
from devtools_app.widgets.item_panel import ItemPanel
from inspector.tables.row_order import SAMPLE_ROWS, RowOrder, SortKey
from inspector.tables.table import Column, ColumnKind, Table

# shapes: cut off, [1, 3, 32, 32] would look like a vector
_SHAPE = re.compile(r"(?:(?:, )?(?:\w+ )?\[[\w, ]*\])+")
_LETTERS = 9  # of a name in a short list that is worth a line
_MOST_BLANK = 4000  # the same of all rows of a column that may be empty
_WIDEST = 420
_NARROWEST = 48
# a long name can be cut off, a share do without its bar
_LEAST_FIRST, _LEAST_TEXT, _LEAST_SHARE, _SHORT = 140, 96, 92, 116
_LEAST_SHAPE = 180
_NAME = 190  # of the first column where the table is not narrow
_LONG, _LEAST_LONG = 40, 150  # letters of a sentence or a line of code; of fewer it is left out
_LEAST_BADGE = 200  # one word, a sign and a figure are whole
_LEAST_MEASURED = 110  # of columns whose width the user has not chosen
_PAD = 26  # on both sides of a cell
_PLAIN_PAD = 22  # the same in a short list without headings


class _Grid(QTableView):
    """A QTableView that forwards Return and S to the panel."""

    def __init__(self, panel_keys: dict[int, object]) -> None:
        super().__init__()
        self._panel_keys = panel_keys

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        action = self._panel_keys.get(int(event.key()))
        if callable(action) and event.modifiers() in (
            Qt.KeyboardModifier.NoModifier,
            Qt.KeyboardModifier.KeypadModifier,
        ):
            action()
            return
        super().keyPressEvent(event)


class TableView(ItemPanel):
    """Shows a Table; see ItemPanel for its signals.

    Keys: arrows move, Return activates, S sorts by the column of the cursor (again: in reverse,
    a third time: unsorted), Ctrl+C copies rows.
    """

    def __init__(self, theme: Theme, name: str) -> None:
        self._model = TableModel()
        keys: dict[int, object] = {}
        self._grid = _Grid(keys)
        self._choosing = False
        self._plain = False
        self._fit = ColumnFit(self._grid)
        super().__init__(theme, name, self._grid, self._model)
        keys.update(
            {
                int(Qt.Key.Key_Return): self._activate_current,
                int(Qt.Key.Key_Enter): self._activate_current,
                int(Qt.Key.Key_S): self._sort_current,
            }
        )
        self._prepare_grid()
        self.show_table(Table())

    @property
    def model(self) -> TableModel:
        """Return the Qt model."""
        return self._model

    @property
    @override
    def rows(self) -> Table:
        return self._model.table

    @override
    def row_lister(self) -> Callable[[], list[int]]:
        return self._model.order.tolist

    @override
    def selected_rows(self) -> list[int]:
        places = sorted(index.row() for index in self._grid.selectionModel().selectedRows())
        return [int(self._model.order[place]) for place in places]

    def show_table(self, table: Table | RowOrder) -> None:
        """Replace the table; sort order, filter and the row with the same key are kept."""
        old = self.rows
        current = self.current_key()
        same = [column.title for column in old.columns] == [
            column.title
            for column in (table.table if isinstance(table, RowOrder) else table).columns
        ]
        self._choosing = True
        try:
            self._model.set_table(table)
            if not same:
                self._shape_columns()
            elif self.rows.length <= SAMPLE_ROWS and not self._plain:
                self._fit_columns()  # rows that come while a job runs may need more room
            if current is not None:
                self.show_current(current)
            self._rows_changed()
        finally:
            self._choosing = False

    def set_plain(self) -> None:
        """Show a short list without header and filter; the first column is stretched."""
        self.hide_tools()
        head = self._grid.horizontalHeader()
        head.hide()
        head.setStretchLastSection(False)
        self._plain = True

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._plain:
            self._keep_names()

    def _keep_names(self) -> None:
        """Hide the other columns of a short list while they leave some letters of a name only."""
        columns = self.rows.columns
        widths = [self._plain_width(*one) for one in enumerate(columns)]
        letters = QFontMetrics(self._theme.mono()).averageCharWidth() * _LETTERS
        full = sum(widths[1:]) + min(widths[0] if widths else 0, letters) > self.width()
        for index in range(1, len(columns)):
            self._grid.setColumnHidden(index, full)

    @override
    def current_row(self) -> int:
        """Return the table row of the cursor, or -1."""
        index = self._grid.currentIndex()
        return int(self._model.order[index.row()]) if index.isValid() else -1

    def show_current(self, key: Hashable | None) -> bool:
        """Move to the row with a key selected in another view; return whether it is shown."""
        place = -1 if key is None else self._model.place_of(self._model.row_of(key))
        self._choosing = True
        try:
            if place < 0:
                self._grid.clearSelection()
                self._grid.setCurrentIndex(QModelIndex())
                return False
            if self._grid.currentIndex().row() != place:
                index = self._model.index(place, max(0, self._grid.currentIndex().column()))
                self._grid.setCurrentIndex(index)
                self._grid.scrollTo(index, QAbstractItemView.ScrollHint.EnsureVisible)
            return True
        finally:
            self._choosing = False

    def highlight(self, rows: Iterable[int]) -> None:
        """Highlight rows related to the selection."""
        self._model.set_highlighted(rows)

    def step(self, by: int) -> bool:
        """Move the cursor down or up and select that row; return whether it exists."""
        place = self._grid.currentIndex().row() + by
        if not 0 <= place < self._model.rowCount():
            return False
        self._grid.setCurrentIndex(self._model.index(place, 0))
        return True

    def sort_by(self, column: int, *, descending: bool, more: bool = False) -> None:
        """Sort by a column; with ``more`` as an additional sort key."""
        kept = [key for key in self._model.sort_keys if key.column != column] if more else []
        self._model.set_sort((*kept, SortKey(column, descending)))

    def _prepare_grid(self) -> None:
        grid = self._grid
        grid.setWordWrap(False)
        grid.setShowGrid(False)
        grid.setTabKeyNavigation(False)
        grid.verticalHeader().hide()
        grid.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        grid.verticalHeader().setMinimumSectionSize(1)  # else that of a font it had before
        head = grid.horizontalHeader()
        head.setSectionsClickable(True)
        head.setSectionsMovable(True)
        head.setHighlightSections(False)
        head.setStretchLastSection(True)
        head.setAccessibleName(f"{self.name} headings")
        head.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        head.customContextMenuRequested.connect(self._show_columns_menu)
        head.sectionClicked.connect(self._heading_clicked)
        # not currentChanged: Tab alone gives a view a current row, which the user did not choose
        grid.selectionModel().selectionChanged.connect(self._selected)
        grid.doubleClicked.connect(lambda _index: self._activate_current())

    def _show_columns_menu(self, at: QPoint) -> None:
        """List the columns below a point of the headings, which Qt owns: none is kept."""
        self._more.columns_menu().popup(self._grid.horizontalHeader().mapToGlobal(at))

    def _shape_columns(self) -> None:
        for index, column in enumerate(self.rows.columns):
            self._grid.setItemDelegateForColumn(index, self._delegate_for(column))
        columns = self.rows.columns
        head = self._grid.horizontalHeader()
        # a number far from the others, at the other end of the window, is not read with them
        stretched = bool(columns) and columns[-1].kind is not ColumnKind.NUMBER
        head.setStretchLastSection(stretched and not self._plain)
        if self._plain and columns:
            head.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
            for index, column in enumerate(columns):
                self._grid.setColumnWidth(index, self._plain_width(index, column))
            self._keep_names()
        else:
            self._fit_columns()

    def _fit_columns(self) -> None:
        self._fit.set_columns([self._width_of(*one) for one in enumerate(self.rows.columns)])

    def _plain_width(self, index: int, column: Column) -> int:
        return self._longest(column, self._model.sample(index)) + _PLAIN_PAD

    def _longest(self, column: Column, texts: Iterable[str]) -> int:
        """Return the width of the longest text, never rounded down: it would be cut."""
        metrics = QFontMetricsF(self._metrics(column))
        return math.ceil(max((metrics.horizontalAdvance(text) for text in texts), default=0.0))

    def _often(self, column: Column, texts: Iterable[str]) -> int:
        """Return the width at which three of four cells are whole."""
        metrics = self._metrics(column)
        widths = sorted(metrics.horizontalAdvance(text) for text in texts)
        return widths[(3 * len(widths) - 1) // 4] if widths else 0

    def _is_blank(self, index: int) -> bool:
        rows = self.rows.length
        return 0 < rows <= _MOST_BLANK and has_no_value(self.rows, index)

    def _is_name(self, index: int) -> bool:
        """Return whether a column names its rows: the first besides numbers, or of nodes."""
        before = self.rows.columns[:index]
        return self.rows.columns[index].mono or all(one.kind in NUMBERS for one in before)

    def _metrics(self, column: Column) -> QFontMetrics:
        if column.kind is ColumnKind.BADGE:
            return QFontMetrics(self._theme.sans(FontSize.SMALL))
        mono = column.mono or column.kind in NUMBERS
        return QFontMetrics(self._theme.mono() if mono else self._theme.sans())

    def _width_of(self, index: int, column: Column) -> ColumnWidth:
        heading = self._fit.heading_width(column.heading)
        texts = self._model.sample(index)
        longest = self._longest(column, texts)
        longest += sign_width("good") if column.kind is ColumnKind.BADGE else 0
        letter = self._metrics(column).averageCharWidth()
        scale = self._theme.scale
        usual = min(round(_WIDEST * scale), max(_NARROWEST, heading, longest + _PAD))
        most = max(usual, longest + _PAD)
        if column.kind is ColumnKind.SHARE:
            usual = most = max(heading, letter * column.width)
            least = min(usual, max(round(_LEAST_SHARE * scale), heading))
            return ColumnWidth(least, usual, most, short=least, is_empty=self._is_blank(index))
        empty = self._is_blank(index)
        if column.kind is ColumnKind.NUMBER:
            return ColumnWidth(usual, usual, usual, is_number=True, is_empty=empty)
        if column.kind is ColumnKind.BADGE:
            least = min(usual, max(round(_LEAST_BADGE * scale), heading))
            return ColumnWidth(least, usual, usual, is_empty=empty)
        if column.width and not self._is_name(index):  # a name is whole before a sentence is
            usual = max(heading, min(usual, letter * column.width))
        least = _LEAST_TEXT if column.width else _LEAST_MEASURED
        least = _LEAST_LONG if column.width >= _LONG else least
        least = round(scale * (least if index else _LEAST_FIRST))
        whole = _LEAST_SHAPE if all(map(_SHAPE.fullmatch, filter(None, texts))) else _SHORT
        for shown in (longest, self._often(column, texts) if whole == _LEAST_SHAPE else longest):
            if shown + _PAD <= scale * whole:
                least = shown + _PAD
                usual = max(usual, least)
                break
        reads = self._is_name(index) or not column.width
        roomy = min(usual, round(_NAME * scale)) if reads else 0
        least = min(usual, max(least, heading))
        # at the same room the names behind operators are whole
        short = max(least, self._longest(column, map(without_library, texts)) + _PAD)
        return ColumnWidth(least, usual, most, is_empty=empty, short=short, roomy=roomy)

    def _selected(self) -> None:
        index = self._grid.currentIndex()
        model = self._grid.selectionModel()
        if not self._choosing and index.isValid() and model.isSelected(index):
            self.row_chosen.emit(int(self._model.order[index.row()]))

    def _activate_current(self) -> None:
        if self.current_row() >= 0:
            self.row_activated.emit(self.current_row())

    def _sort_current(self) -> None:
        self._heading_clicked(max(0, self._grid.currentIndex().column()))

    def _heading_clicked(self, column: int) -> None:
        shift = bool(QApplication.keyboardModifiers() & Qt.KeyboardModifier.ShiftModifier)
        first = self.rows.columns[column].kind in NUMBERS  # numbers: largest first
        now = next((key for key in self._model.sort_keys if key.column == column), None)
        if now is None:
            self.sort_by(column, descending=first, more=shift)
        elif now.descending == first:
            self.sort_by(column, descending=not first, more=shift)
        else:
            rest = [key for key in self._model.sort_keys if key.column != column]
            self._model.set_sort(rest if shift else ())
        self._grid.scrollToTop()  # else what is now first stays hidden above

    @override
    def _add_sorting(self, menu: QMenu) -> None:
        menu.addAction("Sort by this column\tS", self._sort_current)

    @override
    def _apply_filter(self, text: str) -> None:
        kept = self.current_key()
        super()._apply_filter(text)
        if kept is not None:
            self.show_current(kept)

    @override
    def _shown_count(self) -> int:
        return int(self.rows.counted()[self._model.order].sum())

    @override
    def _is_empty(self) -> bool:
        return len(self._model.order) == 0

    @override
    def _restyle(self) -> None:
        super()._restyle()
        self._grid.verticalHeader().setDefaultSectionSize(self._row_height())
        if self.rows.columns:
            self._shape_columns()
