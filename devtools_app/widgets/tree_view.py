"""A tree: siblings sorted by its headers, filtered by its box."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtGui import QFontMetrics, QKeySequence, QShortcut
from PySide6.QtWidgets import QAbstractItemView, QTreeView
from typing_extensions import override

from devtools_app.appearance.theme import Theme
from devtools_app.qtmodels.cells import NUMBERS
from devtools_app.qtmodels.tree_model import TreeModel
from devtools_app.widgets.badge import sign_width
from devtools_app.widgets.column_fit import ColumnFit, ColumnWidth, has_no_value
from devtools_app.widgets.item_panel import ItemPanel
from inspector.tables.row_order import SortKey
from inspector.tables.table import ColumnKind, Table
from inspector.tables.tree import Tree, TreeOrder, empty_tree

_MOST_BLANK = 4000  # rows of a column that may be empty; of more, reading all takes too long
_OPEN_AT_MOST = 500  # matches opened by a filter; more could not be looked at anyway
_TREE_WIDTH = 280
_LEAST_NAME, _LEAST_TEXT, _LEAST_SHARE, _SHORT = 168, 72, 92, 116
_LONG, _LEAST_LONG = 40, 150  # letters of a sentence or a line of code; of fewer it is left out
_MOST_NAME, _MOST_TEXT = 520, 420
_ROOMY_NAME = 240  # of a tree that is not narrow
_PAD = 26  # on both sides of a cell


class TreeView(ItemPanel):
    """Shows a Tree; see ItemPanel for its signals. A row is a node.

    Keys: arrows move, open and close, Return activates, S sorts by the next column and Shift+S in
    reverse (a tree has no cursor in a column).
    """

    def __init__(self, theme: Theme, name: str, name_width: int = _TREE_WIDTH) -> None:
        self._name_width = name_width
        self._model = TreeModel()
        self._tree = QTreeView()
        self._choosing = False
        self._fit = ColumnFit(self._tree)
        super().__init__(theme, name, self._tree, self._model)
        self._prepare_tree()
        self.show_tree(empty_tree())

    @property
    def model(self) -> TreeModel:
        """Return the Qt model."""
        return self._model

    @property
    @override
    def rows(self) -> Table:
        return self._model.tree.rows

    @override
    def row_lister(self) -> Callable[[], list[int]]:
        return self._model.arrangement.downwards

    @override
    def selected_rows(self) -> list[int]:
        return [self._model.node(index) for index in self._tree.selectionModel().selectedRows()]

    def show_tree(self, tree: Tree | TreeOrder, *, open_levels: int = 1) -> None:
        """Replace the tree; its first levels are open."""
        current = self.current_key()
        self._choosing = True
        try:
            self._model.set_tree(tree)
            self._shape_columns()
            self._rows_changed()
            if open_levels and not self._model.filtered:
                self._tree.expandToDepth(open_levels - 1)
            if current is not None:
                self.show_current(current)
        finally:
            self._choosing = False

    @override
    def current_row(self) -> int:
        """Return the node of the cursor, or -1."""
        return self._model.node(self._tree.currentIndex())

    def show_current(self, key: Hashable | None) -> bool:
        """Expand the ancestors of the node with a key and select it; return whether it is shown."""
        node = -1 if key is None else self._model.node_of(key)
        index = self._model.index_of(node)
        self._choosing = True
        try:
            if not index.isValid():
                self._tree.clearSelection()
                self._tree.setCurrentIndex(QModelIndex())
                return False
            for above in self._model.path_to(node):
                if not self._model.hasChildren(above):  # it has too many to list them
                    index = above
                    break
                self._tree.expand(above)
            self._tree.setCurrentIndex(index)
            self._tree.scrollTo(index, QAbstractItemView.ScrollHint.EnsureVisible)
            return True
        finally:
            self._choosing = False

    def highlight(self, nodes: Iterable[int]) -> None:
        """Highlight nodes related to the selection."""
        self._model.set_highlighted(nodes)

    def expand_all(self) -> None:
        """Open every node."""
        self._tree.expandAll()

    def collapse_all(self) -> None:
        """Close every node."""
        self._tree.collapseAll()

    def step(self, by: int) -> bool:
        """Move to the next or previous visible node and choose it."""
        index = self._tree.currentIndex()
        if not index.isValid():
            index = self._model.index(0, 0)
        else:
            index = self._tree.indexBelow(index) if by > 0 else self._tree.indexAbove(index)
        if not index.isValid():
            return False
        self._tree.setCurrentIndex(index)
        return True

    def _prepare_tree(self) -> None:
        tree = self._tree
        tree.setUniformRowHeights(True)  # else a jump to a deep row takes most of a second
        tree.setAllColumnsShowFocus(True)
        tree.setExpandsOnDoubleClick(True)
        tree.setSortingEnabled(False)
        head = tree.header()
        head.setSectionsClickable(True)
        head.setStretchLastSection(True)
        head.setAccessibleName(f"{self.name} headings")
        head.sectionClicked.connect(self._heading_clicked)
        for keys, pressed in (("S", self._sort_next), ("Shift+S", self._sort_back)):
            shortcut = QShortcut(QKeySequence(keys), tree)
            shortcut.setContext(Qt.ShortcutContext.WidgetShortcut)
            shortcut.activated.connect(pressed)
        # not currentChanged: Tab alone gives a view a current row, which the user did not choose
        tree.selectionModel().selectionChanged.connect(self._selected)
        tree.activated.connect(lambda index: self.row_activated.emit(self._model.node(index)))

    def _shape_columns(self) -> None:
        for index, column in enumerate(self.rows.columns):
            self._tree.setItemDelegateForColumn(index, self._delegate_for(column))
        columns = self.rows.columns
        # a number far from the others, at the other end of the window, is not read with them
        stretched = bool(columns) and columns[-1].kind is not ColumnKind.NUMBER
        self._tree.header().setStretchLastSection(stretched)
        self._fit.set_columns([self._width_of(index) for index in range(len(columns))])

    def _width_of(self, index: int) -> ColumnWidth:
        column = self.rows.columns[index]
        mono = column.mono or column.kind in NUMBERS
        metrics = QFontMetrics(self._theme.mono() if mono else self._theme.sans())
        heading = self._fit.heading_width(column.heading)
        texts = self._model.sample(index)
        longest = max((metrics.horizontalAdvance(text) for text in texts), default=0)
        longest += sign_width("good") if column.kind is ColumnKind.BADGE else 0
        scale = self._theme.scale
        if index == 0:
            most = min(round(_MOST_NAME * scale), longest + 4 * self._tree.indentation() + 24)
            usual = round(self._name_width * scale)
            least = min(usual, round(_LEAST_NAME * scale), most)
            roomy = min(usual, most, round(_ROOMY_NAME * scale))
            return ColumnWidth(least, usual, max(usual, most), roomy=roomy)
        empty = 0 < self.rows.length <= _MOST_BLANK and has_no_value(self.rows, index)
        if column.kind is ColumnKind.SHARE:
            usual = max(heading, metrics.averageCharWidth() * column.width)
            least = min(usual, max(round(_LEAST_SHARE * scale), heading))
            return ColumnWidth(least, usual, usual, short=least, is_empty=empty)
        usual = min(round(_MOST_TEXT * scale), max(60, heading, longest + _PAD))
        if column.kind is not ColumnKind.TEXT:
            is_number = column.kind is ColumnKind.NUMBER
            return ColumnWidth(usual, usual, usual, is_number=is_number, is_empty=empty)
        if column.width:
            usual = max(heading, min(usual, metrics.averageCharWidth() * column.width))
        least = round(scale * (_LEAST_LONG if column.width >= _LONG else _LEAST_TEXT))
        least = longest + _PAD if longest + _PAD <= scale * _SHORT else least
        least = min(usual, max(least, heading))
        return ColumnWidth(least, usual, max(usual, longest + _PAD), is_empty=empty)

    def sort_by(self, column: int, *, descending: bool) -> None:
        """Sort siblings by a column."""
        self._model.set_sort((SortKey(column, descending),))

    def _sort_next(self) -> None:
        now = self._model.sort_keys
        column = now[0].column + 1 if now else 1
        columns = self.rows.columns
        if columns:
            after = [*range(column, len(columns)), *range(len(columns))]
            column = next((one for one in after if not self._fit.is_hidden(one)), 0)
            self.sort_by(column, descending=columns[column].kind in NUMBERS)
            self._tree.scrollToTop()

    def _sort_back(self) -> None:
        for key in self._model.sort_keys[:1]:
            self.sort_by(key.column, descending=not key.descending)
            self._tree.scrollToTop()

    def _heading_clicked(self, column: int) -> None:
        now = self._model.sort_keys
        first = self.rows.columns[column].kind in NUMBERS
        if not now or now[0].column != column:
            self._model.sort(column, _qt_order(first))
        elif now[0].descending == first:
            self._model.sort(column, _qt_order(not first))
        else:
            self._model.sort(-1)
        self._tree.scrollToTop()  # else what is now first stays hidden above

    def _selected(self) -> None:
        index = self._tree.currentIndex()
        model = self._tree.selectionModel()
        if not self._choosing and index.isValid() and model.isSelected(index):
            self.row_chosen.emit(self._model.node(index))

    @override
    def _apply_filter(self, text: str) -> None:
        kept = self.current_key()
        super()._apply_filter(text)
        if kept is not None:
            self.show_current(kept)
        for node in self._model.matching()[:_OPEN_AT_MOST]:
            for above in self._model.path_to(node):
                self._tree.expand(above)

    @override
    def _shown_count(self) -> int:
        return self._model.shown_leaves

    @override
    def _is_empty(self) -> bool:
        return self._model.rowCount() == 0

    @override
    def _total_count(self) -> int:
        return self._model.total_leaves

    @override
    def _restyle(self) -> None:
        super()._restyle()
        self._tree.setIndentation(self._theme.size + 3)
        if self.rows.columns:
            self._shape_columns()


def _qt_order(descending: bool) -> Qt.SortOrder:
    return Qt.SortOrder.DescendingOrder if descending else Qt.SortOrder.AscendingOrder
