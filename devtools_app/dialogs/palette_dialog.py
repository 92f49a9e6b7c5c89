"""Type to find: a place in the program (Ctrl+P) or a command (Ctrl+Shift+P)."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import (
    QAbstractListModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRect,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QFont, QFontMetrics, QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QDialog,
    QLabel,
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from devtools_app.appearance.theme import FontSize, Theme, set_role
from devtools_app.qtmodels.roles import ACCESSIBLE, DISPLAY
from devtools_app.viewmodels.fuzzy import Choice, best, prepare

Index = QModelIndex | QPersistentModelIndex
_CHOICE = int(Qt.ItemDataRole.UserRole) + 1
_WIDTH, _HEIGHT, _LINE_PAD = 620, 420, 10
_ROOT = QModelIndex()


class _Choices(QAbstractListModel):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Choice] = []

    def show(self, found: list[Choice]) -> None:
        self.beginResetModel()
        self.found = found
        self.endResetModel()

    @override
    def rowCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.found)

    @override
    def data(self, index: Index, role: int = DISPLAY) -> object:
        if not index.isValid():
            return None
        choice = self.found[index.row()]
        if role == DISPLAY:
            return choice.title
        if role == ACCESSIBLE:
            return ", ".join(part for part in (choice.title, choice.detail, choice.hint) if part)
        return choice if role == _CHOICE else None


class _Line(QStyledItemDelegate):
    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme

    @override
    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(100, QFontMetrics(self._theme.sans()).height() + _LINE_PAD)

    @override
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        choice: Choice = index.data(_CHOICE)
        palette = self._theme.palette
        painter.save()
        rect = option.rect
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(rect, QColor(palette.selection))
        if choice.icon:
            box = QRect(rect.x() + 12, rect.y(), 16, rect.height())
            self._theme.icon(choice.icon, "muted").paint(painter, box)
        left, right = rect.x() + 38, rect.right() - 12
        quiet, mono = self._theme.sans(FontSize.SMALL), self._theme.mono(FontSize.SMALL)
        if choice.hint:
            width = QFontMetrics(mono).horizontalAdvance(choice.hint) + 2
            box = QRect(right - width, rect.y(), width, rect.height())
            _text(painter, box, choice.hint, mono, palette.muted)
            right -= width + 12
        plain = self._theme.sans()
        width = min(QFontMetrics(plain).horizontalAdvance(choice.title) + 2, right - left)
        box = QRect(left, rect.y(), width, rect.height())
        _text(painter, box, choice.title, plain, palette.text)
        box = QRect(left + width + 12, rect.y(), max(0, right - left - width - 12), rect.height())
        _text(painter, box, choice.detail, quiet, palette.muted)
        painter.restore()


def _text(painter: QPainter, rect: QRect, text: str, font: QFont, colour: str) -> None:
    shown = QFontMetrics(font).elidedText(text, Qt.TextElideMode.ElideRight, rect.width())
    painter.setFont(font)
    painter.setPen(QColor(colour))
    painter.drawText(rect, int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft), shown)


class PaletteDialog(QDialog):
    """A field over a list; Return chooses the line, Escape cancels.

    Args:
        theme: colours and fonts
        parent: the window
        name: of what is chosen
        placeholder: of the field
        elsewhere: where other things are found, shown where nothing matches

    Signals:
        picked(payload): of the choice
    """

    picked = Signal(object)

    def __init__(
        self, theme: Theme, parent: QWidget, name: str, placeholder: str, elsewhere: str = ""
    ) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self._nothing = "; ".join(filter(None, ("no match", elsewhere)))
        self._theme = theme
        self._window = parent
        self._choices: Sequence[Choice] = ()
        self._texts: tuple[str, ...] = ()
        self._model = _Choices()
        self._field = QLineEdit()
        self._field.setPlaceholderText(placeholder)
        self._field.setAccessibleName(name)
        self._field.installEventFilter(self)
        self._field.textChanged.connect(self._search)
        self._list = QListView()
        self._list.setModel(self._model)
        self._list.setItemDelegate(_Line(theme, self._list))
        self._list.setUniformItemSizes(True)
        self._list.setAccessibleName(f"{name}: results")
        self._list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._list.clicked.connect(self._take)
        self._note = QLabel()
        set_role(self._note, "role", "muted")
        self._note.setContentsMargins(12, 4, 12, 4)
        self.setAccessibleName(name)
        self.setObjectName("palette")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(9, 9, 9, 5)
        layout.setSpacing(6)
        for part in (self._field, self._list, self._note):
            layout.addWidget(part)

    def show_choices(self, choices: Sequence[Choice], *, complete: bool = True) -> None:
        """Offer these; ``complete`` is False while more are still being collected."""
        self._choices = choices
        self._texts = prepare(choices)
        self._note.setText("" if complete else "collecting names …")
        self._search(self._field.text())

    def popup(self) -> None:
        """Open in the upper middle of the window, with an empty field."""
        window = self._window
        self._fit(1)
        corner = window.mapToGlobal(window.rect().topLeft())
        self.move(corner.x() + (window.width() - self.width()) // 2, corner.y() + 64)
        self._field.setFont(self._theme.sans())
        self._field.clear()
        self._search("")
        self.show()
        self._field.setFocus(Qt.FocusReason.PopupFocusReason)

    def _search(self, typed: str) -> None:
        found = best(self._choices, self._texts, typed)
        self._model.show(found)
        if found:
            self._list.setCurrentIndex(self._model.index(0))
        self._fit(len(found))
        if self._choices:
            shown = f"{len(found)} of {len(self._choices):,}"
            self._note.setText(shown if found else self._nothing)

    def _fit(self, lines: int) -> None:
        height = QFontMetrics(self._theme.sans()).height() + _LINE_PAD
        most = min(_HEIGHT, self._window.height() - 160) // height
        self._list.setFixedHeight(height * min(max(lines, 1), max(most, 1)) + 2)
        layout = self.layout()
        if layout is not None:
            layout.activate()
        self.resize(min(_WIDTH, self._window.width() - 40), self.minimumSizeHint().height())

    def _take(self, index: Index) -> None:
        if not index.isValid():
            return
        choice: Choice = index.data(_CHOICE)
        self.hide()
        self.picked.emit(choice.payload)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            key = event.key()
            if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._take(self._list.currentIndex())
                return True
            steps = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: 10}
            steps[Qt.Key.Key_PageUp] = -10
            step = steps.get(Qt.Key(key))
            if step is not None:
                self._move(step)
                return True
        return super().eventFilter(watched, event)

    def _move(self, by: int) -> None:
        count = self._model.rowCount()
        if count:
            row = min(count - 1, max(0, self._list.currentIndex().row() + by))
            self._list.setCurrentIndex(self._model.index(row))
