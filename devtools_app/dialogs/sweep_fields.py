"""The form of a sweep: fields with their values, the measurements of each point, where to write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QMenu,
    QSpinBox,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from devtools_app.appearance.theme import Theme, set_role
from devtools_app.dialogs.form_parts import line
from devtools_app.viewmodels.data_request import data_request
from devtools_app.viewmodels.sweep_axes import SweepField, values_of
from devtools_app.widgets.fields import ComboBox, PushButton, SpinBox, ToolButton
from devtools_app.widgets.flow_layout import FlowLayout
from devtools_app.widgets.problem_label import problem_label
from inspector.experiments.evaluate.request import EvalRequest
from inspector.experiments.sweeps.grid import GridError

_FIRST = ("rules.min_nodes", "partitioners")
_MOST_RUNS, _MOST_WORKERS = 10_000, 64
Check = Callable[[str, tuple[Any, ...]], str]


@dataclass(frozen=True, slots=True)
class SweepForm:
    """The content of the form.

    Attributes:
        grid: values of each field; empty where something is wrong
        runs: of each point, 0 for none
        gap: whether values are compared
        workers: points at once
        data: data set, metric and number of samples that points are evaluated on, None for none
        folder: for the files
        problem: the first thing that is wrong, empty without one
        besides: the same without the fields that are varied
        method: that is evaluated, empty for the usual one
    """

    grid: Mapping[str, tuple[Any, ...]]
    runs: int = 0
    gap: bool = False
    workers: int = 1
    data: EvalRequest | None = None
    folder: str = ""
    problem: str = ""
    besides: str = ""
    method: str = ""


class AxisRow(QWidget):
    """A field of the recipe, and the values it takes.

    Signals:
        edited(): field or values have changed
    """

    edited = Signal()

    def __init__(self, theme: Theme, fields: tuple[SweepField, ...], path: str) -> None:
        super().__init__()
        self._theme = theme
        self._fields = {one.path: one for one in fields}
        self.names = ComboBox()
        self.names.setAccessibleName("Field that is varied")
        for one in fields:
            self.names.addItem(one.title, one.path)
        self.names.setCurrentIndex(max(0, self.names.findData(path)))
        self.values = QLineEdit()
        self.values.setFont(theme.mono())
        self._more = ToolButton()
        self._more.setText("Values")
        self._more.setAccessibleName("Known values of the field")
        self._more.setPopupMode(ToolButton.ToolButtonPopupMode.InstantPopup)
        self._choices = QWidget()
        self._flow = FlowLayout(12, 4)
        self._choices.setLayout(self._flow)
        self.boxes: dict[str, QCheckBox] = {}
        self._values: dict[str, Any] = {}
        typed = QWidget()
        line = QHBoxLayout(typed)
        line.setContentsMargins(0, 0, 0, 0)
        line.addWidget(self.values, 1)
        line.addWidget(self._more)
        self._pages = QStackedWidget()
        self._pages.addWidget(typed)
        self._pages.addWidget(self._choices)
        self.remove = PushButton("Remove")
        self.problem = problem_label()
        self.problem.hide()
        parts = QHBoxLayout()
        parts.addWidget(self.names, 2)
        parts.addWidget(self._pages, 3)
        parts.addWidget(self.remove)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addLayout(parts)
        layout.addWidget(self.problem)
        self.names.currentIndexChanged.connect(lambda _index: self._show_field())
        self.values.textEdited.connect(lambda _text: self.edited.emit())
        self._show_field()

    @property
    def field(self) -> SweepField:
        """Return the field that is varied."""
        return self._fields[str(self.names.currentData())]

    def chosen(self) -> tuple[Any, ...]:
        """Return the values.

        Raises: GridError
        """
        if not self.field.choices:
            return values_of(self.field, self.values.text())
        found = tuple(self._values[key] for key, box in self.boxes.items() if box.isChecked())
        if not found:
            raise GridError(f"{self.field.title}: choose at least one value")
        return found

    def show_problem(self, sentence: str) -> None:
        """Show what is wrong with the values below them, nothing if it is empty."""
        self.problem.setText(sentence)
        self.problem.setVisible(bool(sentence))
        self.values.setAccessibleDescription(sentence)

    def _show_field(self) -> None:
        one = self.field
        self.names.setToolTip(one.help)
        self.remove.setAccessibleName(f"Remove {one.title}")
        self._pages.setCurrentIndex(1 if one.choices else 0)
        for box in self.boxes.values():
            self._flow.removeWidget(box)
            box.deleteLater()
        self.boxes, self._values = {}, {}
        for value, label in one.choices:
            box = QCheckBox(label)
            box.setAccessibleName(f"{one.title}: {label}")
            box.setChecked(True)
            box.toggled.connect(lambda _on: self.edited.emit())
            self._flow.addWidget(box)
            self.boxes[label], self._values[label] = box, value
        self.values.setAccessibleName(f"Values of {one.title}")
        self.values.setPlaceholderText(one.example)
        self.values.setText("" if one.choices else one.text)
        self._more.setVisible(bool(one.known))
        menu = QMenu(self._more)
        for text in one.known:
            menu.addAction(text, self._adder(text))
        self._more.setMenu(menu)
        self.edited.emit()

    def _adder(self, text: str) -> Callable[[], None]:
        def add() -> None:
            now = [one.strip() for one in self.values.text().split(",") if one.strip()]
            if text not in now:
                self.values.setText(", ".join((*now, text)))
                self.edited.emit()

        return add


class SweepFields(QWidget):
    """Rows of fields with values, and the measurements of each point.

    Signals:
        edited(): something has changed
        folder_requested(): the user wants to choose the folder

    Attributes:
        check: returns what is wrong with values of a field, empty if nothing is
    """

    edited = Signal()
    folder_requested = Signal()

    def __init__(self, theme: Theme, workers: int) -> None:
        super().__init__()
        self._theme = theme
        self._fields: tuple[SweepField, ...] = ()
        self.check: Check = lambda _path, _values: ""
        self.rows: list[AxisRow] = []
        self.add = PushButton("Add a field")
        self.add.setAccessibleName("Add a field to vary")
        self.add.clicked.connect(lambda: self._add(""))
        self.runs = self._spin("Runs of each point, for its latency", 0, _MOST_RUNS, 0)
        self.runs.setSpecialValueText("none")  # points are compiled alone
        self.gap = QCheckBox("Compare the values of each point with its recorded program")
        self.gap.setAccessibleName(self.gap.text())
        self.workers = self._spin("Points at once", 1, _MOST_WORKERS, max(1, workers))
        self.data, self.metric_field, self.samples, self.method = (
            self._line(name, example)
            for name, example in (
                ("Data set that points are evaluated on", "none, or data.py:batches"),
                ("Metric of the user, a function", "metric: data.py:accuracy"),
                ("Number of samples of the data set", "all samples"),
                ("Method that is evaluated, of a program with several", "usual method"),
            )
        )
        self.folder = QLineEdit()
        self.folder.setAccessibleName("Folder of the sweep")
        self.folder.setFont(theme.mono())
        choose = PushButton("Choose…")
        choose.setAccessibleName("Choose the folder of the sweep")
        choose.clicked.connect(self.folder_requested)
        self.gap.toggled.connect(lambda _on: self.edited.emit())
        self.folder.textEdited.connect(lambda _text: self.edited.emit())
        self._lay_out(choose)

    def show_fields(self, fields: tuple[SweepField, ...]) -> None:
        """Show the fields of another recipe; rows of fields that it has as well are kept."""
        if fields == self._fields:
            return
        self._fields = fields
        kept = [(row.field.path, row.values.text()) for row in self.rows]
        for row in tuple(self.rows):
            self._drop(row)
        for path, text in kept or [(path, "") for path in _FIRST[:1]]:
            row = self._add(path)
            if text:
                row.values.setText(text)
        self.edited.emit()

    def form(self) -> SweepForm:
        """Return the content of the form."""
        grid: dict[str, tuple[Any, ...]] = {}
        problem = "" if self.rows else "Add a field to vary."
        for row in self.rows:
            path = row.field.path
            wrong = f"{row.field.title} is there twice" if path in grid else ""
            try:
                grid[path] = row.chosen()
                wrong = wrong or self.check(path, grid[path])
            except GridError as error:
                wrong = wrong or str(error).removeprefix(f"{row.field.title}: ")
            row.show_problem(f"{wrong}." if wrong else "")
            problem = problem or (f"{row.field.title}: {wrong}." if wrong else "")
        data, besides = None, ""
        if self.data.text().strip():
            fields = (self.data, self.metric_field, self.samples)
            wrong, data = data_request(*(one.text() for one in fields))
            besides = f"{wrong}." if wrong else ""
        folder = self.folder.text().strip()
        besides = besides or ("" if folder else "Name a folder for the sweep.")
        how = self.runs.value(), self.gap.isChecked(), self.workers.value()
        method = self.method.text().strip()
        return SweepForm(grid, *how, data, folder, problem or besides, besides, method)

    def _line(self, name: str, example: str) -> QLineEdit:
        field = line(name, example)
        field.setToolTip(name)
        field.textEdited.connect(lambda _text: self.edited.emit())
        return field

    def _spin(self, name: str, low: int, high: int, value: int) -> QSpinBox:
        box = SpinBox()
        box.setRange(low, high)
        box.setValue(value)
        box.setAccessibleName(name)
        box.setToolTip(name)
        box.valueChanged.connect(lambda _value: self.edited.emit())
        return box

    def _lay_out(self, choose: QWidget) -> None:
        self._axes = QVBoxLayout()
        self._axes.setSpacing(6)
        head = QLabel("Values with commas between; those of a list are joined by +.")
        set_role(head, "role", "muted")
        folder = QHBoxLayout()
        folder.addWidget(self.folder, 1)
        folder.addWidget(choose)
        form = QFormLayout()
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.FieldsStayAtSizeHint)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft)
        form.addRow("Runs of each point", self.runs)
        form.addRow(self.gap)
        form.addRow("Points at once", self.workers)
        data = QHBoxLayout()
        fields = (self.data, self.metric_field, self.samples, self.method)
        for field, stretch in zip(fields, (3, 2, 1, 1), strict=True):
            data.addWidget(field, stretch)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        layout.addWidget(head)
        layout.addLayout(self._axes)
        layout.addWidget(self.add, 0, Qt.AlignmentFlag.AlignLeft)
        layout.addLayout(form)
        layout.addWidget(QLabel("Evaluated on"))
        layout.addLayout(data)
        layout.addWidget(QLabel("Folder"))
        layout.addLayout(folder)

    def _add(self, path: str) -> AxisRow:
        used = {row.field.path for row in self.rows}
        free = [name for name in (*_FIRST, *(one.path for one in self._fields)) if name not in used]
        row = AxisRow(self._theme, self._fields, path or next(iter(free), ""))
        row.edited.connect(self.edited)
        row.remove.clicked.connect(lambda: self._removed(row))
        self.rows.append(row)
        self._axes.addWidget(row)
        self.edited.emit()
        return row

    def _removed(self, row: AxisRow) -> None:
        self._drop(row)
        self.add.setFocus(Qt.FocusReason.OtherFocusReason)
        self.edited.emit()

    def _drop(self, row: AxisRow) -> None:
        self.rows.remove(row)
        self._axes.removeWidget(row)
        row.hide()
        row.deleteLater()
