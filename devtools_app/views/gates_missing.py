"""Missing inputs of gates that can be computed: jobs, the data set of an evaluation, a button."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QVBoxLayout, QWidget

from devtools_app.appearance.theme import set_role
from devtools_app.jobs.gate_evidence import GateEvidence
from devtools_app.state.state import State
from devtools_app.viewmodels.data_request import data_request
from devtools_app.viewmodels.gate_plan import GatePlan, gate_plan
from devtools_app.views.spec import ViewContext
from devtools_app.widgets.kept_focus import kept_focus
from devtools_app.widgets.problem_label import problem_label
from devtools_app.widgets.push_button import push_button
from inspector.experiments.gates.several import JudgedGate

_COMPUTE = "Compute what is missing"
_TIP = "Run the comparisons and evaluations that gates lack, one after the other"


class GatesMissing(QWidget):
    """A line below the tools of the gates, shown while something is missing or being computed."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__()
        self._context = context
        self._plan = GatePlan()
        self.evidence = GateEvidence(context.jobs, context.store, self)
        self.button = push_button(_COMPUTE, _COMPUTE, self.compute)
        self.button.setToolTip(_TIP)
        self.cancel_button = push_button(
            "Cancel", "Cancel the computation for gates", self.evidence.cancel
        )
        self.words = QLabel()
        self.words.setWordWrap(True)
        self.words.setTextFormat(Qt.TextFormat.PlainText)
        set_role(self.words, "role", "muted")
        self.problem = problem_label()
        self.data = self._field("data set: data.py:batches, folder, random", "Data set of gates")
        self.samples = self._field("all samples", "Number of samples of gates")
        self.measure = self._field("metric: data.py:accuracy", "Metric function of gates")
        self._fields = QWidget()
        self._lay_out()
        self.evidence.changed.connect(self._refresh)
        self._refresh()

    def _field(self, placeholder: str, name: str) -> QLineEdit:
        field = QLineEdit()
        field.setPlaceholderText(placeholder)
        field.setAccessibleName(name)
        field.setToolTip(placeholder)
        field.returnPressed.connect(self.compute)
        return field

    def _lay_out(self) -> None:
        row = QHBoxLayout(self._fields)
        row.setContentsMargins(0, 0, 0, 0)
        for field, stretch in ((self.data, 3), (self.measure, 2), (self.samples, 1)):
            row.addWidget(field, stretch)
        line = QHBoxLayout()
        line.addWidget(self.words, 1)
        for button in (self.button, self.cancel_button):
            line.addWidget(button, 0, Qt.AlignmentFlag.AlignTop)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 2, 12, 6)
        column.setSpacing(4)
        column.addLayout(line)
        column.addWidget(self._fields)
        column.addWidget(self.problem)

    def show_rows(self, rows: Sequence[JudgedGate], state: State) -> None:
        """Show the missing inputs of judged gates."""
        self._plan = gate_plan(rows, state.sessions)
        self._take_data()
        self._refresh()

    def compute(self) -> None:
        """Compute the missing inputs."""
        if self.evidence.running or not self._plan.steps:
            return
        request = None
        if self._plan.evaluates:
            problem, request = data_request(
                self.data.text(), self.measure.text(), self.samples.text()
            )
            if request is None:
                self._show_problem(problem)
                return
        with kept_focus(self.cancel_button, self.button):
            self.evidence.start(self._plan.steps, request)

    def shut_down(self) -> None:
        """Stop computing inputs."""
        self.evidence.shut_down()

    def _take_data(self) -> None:
        """Propose the data set of the last evaluation."""
        found = self._context.jobs["evaluate"].current
        if found is None or self.data.text() or not self._plan.evaluates:
            return
        job = found.job
        self.data.setText(job.data)
        self.measure.setText(job.metric)
        self.samples.setText("" if job.samples is None else str(job.samples))

    def _refresh(self) -> None:
        running, plan = self.evidence.running, self._plan
        self.words.setText(self.evidence.words if running else _plan_words(plan))
        self.button.setVisible(bool(plan.steps) and not running)
        self.cancel_button.setVisible(running)
        self._fields.setVisible(plan.evaluates and not running)
        self.measure.setVisible(bool(plan.metrics))
        self._show_problem("" if running else " · ".join(self.evidence.problems))
        self.setVisible(bool(self.words.text() or self.problem.text()))

    def _show_problem(self, text: str) -> None:
        self.problem.setText(text)
        self.problem.setVisible(bool(text))


def _plan_words(plan: GatePlan) -> str:
    """Return the inputs that would be computed, and those that cannot be."""
    steps = [f"{number}. {one.intent}" for number, one in enumerate(plan.steps, 1)]
    missing = [f"Missing: {' · '.join(steps)}"] if steps else []
    refused = [f"Not computed: {' · '.join(plan.refused)}"] if plan.refused else []
    return "\n".join((*missing, *refused))
