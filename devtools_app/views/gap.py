"""The numeric gap: where the values of a run deviate from those of the recorded program."""

from __future__ import annotations

import os
from collections.abc import Hashable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QMenu, QSplitter, QVBoxLayout, QWidget
from typing_extensions import override

from devtools_app.jobs.follower import JobProgress
from devtools_app.jobs.latest import Latest
from devtools_app.state.requests import EditRecipe, Execute, ShowTensor
from devtools_app.state.run_form import runnable
from devtools_app.state.state import Gaps, OpenSession, State
from devtools_app.state.transitions import with_gaps
from devtools_app.state.variant_steps import shown_variant
from devtools_app.viewmodels.gap_content import GapContent, gap_content
from devtools_app.viewmodels.scene_search import related_to
from devtools_app.viewmodels.sensitivity import (
    LEAVE_IN_FLOAT,
    LEAVE_IN_FLOAT_HELP,
    float_edit,
)
from devtools_app.viewmodels.tensor_look import kept_key
from devtools_app.views.gap_need import NO_VALUES, needs, ready, without_program
from devtools_app.views.pane import NO_SESSION, Pane
from devtools_app.views.pane_parts import PanelActions
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.empty_state import Need
from devtools_app.widgets.gap_plots import DifferencePlot, GrowthPlot
from devtools_app.widgets.push_button import push_button
from devtools_app.widgets.splitter import fill_splitter
from devtools_app.widgets.table_view import TableView
from devtools_app.widgets.tolerance_fields import ToleranceFields
from devtools_app.widgets.toolbar_combo import ToolbarCombo
from inspector.files.session import Session
from inspector.jobs.executing import RunJob
from inspector.jobs.gap import GapJob
from inspector.numerics.report import EDGE, EXPORTED, FLOAT, Row, RunGap
from inspector.profile.join_index import join_index
from inspector.recipes.data_source import names_sample
from inspector.tables.numeric_gap import (
    FLOOR,
    MEASURES,
    USUAL,
    TensorLook,
    look_table,
    selected_row,
    tensor_look,
)
from inspector.tables.selection import NOTHING, Selection, SelectionKind

_REFERENCES = [
    ("edge graph", EDGE),
    ("exported graph", EXPORTED),
    ("float program", FLOAT),
]
_OUTPUTS, _MODULES = "outputs", "modules"
_LISTS = [("outputs", _OUTPUTS), ("loss by module", _MODULES)]
_FEW = 1000  # rows that are listed at once: 50,000 take 0.35 s
_KEPT = "The tensors were too large to be kept."
_KEPT_BYTES = 512 << 20  # of tensors for a closer look


