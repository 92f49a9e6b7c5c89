"""The fields of a recipe as widgets, generated from its dataclasses."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFocusEvent, QFontMetrics
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
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
from devtools_app.viewmodels.recipe_form import Field, FieldKind, sections
from inspector.recipes.compile_job import CompileJob

_MOST_LINES = 6
_EXAMPLES = {
    "partitioners": "none: portable kernels only",
    "methods": "all",
    "python": "the one ETScope runs in",
    "memory_planner": "the smallest of all plans",
    "quantising.calibration": "the example inputs",
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
        """Return what is written, without empty lines."""
        texts = (line.strip() for line in self.toPlainText().splitlines())
        return tuple(text for text in texts if text)

    def fit(self) -> None:
        """Take as much room as the lines need."""
        count = min(_MOST_LINES, max(1, self.blockCount()))
        self.setFixedHeight(QFontMetrics(self.font()).lineSpacing() * count + 14)

    @override
    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.left.emit()


class RecipeFields(QScrollArea):
    """A form with one field per recipe field; those at their default are muted.

    Signals:
        edited(path, value): the user changed a field and left it
    """

    edited = Signal(str, object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._shown: dict[str, Field] = {}
        self._labels: dict[str, QLabel] = {}
        self.widgets: dict[str, QWidget] = {}
        self.setObjectName("panel")
        self.setAccessibleName("Recipe as form")
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        theme.changed.connect(self._restyle)

    def show_job(self, job: CompileJob) -> None:
        """Show the fields of a recipe."""
        found = [(section.title, one) for section in sections(job) for one in section.fields]
        if not self.widgets:
            self._build(found)
        for _, one in found:
            if self._shown.get(one.path) != one or one.path not in self._shown:
                self._shown[one.path] = one
                _fill(self.widgets[one.path], one)
                set_role(self._labels[one.path], "role", "muted" if one.is_default else "")

    def _build(self, found: list[tuple[str, Field]]) -> None:
        page = QWidget()
        page.setObjectName("page")
        layout = QVBoxLayout(page)
        layout.setContentsMargins(0, 8, 8, 8)
        layout.setSpacing(3)
        last = ""
        for title, one in found:
            if title != last:
                head = QLabel(title)
                head.setFont(self._theme.sans(strong=True))
                head.setContentsMargins(0, 6 if last else 0, 0, 2)
                layout.addWidget(head)
                last = title
            self._add(layout, one)
        layout.addStretch(1)
        self.setWidget(page)
        self._restyle()

    def _add(self, layout: QVBoxLayout, one: Field) -> None:
        label = QLabel(f"{one.label[:1].upper()}{one.label[1:]}")
        widget = _widget(one, lambda value: self._left(one.path, value))
        widget.setAccessibleName(label.text())
        widget.setAccessibleDescription(one.help)
        for part in (label, widget):
            part.setToolTip(one.help)
        if one.kind is FieldKind.FLAG:
            label.hide()  # the box says it itself
        self._labels[one.path] = label
        self.widgets[one.path] = widget
        layout.addWidget(label)
        layout.addWidget(widget)

    def _left(self, path: str, value: object) -> None:
        before = self._shown[path]
        if value != before.value:
            self.edited.emit(path, value)
        else:
            _fill(self.widgets[path], before)  # what was typed may be no number

    def _restyle(self) -> None:
        for path, widget in self.widgets.items():
            if self._shown.get(path) is None or isinstance(widget, QLineEdit | LinesEdit):
                widget.setFont(self._theme.mono())
            if isinstance(widget, LinesEdit):
                widget.fit()


def _widget(one: Field, left: Callable[[object], object]) -> QWidget:
    if one.kind is FieldKind.FLAG:
        box = QCheckBox(f"{one.label[:1].upper()}{one.label[1:]}")
        box.toggled.connect(left)
        return box
    if one.kind is FieldKind.CHOICE:
        combo = QComboBox()
        for value, words in one.choices:
            combo.addItem(words, value)
        combo.activated.connect(lambda: left(combo.currentData()))
        return combo
    if one.kind is FieldKind.LINES:
        lines = LinesEdit()
        lines.setPlaceholderText(_EXAMPLES.get(one.path, "none"))
        lines.left.connect(lambda: left(lines.lines()))
        return lines
    field = QLineEdit()
    field.setPlaceholderText(_EXAMPLES.get(one.path, "any" if one.optional else ""))
    field.editingFinished.connect(lambda: left(_typed(one, field.text())))
    return field


def _typed(one: Field, text: str) -> object:
    """Return the value of a line; an invalid number leaves the field unchanged."""
    text = text.strip()
    if one.kind is not FieldKind.NUMBER:
        return text
    if not text and one.optional:
        return None
    return int(text) if text.isdecimal() and 0 < int(text) < 1 << 31 else one.value


def _fill(widget: QWidget, one: Field) -> None:
    blocked = widget.blockSignals(True)
    try:
        if isinstance(widget, QCheckBox):
            widget.setChecked(bool(one.value))
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
