"""The recipe of the program shown: as a form, as text and as Python; every edit can be undone."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QStackedWidget,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from devtools_app.appearance.theme import set_role
from devtools_app.dialogs.form_parts import CodeWarning
from devtools_app.dialogs.recipe_fields import RecipeFields
from devtools_app.jobs.field_names import FieldNamesKnown
from devtools_app.state.compile_form import problems_of
from devtools_app.state.requests import (
    AskCompile,
    ChooseFiles,
    EditRecipe,
    Recompile,
    ShowStatus,
    UndoRecipe,
)
from devtools_app.state.state import State
from devtools_app.state.variant_steps import shown_variant
from devtools_app.state.variants import Variant
from devtools_app.viewmodels.entries import ListEntry
from devtools_app.viewmodels.recipe_form import with_value
from devtools_app.viewmodels.recipe_texts import commands, job_in, recipe_texts
from devtools_app.viewmodels.refusal_fixes import Fix, fixes_of
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.dot_list import DotList
from devtools_app.widgets.empty_state import EmptyState, Need
from devtools_app.widgets.fields import leave_wheel
from devtools_app.widgets.flow_layout import FlowLayout
from devtools_app.widgets.push_button import push_button
from devtools_app.widgets.text_label import breakable

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.jobs.suggestions import Suggestion, Suggestions

_EMPTY = Need(
    "No recipe",
    "An ETRecord holds part of the recipe of its program; a recipe.json beside the program holds "
    "all of it. Open one of them with the program.",
    "etscope compile model.py:build -o build",
)


class RecipeView(QWidget):
    """Edits the draft of the variant shown; Ctrl+R compiles it."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__()
        self._ask = context.ask
        self._theme = context.theme
        self._variant: Variant | None = None
        self._fixes: tuple[Fix, ...] = ()
        self._title = _label("")
        self._unknown = _label("muted")
        self._changes = _label("")
        self._effect = _label("muted")
        self._previews = context.jobs.previews
        self._runs = CodeWarning(context.theme)
        self.fields = RecipeFields(context.theme, context.paths)
        self._names = FieldNamesKnown(self)
        self.text = _editor("Recipe as text")
        self.script = _editor("Recipe as Python", read_only=True)
        self.suggestions = DotList(context.theme, "Changes that reduce boundaries")
        self._hint = _label("muted")
        self._suggest = push_button(
            "Find suggestions", "Find suggestions: changes that reduce boundaries", self.suggest
        )
        self._problem = _label("bad")
        self._apply = push_button("Apply", "Apply the recipe as it is written", self.apply_text)
        self._tabs = QTabWidget()
        self._tabs.setAccessibleName("Recipe as form, text or Python")
        self._tabs.setDocumentMode(True)
        self._tabs.tabBar().setAccessibleName("Form, text, Python or ideas")
        leave_wheel(self._tabs.tabBar())
        self._empty = EmptyState(context.theme, _EMPTY)
        self._empty.add_button("Open files…", lambda: self._ask(ChooseFiles(beside=True)))
        self._empty.add_button("Compile…", lambda: self._ask(AskCompile()))
        self._pages = QStackedWidget()
        self._buttons()
        self._lay_out()
        self.fields.edited.connect(self._edited)
        self._names.changed.connect(lambda: self.fields.offer(self._names.known))
        self.text.textChanged.connect(self._typed)
        self._previews.changed.connect(self._show_effect)
        self._previews.changed.connect(self._show_suggestions)
        self.suggestions.opened.connect(self._take_suggestion)
        context.theme.follow(self._restyle)
        self._restyle()

    @property
    def problem(self) -> str:
        """Return the error of the text, may be empty."""
        return self._problem.text()

    @property
    def changes(self) -> str:
        """Return the changes as text."""
        return self._changes.text()

    @property
    def unknown(self) -> str:
        """Return the parts that the files do not record."""
        return "" if self._unknown.isHidden() else self._unknown.text()

    def show_state(self, state: State) -> None:
        """Show the recipe of the variant of a state."""
        one = shown_variant(state)
        self._pages.setCurrentIndex(0 if one is None else 1)
        if one is not None:
            self._names.ask(one.draft.present, self.fields.touched, state)
        if one is None or one == self._variant:
            self._variant = one
            return
        if self._variant is None or self._variant.id != one.id:
            self.fields.forget_input()
        self._variant = one
        texts = recipe_texts(one)
        self._title.setText(breakable(texts.title))
        self._changes.setText(texts.changes)
        self._changes.setVisible(bool(texts.changes))
        if one.changed:
            self._previews.ask(one.draft.present, one.recipe.job)
        self._show_effect()
        self._fixes = fixes_of(state.session, one.draft.present)
        self._show_suggestions()
        self._unknown.setText(f"{texts.unknown[:1].upper()}{texts.unknown[1:]}.")
        self._unknown.setVisible(bool(texts.unknown))
        self._runs.show_files(tuple(PurePath(path).name for path in texts.runs))
        self._runs.setToolTip("\n".join(texts.runs))
        self.fields.show_job(one.draft.present)
        self.fields.show_problems(problems_of(one.draft.present))
        if self.text.toPlainText() != texts.text:
            self.text.setPlainText(texts.text)
        self.script.setPlainText(texts.script)
        self._typed()
        self._undo.setEnabled(bool(one.draft.past))
        self._redo.setEnabled(bool(one.draft.future))

    @property
    def effect(self) -> str:
        """Return the effect of the edits on the partitions, empty without edits."""
        return "" if self._effect.isHidden() else self._effect.text()

    def _show_effect(self) -> None:
        one = self._variant
        changed = one is not None and one.changed
        self._effect.setVisible(changed)
        if one is not None and changed:
            text = self._previews.effect(one.draft.present, one.recipe.job)
            self._effect.setText(f"{text[:1].upper()}{text[1:]}")

    def suggest(self) -> None:
        """Try recipe changes that reduce boundaries."""
        if self._variant is not None:
            self._previews.suggest(self._variant.draft.present)

    def _show_suggestions(self) -> None:
        one = self._variant
        if one is None:
            return
        found = self._previews.suggestions(one.draft.present)
        self._suggest.setEnabled(not self._previews.suggesting)
        entries = _suggestions(found)
        fixes = [ListEntry(each.text, tone="bad") for each in self._fixes]
        ideas = [ListEntry(each.text, tone="accent") for each in entries]
        self.suggestions.show_entries([*fixes, *ideas])
        if self._previews.suggesting:
            text = "Trying changes…"
        elif self._fixes and found is None:
            text = "The program does not load as it is; choose what to keep out."
        elif found is None:
            text = "Delegating more nodes, or dropping small partitions, may save copies."
        else:
            text = found if isinstance(found, str) else found.text
        self._hint.setText(text)

    def _take_suggestion(self, index: int) -> None:
        one = self._variant
        found = self._previews.suggestions(one.draft.present) if one is not None else None
        jobs = [each.job for each in (*self._fixes, *_suggestions(found))]
        if index < len(jobs):
            self._ask(EditRecipe(jobs[index]))

    def apply_text(self) -> None:
        """Use the recipe as written."""
        job, problem = job_in(self.text.toPlainText())
        self._problem.setText(problem)
        if job is not None:
            self._ask(EditRecipe(job))

    def copy_python(self) -> None:
        """Copy a script that builds the program."""
        QGuiApplication.clipboard().setText(self.script.toPlainText())
        self._ask(ShowStatus("Copied a Python script that builds this program"))

    def copy_command(self) -> None:
        """Copy commands that build the program."""
        if self._variant is not None:
            QGuiApplication.clipboard().setText(commands(self._variant))
            self._ask(ShowStatus("Copied commands that build this program"))

    def _edited(self, path: str, value: object) -> None:
        if self._variant is not None:
            self._ask(EditRecipe(with_value(self._variant.draft.present, path, value)))

    def _typed(self) -> None:
        job, problem = job_in(self.text.toPlainText())
        self._problem.setText(problem)
        self._problem.setVisible(bool(problem))
        now = self._variant.draft.present if self._variant is not None else None
        self._apply.setEnabled(job is not None and job != now)

    def _buttons(self) -> None:
        ask = self._ask
        self._undo = push_button(
            "Undo", "Undo the last edit of the recipe", lambda: ask(UndoRecipe())
        )
        self._redo = push_button(
            "Redo", "Redo the last undone edit", lambda: ask(UndoRecipe(again=True))
        )
        self._python = push_button(
            "Copy as Python", "Copy as Python that builds the program", self.copy_python
        )
        self._command = push_button(
            "Copy as command", "Copy as commands that build the program", self.copy_command
        )
        self._go = push_button(
            "Recompile and run", "Recompile and run, then compare", lambda: ask(Recompile())
        )
        set_role(self._go, "primary", "true")

    def _lay_out(self) -> None:
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(self._pages)
        page = QWidget()
        self._pages.addWidget(self._empty)
        self._pages.addWidget(page)
        layout = QVBoxLayout(page)
        layout.setContentsMargins(12, 8, 8, 8)
        layout.setSpacing(6)
        for widget in (self._title, self._unknown):
            layout.addWidget(widget)
        layout.addWidget(self._tabs, 1)
        # what an edit brings comes below: the fields do not move away from under the pointer
        for widget in (self._changes, self._effect, self._runs):
            layout.addWidget(widget)
        buttons = QWidget()
        layout.addWidget(buttons)
        text = QWidget()
        below = QHBoxLayout()
        below.addWidget(self._problem, 1)
        below.addWidget(self._apply)
        inside = QVBoxLayout(text)
        inside.setContentsMargins(0, 0, 0, 4)
        inside.addWidget(self.text, 1)
        inside.addLayout(below)
        self._tabs.addTab(self.fields, "Form")
        self._tabs.addTab(text, "Text")
        self._tabs.addTab(self.script, "Python")
        ideas = QWidget()
        column = QVBoxLayout(ideas)
        column.setContentsMargins(0, 8, 0, 4)
        column.addWidget(self._suggest, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self._hint)
        column.addWidget(self.suggestions, 1)
        self._tabs.addTab(ideas, "Ideas")
        line = FlowLayout(6, 6)
        line.setContentsMargins(0, 0, 0, 0)
        buttons.setLayout(line)
        for button in (self._go, self._undo, self._redo, self._python, self._command):
            line.addWidget(button)

    def shut_down(self) -> None:
        """Stop collecting names."""
        self._names.close()

    def _restyle(self) -> None:
        for editor in (self.text, self.script):
            editor.setFont(self._theme.mono())
        self._title.setFont(self._theme.sans(strong=True))


def _suggestions(found: Suggestions | str | None) -> tuple[Suggestion, ...]:
    return () if found is None or isinstance(found, str) else found.suggestions


def _label(role: str) -> QLabel:
    label = QLabel()
    label.setWordWrap(True)
    label.setTextFormat(Qt.TextFormat.PlainText)
    if role:
        set_role(label, "role", role)
    return label


def _editor(name: str, *, read_only: bool = False) -> QPlainTextEdit:
    editor = QPlainTextEdit()
    editor.setObjectName("plain")
    editor.setAccessibleName(name)
    editor.setReadOnly(read_only)
    editor.setTabChangesFocus(True)
    editor.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
    return editor


SPEC = ViewSpec("recipe", "Recipe", Area.RIGHT, RecipeView, "recipe")
