"""The page of the sweep view on which a sweep is put together, counted and priced."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from devtools_app.appearance.look import FORM_WIDTH
from devtools_app.appearance.theme import set_role
from devtools_app.dialogs.sweep_fields import SweepFields, SweepForm
from devtools_app.state.requests import StartSweep
from devtools_app.state.run_form import sweep_folder
from devtools_app.state.variants import Variant
from devtools_app.viewmodels.recipe_texts import recipe_file
from devtools_app.viewmodels.sensitivity import no_sensitivity, record_of
from devtools_app.viewmodels.sweep_axes import known_times, sweep_fields
from devtools_app.views.spec import ViewContext
from devtools_app.widgets.problem_label import problem_label
from devtools_app.widgets.push_button import push_button
from inspector.experiments.sweeps.grid import GridError, grid_of_axes, points_of
from inspector.experiments.sweeps.price import price_text
from inspector.experiments.sweeps.request import SweepRequest
from inspector.experiments.sweeps.sensitivity import sensitivity_data
from inspector.experiments.sweeps.task import SweepSettings
from inspector.experiments.sweeps.values import value_problem
from inspector.graph.methods import session_methods
from inspector.jobs.output_folder import FolderError, check_folder
from inspector.recipes.data_source import absolute
from inspector.recipes.paths import placed

_SOON_MS = 150
_BUSY = "A sweep runs already: cancel it first."
_EACH_MODULE = (
    "Evaluate the program with nothing quantized, with each module that has weights quantized"
    " alone, and as the recipe has it"
)
_CHECKED = 200  # points that are built to find the same ones; the others are only counted


@dataclass(frozen=True, slots=True)
class _Priced:
    words: str
    problem: str


class SweepFormPage(QScrollArea):
    """Fields of the recipe shown with their values, and what the sweep would take.

    Signals:
        back(): the user wants the results instead
    """

    back = Signal()

    def __init__(self, context: ViewContext) -> None:
        super().__init__()
        self._context = context
        self._variant: Variant | None = None
        self._title = QLabel()
        self.fields = SweepFields(context.theme, os.cpu_count() or 1)
        self.price = QLabel()
        self.price.setWordWrap(True)
        self._problem = problem_label()
        self._sentence = ""
        self.start = push_button("Start sweep", "Start sweep", self._start)
        set_role(self.start, "primary", "true")
        self.each_module = push_button(
            "Quantize one module at a time", _EACH_MODULE, self._start_sensitivity
        )
        self.results = push_button(
            "Show results", "Show results of the sweep that is open", self.back.emit
        )
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(_SOON_MS)
        self._soon.timeout.connect(self.refresh)
        self._lay_out()
        context.theme.follow(self._restyle)
        self._restyle()
        self.fields.edited.connect(self._soon.start)
        self.fields.folder_requested.connect(self._choose)
        context.jobs.sweeping.changed.connect(self._soon.start)
        context.jobs.history.changed.connect(self._soon.start)  # what the last jobs took
        context.jobs.history.read()

    @property
    def problem(self) -> str:
        """Return why the sweep cannot be started, empty without a problem."""
        return self._sentence

    def show_variant(self, one: Variant, *, has_results: bool) -> None:
        """Show the fields of the recipe of a variant."""
        former, self._variant = self._variant, one
        self.results.setVisible(has_results)
        if former is not None and former == one:
            return
        job = one.draft.present
        self.fields.check = partial(value_problem, placed(job))
        self._title.setText(f"Vary the recipe of {os.path.basename(str(job.source))}")
        self.fields.show_fields(sweep_fields(job))
        if former is None or former.id != one.id:
            self.fields.folder.setText(sweep_folder(_program(one)))
        self.refresh()

    def refresh(self) -> None:
        """Count and price the points."""
        one = self._variant
        if one is None:
            return
        form = self.fields.form()
        found = self._priced(one, form)
        self.price.setText(found.words)
        self._show_problem(found.problem)
        self.start.setEnabled(not found.problem)
        self._offer_sensitivity(one, form)

    def _show_problem(self, sentence: str) -> None:
        """Show why it cannot be started, unless it is shown at a field."""
        self._sentence = sentence
        at_field = any(row.problem.text() for row in self.fields.rows)
        self._problem.setText(sentence)
        self._problem.setVisible(bool(sentence) and not at_field)
        self.start.setToolTip(sentence)

    def shut_down(self) -> None:
        """Stop counting."""
        self._context.jobs.sweeping.changed.disconnect(self._soon.start)
        self._context.jobs.history.changed.disconnect(self._soon.start)
        self._soon.stop()

    def _lay_out(self) -> None:
        buttons = QHBoxLayout()
        for button in (self.start, self.each_module, self.results):
            buttons.addWidget(button)
        buttons.addStretch(1)
        self._page = QWidget()
        self._page.setObjectName("page")
        column = QVBoxLayout(self._page)
        column.setContentsMargins(16, 12, 16, 16)
        column.setSpacing(10)
        for part in (self._title, self.fields, self.price, self._problem):
            column.addWidget(part)
        column.addLayout(buttons)
        column.addStretch(1)
        self.setWidget(self._page)
        self.setWidgetResizable(True)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def _restyle(self) -> None:
        self._title.setFont(self._context.theme.sans(strong=True))
        self._page.setMaximumWidth(round(FORM_WIDTH * self._context.theme.scale))

    def _priced(self, one: Variant, form: SweepForm) -> _Priced:
        if wrong := form.problem or self._wrong_method(form.method) or _wrong_folder(form.folder):
            return _Priced("", wrong)
        job = one.draft.present
        try:
            grid = grid_of_axes({name: list(values) for name, values in form.grid.items()})
            few = len(grid.rows) <= _CHECKED
            count = len(points_of(job, grid, "")) if few else len(grid.rows)
        except GridError as error:
            return _Priced("", f"{error}.")
        known = known_times(self._context.jobs.history.entries, job, one.files)
        words = price_text(count, _settings(form), form.workers, known)
        return _Priced(words, self._busy)

    def _wrong_method(self, name: str) -> str:
        session = self._context.store.state.session
        known = session_methods(session) if session is not None else ()
        if not name or not known or name in known:
            return ""
        return f"Unknown method {name}; available: {', '.join(known)}."

    @property
    def _busy(self) -> str:
        return _BUSY if self._context.jobs.sweeping.running else ""

    def _offer_sensitivity(self, one: Variant, form: SweepForm) -> None:
        """Enable the button that quantizes one module at a time, or report why it is not."""
        why = no_sensitivity(one) or form.besides or self._busy
        self.each_module.setEnabled(not why)
        self.each_module.setToolTip(why or _EACH_MODULE)
        self.each_module.setAccessibleDescription(why or _EACH_MODULE)

    def _start(self) -> None:
        one, form = self._variant, self.fields.form()
        if one is None or self._priced(one, form).problem:
            return
        grid = {name: list(values) for name, values in form.grid.items()}
        self._ask_for(one, form, SweepRequest("", grid, _settings(form), form.workers))

    def _start_sensitivity(self) -> None:
        one, form = self._variant, self.fields.form()
        if one is None or not self.each_module.isEnabled():
            return
        settings = _settings(form)
        if not settings.data:
            data, samples = sensitivity_data(one.draft.present)
            settings = replace(settings, data=data, samples=samples)
        settings = replace(settings, method=form.method)
        request = SweepRequest("", {}, settings, form.workers, record=record_of(one))
        self._ask_for(one, form, request)

    def _ask_for(self, one: Variant, form: SweepForm, request: SweepRequest) -> None:
        """Ask for a sweep over the recipe of a variant."""
        try:
            recipe = recipe_file(one)
        except OSError as error:
            self._show_problem(f"The recipe cannot be written: {error}.")
            return
        found = replace(request, recipe=str(recipe))
        self._context.ask(StartSweep(found, os.path.abspath(form.folder)))

    def _choose(self) -> None:
        if path := self._context.paths.open_folder(self, "Folder of the sweep"):
            self.fields.folder.setText(path)
            self.refresh()


def _settings(form: SweepForm) -> SweepSettings:
    data = form.data
    if data is None:
        return SweepSettings(form.runs, form.gap)
    metric = absolute(data.metric) if data.metric else ""
    where = absolute(data.data)
    return SweepSettings(
        form.runs, form.gap, data=where, metric=metric, samples=data.samples, method=form.method
    )


def _wrong_folder(folder: str) -> str:
    try:
        check_folder(Path(folder), force=True)  # a sweep in it is continued
    except FolderError as error:
        return f"{error}."
    return ""


def _program(one: Variant) -> str:
    found = (path for path in one.files if path.endswith((".pte", ".bpte")))
    return next(found, one.recipe.job.source.path)
