"""Bisection of the delegated nodes: condition, trials and the resulting nodes."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from devtools_app.appearance.theme import set_role
from devtools_app.jobs.follower import JobProgress
from devtools_app.jobs.latest import Latest
from devtools_app.state.requests import Bisect, ChooseFiles, EditRecipe, Select
from devtools_app.state.run_form import FILE
from devtools_app.state.state import OpenSession, State
from devtools_app.state.variant_places import folder_of, trials_in
from devtools_app.state.variant_steps import shown_variant
from devtools_app.state.variants import Variant
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.elided_label import ElidedLabel
from devtools_app.widgets.empty_state import EmptyState, Need
from devtools_app.widgets.job_page import set_job_page, show_job_page
from devtools_app.widgets.kept_focus import kept_focus
from devtools_app.widgets.outcome_line import OutcomeLine
from devtools_app.widgets.problem_label import problem_label
from devtools_app.widgets.push_button import push_button
from devtools_app.widgets.table_view import TableView
from devtools_app.widgets.text_label import plain_label
from devtools_app.widgets.toolbar_combo import ToolbarCombo
from inspector.experiments.bisect.bound import LOADS, parse_bound
from inspector.experiments.bisect.search import Result
from inspector.experiments.bisect.summary import BisectFinding, kept_out, sentence_of
from inspector.experiments.gates.requirement import RequirementError
from inspector.jobs.bisect import BisectJob
from inspector.jobs.messages import Ended, Trying
from inspector.tables.bisect import (
    OFFERED_REQUIREMENTS,
    OTHER,
    bound_text,
    node_table,
    offered_requirement,
    trial_table,
)
from inspector.tables.selection import Selection
from inspector.tables.table import Table
from inspector.units import format_elapsed
from schema.objects.codec import from_json

if TYPE_CHECKING:
    from inspector.recipes.compile_job import CompileJob

_EMPTY = Need(
    "Nothing to bisect",
    "When a delegate causes wrong outputs, a slow program or one that does not load, this finds "
    "the smallest set of nodes to exclude from it. Open a program with its ETRecord or "
    "recipe.json.",
    "etscope bisect recipe.json --bound 'output.max_abs<=1e-3' -o bisect",
)
_NOT_BEGUN = Need(
    "Nothing searched yet",
    "Programs without some of the delegated nodes are compiled and tested, until the set cannot be"
    " reduced further.",
)
_UNTRIED = Need("No trials yet", "The program is read and compiled once without changes.")
_UNDELEGATED = "The recipe names no partitioner to take nodes from."
_EVERYWHERE = "*"
_SIGNS = {"<=": "at most", ">=": "at least"}


class BisectView(QWidget):
    """A line with the condition; below it the trials and the resulting nodes."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__()
        self._ask = context.ask
        self._store = context.store
        self._jobs = context.jobs
        self.bisecting = context.jobs["bisect"]
        self._variant: Variant | None = None
        self._session: OpenSession | None = None
        self._finding: BisectFinding | None = None
        self._listed: object = None
        self._placing = Latest("places of nodes", self)
        self._placing.ready.connect(self._placed)
        self.requested = ToolbarCombo(
            context.theme, "metric", "Condition that the program has to meet"
        )
        self.requested.show_choices(
            [(one.words, one.metric) for one in OFFERED_REQUIREMENTS],
            OFFERED_REQUIREMENTS[0].metric,
        )
        self.sign = QLabel()
        set_role(self.sign, "role", "muted")
        self.value = QLineEdit(OFFERED_REQUIREMENTS[0].value)
        self.value.setAccessibleName("Bound")
        self.method = ToolbarCombo(context.theme, "method", "Method whose nodes are tried")
        self._title = ElidedLabel()
        self._add_buttons()
        self._problem = problem_label()
        self._problem.setContentsMargins(12, 0, 12, 6)
        self._error = OutcomeLine(context.theme, context.ask)
        self.trials = TableView(context.theme, "trials")
        self.trials.hide_tools()
        self.trials.set_need(_UNTRIED)
        self.sentence = plain_label()
        self.nodes = TableView(context.theme, "nodes to keep off the delegate")
        self.nodes.hide_tools()
        self._empty = EmptyState(context.theme, _EMPTY)
        self._empty.add_button("Open files…", lambda: self._ask(ChooseFiles(beside=True)))
        self._start = EmptyState(context.theme, _NOT_BEGUN)
        self._parts = QStackedWidget()
        self._pages = QStackedWidget()
        self._lay_out()
        self.requested.activated.connect(lambda _index: self._metric_chosen())
        self.method.activated.connect(lambda _index: self._refresh())
        self.value.textEdited.connect(lambda _text: self._refresh())
        self.value.returnPressed.connect(self._entered)
        self.nodes.row_chosen.connect(lambda row: self._lead(row, ""))
        self.nodes.row_activated.connect(lambda row: self._lead(row, "graph"))
        self.bisecting.changed.connect(self._refresh)
        self._metric_chosen()

    def _add_buttons(self) -> None:
        self._cancel = push_button(
            "Cancel", "Cancel; finished trials are kept", self.bisecting.cancel
        )
        self._anew = push_button(
            "Start over", "Discard the trials and start over", lambda: self.start(fresh=True)
        )
        self._go = push_button("Find nodes", "", self.start)
        set_role(self._go, "primary", "true")
        self._keep = push_button(
            "Keep these off", "Keep these off by the recipe; Ctrl+R recompiles", self.keep_off
        )

    @property
    def problem(self) -> str:
        """Return why no bisection can start, empty if it can."""
        return "" if self._problem.isHidden() else self._problem.text()

    @property
    def error(self) -> str:
        """Return why the last bisection failed, empty without an error."""
        return self._error.text

    def show_state(self, state: State) -> None:
        """Offer the program of the session shown."""
        one, session = shown_variant(state), state.open_session
        if one == self._variant and session is self._session:
            return
        self._variant, self._session, self._finding = one, session, None
        names = list(session.session.methods) if session is not None else []
        choices = [(name, name) for name in names]
        if len(names) > 1:
            choices.insert(0, ("of all methods", _EVERYWHERE))
        kept = str(self.method.currentData())
        first = choices[0][1] if choices else ""
        self.method.show_choices(choices, kept if (kept, kept) in choices else first)
        self.method.setVisible(len(names) > 1)
        self._refresh()

    def start(self, *, fresh: bool = False) -> None:
        """Start the bisection, or resume a cancelled one."""
        job = self._job()
        if job is not None and not self.problem:
            self._ask(Bisect(job, fresh))

    def keep_off(self) -> None:
        """Exclude the found nodes from delegates in the recipe of the current program."""
        one, found = self._variant, self._finding
        if one is not None and found is not None:
            self._ask(EditRecipe(kept_out(one.draft.present, found.nodes)))

    # -- what is wanted --------------------------------------------------------------------

    def _metric_chosen(self) -> None:
        one = offered_requirement(str(self.requested.currentData()))
        self.sign.setText(_SIGNS.get(one.sign, ""))
        self.sign.setVisible(bool(one.sign))
        self.value.setVisible(one.metric != LOADS)
        self.value.setFixedWidth(210 if one.metric == OTHER else 90)
        self.value.setText(one.value)
        self._refresh()

    def _entered(self) -> None:
        if self._go.isEnabled() and self._go.isVisible():
            self.start()

    def _job(self) -> BisectJob | None:
        one = self._variant
        if one is None:
            return None
        form, method = self._jobs.run_form, str(self.method.currentData() or "")
        return BisectJob(
            one.draft.present,
            bound_text(str(self.requested.currentData()), self.value.text()),
            "" if method == _EVERYWHERE or self.method.count() < 2 else method,
            form.file if form.inputs == FILE else "",
            threads=form.fixed_threads,
            backend_options=() if one.draft.present.toolchain else form.backend_options,
        )

    def _wrong(self, job: BisectJob | None) -> str:
        if job is None or not job.compile.partitioners:
            return "" if job is None else _UNDELEGATED
        try:
            parse_bound(job.bound)
        except RequirementError as error:
            return f"{error}."
        return ""

    # -- what comes of it ------------------------------------------------------------------

    def _shown(self) -> JobProgress | None:
        """Return the running bisection, or the last one if it was of the program shown."""
        found, one = self.bisecting.current, self._variant
        if found is None or found.running:
            return found
        return found if one is not None and one.program == found.about else None

    def _refresh(self) -> None:
        with kept_focus(self._cancel, self._go, self._anew):
            self._show_job()

    def _show_job(self) -> None:
        found, job = self._shown(), self._job()
        show_job_page(self._pages, 0 if found is None and job is None else 1)
        busy = self.bisecting.running
        wrong = "" if busy else self._wrong(job)
        self._problem.setText(wrong)
        self._problem.setVisible(bool(wrong))
        for field in (self.requested, self.value, self.method):
            field.setEnabled(not busy)
        self._cancel.setVisible(busy)
        self._cancel.setEnabled(found is not None and not found.cancelling)
        again = not busy and not wrong and self._tried(job)
        done = again and found is not None and found.job == job and _finding(found) is not None
        self._go.setVisible(not busy and not done)
        self._go.setEnabled(job is not None and not wrong)
        self._go.setText("Go on" if again else "Find nodes")
        tip = "with the earlier trials" if again else "by trying programs without some of them"
        self._go.setToolTip(f"Find the smallest set of nodes to keep off the delegate, {tip}")
        self._go.setAccessibleName(f"{self._go.text()}: {self._go.toolTip()}")
        self._anew.setVisible(again)
        self._title.setText(_title(found))
        self._title.setToolTip(found.target if found is not None else "")
        self._error.show_outcome(None if found is None else found.outcome)
        self._parts.setCurrentIndex(0 if found is None else 1)
        self._show_trials(found)
        self._show_finding(found)

    def _tried(self, job: BisectJob | None) -> bool:
        return (
            job is not None
            and self._variant is not None
            and trials_in(folder_of(self._variant, job))
        )

    def _show_trials(self, found: JobProgress | None) -> None:
        self.trials.setVisible(found is not None)
        trying = _trying(found)
        listed = (found.state, trying) if found is not None else None
        if found is not None and listed != self._listed:
            self._listed = listed
            self.trials.show_table(trial_table(found.state, parse_bound(found.job.bound), trying))
            if found.running:
                self.trials.show_current(self.trials.rows.length)

    def _show_finding(self, found: JobProgress | None) -> None:
        done = _finding(found)
        if done is not None and found is not None:
            text = sentence_of(done, parse_bound(found.job.bound))
            self.sentence.setText(f"{text[:1].upper()}{text[1:]}.")
        else:
            self.sentence.setText(_waiting(found))
        named = done is not None and done.result is Result.FOUND
        self.nodes.setVisible(named)
        self._keep.setVisible(named)
        if done is None or not named:
            self._finding = None
        elif done != self._finding:
            self._finding = done
            session = self._session.session if self._session is not None else None
            self.nodes.show_table(node_table(done.nodes, None))
            self._placing.submit(lambda _token: node_table(done.nodes, session))
        one = self._variant
        self._keep.setEnabled(
            named and one is not None and done is not None and _changes(one.draft.present, done)
        )

    def _placed(self, table: object) -> None:
        if isinstance(table, Table) and self._finding is not None:
            self.nodes.show_table(table)

    def _lead(self, row: int, view: str) -> None:
        key = self.nodes.rows.key(row)
        if isinstance(key, Selection):
            self._ask(Select(key, view))

    def shut_down(self) -> None:
        """Stop running threads; called once before the window closes."""
        self._placing.close()

    # -- layout ----------------------------------------------------------------------------

    def _lay_out(self) -> None:
        bar = QHBoxLayout()
        bar.setContentsMargins(12, 6, 12, 6)
        bar.setSpacing(8)
        rows = (self._problem, self._error, self._parts)
        set_job_page(self, self._pages, self._empty, bar, *rows)
        for part in (self.requested, self.sign, self.value, self.method):
            bar.addWidget(part)
        bar.addWidget(self._title, 1)
        for button in (self._anew, self._cancel, self._go):
            bar.addWidget(button)
        split = QSplitter(Qt.Orientation.Horizontal)
        split.setChildrenCollapsible(False)
        self._parts.addWidget(self._start)
        self._parts.addWidget(split)
        found = QWidget()
        split.addWidget(self.trials)
        split.addWidget(found)
        split.setSizes([540, 500])
        right = QVBoxLayout(found)
        right.setContentsMargins(12, 4, 12, 6)
        right.setSpacing(6)
        line = QHBoxLayout()
        line.addWidget(self.sentence, 1)
        line.addWidget(self._keep, 0, Qt.AlignmentFlag.AlignTop)
        right.addLayout(line)
        right.addWidget(self.nodes, 1)
        right.addStretch(0)


