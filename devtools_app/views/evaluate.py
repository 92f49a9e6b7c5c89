"""The errors of the open programs over a data set: figures, their distribution, worst samples."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLineEdit,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from devtools_app.jobs.evaluating import PreparedEvaluation, prepared, programs
from devtools_app.state.requests import Execute, GoTo, ShowStatus, ShowView
from devtools_app.state.run_form import default_folder
from devtools_app.state.state import OpenSession, Place, State
from devtools_app.viewmodels.data_request import data_request
from devtools_app.views.pane import NO_SESSION, Pane
from devtools_app.views.pane_parts import PanelActions
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.elided_label import ElidedLabel
from devtools_app.widgets.empty_state import Need
from devtools_app.widgets.error_histogram import ErrorCounts, ErrorHistogram, error_counts
from devtools_app.widgets.files import Done, unreported
from devtools_app.widgets.kept_focus import kept_focus
from devtools_app.widgets.push_button import push_button
from devtools_app.widgets.table_view import TableView
from devtools_app.widgets.toolbar_combo import ToolbarCombo
from inspector.experiments.evaluate.report import EvalReport, evaluation_report
from inspector.experiments.evaluate.request import evaluated_method
from inspector.jobs.evaluate import EvalJob
from inspector.tables.evaluate import RangeKey, figures_table, ranges_table, worst_table
from inspector.tables.exported_nodes import exported_place
from inspector.tables.selection import Units
from inspector.units import format_elapsed
from schema.objects.plural import plural

if TYPE_CHECKING:
    from inspector.jobs.eval_samples import EvalState
    from inspector.tables.table import Table

_NO_PROGRAM = Need(
    "No program",
    "A program (.pte) is run over a data set and its outputs are compared with the float program."
    " Open one, or several variants of one.",
    "etscope eval model.pte --data data.py:batches -o eval",
)
_READY = Need(
    "Nothing evaluated yet",
    "Name a data set above: an iterable in a Python file (data.py:batches), whose code is run in a"
    " process of its own, a folder of .pt and .npy files, or random with a number of samples. All"
    " open programs run over it and are compared with the float program, where it is known.",
)
_NOT_OBSERVED = Need(
    "No ranges observed",
    "Press Evaluate with this list chosen: the recorded program of each quantized variant runs over"
    " the samples too. Variants that quantize nothing with a fixed scale have no ranges.",
    "etscope eval int8 --data data.py:batches --ranges -o eval",
)
_WORST, _RANGES = "worst", "ranges"
_LISTS = [("worst samples", _WORST), ("ranges", _RANGES)]
_FILTER = "Python files and tensors (*.py *.pt *.npy);;All files (*)"


@dataclass(frozen=True, slots=True, eq=False)
class _Figures:
    """An evaluation as it is shown."""

    report: EvalReport
    figures: Table
    worst: Table
    ranges: Table
    errors: tuple[ErrorCounts | None, ...]


class EvaluatePane(PanelActions, Pane):
    """A line with the data set; below it the figures, the worst samples and a histogram."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__(context, "Evaluate")
        self.runner = context.jobs["evaluate"]
        self.data = self._field("data.py:batches", "Data set", 220)
        self.add_button("File…", "Choose a file or, for a folder, a file in it", self._choose)
        self.measured_by = self._field("metric: data.py:accuracy", "Metric, a function", 170)
        self.samples = self._field("all samples", "Number of samples", 90)
        self.lists = ToolbarCombo(context.theme, "list", "Worst samples, or ranges of values")
        self.lists.show_choices(_LISTS, _WORST)
        self.add_tool(self.lists)
        self._start = push_button(
            "Evaluate", "Evaluate all open programs over the data set", self.evaluate
        )
        self.add_tool(self._start, right=True)
        self._cancel = self.add_button(
            "Cancel", "Cancel; finished samples are kept", self.runner.cancel, right=True
        )
        self._open = self.add_button(
            "Open sample", "Run the chosen sample with values", self.open_sample, right=True
        )
        self.figures = TableView(context.theme, "errors by variant and output")
        self.figures.hide_tools()
        self.worst = TableView(context.theme, "worst samples")
        self.ranges = TableView(context.theme, "ranges of quantized values")
        self.ranges.set_need(_NOT_OBSERVED)
        self._below = QStackedWidget()
        self.summary = ElidedLabel()
        self.histogram = ErrorHistogram(context.theme)
        self._asked = 0
        self._preparing = False
        self._unconfirmed: PreparedEvaluation | None = None
        self._content: _Figures | None = None
        self._lay_out_content()
        self.runner.changed.connect(self._refresh)
        self.worst.row_chosen.connect(self._row_chosen)
        self.worst.row_activated.connect(lambda _row: self.open_sample())
        self.ranges.row_activated.connect(self._open_node)
        self.lists.activated.connect(lambda _index: self._show_list())
        self._refresh()

    def _field(self, placeholder: str, name: str, width: int) -> QLineEdit:
        field = QLineEdit()
        field.setPlaceholderText(placeholder)
        field.setAccessibleName(name)
        field.setToolTip(name)
        field.setMinimumWidth(width)
        field.returnPressed.connect(self.evaluate)
        self.add_tool(field)
        return field

    def _lay_out_content(self) -> None:
        parts = QSplitter(Qt.Orientation.Vertical)
        self.set_content(parts)
        above, below = QWidget(), QSplitter(Qt.Orientation.Horizontal)
        parts.addWidget(above)
        parts.addWidget(below)
        parts.setSizes([240, 320])
        for splitter in (below, parts):
            splitter.setChildrenCollapsible(False)
        for table in (self.worst, self.ranges):
            self._below.addWidget(table)
        below.addWidget(self._below)
        below.addWidget(self.histogram)
        below.setSizes([620, 380])
        column = QVBoxLayout(above)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        line = QHBoxLayout()
        line.setContentsMargins(12, 0, 12, 6)
        line.addWidget(self.summary)
        column.addLayout(line)
        column.addWidget(self.figures, 1)

    # -- state -----------------------------------------------------------------------------

    @override
    def show_state(self, state: State) -> None:
        """Show the last evaluation, or the missing requirement."""
        self._refresh()

    def _refresh(self) -> None:
        found = self.runner.current
        running = found is not None and found.running
        with kept_focus(self._cancel, self._start):
            self._cancel.setVisible(running)
            self._start.setVisible(not running)
        samples = self._content is not None and self.panel is self.worst
        self._open.setVisible(samples and not running)
        self._open.setEnabled(self._chosen() is not None)
        if found is None:
            missing = NO_SESSION if not self.state.sessions else _NO_PROGRAM
            ready = bool(programs(self.state))
            if not self._preparing:
                self.show_need(_READY if ready else missing, tools=ready)
        elif found.running:
            at = found.counted
            of = f" of {at.total:,}" if at is not None and at.total else ""
            far = f"{at.done:,}{of} samples" if at is not None else found.stage.capitalize()
            words = f"{far} · {format_elapsed(found.seconds)}. Finished samples are kept."
            self.show_need(Need("Evaluating", words), tools=True)
        else:
            self._show_end(found.state, found.error)

    def _show_end(self, state: EvalState | None, error: str) -> None:
        if self._preparing:
            return
        if state is None or not state.samples:
            self._refuse(error or "No samples")
            return
        units = self.state.units
        self.request((id(self.runner.current), units), lambda: _figures(state, units))

    def _refuse(self, why: str, title: str = "Not evaluated") -> None:
        self.show_need(Need(title, f"{why[:1].upper()}{why[1:].rstrip('.')}."), tools=True)

    # -- the job ---------------------------------------------------------------------------

    def _choose(self) -> None:
        path = self.context.paths.open_file(self, "Choose a data set", _FILTER)
        if path:
            suffix = Path(path).suffix
            folder = suffix == ".npy"
            text = f"{path}:batches" if suffix == ".py" else str(Path(path).parent)
            self.data.setText(text if folder or suffix == ".py" else path)
            self.data.setFocus(Qt.FocusReason.OtherFocusReason)

    def evaluate(self) -> None:
        """Prepare the job in a thread, then start it."""
        sessions = programs(self.state)
        if self.runner.running or not sessions:
            return
        waiting, self._unconfirmed = self._unconfirmed, None
        if waiting is not None:
            self._begin(waiting)
            return
        problem, request = data_request(
            self.data.text(), self.measured_by.text(), self.samples.text()
        )
        if request is None:
            self._refuse(problem)
            return
        request = replace(request, ranges=self.panel is self.ranges)
        self._asked += 1
        self._preparing = True
        options = self.context.jobs.run_form.backend_options
        self.request(("prepare", self._asked), lambda: prepared(request, sessions, options))

    def _begin(self, requested: PreparedEvaluation) -> None:
        self._content = None
        problem = requested.start(self.runner)
        if problem:
            self._refuse(problem)

    @override
    def show_result(self, result: object) -> None:
        """Start a prepared job, or show figures."""
        if not isinstance(result, _Figures):
            self._preparing = False
        if isinstance(result, str):
            self._refuse(result)
        elif isinstance(result, PreparedEvaluation):
            self._confirm(result)
        elif isinstance(result, _Figures):
            self._show_figures(result)

    def _confirm(self, requested: PreparedEvaluation) -> None:
        """Start, unless the code of a recipe's source would run that is not trusted yet."""
        source = requested.untrusted
        if not source:
            self._begin(requested)
            return
        self._unconfirmed = requested
        words = f"the float program is that of {source}: press Evaluate again to run its code"
        self._refuse(words, "The reference runs code")

    # -- the result ------------------------------------------------------------------------

    def _show_figures(self, content: _Figures) -> None:
        self._content = content
        report, found = content.report, self.runner.current
        words = [plural(report.samples, "sample"), f"compared with {report.settings.reference}"]
        words += [found.error] if found is not None and found.error else []
        words += report.settings.notes
        words += [
            f"{one.name}: {one.refused:,} refused, {one.sentence}"
            for one in report.variants
            if one.refused
        ]
        self.summary.setText(" · ".join(words))
        self.summary.setToolTip("\n".join(words))
        self.figures.show_table(content.figures)
        self.worst.show_table(content.worst)
        self.ranges.show_table(content.ranges)
        self._show_errors(next((at for at, one in enumerate(content.errors) if one), 0))
        self._open.setVisible(self.panel is self.worst)
        self._open.setEnabled(False)
        self.show_content()

    def _show_errors(self, variant: int) -> None:
        content = self._content
        if content is not None and 0 <= variant < len(content.errors):
            name = content.report.variants[variant].name
            self.histogram.show_counts(f"{name}: samples by error", content.errors[variant])

    def _show_list(self) -> None:
        self._below.setCurrentWidget(self.panel)
        self.histogram.setVisible(self.panel is self.worst)  # it is of samples
        self._refresh()

    def _row_chosen(self, row: int) -> None:
        key = self.worst.rows.key(row)
        self._open.setEnabled(True)
        if isinstance(key, tuple):
            self._show_errors(int(key[0]))

    def _chosen(self) -> tuple[int, int] | None:
        """Return variant and index of the chosen sample."""
        row = self.worst.current_row() if self._content is not None else -1
        key = self.worst.rows.key(row) if row is not None and row >= 0 else None
        return (int(key[0]), int(key[1])) if isinstance(key, tuple) else None

    def open_sample(self) -> None:
        """Run the chosen sample with all values logged, for the numeric gap."""
        chosen, found = self._chosen(), self.runner.current
        if chosen is None or found is None:
            return
        variant, index = chosen
        job: EvalJob = found.job
        how = job.variants[variant]
        sample = replace(how, inputs=f"{job.data}#{index}", debug_level="intermediate")
        session = _session_of(found.about, how.program)
        self._ask(ShowView("gap"))
        self._ask(Execute(sample, session.id if session else "", default_folder(how.program)))

    def _open_node(self, row: int) -> None:
        """Show the node whose result is quantized, in the graph of its variant."""
        key, found = self.ranges.rows.key(row), self.runner.current
        if not isinstance(key, RangeKey) or found is None:
            return
        how = found.job.variants[key.variant]
        one = _session_of(found.about, how.program)
        if one is None or one.id not in {each.id for each in self.state.sessions}:
            self._ask(ShowStatus(f"{found.job.names[key.variant]} is closed"))
            return
        method = how.method or evaluated_method(one.session)
        places = (exported_place(one.session, method, name) for name in (key.made_by, key.node))
        selection = next(filter(None, places), None)
        if selection is None:
            self._ask(ShowStatus(f"{key.made_by} is not in the graph of {one.session.name}"))
            return
        self._ask(GoTo(Place(one.id, method, selection)))
        self._ask(ShowView("graph"))

    @property
    @override
    def panel(self) -> TableView:
        return self.ranges if self.lists.currentData() == _RANGES else self.worst

    @override
    def export_to(self, path: Path, done: Done = unreported) -> bool:
        """Begin to write the figures as TSV or CSV by the suffix."""
        return self.figures.export_to(path, done)


def _figures(state: EvalState, units: Units) -> _Figures:
    report = evaluation_report(state)
    errors = tuple(
        error_counts(
            [
                max(output.sums.max_abs for output in outputs)
                for sample in state.samples.values()
                if (outputs := sample.variants[number].outputs)
                and not any(output.sums.is_unknown for output in outputs)
            ]
        )
        for number in range(len(report.variants))
    )
    return _Figures(
        report,
        figures_table(report, units),
        worst_table(report, units),
        ranges_table(report, units),
        errors,
    )


def _session_of(sessions: object, program: str) -> OpenSession | None:
    found = sessions if isinstance(sessions, tuple) else ()
    for one in found:
        files = one.session.files if isinstance(one, OpenSession) else ()
        if any(os.path.abspath(file.path) == program for file in files):
            return one
    return None


SPEC = ViewSpec("evaluate", "Evaluate", Area.CENTRE, EvaluatePane, "evaluate")
