"""Fields of a form with one value: a box, a list, a number, a line."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import (
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QSize,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import QFocusEvent, QKeyEvent, QPainter, QPalette, QStandardItemModel
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QCompleter,
    QLineEdit,
    QStyledItemDelegate,
    QStyleOptionViewItem,
)
from typing_extensions import override

from devtools_app.dialogs.form_files import FormFiles, actions_of
from devtools_app.viewmodels.field_choices import (
    FieldChoice,
    Vocabulary,
    choices_of,
    may_be_typed,
)
from devtools_app.viewmodels.recipe_form import FormField
from devtools_app.widgets.fields import NarrowComboBox, SpinBox

MOST = (1 << 31) - 1
_RETURN = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
_LETTERS = 8  # that a list shows at least
_FEW = 40  # entries that are listed at once
_ROOM = 60  # beside the text of an open list
_SEPARATOR = 7  # px, as high as Qt's
_Index = QModelIndex | QPersistentModelIndex


class FlagField(QCheckBox):
    """On or off.

    Signals:
        edited(value): by the user
    """

    edited = Signal(object)

    def __init__(self, one: FormField) -> None:
        super().__init__(one.title)
        self.toggled.connect(lambda on: self.edited.emit(on))

    def show_value(self, value: object) -> None:
        """Show a value, without a signal."""
        blocked = self.blockSignals(True)
        self.setChecked(bool(value))
        self.blockSignals(blocked)

    def offer(self, _known: Vocabulary) -> None:
        """Do nothing: it has two values."""


class NumberField(SpinBox):
    """An integer from 1; an optional one has a word for none.

    Signals:
        edited(value): by the user
    """

    edited = Signal(object)

    def __init__(self, one: FormField, *, live: bool) -> None:
        super().__init__()
        self._optional = one.optional
        self.setRange(0 if one.optional else 1, MOST)
        if one.optional:
            self.setSpecialValueText(one.empty or "any")
        self.setKeyboardTracking(live)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.valueChanged.connect(lambda value: self.edited.emit(value or None))

    def show_value(self, value: object) -> None:
        """Show a value, without a signal."""
        blocked = self.blockSignals(True)
        self.setValue(value if isinstance(value, int) else 0)
        self.blockSignals(blocked)

    def offer(self, _known: Vocabulary) -> None:
        """Do nothing: any number will do."""


class TextField(QLineEdit):
    """A path or another text.

    Signals:
        edited(value): by the user, on every key in a dialog, else when the field is left
    """

    edited = Signal(object)

    def __init__(self, one: FormField, *, live: bool) -> None:
        super().__init__()
        self.setPlaceholderText(one.empty)
        changed = self.textChanged if live else self.editingFinished
        changed.connect(lambda: self.edited.emit(self.text().strip()))

    def show_value(self, value: object) -> None:
        """Show a value, without a signal."""
        if value != self.text().strip():
            blocked = self.blockSignals(True)
            self.setText(str(value))
            self.blockSignals(blocked)

    def offer(self, _known: Vocabulary) -> None:
        """Do nothing: any text will do."""


class _Explained(QStyledItemDelegate):
    """Lists values with their details; of the chosen one the line has the value alone."""

    @override
    def initStyleOption(self, option: QStyleOptionViewItem, index: _Index) -> None:
        super().initStyleOption(option, index)
        option.text = index.data(Qt.ItemDataRole.ToolTipRole) or option.text

    @override
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        if not _is_separator(index):
            super().paint(painter, option, index)
            return
        rect = option.rect
        painter.setPen(option.palette.color(QPalette.ColorRole.Mid))
        painter.drawLine(rect.left(), rect.center().y(), rect.right(), rect.center().y())

    @override
    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        size = super().sizeHint(option, index)
        return QSize(size.width(), _SEPARATOR) if _is_separator(index) else size


def _is_separator(index: _Index) -> bool:
    """Return whether a list has a line there; Qt marks it like this for its own delegate."""
    return index.data(Qt.ItemDataRole.AccessibleDescriptionRole) == "separator"


class ChoiceBox(NarrowComboBox):
    """A list that is filled when it is opened; it is as wide as its form.

    Where a value may be typed it is taken as typed, also while the list is open: an entry is chosen
    by a click, the arrow keys or from the completions below, never by its letters.

    Args:
        typed: whether values that are not listed can be typed
        explained: whether the text of an entry has its details where values can be typed; else
            the list alone shows them

    Signals:
        picked(value): the user chose or typed a value
        action_picked(action): the user chose one of the actions at the end
    """

    picked = Signal(str)
    action_picked = Signal(int)

    def __init__(self, *, typed: bool, explained: bool = False) -> None:
        super().__init__(_LETTERS)
        self._explained = explained or not typed
        self._choices: tuple[FieldChoice, ...] = ()
        self._actions: tuple[str, ...] = ()
        self._filled = True
        self._open = False
        if typed:
            self._let_type()
        self.activated.connect(self._activated)

    def _let_type(self) -> None:
        self.setEditable(True)
        if not self._explained:
            self.setItemDelegate(_Explained(self))
        self.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        completer = self.completer()
        if completer is not None:
            completer.setCompletionMode(QCompleter.CompletionMode.PopupCompletion)
            completer.setFilterMode(Qt.MatchFlag.MatchContains)

    def set_choices(self, choices: Sequence[FieldChoice], actions: Sequence[str] = ()) -> None:
        """Offer values, and actions after them; the value shown is kept."""
        if (tuple(choices), tuple(actions)) != (self._choices, self._actions):
            self._choices, self._actions = tuple(choices), tuple(actions)
            self._filled = False
            if not self.isEditable() or len(self._choices) <= _FEW:
                self._fill()

    def _fill(self) -> None:
        """List the values; typed ones are listed when they are needed, there may be thousands."""
        if self._filled or self._open:  # the one that the keyboard is at would be lost
            return
        self._filled = True
        text, value, blocked = self.currentText(), self.currentData(), self.blockSignals(True)
        self.clear()
        for choice in self._choices:
            self.addItem(choice.text if self._explained else choice.value, choice.value)
            index = self.count() - 1
            for role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole):
                self.setItemData(index, choice.text, role)
            self._enable(index, choice.usable)
        if self._actions:
            self.insertSeparator(self.count())
            role = Qt.ItemDataRole.AccessibleTextRole
            self.setItemData(self.count() - 1, "separator", role)
            for name in self._actions:
                self.addItem(name)
        if self.isEditable():
            self._show_typed(text)
        else:
            self.setCurrentIndex(-1 if value is None else self.findData(value))
        self.blockSignals(blocked)

    def _show_typed(self, text: str) -> None:
        """Show a text at its place in the list, from which the arrow keys go on."""
        self.setCurrentIndex(self.findData(text))
        self.setEditText(text)

    def _enable(self, index: int, on: bool) -> None:
        model = self.model()
        if isinstance(model, QStandardItemModel) and not on:
            model.item(index).setEnabled(False)

    def _activated(self, index: int) -> None:
        first = self.count() - len(self._actions)
        if self._actions and index >= first:
            self.action_picked.emit(index - first)
        elif self.itemData(index) is not None:
            self.picked.emit(str(self.itemData(index)))

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(80, super().minimumSizeHint().height())

    @override
    def showPopup(self) -> None:
        self._fill()
        metrics = self.fontMetrics()
        rows, role = range(min(self.count(), 200)), Qt.ItemDataRole.ToolTipRole
        texts = (self.itemData(row, role) or self.itemText(row) for row in rows)
        wide = max((metrics.horizontalAdvance(text) for text in texts), default=0) + _ROOM
        self.view().setMinimumWidth(min(wide, self.screen().availableGeometry().width() // 2))
        self._open = True
        super().showPopup()
        if self.isEditable():
            self.view().installEventFilter(self)

    @override
    def hidePopup(self) -> None:
        super().hidePopup()
        QTimer.singleShot(0, self, self._closed)  # Qt chooses the entry after this

    def _closed(self) -> None:
        self._open = False
        self._fill()

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Take what is typed while the list is open, which would look for it among its entries."""
        if (
            isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.KeyPress
            and event.text().strip().isprintable()
            and event.text().strip()
        ):
            self.hidePopup()
            self.setFocus()
            self.keyPressEvent(event)
            return True
        return super().eventFilter(watched, event)

    @override
    def focusInEvent(self, e: QFocusEvent) -> None:
        self._fill()
        super().focusInEvent(e)

    @override
    def keyPressEvent(self, e: QKeyEvent) -> None:
        super().keyPressEvent(e)  # Return ends the typing
        if e.key() in _RETURN and self.isEditable():
            e.accept()  # a dialog would take it for its default button


