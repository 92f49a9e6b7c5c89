"""Any Table as a Qt model: rows are an index array, sorted and filtered in numpy."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
)
from PySide6.QtGui import QBrush
from typing_extensions import override

from devtools_app.qtmodels.cells import DrawnCell, Looks, cell, drawn_cell, heading, sort_mark
from devtools_app.qtmodels.roles import ANSWERED, BACKGROUND, DISPLAY
from devtools_app.qtmodels.row_marks import RowMarks
from inspector.tables.filter import Filter
from inspector.tables.row_order import Order, RowOrder, SortKey
from inspector.tables.table import Table

Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()
_HORIZONTAL = Qt.Orientation.Horizontal


class TableModel(QAbstractTableModel):
    """Shows a table in some order; a model row is a position in that order.

    Attributes:
        table: the table
        order: table row of each shown row
        looks: fonts and colours, None before they are set
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.table = Table()
        self.order: Order = np.zeros(0, np.int64)
        self._rows = RowOrder(self.table)
        self._sort: tuple[SortKey, ...] = ()
        self._filter = Filter()
        self.looks: Looks | None = None
        self._highlighted: NDArray[np.bool_] | None = None
        self._marks = RowMarks()
        self._find: Callable[[Hashable], int] | None = None
        self._place: NDArray[np.int64] | None = None

    @property
    def sort_keys(self) -> tuple[SortKey, ...]:
        """Return the sort columns of rows, most significant first."""
        return self._sort

    @property
    def filtered(self) -> bool:
        """Return whether a filter is on."""
        return bool(self._filter)

    def set_table(self, table: Table | RowOrder) -> None:
        """Replace the table; a RowOrder prepared in a thread saves the first sort.

        The sort order is kept if the columns have the same titles, the filter is reset.
        """
        rows = table if isinstance(table, RowOrder) else RowOrder(table)
        same = [one.title for one in rows.table.columns] == [
            one.title for one in self.table.columns
        ]
        self.beginResetModel()
        self.table = rows.table
        self._rows = rows
        self._sort = self._sort if same else ()
        self._filter = Filter()
        self._highlighted = None
        self._marks = RowMarks()
        self._find = None
        self._set_order(rows.rows(self._sort))
        self.endResetModel()

    def sample(self, column: int) -> frozenset[str]:
        """Return the strings of a column in some rows, to fit its width."""
        return self._rows.sample(column)

    def set_looks(self, looks: Looks) -> None:
        """Use other fonts and brushes."""
        self.looks = looks
        self._repaint()

    def set_sort(self, keys: Sequence[SortKey]) -> None:
        """Sort by some columns; the selection is kept."""
        if tuple(keys) == self._sort:
            return
        self.layoutAboutToBeChanged.emit()
        old = self.persistentIndexList()
        rows = [int(self.order[index.row()]) for index in old]
        self._sort = tuple(keys)
        self._set_order(self._rows.rows(self._sort, self._filter))
        new = [
            self.index(self.place_of(row), index.column())
            for row, index in zip(rows, old, strict=True)
        ]
        self.changePersistentIndexList(old, new)
        self.layoutChanged.emit()
        self.headerDataChanged.emit(_HORIZONTAL, 0, max(0, len(self.table.columns) - 1))

    def set_filter(self, requested: Filter) -> None:
        """Show only the rows a filter keeps.

        Raises: TooSlowError; the rows shown stay unchanged
        """
        if requested == self._filter:
            return
        order = self._rows.rows(self._sort, requested)
        self.beginResetModel()
        self._filter = requested
        self._set_order(order)
        self.endResetModel()

    def set_highlighted(self, rows: Iterable[int]) -> None:
        """Highlight the table rows related to the selection of other views."""
        highlighted = np.zeros(self.table.length, np.bool_)
        highlighted[[row for row in rows if 0 <= row < self.table.length]] = True
        self._highlighted = highlighted if highlighted.any() else None
        self._repaint()

    def set_marks(self, marks: RowMarks) -> None:
        """Mark table rows."""
        if marks.words or self._marks.words:
            self._marks = marks
            self._repaint()

    def place_of(self, row: int) -> int:
        """Return where a table row is shown, -1 when the filter hides it."""
        if self._place is None:
            place = np.full(self.table.length, -1, np.int64)
            place[self.order] = np.arange(len(self.order))
            self._place = place
        return int(self._place[row]) if 0 <= row < self.table.length else -1

    def row_of(self, key: Hashable) -> int:
        """Return the table row with a key, or -1."""
        if self._find is None:
            self._find = self.table.finder()
        return self._find(key)

    def _set_order(self, order: Order) -> None:
        self.order = order
        self._place = None

    def _repaint(self) -> None:
        if len(self.order) and self.table.columns:
            last = self.index(len(self.order) - 1, len(self.table.columns) - 1)
            self.dataChanged.emit(self.index(0, 0), last)

    @override
    def rowCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.order)

    @override
    def columnCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.table.columns)

    @override
    def data(self, index: Index, role: int = DISPLAY) -> object:
        if role not in ANSWERED or not index.isValid():
            return None
        row = int(self.order[index.row()])
        if role == BACKGROUND:
            looks = self.looks if self._is_lit(row) else None
            return None if looks is None else QBrush(looks.highlighted)
        plain = cell(self.table, row, index.column(), role, self.looks)
        marks = self._marks
        return marks.on(row, index.column(), role, plain) if marks.words else plain

    def drawn(self, index: Index) -> DrawnCell:
        """Return what a cell shows; the looks are set before."""
        assert self.looks is not None
        row = int(self.order[index.row()])
        at, lit = (row, index.column()), self._is_lit(row)
        return drawn_cell(self.table, *at, self.looks, self._marks, is_highlighted=lit)

    def _is_lit(self, row: int) -> bool:
        return self._highlighted is not None and bool(self._highlighted[row])

    @override
    def headerData(self, section: int, orientation: Qt.Orientation, role: int = DISPLAY) -> object:
        if orientation != _HORIZONTAL or not 0 <= section < len(self.table.columns):
            return None
        return heading(self.table.columns[section], role, sort_mark(self._sort, section))

    @override
    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        if 0 <= column < len(self.table.columns):
            self.set_sort((SortKey(column, order == Qt.SortOrder.DescendingOrder),))
        else:
            self.set_sort(())
