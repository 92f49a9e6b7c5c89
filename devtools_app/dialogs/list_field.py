"""A field of a form with several values: a line for each, and a list to add from."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFocusEvent
from PySide6.QtWidgets import QApplication, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget
from typing_extensions import override

from devtools_app.appearance.theme import Theme
from devtools_app.dialogs.choice_fields import ChoiceBox
from devtools_app.dialogs.form_files import FormFiles, actions_of
from devtools_app.viewmodels.field_choices import (
    FieldChoice,
    Vocabulary,
    choices_of,
    first_value,
    has_value,
    joined_value,
    may_be_typed,
    split_value,
    values_of,
)
from devtools_app.viewmodels.recipe_form import FormField
from devtools_app.widgets.elided_label import ElidedLabel
from devtools_app.widgets.fields import ComboBox, PushButton, SpinBox, ToolButton
from inspector.recipes.options import FieldNames

_ORDERED = (FieldNames.PARTITIONER, FieldNames.PASS, FieldNames.FILE)  # the first counts first
_REPEATED = (FieldNames.EDGE_SETTING,)  # one name may have several values
_LARGEST = 1 << 30  # bytes of a setting


class ListField(QWidget):
    """The values of a field.

    Signals:
        edited(value): a tuple, by the user
        rebuilt(): the lines are other widgets now
    """

    edited = Signal(object)
    rebuilt = Signal()

    def __init__(self, theme: Theme, one: FormField, files: FormFiles) -> None:
        super().__init__()
        self._theme = theme
        self._one = one
        self._files = files
        self._known = Vocabulary()
        self._values: tuple[str, ...] = ()
        self._rows = QVBoxLayout()
        self._rows.setSpacing(2)
        self._lines: list[QWidget] = []
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addLayout(self._rows)
        self.adding = self._add_files() if one.names is FieldNames.FILE else self._add_names()
        layout.addWidget(self.adding)
        theme.follow(self._rebuild)
        self._rebuild()

    @property
    def values(self) -> tuple[str, ...]:
        """Return the values."""
        return self._values

    def show_value(self, value: object) -> None:
        """Show other values, without a signal."""
        values = tuple(value) if isinstance(value, tuple) else ()
        if values != self._values:
            self._values = values
            self._rebuild()

    def offer(self, known: Vocabulary) -> None:
        """List the names that can be added."""
        if known != self._known:
            self._known = known
            if self._values and self._in_use() is None:
                self._rebuild()
            else:  # without lines, and while something is typed into one
                self._offer()

    @override
    def focusInEvent(self, event: QFocusEvent) -> None:
        """Hand the keyboard on. A focus proxy would be one more stop of Tab, at another place."""
        self.adding.setFocus(event.reason())

    @override
    def setAccessibleName(self, name: str) -> None:
        super().setAccessibleName(name)
        self.adding.setAccessibleName(f"Add to {name}")

    @override
    def setToolTip(self, arg__1: str) -> None:
        super().setToolTip(arg__1)
        self.adding.setToolTip(arg__1)

    # -- adding ----------------------------------------------------------------------------

    def _add_files(self) -> QWidget:
        button = PushButton("Add…")
        button.setAutoDefault(False)
        button.clicked.connect(self._choose)
        return button

    def _choose(self) -> None:
        found = self._files.choose(self._one, self)
        self._put((*self._values, *(path for path in found if path not in self._values)))

    def _add_names(self) -> QWidget:
        box = ChoiceBox(typed=may_be_typed(self._one), explained=True)
        box.picked.connect(self._add)
        box.action_picked.connect(self._ask)
        line = box.lineEdit()
        if line is not None:
            line.editingFinished.connect(lambda: self._add(box.currentText().strip()))
        return box

    def _ask(self, action: int) -> None:
        self._offer()
        name = actions_of(self._one)[action]
        self._files.ask(self._one, name, self.adding, self._add)

    def _add(self, name: str) -> None:
        """Add a name, or what was typed with its value."""
        text = name
        if name and self._one.pair and "=" not in name:
            text = joined_value(self._one, name, first_value(self._one, name, self._known))
        if text and text not in self._values:
            self._put((*self._values, text))
        else:
            self._offer()

    def _offer(self) -> None:
        box = self.adding
        if not isinstance(box, ChoiceBox):
            return
        names = {split_value(self._one, text)[0] for text in self._values}
        found = [
            choice
            for choice in choices_of(self._one, self._known)
            if choice.value not in names or self._one.names in _REPEATED
        ]
        blocked = box.blockSignals(True)
        line = box.lineEdit()
        hint = "Add…" if self._values else self._one.empty or "none"
        box.set_choices(found, actions_of(self._one))
        if line is not None:
            line.clear()
            line.setPlaceholderText(hint)
        else:
            box.setPlaceholderText(hint)
            box.setCurrentIndex(-1)
        box.blockSignals(blocked)

    # -- values ----------------------------------------------------------------------------

    def _put(self, values: tuple[str, ...]) -> None:
        if values != self._values:
            self._values = values
            self._rebuild()
            self.edited.emit(values)

    def _in_use(self) -> QWidget | None:
        """Return what has the keyboard in the lines of the values, if it is there."""
        focus = QApplication.focusWidget()
        inside = focus is not None and any(line.isAncestorOf(focus) for line in self._lines)
        return focus if inside else None

    def _rebuild(self) -> None:
        used, before = self._in_use(), self._lines
        for line in before:
            self._rows.removeWidget(line)
            for part in line.findChildren(QWidget):
                part.blockSignals(True)  # hiding the one with the keyboard would end its typing
            line.hide()
            line.deleteLater()
        self._lines = [self._line(place, text) for place, text in enumerate(self._values)]
        for line in self._lines:
            self._rows.addWidget(line)
        self._offer()
        if before or self._lines:  # who hears it looks through the whole group
            self.rebuilt.emit()
        if used is not None:
            self._named(used.accessibleName()).setFocus()

    def _named(self, name: str) -> QWidget:
        """Return the part of a line with a name, or the field that adds values."""
        parts = (part for line in self._lines for part in line.findChildren(QWidget))
        return next((part for part in parts if part.accessibleName() == name), self.adding)

    def _line(self, place: int, text: str) -> QWidget:
        name, value = split_value(self._one, text)
        label = ElidedLabel()
        label.setFont(self._theme.mono())
        label.setText(name)
        label.setToolTip("\n".join(filter(None, (name, self._detail(name)))))
        line = QWidget()
        row = QHBoxLayout(line)
        row.setContentsMargins(8, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(label, 3)
        if has_value(self._one):
            row.addWidget(self._value_field(place, name, value), 2)
        if self._one.names in _ORDERED and place:
            row.addWidget(self._button("up", f"Move {name} up", lambda: self._move_up(place)))
        remove = f"Remove {name} from {self._one.label}"
        row.addWidget(self._button("close", remove, lambda: self._remove(place)))
        return line

    def _detail(self, name: str) -> str:
        choices = choices_of(self._one, self._known)
        found: FieldChoice | None = next((one for one in choices if one.value == name), None)
        return found.detail if found is not None else ""

    def _button(self, icon: str, name: str, pressed: Callable[[], object]) -> ToolButton:
        button = ToolButton()
        button.setIcon(self._theme.icon(icon, "muted"))
        button.setAccessibleName(name)
        button.setToolTip(name)
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        button.clicked.connect(lambda: pressed())
        return button

    def _remove(self, place: int) -> None:
        self._put(self._values[:place] + self._values[place + 1 :])
        self.adding.setFocus()

    def _move_up(self, place: int) -> None:
        found = list(self._values)
        found[place - 1], found[place] = found[place], found[place - 1]
        self._put(tuple(found))

    def _value_field(self, place: int, name: str, value: str) -> QWidget:
        """Return a list, a number or a line for the value of an entry."""
        values = values_of(self._one, name, self._known)

        def put(new: str) -> None:
            """Take another value; the line stays, the keyboard may be in it."""
            values = list(self._values)
            values[place] = joined_value(self._one, name, new)
            if tuple(values) != self._values:
                self._values = tuple(values)
                self.edited.emit(self._values)

        field = self._field_of(values, value, put)
        field.setAccessibleName(f"Value of {name}")
        return field

    def _field_of(
        self, values: tuple[str, ...] | type[int] | None, value: str, put: Callable[[str], None]
    ) -> QWidget:
        if values is int:
            number = SpinBox()
            number.setRange(1, _LARGEST)
            number.setKeyboardTracking(False)
            number.setValue(int(value) if value.isdecimal() else 1)
            number.valueChanged.connect(lambda new: put(str(new)))
            return number
        if isinstance(values, tuple):
            box = ComboBox()
            box.addItems(list(values) if value in values else [value, *values])
            box.setCurrentText(value)
            box.currentTextChanged.connect(put)
            return box
        line = QLineEdit(value)
        line.setPlaceholderText("option=value")
        line.editingFinished.connect(lambda: put(line.text().strip()))
        return line
