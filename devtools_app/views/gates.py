"""The gates view: requirements judged on all open programs, and the trend of a history."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QSplitter, QVBoxLayout, QWidget
from typing_extensions import override

from devtools_app.state.requests import ShowSession, ShowStatus, ShowView
from devtools_app.state.state import OpenSession, State
from devtools_app.viewmodels.gate_plan import gate_name
from devtools_app.views.gates_missing import GatesMissing
from devtools_app.views.pane import NO_SESSION, Pane
from devtools_app.views.pane_parts import PanelActions
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.badge import Badge
from devtools_app.widgets.empty_state import Need
from devtools_app.widgets.problem_label import problem_label
from devtools_app.widgets.splitter import fill_splitter
from devtools_app.widgets.table_view import TableView
from devtools_app.widgets.toolbar_combo import ToolbarCombo
from inspector.experiments.evaluate.report import VariantFigures, evaluation_report
from inspector.experiments.gates.gates_file import read_gates, write_gates
from inspector.experiments.gates.offered import OfferedMetric, offered_metrics
from inspector.experiments.gates.quantities import unit_words
from inspector.experiments.gates.requirement import (
    METRICS,
    OPERATORS,
    Kind,
    Requirement,
    RequirementError,
    parse_requirement,
)
from inspector.experiments.gates.several import (
    MET,
    NOT_MET,
    UNKNOWN,
    GateSide,
    JudgedGate,
    judge_sides,
)
from inspector.numerics.report import GapReport
from inspector.tables.gates import gate_table, trend
from inspector.tables.selection import AUTOMATIC
from inspector.tables.table import Table
from schema.errors import FormatError

_NONE = Need(
    "No gates yet",
    "A gate is a metric, a comparison and a bound, such as arena <= 4MiB or latency <= 1.1x"
    " baseline. Each is judged for every open session; a file of them is what etscope gate --gates"
    " reads.",
    "etscope gate model.pte model.etrecord run.etdp --gates gates.txt",
)
_FILTER = "Requirements (*.txt);;All files (*)"
_HISTORIES = "Histories of a gate (*.jsonl *.json *.txt);;All files (*)"
_NAME = "gates.txt"
_NO_BASELINE = ""
# the view that shows what a metric is of
_PLACES = {
    "size": "size",
    "arena": "memory",
    "rss": "memory",
    "delegated": "partitions",
    "delegates": "partitions",
}
_KINDS = {Kind.TIME: "timeline", Kind.GAP: "gap", Kind.EVAL: "evaluate"}


@dataclass(frozen=True, slots=True)
class _JudgedGates:
    rows: tuple[JudgedGate, ...]
    table: Table


@dataclass(frozen=True, slots=True)
class _TrendOfGates:
    path: Path
    table: Table


class GatesPane(PanelActions, Pane):
    """A line that adds a gate; below it the results, and a history if one was opened."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__(context, "Gates")
        theme = context.theme
        self._offered = {one.metric: one for one in offered_metrics()}
        self.metrics = ToolbarCombo(theme, "gate", "Metric of a new gate")
        self.metrics.show_choices([(name, name) for name in self._offered], "latency.mean")
        self.sign = ToolbarCombo(theme, "", "Comparison")
        self.sign.show_choices([(sign, sign) for sign in OPERATORS], "<=")
        self.bound = QLineEdit()
        self.bound.setAccessibleName("Bound of the new gate")
        self.bound.setMinimumWidth(150)
        self.bound.returnPressed.connect(self.add_gate)
        self.baseline = ToolbarCombo(theme, "baseline", "Session that relative bounds refer to")
        for tool in (self.metrics, self.sign, self.bound):
            self.add_tool(tool)
        self.add_button("Add", "Add the gate", self.add_gate)
        self.add_tool(self.baseline)
        self.result = Badge(theme)
        self.add_tool(self.result)
        self.remove_button = self.add_button(
            "Remove", "Remove the gate of the chosen row", self.remove_gate, right=True
        )
        for text, tip, pressed in (
            ("Open…", "Read gates from a file of etscope gate", self.open_gates),
            ("Save…", "Write the gates into a file for etscope gate", self.save_gates),
            ("Copy as command", "Copy the command that judges this session", self.copy_command),
            ("History…", "Show the trend in a file of etscope gate --history", self.open_history),
        ):
            self.add_button(text, tip, pressed, right=True)
        self.table = TableView(theme, "gates")
        self.table.set_need(_NONE)
        self.trend = TableView(theme, "trend of the gates")
        self.problem = problem_label()
        self.missing = GatesMissing(context)
        self._shown: tuple[JudgedGate, ...] = ()
        self._lay_out_content()
        self.metrics.activated.connect(lambda _index: self._metric_chosen())
        self.baseline.activated.connect(lambda _index: self.show_state(self.state))
        self.table.row_chosen.connect(lambda _row: self._show_buttons())
        self.table.row_activated.connect(self._go)
        self.add_keys("Del", self.remove_gate)
        context.jobs["evaluate"].ended.connect(lambda _progress: self._evaluated())
        self._metric_chosen()

    def _lay_out_content(self) -> None:
        parts, upper = QSplitter(Qt.Orientation.Vertical), QWidget()
        self.set_content(parts)
        fill_splitter(parts, upper, self.trend, sizes=[360, 240])
        self.trend.hide()
        column = QVBoxLayout(upper)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        self.problem.setContentsMargins(12, 2, 12, 6)
        self.problem.hide()
        column.addWidget(self.missing)
        column.addWidget(self.problem)
        column.addWidget(self.table, 1)

    # -- state -----------------------------------------------------------------------------

    @property
    def gates(self) -> tuple[Requirement, ...]:
        """Return the requirements."""
        return tuple(map(parse_requirement, self.state.gates))

    @override
    def show_state(self, state: State) -> None:
        """Judge the gates on the open sessions."""
        if not state.sessions:
            self.show_need(NO_SESSION)
            return
        choices = [("none", _NO_BASELINE), *((gate_name(one), one.id) for one in state.sessions)]
        now = str(self.baseline.currentData() or _NO_BASELINE)
        known = now if any(now == one for _, one in choices) else _NO_BASELINE
        self.baseline.show_choices(choices, known)
        self._show_buttons()
        sides = {one.id: self._side(one) for one in state.sessions}
        evidence = tuple((one.id, one.revision, id(state.gaps_of(one))) for one in state.sessions)
        key = (state.gates, evidence, known, id(self._evaluation()))
        gates, baseline = self.gates, sides.get(known)
        self.request(key, lambda: _judged(gates, tuple(sides.values()), baseline))
        self.show_content()

    @override
    def take_focus(self) -> None:
        """Focus the table, or the bound of a new gate where there is none yet."""
        if self.state.gates or not self.bound.isVisible():
            super().take_focus()
        else:
            self.bound.setFocus(Qt.FocusReason.OtherFocusReason)

    @override
    def show_result(self, result: object) -> None:
        """Show the results, or the trend of a history."""
        if isinstance(result, _JudgedGates):
            self._shown = result.rows
            self.table.show_table(result.table)
            self.missing.show_rows(result.rows, self.state)
            self._show_summary()
        elif isinstance(result, _TrendOfGates):
            self._show_trend(result)
        elif isinstance(result, str):
            self._refuse(result)
        self.show_content()

    def _side(self, one: OpenSession) -> GateSide:
        gaps = self.state.gaps_of(one)
        report = None if gaps is None else GapReport(gaps.runs)
        return GateSide(gate_name(one), one.session, report, self._figures(one))

    def _evaluation(self) -> object:
        found = self.context.jobs["evaluate"].current
        return found.outcome if found is not None and not found.running else None

    def _evaluated(self) -> None:
        """Judge again: figures on a data set are known."""
        if self.state.gates:
            self.show_state(self.state)

    def _figures(self, one: OpenSession) -> VariantFigures | None:
        """Return the figures of a session in the last evaluation, None if it was not in it."""
        found = self.context.jobs["evaluate"].current
        if found is None or found.running or found.state is None:
            return None
        about: Sequence[object] = found.about if isinstance(found.about, tuple) else ()
        places = [place for place, each in enumerate(about) if each is one]
        if not places or not found.state.samples:
            return None
        return evaluation_report(found.state).variants[places[0]]

    def _show_summary(self) -> None:
        counts = Counter(one.result for one in self._shown)
        words = [f"{counts[word]:,} {word}" for word in (MET, NOT_MET, UNKNOWN) if counts[word]]
        self.note.setText(" · ".join(words))
        if not self._shown:
            self.result.set_badge("")
        elif counts[NOT_MET]:
            self.result.set_badge("not met", "bad", "At least one gate is not met")
        elif counts[UNKNOWN]:
            self.result.set_badge("unknown", "warn", "Something that a gate needs is missing")
        else:
            self.result.set_badge("met", "good", "All gates are met")

    def _show_buttons(self) -> None:
        self.remove_button.setEnabled(self.table.current_row() >= 0)

    # -- gates -----------------------------------------------------------------------------

    def _metric_chosen(self) -> None:
        one: OfferedMetric = self._offered[str(self.metrics.currentData())]
        self.metrics.setToolTip(one.words)
        self.sign.setCurrentIndex(self.sign.findData(one.sign))
        unit = METRICS.get(one.metric)
        example = "a bound" if unit is None else unit_words(unit)
        self.bound.setPlaceholderText(example.rpartition(" as ")[2])
        self.bound.setToolTip(f"{one.words}: {example}, or as 1.1x baseline")

    def add_gate(self) -> None:
        """Add the gate that was typed."""
        text = f"{self.metrics.currentData()}{self.sign.currentData()}{self.bound.text().strip()}"
        try:
            parse_requirement(text)
        except RequirementError as error:
            self._refuse(str(error))
            return
        self._refuse("")
        self.bound.clear()
        self._put(tuple(dict.fromkeys((*self.state.gates, text))))

    def remove_gate(self) -> None:
        """Remove the gate of the chosen row, for all sessions."""
        row = self.table.current_row()
        if row >= 0:
            gone = self._shown[row].requirement.text
            self._put(tuple(one for one in self.state.gates if one != gone))

    def _put(self, gates: tuple[str, ...]) -> None:
        self.store.update(gates=gates)
        self.show_state(self.state)

    def _refuse(self, why: str) -> None:
        self.problem.setText(why)
        self.problem.setVisible(bool(why))

    def open_gates(self) -> None:
        """Read gates from a file."""
        path = self.context.paths.open_file(self, "Open gates", _FILTER)
        if not path:
            return
        try:
            found = read_gates(Path(path))
        except (FormatError, OSError) as error:
            self._refuse(str(error))
            return
        self._refuse("")
        self._put(tuple(dict.fromkeys(one.text for one in found)))

    def save_gates(self) -> None:
        """Write the gates into a file."""
        path = self.context.paths.save_file(self, "Save gates", _NAME, _FILTER)
        if not path:
            return
        try:
            write_gates(Path(path), self.gates)
        except OSError as error:
            self._refuse(f"{path}: {error.strerror or error}")
        else:
            self._ask(ShowStatus(f"Wrote {path}"))

    def copy_command(self) -> None:
        """Copy the command that judges the current session."""
        from PySide6.QtGui import QGuiApplication

        one = self.state.open_session
        if one is not None and self.state.gates:
            base = next(
                (each for each in self.state.sessions if each.id == self.baseline.currentData()),
                None,
            )
            QGuiApplication.clipboard().setText(gate_command(one, self.state.gates, base))
            self._ask(ShowStatus("Copied the command that judges this session"))

    def _go(self, row: int) -> None:
        """Show the subject of the metric of a row, in its session."""
        judged = self._shown[row]
        one = next((each for each in self.state.sessions if gate_name(each) == judged.side), None)
        metric = judged.requirement
        view = _PLACES.get(metric.metric) or _KINDS.get(metric.kind, "")
        if one is not None and view:
            self._ask(ShowSession(one.id))
            self._ask(ShowView(view))

    # -- history ---------------------------------------------------------------------------

    def open_history(self) -> None:
        """Show the trend in a history."""
        path = self.context.paths.open_file(self, "Open the history of a gate", _HISTORIES)
        if path:
            self.forget()
            self.request(("history", path), lambda: _trend(Path(path)))

    def _show_trend(self, found: _TrendOfGates) -> None:
        self._refuse("")
        self.trend.set_title(found.path.name)
        self.trend.show_table(found.table)
        self.trend.show()
        self.forget()
        self.show_state(self.state)

    @override
    def shut_down(self) -> None:
        self.missing.shut_down()
        super().shut_down()


def gate_command(one: OpenSession, gates: Sequence[str], base: OpenSession | None) -> str:
    """Return the command that judges a session."""
    words = ["etscope", "gate", *(file.path for file in one.session.files if not file.error)]
    words += [word for text in gates for word in ("--require", text)]
    if base is not None and any(parse_requirement(text).relative for text in gates):
        words += ["--baseline", *(file.path for file in base.session.files if not file.error)]
    return f"{shlex.join(words)}\n"


def _judged(
    gates: Sequence[Requirement], sides: Sequence[GateSide], baseline: GateSide | None
) -> _JudgedGates:
    rows = judge_sides(gates, sides, baseline)
    return _JudgedGates(rows, gate_table(rows))


def _trend(path: Path) -> _TrendOfGates | str:
    try:
        return _TrendOfGates(path, trend(path, AUTOMATIC))
    except (FormatError, OSError, RequirementError) as error:
        return str(error)


SPEC = ViewSpec("gates", "Gates", Area.CENTRE, GatesPane, "gates")
