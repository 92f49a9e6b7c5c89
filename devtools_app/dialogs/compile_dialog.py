"""The Compile dialog: the fields of a recipe and the output folder."""

from __future__ import annotations

import os
from dataclasses import replace

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QLineEdit,
    QVBoxLayout,
    QWidget,
)

from devtools_app.appearance.theme import Theme
from devtools_app.dialogs.dialog_room import fit_dialog
from devtools_app.dialogs.form_parts import CodeWarning, beside, line
from devtools_app.dialogs.recipe_fields import RecipeFields
from devtools_app.jobs.computed import Computed
from devtools_app.jobs.field_names import FieldNamesKnown
from devtools_app.state.compile_form import FOLDER, CompileForm, proposed_folder
from devtools_app.viewmodels.recipe_form import with_value
from devtools_app.widgets.dialog_buttons import dialog_buttons
from devtools_app.widgets.files import PathChooser
from devtools_app.widgets.problem_label import problem_label
from devtools_app.widgets.text_label import breakable
from inspector.jobs.llm_recipe import asked_recipe
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.python_file import functions_of
from inspector.recipes.recipe import RecipeError
from inspector.recipes.source import Source, SourceKind

_SIZE = (680, 760)


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
        self._begun = False  # the user has entered something
        self._configuration = ""  # what is wrong with that of a language model
        self._configured: Computed[CompileJob | str] = Computed("configuration", self)
        self._configured.ready.connect(lambda _key: self._configuration_read())
        self._proposed = proposed_folder(form.job.source.path)
        self.setWindowTitle("Compile")
        self.setAccessibleName("Compile")
        self.fields = RecipeFields(theme, paths, live=True)
        self.fields.show_job(self._job)
        self._names = FieldNamesKnown(self)
        self._names.changed.connect(self._offer)
        self._folder = line("Output folder", "")
        self._folder.setFont(theme.mono())
        self._folder.setText(form.folder)
        self._replace = QCheckBox("Replace files in the folder")
        self._replace.setAccessibleName(self._replace.text())
        self._replace.setChecked(form.replace)
        self._runs = CodeWarning(theme)
        self._problem = problem_label()
        self._sentence = ""
        self._lay_out()
        self.fields.edited.connect(self._edited)
        self._folder.textEdited.connect(self._begin)
        self._folder.textChanged.connect(self._changed)
        self._replace.clicked.connect(self._begin)
        self._replace.toggled.connect(self._changed)
        self._choose_function()
        self._changed()
        source = self.fields.widgets["source.path"]
        if isinstance(source, QLineEdit):
            source.editingFinished.connect(self._split_function)
        source.setFocus()

    @property
    def runs(self) -> str:
        """Return the warning about code that will be run, empty if none."""
        return self._runs.text

    @property
    def problem(self) -> str:
        """Return why it was not started, may be empty."""
        return self._sentence

    def problem_of(self, path: str) -> str:
        """Return the error shown at a field, may be empty."""
        return self.fields.problem(path)

    def form(self) -> CompileForm:
        """Return the form as entered."""
        folder = os.path.expanduser(self._folder.text().strip())
        return CompileForm(self._job, folder, self._replace.isChecked())

    def shut_down(self) -> None:
        """Stop collecting names, and reading a configuration."""
        self._names.close()
        self._configured.close()

    def show_problem(self, sentence: str) -> None:
        """Show why it cannot be started."""
        self._sentence = sentence
        self._problem.setText(breakable(sentence))

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
        layout.addWidget(self.fields, 1)
        layout.addLayout(below)
        layout.addWidget(self._runs)
        layout.addWidget(self._problem)
        layout.addWidget(buttons)
        fit_dialog(self, self._theme, _SIZE)

    def _begin(self) -> None:
        self._begun = True

    def _edited(self, path: str, value: object) -> None:
        self._begun = True
        self._job = with_value(self._job, path, value)
        if path == "source.path":
            self._choose_function()
            self._propose_folder()
        if path.startswith("source."):
            self._take_configuration()
        self.fields.show_job(self._job)
        self._changed()

    def _propose_folder(self) -> None:
        """Let the folder follow the source until the user chooses one."""
        if self._folder.text() in ("", self._proposed):
            self._proposed = proposed_folder(self._job.source.path)
            self._folder.setText(self._proposed)

    def _choose_function(self) -> None:
        """Choose the first function of a Python file unless one of it is entered."""
        source = self._job.source
        path = os.path.expanduser(source.path)
        names = functions_of(path) if path.endswith(".py") else ()
        self._names.set_functions(names)
        if names and source.function not in names:
            self._job = with_value(self._job, "source.function", names[0])
            self.fields.show_job(self._job)

    def _split_function(self) -> None:
        """Take a function that is named behind its file, as on the command line."""
        path, colon, function = self._job.source.path.rpartition(":")
        if colon and path.endswith(".py"):
            self._edited("source.path", path)
            self._edited("source.function", function)

    def _take_configuration(self) -> None:
        """Fill the fields with what the configuration of a language model asks for."""
        self._configuration = ""
        source = self._job.source
        if source.kind is not SourceKind.LLM or not os.path.isfile(source.path):
            return
        key = (str(source), os.stat(source.path).st_mtime_ns)
        found = self._configured.ask(key, lambda _token: _asked(source))
        if isinstance(found, CompileJob):
            self._job = replace(found, source=source)
        else:
            self._configuration = found or "The configuration is being read."

    def _configuration_read(self) -> None:
        self._take_configuration()
        self.fields.show_job(self._job)
        self._changed()

    def _offer(self) -> None:
        self.fields.offer(self._names.known)

    def _changed(self) -> None:
        form = self.form()
        self._names.ask(self._job, self.fields.touched)
        problems = form.problems()
        path = form.request().source.path
        missing = path if "source.path" in problems else ""
        self._runs.show_files(tuple(one for one in form.runs() if one != missing))
        if self._configuration:
            problems.setdefault(_place_of(form.job.source), self._configuration)
        self.fields.show_problems(problems)
        self._ok.setEnabled(not problems)
        # one is proposed beside the source, once that is there
        folder = problems.get(FOLDER, "") if path != missing else ""
        waits = next(iter(problems.values()), "")
        self._ok.setToolTip(waits)
        self.show_problem(folder if self._begun else "")

    def _choose_folder(self) -> None:
        folder = self._paths.open_folder(self, "Folder for the compiled files")
        if folder:
            self._begun = True
            self._folder.setText(folder)

    def _accept(self) -> None:
        if not self._configuration and not self.form().problem():
            self.submitted.emit(self.form())


def _asked(source: Source) -> CompileJob | str:
    """Return the recipe that a configuration asks for, or what is wrong with it."""
    try:
        return asked_recipe(source)
    except RecipeError as error:
        return str(error)


def _place_of(source: Source) -> str:
    """Return the field of what is wrong with a configuration: its settings where there are any."""
    return "source.function" if source.function else "source.path"
