"""The fields of a recipe as widgets, generated from its dataclasses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFocusEvent, QFontMetrics, QShowEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFormLayout,
    QFrame,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from devtools_app.appearance.theme import Theme, set_role
from devtools_app.dialogs.form_parts import LIBRARY_FILES, beside
from devtools_app.viewmodels.recipe_form import FieldKind, FormField, sections
from devtools_app.widgets.fields import ComboBox
from devtools_app.widgets.files import PathChooser
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.options import FieldNames

_FILES = (FieldNames.FILE, FieldNames.INTERPRETER, FieldNames.DATA)
_MOST_LINES = 6
_OFFERED = ("source.function", "memory_planner")  # whose possible values are known later
_FILTERS = {
    "source.path": "Python, exported programs, records (*.py *.pt2 *.etrecord);;All (*)",
    "libraries": LIBRARY_FILES,
}


class LinesEdit(QPlainTextEdit):
    """Strings, one per line; as high as its content.

    Signals:
        left(): it lost the keyboard focus
    """

    left = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setTabChangesFocus(True)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.textChanged.connect(self.fit)

    def lines(self) -> tuple[str, ...]:
        """Return the entered lines, without empty ones."""
        texts = (line.strip() for line in self.toPlainText().splitlines())
        return tuple(text for text in texts if text)

    def fit(self) -> None:
        """Resize to the height of the lines."""
        count = min(_MOST_LINES, max(1, self.blockCount()))
        self.setFixedHeight(QFontMetrics(self.font()).lineSpacing() * count + 14)

    @override
    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.left.emit()


class RecipeFields(QScrollArea):
    """A form with one field per recipe field; those at their default are muted.

    Signals:
        edited(path, value): the user changed a field and left it; in a dialog, on every key
    """

    edited = Signal(str, object)

    def __init__(
        self, theme: Theme, titles: tuple[str, ...] = (), paths: PathChooser | None = None
    ) -> None:
        """Show no recipe yet.

        Args:
            theme: the look
            titles: of the sections to show; all of them without
            paths: asks for files, in a dialog; without, labels are above their fields
        """
        super().__init__()
        self._theme = theme
        self._titles = titles
        self._paths = paths
        self._shown: dict[str, FormField] = {}
        self._labels: dict[str, QWidget] = {}
        self.widgets: dict[str, QWidget] = {}
        self._page = QWidget()
        self._page.setObjectName("page")
        column = QVBoxLayout(self._page)
        column.setContentsMargins(0, 8, 8, 8)
        self._form = QFormLayout()
        column.addLayout(self._form)
        column.addStretch(1)
        self._form.setVerticalSpacing(3 if paths is None else 6)
        self._form.setHorizontalSpacing(16)
        self._form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft)
        self._form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        if paths is None:
            self._form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapAllRows)
        self.setObjectName("panel")
        self.setAccessibleName("Recipe as form")
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        theme.changed.connect(self._restyle)

    def show_job(self, job: CompileJob) -> None:
        """Show the fields of a recipe."""
        found = [
            (section.title, one)
            for section in sections(job)
            if not self._titles or section.title in self._titles
            for one in section.fields
        ]
        if not self.widgets:
            self._build(found)
        for _, one in found:
            if self._shown.get(one.path) != one:
                self._shown[one.path] = one
                _fill(self.widgets[one.path], one)
                set_role(self._labels[one.path], "role", "muted" if one.is_default else "")

    def offer(self, path: str, names: Iterable[str]) -> None:
        """Offer values of a field; its text is kept."""
        combo = self.widgets[path]
        assert isinstance(combo, QComboBox)
        written = combo.currentText()
        blocked = combo.blockSignals(True)
        combo.clear()
        combo.addItems(list(names))
        combo.setEditText(written)
        combo.blockSignals(blocked)

    def explain(self, path: str, text: str) -> None:
        """Show a line about a field below it."""
        name = f"{path} explained"
        found = self._page.findChild(QLabel, name)
        if found is None:
            found = QLabel()
            found.setObjectName(name)
            found.setWordWrap(True)
            set_role(found, "role", "muted")
            row = self._form.getWidgetPosition(self.widgets[path])[0]  # pyright: ignore[reportIndexIssue]  # the stub has no tuple
            self._form.insertRow(row + 1, "", found)
        found.setText(text)

    def enable(self, path: str, on: bool) -> None:
        """Enable a field, or disable one that has no meaning in the recipe."""
        self.widgets[path].setEnabled(on)

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._restyle()  # the style sheet takes a font away that was set before it is applied

    def _build(self, found: list[tuple[str, FormField]]) -> None:
        last = ""
        for title, one in found:
            if title != last and len(self._titles) != 1:
                head = QLabel(title)
                head.setFont(self._theme.sans(strong=True))
                head.setContentsMargins(0, 6 if last else 0, 0, 2)
                self._form.addRow(head)
            last = title
            self._add(one)
        self.setWidget(self._page)
        self._restyle()

    def _add(self, one: FormField) -> None:
        label = QLabel(f"{one.label[:1].upper()}{one.label[1:]}")
        widget = self._widget(one)
        widget.setAccessibleName(label.text())
        widget.setAccessibleDescription(one.help)
        for part in (label, widget):
            part.setToolTip(one.help)
        self.widgets[one.path] = widget
        if one.kind is FieldKind.FLAG:
            label.deleteLater()  # the box has the text
            self._labels[one.path] = widget
            self._form.addRow(widget)
            return
        self._labels[one.path] = label
        label.setBuddy(widget)
        if one.names in _FILES and self._paths is not None:
            self._form.addRow(
                label, beside(widget, f"Choose: {label.text()}", lambda: self._choose(one))
            )
        else:
            self._form.addRow(label, widget)

    def _choose(self, one: FormField) -> None:
        assert self._paths is not None
        files = self._paths.open_files(self, one.help, _FILTERS.get(one.path, "All (*)"))
        widget = self.widgets[one.path]
        if files and isinstance(widget, LinesEdit):
            widget.setPlainText("\n".join((*widget.lines(), *files)))
        elif files and isinstance(widget, QLineEdit):
            widget.setText(files[0])

    def _left(self, path: str, value: object) -> None:
        before = self._shown[path]
        if value == before.value:
            if self._paths is None:
                _fill(self.widgets[path], before)  # what was typed may be no number
            return
        if self._paths is not None:
            self._shown[path] = replace(before, value=value)
        self.edited.emit(path, value)

    def _restyle(self) -> None:
        for widget in self.widgets.values():
            if isinstance(widget, QLineEdit | LinesEdit) or _editable(widget):
                widget.setFont(self._theme.mono())
            if isinstance(widget, LinesEdit):
                widget.viewport().setFont(self._theme.mono())  # the placeholder's
                widget.fit()

    def _widget(self, one: FormField) -> QWidget:
        def left(value: object) -> None:
            self._left(one.path, value)

        if one.kind is FieldKind.FLAG:
            box = QCheckBox(f"{one.label[:1].upper()}{one.label[1:]}")
            box.toggled.connect(left)
            return box
        if one.kind is FieldKind.CHOICE:
            combo = ComboBox()
            for value, label in one.choices:
                combo.addItem(label, value)
            combo.currentIndexChanged.connect(lambda: left(combo.currentData()))
            return combo
        if one.kind is FieldKind.LINES:
            lines = LinesEdit()
            lines.setPlaceholderText(one.empty or "none")
            (lines.left if self._paths is None else lines.textChanged).connect(
                lambda: left(lines.lines())
            )
            return lines
        if self._paths is not None and one.path in _OFFERED:
            names = ComboBox()
            names.setEditable(True)
            names.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
            line = names.lineEdit()
            assert line is not None
            line.setPlaceholderText(one.empty)
            names.editTextChanged.connect(lambda text: left(text.strip()))
            return names
        field = QLineEdit()
        field.setPlaceholderText(one.empty or ("any" if one.optional else ""))
        (field.editingFinished if self._paths is None else field.textChanged).connect(
            lambda: left(_typed(one, field.text()))
        )
        return field


def _editable(widget: QWidget) -> bool:
    return isinstance(widget, QComboBox) and widget.isEditable()


def _typed(one: FormField, text: str) -> object:
    """Return the value of an input; an invalid number leaves the field unchanged."""
    text = text.strip()
    if one.kind is not FieldKind.NUMBER:
        return text
    if not text and one.optional:
        return None
    return int(text) if text.isdecimal() and 0 < int(text) < 1 << 31 else one.value


def _fill(widget: QWidget, one: FormField) -> None:
    blocked = widget.blockSignals(True)
    try:
        if isinstance(widget, QCheckBox):
            widget.setChecked(bool(one.value))
        elif isinstance(widget, QComboBox) and widget.isEditable():
            widget.setEditText(str(one.value))
        elif isinstance(widget, QComboBox):
            widget.setCurrentIndex(max(0, widget.findData(one.value)))
        elif isinstance(widget, LinesEdit):
            widget.setPlainText("\n".join(cast("tuple[str, ...]", one.value)))
        elif isinstance(widget, QLineEdit):
            widget.setText("" if one.value is None else str(one.value))
    finally:
        widget.blockSignals(blocked)
    if isinstance(widget, LinesEdit):
        widget.fit()