class OptionField(NarrowComboBox):
    """One of a few fixed words.

    Signals:
        edited(value): by the user
    """

    edited = Signal(object)

    def __init__(self, one: FormField) -> None:
        super().__init__(_LETTERS)
        labels: set[str] = set()
        for value, label in one.choices:
            if label not in labels:  # a default and its name are one line
                labels.add(label)
                self.addItem(label, value)
        self._labels = dict(one.choices)
        self.currentIndexChanged.connect(lambda: self.edited.emit(self.currentData()))

    def show_value(self, value: object) -> None:
        """Show a value, without a signal."""
        blocked = self.blockSignals(True)
        self.setCurrentIndex(max(0, self.findText(self._labels.get(str(value), ""))))
        self.blockSignals(blocked)

    def offer(self, _known: Vocabulary) -> None:
        """Do nothing: its words are fixed."""


class NameField(ChoiceBox):
    """A name from a list, from a file of the user, or typed where it may be.

    Signals:
        edited(value): by the user
    """

    edited = Signal(object)

    def __init__(self, one: FormField, files: FormFiles, *, live: bool) -> None:
        self._typed = may_be_typed(one)
        super().__init__(typed=self._typed)
        self._one = one
        self._files = files
        self._known = Vocabulary()
        self._value = ""
        line = self.lineEdit()
        if line is not None:
            line.setPlaceholderText(one.empty)
            if live:
                self.editTextChanged.connect(self._take_text)
            line.editingFinished.connect(self._finish)
        self.picked.connect(self._take)
        self.action_picked.connect(self._ask)
        self.currentIndexChanged.connect(self._moved)
        self.offer(self._known)

    def show_value(self, value: object) -> None:
        """Show a value, without a signal."""
        blocked = self.blockSignals(True)
        self._value = str(value)
        self.offer(self._known)
        if self._typed:
            if self.currentText().strip() != self._value:
                self._show_typed(self._value)
        else:
            self.setCurrentIndex(self.findData(self._value))
        self.blockSignals(blocked)

    def offer(self, known: Vocabulary) -> None:
        """List the names that the field can have; the value is always among them."""
        self._known = known
        found = list(choices_of(self._one, known))
        if found or not self._typed:
            found.insert(0, FieldChoice("", self._one.empty))
        if not self._typed and self._value not in [one.value for one in found]:
            found.append(FieldChoice(self._value))
        self.set_choices(found, actions_of(self._one))
        if not self._typed:
            blocked = self.blockSignals(True)
            self.setCurrentIndex(self.findData(self._value))
            self.blockSignals(blocked)

    def _moved(self, index: int) -> None:
        """Take a value that the keyboard moved to; actions wait until they are chosen."""
        if index >= 0 and self.itemData(index) is not None:
            self._take(str(self.itemData(index)))

    def _take_text(self, text: str) -> None:
        """Take what is in the line; the keyboard may have moved there from an action."""
        if text not in actions_of(self._one):
            self._take(text.strip())

    def _finish(self) -> None:
        self._take_text(self.currentText())
        self.show_value(self._value)

    def _take(self, value: str) -> None:
        if value != self._value:
            self._value = value
            self.edited.emit(value)

    def _ask(self, action: int) -> None:
        self.show_value(self._value)

        def done(value: str) -> None:
            self.show_value(value)
            self.edited.emit(value)

        self._files.ask(self._one, actions_of(self._one)[action], self, done)


Editor = FlagField | NumberField | TextField | OptionField | NameField
