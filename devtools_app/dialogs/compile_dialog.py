"""The Compile dialog: the fields of a recipe and the output folder."""

from __future__ import annotations

import os
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from devtools_app.appearance.theme import Theme
from devtools_app.dialogs.form_parts import CodeWarning, beside, line
from devtools_app.dialogs.recipe_fields import RecipeFields
from devtools_app.state.compile_form import CompileForm
from devtools_app.viewmodels.recipe_form import sections, with_value
from devtools_app.widgets.dialog_buttons import dialog_buttons
from devtools_app.widgets.files import PathChooser
from devtools_app.widgets.problem_label import problem_label
from inspector.jobs.messages import Ready
from inspector.recipes.compile_job import EXECUTORCH
from inspector.recipes.python_file import functions_of
from schema.backends import BACKENDS

_SIZE, _FRAME = (680, 760), 64  # pixels; what the frame of a window and a task bar may take
_OF_MODES = ("per_tensor", "modules", "operators", "nodes")  # what only a mode needs
_FIRST = 2  # sections on the first tab: the source, and the program as a whole


class CompileDialog(QDialog):
    """Edits a CompileForm; Compile emits it, Cancel changes nothing.

    Signals:
        submitted(form): compile this
    """

    submitted = Signal(object)

    def __init__(
        self, theme: Theme, form: CompileForm, paths: PathChooser, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._paths = paths
        self._job = form.job
        self._own_names = ""
        self.setWindowTitle("Compile")
        self.setAccessibleName("Compile")
        self._tabs = QTabWidget()
        self._tabs.setDocumentMode(True)
        self._tabs.setAccessibleName("Parts of the recipe")
        self._tabs.tabBar().setAccessibleName("Parts of the recipe")
        self._forms = self._add_forms()
        self._folder = line("Output folder", "")
        self._folder.setFont(theme.mono())
        self._folder.setText(form.folder)
        self._replace = QCheckBox("Replace files in the folder")
        self._replace.setAccessibleName(self._replace.text())
        self._replace.setChecked(form.replace)
        self._runs = CodeWarning(theme)
        self._problem = problem_label()
        self._lay_out()
        self._folder.textChanged.connect(self._changed)
        self._replace.toggled.connect(self._changed)
        self._show_functions()
        self._changed()
        self._forms["source.path"].widgets["source.path"].setFocus()

    def _add_forms(self) -> dict[str, RecipeFields]:
        """Add a tab for each section; return the form of each field by the path of the field."""
        titles = [section.title for section in sections(self._job)]
        found: dict[str, RecipeFields] = {}
        for shown in (titles[:_FIRST], *([title] for title in titles[_FIRST:])):
            form = RecipeFields(self._theme, tuple(shown), self._paths)
            form.show_job(self._job)
            form.edited.connect(self._edited)
            self._tabs.addTab(form, shown[-1])
            found.update(dict.fromkeys(form.widgets, form))
        return found

    @property
    def runs(self) -> str:
        """Return the warning about code that will be run, empty if none."""
        return self._runs.text

    @property
    def problem(self) -> str:
        """Return why it cannot be started, empty when it can."""
        return self._problem.text()

    def form(self) -> CompileForm:
        """Return the form as entered."""
        return CompileForm(self._job, self._folder.text().strip(), self._replace.isChecked())

    def show_names(self, ready: Ready) -> None:
        """Offer the names reported by a worker."""
        if ready.planners:
            self._forms["memory_planner"].offer("memory_planner", ready.planners)
        if ready.partitioners:
            self._own_names = ", ".join(name for name in ready.partitioners if name.islower())
            self._show_partitioners()

    def _show_partitioners(self) -> None:
        """List the available partitioners; those of another toolchain are unknown until it runs."""
        names = self._own_names or "NAME, NAME:option=value"
        if self._job.toolchain == EXECUTORCH:
            known = ", ".join(one.name.lower() for one in [*BACKENDS.values()][:3])
            names = f"{known}, … as executorch names them"
        text = f"one per line, in order of preference: {names}, or file.py:Class"
        self._forms["partitioners"].explain("partitioners", text)

    def show_problem(self, sentence: str) -> None:
        """Show why it cannot be started."""
        self._problem.setText(sentence)

    def _lay_out(self) -> None:
        below = QFormLayout()
        below.setLabelAlignment(Qt.AlignmentFlag.AlignLeft)
        below.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        below.addRow(
            "Output folder", beside(self._folder, "Choose the folder", self._choose_folder)
        )
        below.addRow("", self._replace)
        kinds = QDialogButtonBox.StandardButton
        buttons = dialog_buttons(self, kinds.Ok | kinds.Cancel)
        self._ok = buttons.button(kinds.Ok)
        self._ok.setText("Compile")
        self._ok.setAccessibleName("Compile")
        buttons.accepted.connect(self._accept)
        layout = QVBoxLayout(self)
        layout.setSpacing(10)
        layout.addWidget(self._tabs, 1)
        layout.addLayout(below)
        layout.addWidget(self._runs)
        layout.addWidget(self._problem)
        layout.addWidget(buttons)
        room = self.screen().availableGeometry().height() - _FRAME
        self.resize(_SIZE[0], min(_SIZE[1], max(room, self.minimumSizeHint().height())))

    def _edited(self, path: str, value: object) -> None:
        self._job = with_value(self._job, path, value)
        if path == "source.path":
            self._show_functions()
            source = Path(self._job.source.path)
            if not self._folder.text() and os.path.isfile(source):
                self._folder.setText(str(source.with_name(f"{source.stem}_build")))
        self._changed()

    def _show_functions(self) -> None:
        """Offer the functions of a Python file, the first one if none is entered."""
        source, form = self._job.source, self._forms["source.function"]
        names = functions_of(source.path) if source.path.endswith(".py") else ()
        form.offer("source.function", names)
        if names and source.function not in names:
            self._job = with_value(self._job, "source.function", names[0])
            form.show_job(self._job)

    def _changed(self) -> None:
        form, modes = self.form(), self._job.quantising
        chosen = bool(modes.mode) and not modes.quantizer
        for path, on in (
            ("source.function", form.is_python),
            ("python", form.needs_interpreter),
            ("quantising.mode", not modes.quantizer),
            ("quantising.calibration", bool(modes.mode or modes.quantizer)),
            *((f"quantising.{name}", chosen) for name in _OF_MODES),
        ):
            self._forms[path].enable(path, on)
        self._show_partitioners()
        self._runs.show_files(form.runs())
        problem = form.problem()
        self._ok.setEnabled(not problem)
        self.show_problem(problem if self._job.source.path else "")

    def _choose_folder(self) -> None:
        folder = self._paths.open_folder(self, "Folder for the compiled files")
        if folder:
            self._folder.setText(folder)

    def _accept(self) -> None:
        if not self.form().problem():
            self.submitted.emit(self.form())
