"""The lazily opened tree of the structure view as a Qt model."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QColor, QFont
from typing_extensions import override

from devtools_app.qtmodels.cells import LEFT, RIGHT
from devtools_app.qtmodels.roles import ALIGNMENT, DISPLAY, FONT, FOREGROUND, TOOLTIP
from inspector.structure.node import StructureNode
from inspector.tables.structure import TITLES, line_cell

Index = QModelIndex | QPersistentModelIndex
_TOP = QModelIndex()


class _Item:
    """A node in the tree; its children are created on demand."""

    __slots__ = ("children", "node", "parent", "row")

    def __init__(self, node: StructureNode, parent: _Item | None, row: int) -> None:
        self.node, self.parent, self.row = node, parent, row
        self.children: list[_Item] | None = None


class StructureModel(QAbstractItemModel):
    """Shows StructureNodes; the children of a node are created when it is opened."""

    def __init__(self) -> None:
        super().__init__()
        self._root = _Item(StructureNode("", opens=lambda: ()), None, 0)
        self._root.children = []
        self._looks: tuple[QColor, QColor, QFont] | None = None

    def set_nodes(self, nodes: Sequence[StructureNode]) -> None:
        """Show other files."""
        self.beginResetModel()
        self._root.children = [_Item(node, self._root, row) for row, node in enumerate(nodes)]
        self.endResetModel()

    def way_to(self, index: Index) -> tuple[int, ...]:
        """Return the rows that lead to a line from the top."""
        rows: list[int] = []
        item: _Item | None = self._item(index)
        while item is not None and item is not self._root:
            rows.append(item.row)
            item = item.parent
        return tuple(reversed(rows))

    def index_of(self, way: Sequence[int]) -> QModelIndex:
        """Return the line at a path of rows, creating its ancestors."""
        index = QModelIndex()
        for row in way:
            if self.canFetchMore(index):
                self.fetchMore(index)
            index = self.index(row, 0, index)
        return index

    def set_looks(self, muted: QColor, bad: QColor, mono: QFont) -> None:
        """Change colours and font."""
        self._looks = (muted, bad, mono)
        self.layoutChanged.emit()

    def node(self, index: Index) -> StructureNode | None:
        """Return the node of an index, or None for the root."""
        return self._item(index).node if index.isValid() else None

    def _item(self, index: Index) -> _Item:
        found = index.internalPointer() if index.isValid() else None
        return found if isinstance(found, _Item) else self._root

    @override
    def index(self, row: int, column: int, parent: Index = _TOP) -> QModelIndex:
        children = self._item(parent).children
        if children is None or not 0 <= row < len(children) or not 0 <= column < len(TITLES):
            return QModelIndex()
        return self.createIndex(row, column, children[row])

    @override
    def parent(self, child: Index = _TOP) -> QModelIndex:  # pyright: ignore[reportIncompatibleMethodOverride]  # the other overload is QObject's
        above = self._item(child).parent
        if above is None or above is self._root:
            return QModelIndex()
        return self.createIndex(above.row, 0, above)

    @override
    def rowCount(self, parent: Index = _TOP) -> int:
        if parent.column() > 0:
            return 0
        return len(self._item(parent).children or ())

    @override
    def columnCount(self, parent: Index = _TOP) -> int:
        return len(TITLES)

    @override
    def hasChildren(self, parent: Index = _TOP) -> bool:
        if parent.column() > 0:
            return False
        item = self._item(parent)
        return item.node.opens is not None if item.children is None else bool(item.children)

    @override
    def canFetchMore(self, parent: Index) -> bool:
        item = self._item(parent)
        return item.children is None and item.node.opens is not None

    @override
    def fetchMore(self, parent: Index) -> None:
        item = self._item(parent)
        if item.children is not None:
            return
        content = item.node.children()
        if not content:
            item.children = []
            return
        self.beginInsertRows(self.createIndex(item.row, 0, item), 0, len(content) - 1)
        item.children = [_Item(node, item, row) for row, node in enumerate(content)]
        self.endInsertRows()

    @override
    def headerData(self, section: int, orientation: Qt.Orientation, role: int = DISPLAY) -> object:
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(TITLES):
            return None
        if role == DISPLAY:
            return TITLES[section]
        return (RIGHT if section > 2 else LEFT) if role == ALIGNMENT else None

    @override
    def data(self, index: Index, role: int = DISPLAY) -> object:
        if not index.isValid():
            return None
        node, column = self._item(index).node, index.column()
        if role == DISPLAY:
            return line_cell(node, column)
        if role == TOOLTIP:
            return "\n".join(filter(None, (line_cell(node, column), node.meaning)))
        if role == ALIGNMENT:
            return RIGHT if column > 2 else LEFT
        return self._look(node, column, role)

    def _look(self, node: StructureNode, column: int, role: int) -> object:
        if self._looks is None:
            return None
        muted, bad, mono = self._looks
        if role == FOREGROUND:
            if node.failed:
                return bad
            return muted if column == 1 or node.offset is None else None
        return mono if role == FONT and column != 1 else None