class GapPane(PanelActions, Pane):
    """A table of gaps with the errors along the program above and one tensor beside it."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__(context, "Numeric gap")
        self.gap_runner = context.jobs["gap"]
        self.table = TableView(context.theme, "numeric gaps")
        self.growth = GrowthPlot(context.theme, FLOOR)
        self.plot = DifferencePlot(context.theme)
        self.worst = TableView(context.theme, "worst elements")
        self.worst.hide_tools(folds=True)
        self.references = ToolbarCombo(context.theme, "reference", "Graph to compare with")
        self.references.show_choices(_REFERENCES, EDGE)
        self.references.activated.connect(self._reference_chosen)
        self.measures = ToolbarCombo(context.theme, "metric", "What the errors are measured by")
        measures = [(one.title, name) for name, one in MEASURES.items()]
        self.measures.show_choices(measures, USUAL)
        self.measures.activated.connect(self._measure_chosen)
        self.tolerance = ToleranceFields()
        self.tolerance.confirmed.connect(self.compare)
        self.runs = ToolbarCombo(context.theme, "run", "Run that is shown")
        self.runs.activated.connect(self._run_chosen)
        for tool in (self.references, self.tolerance):
            self.add_tool(tool)
        self.growth.head.addWidget(self.measures)  # the line above keeps its room for the result
        self.lists = ToolbarCombo(context.theme, "list", "Outputs, or what each module loses")
        self.lists.show_choices(_LISTS, _MODULES)
        self.lists.activated.connect(self._list_chosen)
        self._float = push_button(LEAVE_IN_FLOAT, LEAVE_IN_FLOAT_HELP, self.leave_in_float)
        self.table.add_first(self._float)
        self.table.add_tool(self.lists, right=True)
        self.table.add_tool(self.runs, right=True)
        self._start = self.add_button("Compare", "Compare with the recorded program", self.compare)
        self._cancel = self.add_button(
            "Cancel", "Cancel the comparison", self.gap_runner.cancel, right=True
        )
        self._begin = self.empty.add_button("Compare", self.compare)
        self._log = self.empty.add_button("Run with values and compare", self.run_and_compare)
        self._jobs = context.jobs
        self._reference = EDGE
        self._awaited = ""  # program whose values are being logged
        self._shown: OpenSession | None = None
        self._session: OpenSession | None = None  # whose comparison there is
        self._run: RunGap | None = None
        self._current = -1
        self._own = NOTHING
        self._filling = Latest("outputs of the gap", self)
        self._filling.ready.connect(self._fill)
        self._filling.ended.connect(self.busy.stop)
        self._lay_out_content()
        self.table.row_chosen.connect(self._row_chosen)
        self.table.row_activated.connect(self._open_tensor)
        self.table.more_actions = self._add_actions
        self.growth.chosen.connect(self._place_chosen)
        self.gap_runner.changed.connect(self._refresh)
        context.jobs["run"].changed.connect(self._await_sample)

    def _lay_out_content(self) -> None:
        page, beside = QWidget(), QSplitter(Qt.Orientation.Vertical)
        below = QSplitter(Qt.Orientation.Horizontal)
        self.set_content(page)
        layout = QVBoxLayout(page)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(1)
        layout.addWidget(self.growth)
        layout.addWidget(below, 1)
        fill_splitter(below, self.table, beside, sizes=[700, 360])
        beside.addWidget(self.plot)
        beside.addWidget(self.worst)

    # -- state -----------------------------------------------------------------------------

    @override
    def show_state(self, state: State) -> None:
        """Show the comparison of the current session, or its missing requirements."""
        if self._session is not None and not any(one is self._session for one in state.sessions):
            self._session = None  # closed, or read again
            self.gap_runner.shut_down()
        if state.session is None:
            self._shown = None
            self._begin.hide()
            self._log.hide()
            self.show_need(NO_SESSION)
            return
        other = state.gap_reference != self._reference
        if state.open_session is not self._shown or other:
            self._shown, self._run = state.open_session, None
            self._offer_references(state.session)
            self._refresh()
            self._go_on(state.session, asked=other)
        elif self._run is not None and state.selection:
            self._show_selected(state.selection)

    def begin(self) -> None:
        """Compare, with a run of its own first where no values are there."""
        action = self.empty.action
        if action in (self._begin, self._log) and self.empty.isVisible():
            action.click()

    def compare(self) -> None:
        """Compare the session with its recorded program."""
        session = self.state.session
        tolerance = self.tolerance.read()
        if session is None or needs(session) is not None or tolerance is None:
            return
        files = tuple(file.path for file in session.files if not file.error)
        reference = str(self.references.currentData() or EDGE)
        requested = "" if reference == EDGE else reference  # the best there is, else that one
        self._session = self.state.open_session
        here = self.isAncestorOf(QApplication.focusWidget() or self.window())
        relative, absolute = tolerance
        job = GapJob(
            files,
            reference=requested,
            relative=relative,
            absolute=absolute,
            keep=_KEPT_BYTES,
            libraries=self._libraries(),
        )
        self.gap_runner.start(job, about=self._session, replace_running=True)
        if here and self._cancel.isVisible():  # the keyboard stays where it was
            self._cancel.setFocus(Qt.FocusReason.OtherFocusReason)

    def _offer_references(self, session: Session) -> None:
        """Offer the recorded graphs of a session to compare with; those kept for FLOAT are it."""
        record = session.record
        extra = record.roles.extra if record is not None else ()
        others = [name for name in extra if not name.startswith(f"{FLOAT}/")]
        choices = [*_REFERENCES, *((name, name) for name in others)]
        known = [key for _, key in choices]
        chosen = self._reference = self.state.gap_reference
        self.references.show_choices(choices, chosen if chosen in known else EDGE)

    def _reference_chosen(self, _index: int) -> None:
        self.store.update(gap_reference=str(self.references.currentData()))

    def _measure_chosen(self, _index: int) -> None:
        """Show the errors by another metric; the comparison has all of them."""
        if self._run is not None:
            self._show_run(self._run, self._current)

    def _list_chosen(self, _index: int) -> None:
        """Show the list that was chosen, with the first row that matters."""
        if self._run is not None:
            self._show_run(self._run)

    def leave_in_float(self) -> None:
        """Change the recipe so that the module of the chosen row is not quantized."""
        run, place = self._run, self._current
        module = run.rows[place].module if run is not None and 0 <= place < len(run.rows) else ""
        offer = float_edit(module, shown_variant(self.state))
        if offer is not None:
            self._ask(EditRecipe(offer.job, f"{offer.described}: press Ctrl+R to recompile"))

    def _open_tensor(self, number: int) -> None:
        """Show the tensor of a row less its reference."""
        key = self._tensor_key(self.table.rows.key(number))
        if key:
            self._ask(ShowTensor(key))

    def _tensor_key(self, place: Hashable) -> str:
        run, found = self._run, self.gap_runner.current
        if run is None or found is None or found.folder is None or not isinstance(place, int):
            return ""
        kept = run.rows[place].kept if 0 <= place < len(run.rows) else ""
        return kept_key(found.folder / kept) if kept else ""

    def _add_actions(self, menu: QMenu, key: Hashable) -> None:
        if tensor := self._tensor_key(key):
            words = "Show in Tensor, less its reference"
            menu.addAction(words, lambda: self._ask(ShowTensor(tensor)))

    def _libraries(self) -> tuple[str, ...]:
        """Return the operator libraries of the Run panel."""
        found = self.state.open_session
        what = runnable(found.id, found.session) if found is not None else None
        return self._jobs.run_form.loaded(what) if what is not None else ()

    def run_and_compare(self) -> None:
        """Run the program again with all values logged, then compare."""
        found = self.state.open_session
        what = runnable(found.id, found.session) if found is not None else None
        if what is None:
            return
        form = self._jobs.run_form.logging_values(what)
        self._awaited = what.program
        self._ask(Execute(form.job(what), what.session, form.target(what)))

    def _await_sample(self) -> None:
        """Compare as soon as the values of a sample of a data set are there."""
        found = self._jobs["run"].current
        job = found.job if found is not None and found.running else None
        if isinstance(job, RunJob) and job.logs_values and names_sample(job.inputs):
            self._awaited = job.program

    def _go_on(self, session: Session, *, asked: bool) -> None:
        """Compare if the requested values are available, or another reference was chosen."""
        content = asked or any(
            os.path.abspath(file.path) == self._awaited for file in session.files
        )
        if content and needs(session) is None:
            self._awaited = ""
            self.compare()

    def _refresh(self) -> None:
        found = self.gap_runner.current if self._shown is not None else None
        if found is not None and any(one is found.about for one in self.state.sessions):
            self._session = found.about  # the Jobs panel or a gate may have started it
        is_shown = self._session is not None and self._session is self._shown
        self._filling.cancel()
        running = is_shown and found is not None and found.running
        self._cancel.setVisible(running)
        self._start.setVisible(not running)
        if found is None or not is_shown:
            session = self.state.session
            missing = needs(session) if session is not None else NO_SESSION
            self._begin.setVisible(missing is None)
            self._log.setVisible(missing is not None and missing.command == NO_VALUES.command)
            self.show_need(missing or ready(session))
        elif found.running:
            self._begin.hide()
            self._log.hide()
            at = found.counted
            far = (
                f"  {at.done:,} of {at.total:,} nodes of all runs"
                if at is not None and at.total
                else ""
            )
            self.note.setText(f"{found.stage}…{far}")
            self.show_need(Need("Comparing", "The recorded graph runs beside the run."), tools=True)
        elif found.state is None or not found.state.runs:
            self._begin.show()
            self._log.hide()
            notes = " ".join(found.state.notes) if found.state is not None else ""
            why = found.error or notes or "No run."
            self.show_need(Need("No comparison", f"{why[:1].upper()}{why[1:]}".rstrip(".") + "."))
        else:
            self._show_runs(found)

    def _show_runs(self, found: JobProgress) -> None:
        assert found.state is not None
        runs = found.state.runs
        choices = [(_run_name(run), str(place)) for place, run in enumerate(runs)]
        self.runs.show_choices(choices, choices[0][1])
        self._show_run(runs[0])
        self.show_content()

    def _run_chosen(self) -> None:
        found = self.gap_runner.current
        place = self.runs.currentData()
        if found is not None and found.state is not None and place is not None:
            self._show_run(found.state.runs[int(str(place))])

    def _show_run(self, run: RunGap, place: int = -1) -> None:
        """Show a run at a row; by default at the one to look at first."""
        self._report(run)
        measure = str(self.measures.currentData() or USUAL)
        by_module = run.is_float and self.lists.currentData() == _MODULES
        if len(run.rows) <= _FEW:
            self._filling.cancel()
            self._fill(gap_content(run, measure, place, by_module=by_module))
            return
        self.busy.start("Listing the outputs")
        self._filling.submit(lambda _token: gap_content(run, measure, place, by_module=by_module))

    def _fill(self, content: object) -> None:
        """Show a run; until now clicks were on rows of the former one."""
        assert isinstance(content, GapContent)
        self._run = run = content.run
        self.note.setText(content.note)
        self.table.show_table(content.table)
        self.lists.setVisible(run.is_float)
        self._float.setVisible(run.is_float)
        words = MEASURES[str(self.measures.currentData() or USUAL)].words
        self.growth.show_errors(content.total, content.own, content.bad, words)
        self._place_chosen(content.first)

    @property
    @override
    def working(self) -> bool:
        """Return whether a tensor or the list of outputs is pending."""
        return super().working or self._filling.busy

    def _report(self, run: RunGap) -> None:
        """Publish the comparison in the state, the shown run first."""
        found, shown = self.gap_runner.current, self._shown
        if found is None or found.state is None or shown is None:
            return
        others = (each for each in found.state.runs if each is not run)
        self.store.put(with_gaps(self.state, Gaps(shown, (run, *others))))

    # -- one row ---------------------------------------------------------------------------

    def _row_chosen(self, number: int) -> None:
        run, place = self._run, self.table.rows.key(number)
        if run is None or not isinstance(place, int) or not 0 <= place < len(run.rows):
            return
        row = run.rows[place]
        self._current = place
        self.growth.show_current(place)
        self._look(row)
        if row.graph_node:
            self.select(
                Selection(
                    SelectionKind.NODE,
                    method=row.method,
                    node=row.graph_node,
                    instruction=row.instruction,
                )
            )
        else:
            self.select(
                Selection(SelectionKind.INSTRUCTION, method=row.method, instruction=row.instruction)
            )

    def _place_chosen(self, place: int) -> None:
        self._current = place
        self.table.show_current(place)
        self.growth.show_current(place)
        run = self._run
        if run is not None and 0 <= place < len(run.rows):
            self._look(run.rows[place])

    def _show_selected(self, selection: Selection) -> None:
        run, session = self._run, self.state.session
        if run is None or session is None or run.method != self.state.method:
            return
        if selection == self._own:  # of several rows of a node, the one that was clicked stays
            return
        self._own = NOTHING
        row = selected_row(run, related_to(selection, join_index(session, run.method)))
        if row is not None and self._current != row.order:
            self._current = row.order
            self.table.show_current(row.order)
            self.growth.show_current(row.order)
            self._look(row)

    def _look(self, row: Row) -> None:
        self._float.setEnabled(float_edit(row.module, shown_variant(self.state)) is not None)
        found = self.gap_runner.current
        if not row.compared:
            self._show_no_tensor(row.reason)
        elif not row.kept or found is None:
            self._show_no_tensor(_KEPT)
        else:
            path = (found.folder or Path()) / row.kept
            self.request((str(path), id(found.state)), lambda: tensor_look(path))

    def _show_no_tensor(self, text: str) -> None:
        self.forget()
        self.plot.show_text(text)
        self.worst.hide()

    @override
    def show_result(self, result: object) -> None:
        """Show a tensor."""
        if isinstance(result, TensorLook):
            self.plot.show_differences(result.counts, result.high, result.heat)
            self.worst.show()
            self.worst.show_table(look_table(result))

    @override
    def shut_down(self) -> None:
        self.gap_runner.shut_down()
        self._filling.close()
        super().shut_down()


def _run_name(run: RunGap) -> str:
    """Return the name of a run in a list: that of a sequence by its call."""
    return f"call {run.call}" if run.call >= 0 else f"{run.method} {run.run + 1}"


SPEC = ViewSpec("gap", "Numeric gap", Area.CENTRE, GapPane, "gap", needs=without_program)
