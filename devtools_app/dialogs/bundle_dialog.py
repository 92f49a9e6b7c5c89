"""The dialog that asks for the cases of a bundled program."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QLabel,
    QVBoxLayout,
    QWidget,
)

from devtools_app.appearance.theme import Theme
from devtools_app.dialogs.bundle_cases import CaseList
from devtools_app.dialogs.dialog_room import fit_dialog, scrolled
from devtools_app.dialogs.form_parts import CodeWarning, beside, line
from devtools_app.widgets.dialog_buttons import dialog_buttons
from devtools_app.widgets.fields import ComboBox
from devtools_app.widgets.files import PathChooser
from devtools_app.widgets.problem_label import problem_label
from devtools_app.widgets.text_label import breakable
from inspector.jobs.executing import BundleJob
from inspector.recipes.python_file import functions_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_SIZE = (640, 480)
_EXAMPLE = "One case: the example inputs of the module and its outputs."
_NOTHING = "No cases yet. A file holds the inputs of one case, or a list of cases."
_MODULES = "Python, exported programs (*.py *.pt2);;All (*)"
_TENSORS = "Tensors (*.pt *.pth);;All (*)"


class BundleDialog(QDialog):
    """Asks for cases: inputs, and the source of expected outputs.

    Signals:
        wanted(job, target): create this bundled program in this file
    """

    submitted = Signal(object, str)

    def __init__(
        self,
        theme: Theme,
        program: str,
        dialogs: PathChooser,
        parent: QWidget,
        methods: Sequence[str] = (),
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._program = program
        self._dialogs = dialogs
        self.setWindowTitle("Create a bundled program")
        self.setAccessibleName("Create a bundled program")
        self._module = line("PyTorch module", "model.py or model.pt2; computes expected outputs")
        self._function = ComboBox()
        self._function.setEditable(True)
        self._function.setAccessibleName("Function")
        self._method = ComboBox()
        self._method.setAccessibleName("Method")
        self._method.addItem("forward, or those of the module", "")
        for name in methods:
            self._method.addItem(name, name)
        self._several = len(methods) > 1
        self._cases = CaseList(self._choose_tensors)
        self._target = line("Bundled program", "")
        self._target.setText(_target_of(PurePath(program)))
        self._replace = QCheckBox("Replace the file")
        self._replace.setAccessibleName(self._replace.text())
        self._runs = CodeWarning(theme)
        self._problem = problem_label()
        self._sentence = ""
        self._lay_out()
        self._wire()
        self._changed()

    @property
    def problem(self) -> str:
        """Return why it cannot be created, empty if it can."""
        return self._sentence

    @property
    def runs(self) -> str:
        """Return the warning about code that will be run, empty if none."""
        return self._runs.text

    def show_problem(self, sentence: str) -> None:
        """Show why it cannot be created."""
        self._sentence = sentence
        self._problem.setText(breakable(sentence))

    def set_module(self, path: str) -> None:
        """Set the module and offer its functions."""
        self._module.setText(path)

    def set_target(self, path: str) -> None:
        """Set the file to write."""
        self._target.setText(path)

    def job(self) -> BundleJob:
        """Return the requested job."""
        module = self._module.text().strip()
        if module.endswith(".py"):
            module = f"{module}:{self._function.currentText().strip()}"
        cases = self._cases.cases
        expected = tuple(case.expected for case in cases)
        return BundleJob(
            self._program,
            module,
            method=str(self._method.currentData()),
            inputs=tuple(case.inputs for case in cases),
            expected=expected if any(expected) else (),
        )

    def _lay_out(self) -> None:
        rows = QFormLayout()
        rows.setLabelAlignment(Qt.AlignmentFlag.AlignLeft)
        rows.setVerticalSpacing(8)
        rows.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        program = QLabel(PurePath(self._program).name)
        program.setToolTip(self._program)
        rows.addRow("Program", program)
        rows.addRow("Module", beside(self._module, "Choose the module", self._choose_module))
        rows.addRow("Function", self._function)
        if self._several:
            rows.addRow("Method", self._method)
        rows.addRow("Cases", self._cases)
        rows.addRow("File", self._target)
        rows.addRow("", self._replace)
        for field in (self._module, self._target):
            field.setFont(self._theme.mono())
        kinds = QDialogButtonBox.StandardButton
        buttons = dialog_buttons(self, kinds.Ok | kinds.Cancel)
        self._ok = buttons.button(kinds.Ok)
        self._ok.setText("Make")
        self._ok.setAccessibleName("Make")
        buttons.accepted.connect(self._accept)
        layout = QVBoxLayout(self)
        layout.setSpacing(10)
        area = scrolled(rows, "Fields of the bundled program")
        layout.addWidget(area, 1)
        layout.addWidget(self._runs)
        layout.addWidget(self._problem)
        layout.addWidget(buttons)
        fit_dialog(self, self._theme, _SIZE, area)

    def _wire(self) -> None:
        self._module.textChanged.connect(self._module_changed)
        self._target.textChanged.connect(self._changed)
        self._function.currentTextChanged.connect(self._changed)
        self._method.currentIndexChanged.connect(self._changed)
        self._cases.edited.connect(self._changed)
        self._replace.toggled.connect(self._changed)

    def _module_changed(self) -> None:
        path = self._module.text().strip()
        blocked = self._function.blockSignals(True)
        self._function.clear()
        self._function.addItems(functions_of(path) if path.endswith(".py") else ())
        self._function.blockSignals(blocked)
        self._changed()

    def _changed(self) -> None:
        module = self._module.text().strip()
        is_python = module.endswith(".py")
        self._function.setEnabled(is_python)
        self._cases.show_empty(_EXAMPLE if module else _NOTHING)
        self._runs.show_files((module,) if is_python else ())
        problem = self._why_not(module, is_python=is_python)
        self._ok.setEnabled(not problem)
        self.show_problem(problem)

    def _why_not(self, module: str, *, is_python: bool) -> str:
        target = self._target.text().strip()
        if module and not os.path.isfile(module):
            return f"{module} not found."
        if is_python and not self._function.currentText().strip().isidentifier():
            return "Name the function that returns the module and its example inputs."
        cases = self._cases.problem(has_module=bool(module))
        if cases:
            return cases
        if not target:
            return "Choose a file for the bundled program."
        if os.path.abspath(target) == os.path.abspath(self._program):
            return "The program itself cannot be replaced by its bundle."
        if os.path.exists(target) and not self._replace.isChecked():
            return "The file exists: choose another name or allow replacing it."
        return ""

    def _choose_module(self) -> None:
        paths = self._dialogs.open_files(self, "The PyTorch module of the program", _MODULES)
        if paths:
            self.set_module(paths[0])

    def _choose_tensors(self, purpose: str) -> Sequence[str]:
        return self._dialogs.open_files(self, purpose, _TENSORS)

    def _accept(self) -> None:
        if not self.problem:
            self.submitted.emit(self.job(), os.path.abspath(self._target.text().strip()))


def _target_of(program: PurePath) -> str:
    """Return a name for the bundle next to its program, which may be a bundle itself."""
    name = f"{program.stem}_new" if program.suffix == ".bpte" else program.stem
    return str(program.with_name(f"{name}.bpte"))
