"""Any Tree as a Qt model; an index stores the number of its node, never an object."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import (
    QAbstractItemModel,
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
from inspector.tables.row_order import SortKey
from inspector.tables.tree import (
    MOST_BELOW,
    TOP,
    Arrangement,
    Tree,
    TreeOrder,
    ancestors,
    empty_tree,
    leaves,
)

Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()
_HORIZONTAL = Qt.Orientation.Horizontal
_BRANCH = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
_LEAF = _BRANCH | Qt.ItemFlag.ItemNeverHasChildren
_MOST_NOTICES = 500  # of single rows; beyond, one for all is cheaper


class TreeModel(QAbstractItemModel):
    """Shows a tree; siblings are sorted among themselves.

    Attributes:
        tree: the tree
        looks: fonts and colours, None before they are set
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.tree = empty_tree()
        self._order = TreeOrder(self.tree)
        self._shown = self._order.arrange()
        self._counted = leaves(self.tree) & self.tree.rows.counted()
        self._sort: tuple[SortKey, ...] = ()
        self._filter = Filter()
        self.looks: Looks | None = None
        self._highlighted: NDArray[np.bool_] | None = None
        self._marks = RowMarks()
        self._find: Callable[[Hashable], int] | None = None

    @property
    def shown_count(self) -> int:
        """Return how many nodes pass the filter."""
        return len(self._shown.children)

    @property
    def arrangement(self) -> Arrangement:
        """Return the shown nodes by parent; never changed, but replaced."""
        return self._shown

    @property
    def shown_leaves(self) -> int:
        """Return how many of the shown nodes are leaves that count."""
        return int(np.count_nonzero(self._counted[self._shown.children]))

    @property
    def total_leaves(self) -> int:
        """Return how many nodes are leaves that count, shown or not."""
        return int(np.count_nonzero(self._counted))

    def sample(self, column: int) -> frozenset[str]:
        """Return the strings of a column in some rows, to fit its width."""
        return self._order.sample(column)

    @property
    def sort_keys(self) -> tuple[SortKey, ...]:
        """Return the sort columns of siblings, most significant first."""
        return self._sort

    @property
    def filtered(self) -> bool:
        """Return whether a filter is on."""
        return bool(self._filter)

    def set_tree(self, tree: Tree | TreeOrder) -> None:
        """Replace the tree, unsorted and unfiltered."""
        order = tree if isinstance(tree, TreeOrder) else TreeOrder(tree)
        self.beginResetModel()
        self.tree = order.tree
        self._order = order
        self._counted = leaves(self.tree) & self.tree.rows.counted()
        self._sort = ()
        self._filter = Filter()
        self._highlighted = None
        self._marks = RowMarks()
        self._find = None
        self._shown = order.arrange()
        self.endResetModel()

    def set_looks(self, looks: Looks) -> None:
        """Use other fonts and brushes."""
        self.looks = looks
        self._repaint()

    def set_sort(self, keys: Sequence[SortKey]) -> None:
        """Sort siblings by some columns; expansion and selection are kept."""
        if tuple(keys) == self._sort:
            return
        self.layoutAboutToBeChanged.emit()
        old = self.persistentIndexList()
        nodes = [index.internalId() for index in old]
        self._sort = tuple(keys)
        self._shown = self._order.arrange(self._sort, self._filter)
        new = [self.index_of(node, index.column()) for node, index in zip(nodes, old, strict=True)]
        self.changePersistentIndexList(old, new)
        self.layoutChanged.emit()
        self.headerDataChanged.emit(_HORIZONTAL, 0, max(0, len(self.tree.columns) - 1))

    def set_filter(self, requested: Filter) -> None:
        """Show only the matches of a filter, with their ancestors and descendants.

        Raises: TooSlowError; the rows shown stay unchanged
        """
        if requested == self._filter:
            return
        shown = self._order.arrange(self._sort, requested)
        self.beginResetModel()
        self._filter = requested
        self._shown = shown
        self.endResetModel()

    def set_marks(self, marks: RowMarks) -> None:
        """Mark nodes."""
        if marks.words or self._marks.words:
            self._marks = marks
            self._repaint()

    def set_highlighted(self, nodes: Iterable[int]) -> None:
        """Highlight the nodes related to the selection of other views."""
        count = len(self.tree.parents)
        highlighted = np.zeros(count, np.bool_)
        highlighted[[node for node in nodes if 0 <= node < count]] = True
        before = np.zeros(count, np.bool_) if self._highlighted is None else self._highlighted
        self._highlighted = highlighted if highlighted.any() else None
        changed = np.flatnonzero(before != highlighted).tolist()
        if len(changed) > _MOST_NOTICES:
            self._repaint()
            return
        # not layoutChanged: the view would lay out thousands of open rows for a colour
        last = len(self.tree.columns) - 1
        for node in changed:
            first = self.index_of(node)
            if first.isValid():
                self.dataChanged.emit(first, self.index_of(node, last), [BACKGROUND])

    def matching(self) -> tuple[int, ...]:
        """Return the nodes that match the filter."""
        return tuple(self._order.matching(self._filter).tolist()) if self._filter else ()

    def node(self, index: Index) -> int:
        """Return the node of an index, -1 for the invisible root."""
        return int(index.internalId()) if index.isValid() else TOP

    def index_of(self, node: int, column: int = 0) -> QModelIndex:
        """Return the index of a node, an invalid one when the filter hides it."""
        if not 0 <= node < len(self._shown.place) or self._shown.place[node] < 0:
            return QModelIndex()
        return self.createIndex(int(self._shown.place[node]), column, node)

    def node_of(self, key: Hashable) -> int:
        """Return the node with a key, or -1."""
        if self._find is None:
            self._find = self.tree.rows.finder()
        return self._find(key)

    def path_to(self, node: int) -> tuple[QModelIndex, ...]:
        """Return the indexes to expand to make a node visible, outermost first."""
        return tuple(self.index_of(above) for above in reversed(ancestors(self.tree, node)))

    def _repaint(self) -> None:
        # one notice for all levels: dataChanged would need one a parent
        self.layoutAboutToBeChanged.emit()
        self.layoutChanged.emit()

    @override
    def index(self, row: int, column: int, parent: Index = _ROOT) -> QModelIndex:
        node = self.node(parent)  # `hasIndex` would ask for both counts by way of Qt
        inside = 0 <= row < self._shown.count(node) and 0 <= column < len(self.tree.columns)
        if not inside or parent.column() > 0:
            return QModelIndex()
        return self.createIndex(row, column, self._shown.child(node, row))

    @overload
    def parent(self) -> QObject | None: ...
    @overload
    def parent(self, child: Index) -> QModelIndex: ...
    @override
    def parent(self, child: Index | None = None) -> QModelIndex | QObject | None:
        if child is None:
            return super().parent()
        node = self.node(child)
        if node == TOP:
            return QModelIndex()
        return self.index_of(int(self.tree.parents[node]))

    @override
    def rowCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.column() > 0 else self._shown.count(self.node(parent))

    @override
    def hasChildren(self, parent: Index = _ROOT) -> bool:
        below = self.rowCount(parent)
        return 0 < below <= MOST_BELOW or (below > 0 and not parent.isValid())

    @override
    def flags(self, index: Index) -> Qt.ItemFlag:
        if not index.isValid():
            return Qt.ItemFlag.NoItemFlags
        return _BRANCH if 0 < self._shown.count(self.node(index)) <= MOST_BELOW else _LEAF

    @override
    def columnCount(self, parent: Index = _ROOT) -> int:
        return len(self.tree.columns)

    @override
    def data(self, index: Index, role: int = DISPLAY) -> object:
        if role not in ANSWERED or not index.isValid():
            return None
        node = index.internalId()
        if role == BACKGROUND:
            looks = self.looks if self._is_lit(node) else None
            return None if looks is None else QBrush(looks.highlighted)
        plain = cell(self.tree.rows, node, index.column(), role, self.looks)
        marks = self._marks
        return marks.on(node, index.column(), role, plain) if marks.words else plain

    def drawn(self, index: Index) -> DrawnCell:
        """Return what a cell shows; the looks are set before."""
        assert self.looks is not None
        row = index.internalId()
        at, lit = (row, index.column()), self._is_lit(row)
        return drawn_cell(self.tree.rows, *at, self.looks, self._marks, is_highlighted=lit)

    def _is_lit(self, row: int) -> bool:
        return self._highlighted is not None and bool(self._highlighted[row])

    @override
    def headerData(self, section: int, orientation: Qt.Orientation, role: int = DISPLAY) -> object:
        if orientation != _HORIZONTAL or not 0 <= section < len(self.tree.columns):
            return None
        return heading(self.tree.columns[section], role, sort_mark(self._sort, section))

    @override
    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        if 0 <= column < len(self.tree.columns):
            self.set_sort((SortKey(column, order == Qt.SortOrder.DescendingOrder),))
        else:
            self.set_sort(())