def _changes(job: CompileJob, found: BisectFinding) -> bool:
    return kept_out(job, found.nodes) != job


def _finding(found: JobProgress | None) -> BisectFinding | None:
    if found is None or found.outcome is None or found.outcome.ended is not Ended.FINISHED:
        return None
    return from_json(found.outcome.result, BisectFinding, "the result of the worker")


def _trying(found: JobProgress | None) -> Trying | None:
    """Return the program being compiled, None between trials."""
    last = found.last if found is not None and found.running else None
    return last if isinstance(last, Trying) else None


def _waiting(found: JobProgress | None) -> str:
    return "The nodes appear here." if found is not None and found.running else ""


def _title(found: JobProgress | None) -> str:
    if found is None:
        return ""
    name = PurePath(found.job.compile.source.path).name
    trials = len(found.state.trials)
    if found.outcome is None:
        verb = "Cancelling" if found.cancelling else found.job.bound
        far = f"trial {trials + 1:,}" if _trying(found) is not None else found.stage
        return f"{name} · {verb} · {far} · {format_elapsed(found.seconds)}"
    if found.outcome.ended is not Ended.FINISHED:
        return f"{name}: {found.outcome.ended.value} after {trials:,} trials"
    return (
        f"{name} · {found.job.bound} · {trials:,} trials of {len(found.state.candidates):,} nodes"
    )


SPEC = ViewSpec("bisect", "Bisect", Area.CENTRE, BisectView, "bisect", without_session=True)
