"""A list of short entries with a coloured dot, a title that wraps and a muted second line."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QPersistentModelIndex,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)
from typing_extensions import override

from devtools_app.appearance.theme import FontSize, Theme
from devtools_app.qtmodels.roles import ACCESSIBLE, DISPLAY, TOOLTIP
from devtools_app.viewmodels.entries import ListEntry
from devtools_app.widgets.sign import draw_sign
from devtools_app.widgets.text_label import breakable

Index = QModelIndex | QPersistentModelIndex
_ITEM = int(Qt.ItemDataRole.UserRole) + 1
_LEFT, _RIGHT, _PAD, _DOT = 30, 12, 5, 8
_INDENT, _DEEPEST = 14, 8
_WRAP = int(Qt.TextFlag.TextWordWrap) | int(Qt.AlignmentFlag.AlignTop)
_ROOT = QModelIndex()


class _Entries(QAbstractListModel):
    def __init__(self) -> None:
        super().__init__()
        self.entries: tuple[ListEntry, ...] = ()

    def show(self, entries: Sequence[ListEntry]) -> None:
        self.beginResetModel()
        self.entries = tuple(entries)
        self.endResetModel()

    @override
    def rowCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.entries)

    @override
    def data(self, index: Index, role: int = DISPLAY) -> object:
        if not index.isValid():
            return None
        entry = self.entries[index.row()]
        if role == DISPLAY:
            return entry.title
        if role == _ITEM:
            return entry
        if role == ACCESSIBLE:
            parts = (entry.accessible_text, entry.mark, entry.title, entry.detail)
            return ", ".join(part for part in parts if part)
        if role == TOOLTIP:
            return "\n".join(part for part in (entry.title, entry.detail) if part)
        return None


class _Painter(QStyledItemDelegate):
    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme

    def _title(self, entry: ListEntry) -> str:
        title = breakable(entry.title)
        return f"{entry.mark}  {title}" if entry.mark else title

    def _boxes(self, entry: ListEntry, width: int) -> tuple[int, int]:
        left = _LEFT + _indent(entry)
        inner = QRect(0, 0, max(40, width - left - _RIGHT), 10_000)
        strong = entry.strong or bool(entry.mark)
        title = QFontMetrics(self._theme.sans(strong=strong))
        detail = QFontMetrics(self._theme.sans(FontSize.SMALL))
        height = title.boundingRect(inner, _WRAP, self._title(entry)).height()
        below = (
            detail.boundingRect(inner, _WRAP, breakable(entry.detail)).height()
            if entry.detail
            else 0
        )
        return height, below

    @override
    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        view = option.widget
        width = view.viewport().width() if isinstance(view, QListView) else option.rect.width()
        title, detail = self._boxes(index.data(_ITEM), width)
        return QSize(width, title + detail + 2 * _PAD)

    @override
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        entry: ListEntry = index.data(_ITEM)
        palette = self._theme.palette
        painter.save()
        rect = option.rect
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(rect, QColor(palette.selection))
            painter.fillRect(QRect(rect.x(), rect.y(), 3, rect.height()), QColor(palette.accent))
        elif option.state & QStyle.StateFlag.State_MouseOver:
            painter.fillRect(rect, QColor(palette.hover))
        title, detail = self._boxes(entry, rect.width())
        line = QFontMetrics(self._theme.sans()).height()
        in_by = _indent(entry)
        self._dot(painter, entry, rect.x() + 14 + in_by, rect.y() + _PAD + (line - _DOT) / 2)
        left, width = rect.x() + _LEFT + in_by, rect.width() - _LEFT - _RIGHT - in_by
        box = QRect(left, rect.y() + _PAD, width, title + detail)
        painter.setFont(self._theme.sans(strong=entry.strong or bool(entry.mark)))
        painter.setPen(QColor(palette.text))
        painter.drawText(box, _WRAP, self._title(entry))
        painter.setFont(self._theme.sans(FontSize.SMALL))
        painter.setPen(QColor(palette.muted))
        painter.drawText(box.adjusted(0, title, 0, 0), _WRAP, breakable(entry.detail))
        painter.restore()

    def _dot(self, painter: QPainter, entry: ListEntry, x: float, y: float) -> None:
        draw_sign(painter, self._theme, entry.tone, QRectF(x, y, _DOT, _DOT))


def _indent(entry: ListEntry) -> int:
    return _INDENT * min(entry.depth, _DEEPEST)


class DotList(QListView):
    """Shows entries; arrows move, Return activates.

    Signals:
        chosen(index): the user moved to an entry
        opened(index): the user clicked an entry or pressed Return on it
    """

    chosen = Signal(int)
    opened = Signal(int)

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._model = _Entries()
        self._quiet = False
        self.setModel(self._model)
        self.setItemDelegate(_Painter(theme, self))
        self.setAccessibleName(name)
        self.setUniformItemSizes(False)
        self.setWordWrap(True)
        self.setMouseTracking(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.selectionModel().currentRowChanged.connect(self._moved)
        self.clicked.connect(lambda index: self.opened.emit(index.row()))
        self.activated.connect(lambda index: self.opened.emit(index.row()))
        theme.changed.connect(self.scheduleDelayedItemsLayout)

    @property
    def entries(self) -> tuple[ListEntry, ...]:
        """Return the entries."""
        return self._model.entries

    def show_entries(self, entries: Sequence[ListEntry], current: int = -1) -> None:
        """Replace the entries and set the current one."""
        self._quiet = True
        try:
            if tuple(entries) != self._model.entries:
                self._model.show(entries)
            index = self._model.index(current) if current >= 0 else QModelIndex()
            if self.currentIndex() != index:
                self.setCurrentIndex(index)
            if not index.isValid():
                self.clearSelection()
        finally:
            self._quiet = False

    def _moved(self, current: QModelIndex, _previous: QModelIndex) -> None:
        if not self._quiet and current.isValid():
            self.chosen.emit(current.row())

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.scheduleDelayedItemsLayout()
