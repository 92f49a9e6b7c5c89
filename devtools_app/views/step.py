"""Inside a delegate call, node by node: run to a node, read or replace a value, continue."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLineEdit,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from devtools_app.appearance.theme import set_role
from devtools_app.jobs.follower import JobProgress
from devtools_app.jobs.latest import Latest
from devtools_app.state.requests import ChooseFiles, Select
from devtools_app.state.run_form import Runnable, runnable
from devtools_app.state.state import OpenSession, State
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.elided_label import ElidedLabel
from devtools_app.widgets.empty_state import EmptyState, Need
from devtools_app.widgets.job_page import set_job_page, show_job_page
from devtools_app.widgets.outcome_line import OutcomeLine
from devtools_app.widgets.problem_label import problem_label
from devtools_app.widgets.push_button import push_button
from devtools_app.widgets.table_view import TableView
from devtools_app.widgets.toolbar_combo import ToolbarCombo
from inspector.jobs import live_steps
from inspector.jobs.executing import ENGINES, StepJob
from inspector.jobs.messages import Ended
from inspector.tables.selection import Selection
from inspector.tables.steps import (
    Places,
    StepCall,
    calls_of,
    node_table,
    number_table,
    places_of,
    selection_of,
    value_table,
    with_recorded,
)
from schema.backends import engine_backends
from schema.objects.plural import plural

_EMPTY = Need(
    "No delegate to step through",
    f"Open a program with delegates: their calls run node by node here ({engine_backends()} on the"
    " real kernels or on torch's, others on torch's), and any value can be read and replaced.",
    "etscope step model.pte --call 0",
)
_NOT_BEGUN = Need(
    "Not started",
    "Begin runs the method up to the call chosen above, with the inputs of Run. Its nodes are then"
    " run one by one, and any value can be read and replaced on the way.",
)
_GOING = Need("Running", "The method runs up to the call.")
_BEGIN = "run the method up to the call"
_CHOOSE = Need("No value chosen", "Choose a value to read its elements or to replace it.")
_ENGINES = {"auto": "the best engine", "native": "real kernels", "torch": "torch kernels"}


class StepView(QWidget):
    """A line of actions; below it the nodes, the available values, and one value."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__()
        self._ask = context.ask
        self._paths = context.paths
        self._jobs = context.jobs
        self.stepping = context.jobs["step"]
        self._session: OpenSession | None = None
        self._method = ""
        self._what: Runnable | None = None
        self._calls: tuple[StepCall, ...] = ()
        self._places: dict[int, Places] = {}
        self._recorded: dict[int, list[dict[str, Any]]] = {}
        self._shown: tuple[object, ...] = ()
        self._own: Selection | None = None
        self._looking = Latest("places of a call", self)
        self._looking.ready.connect(self._found)
        self.call = ToolbarCombo(context.theme, "call", "Which delegate call")
        self.engine = ToolbarCombo(context.theme, "on", "Engine that runs the nodes")
        self.engine.show_choices([(_ENGINES[name], name) for name in ENGINES], ENGINES[0])
        self._title = ElidedLabel()
        self._add_buttons()
        self._error = OutcomeLine(context.theme, context.ask)
        self._refused = problem_label()
        self.nodes = TableView(context.theme, "nodes of the call")
        self.nodes.set_need(_GOING)
        self.values = TableView(context.theme, "values of the call")
        self.values.set_need(_GOING)
        self.numbers = TableView(context.theme, "elements of the value")
        self.numbers.hide_tools()
        self.numbers.set_need(_CHOOSE)
        self.what = QLineEdit("zeros")
        self.what.setAccessibleName("New content of the value")
        self.what.setToolTip("zeros, ones, a scalar, or a file with one tensor")
        self._empty = EmptyState(context.theme, _EMPTY)
        self._empty.add_button("Open files…", lambda: self._ask(ChooseFiles(beside=False)))
        self._start = EmptyState(context.theme, _NOT_BEGUN)
        self._parts = QStackedWidget()
        self._pages = QStackedWidget()
        self._lay_out()
        self.call.activated.connect(lambda _index: self._refresh())
        self.nodes.row_chosen.connect(lambda row: self._lead(row, ""))
        self.nodes.row_activated.connect(lambda row: self._lead(row, "graph"))
        self.values.row_chosen.connect(self._value_chosen)
        self.what.returnPressed.connect(self.put)
        self.stepping.changed.connect(self._refresh)
        self._refresh()

    def _add_buttons(self) -> None:
        self._begin = push_button("Begin", f"Begin: {_BEGIN}", self.begin)
        set_role(self._begin, "primary", "true")
        self._one = push_button("Step", "Step: run the next node", self.step_on)
        self._here = push_button(
            "Run to here", "Run to here: all nodes before the one chosen", self.run_to
        )
        self._rest = push_button("Go on", "Go on: run the rest of the method", self.finish)
        self._end = push_button("End", "End it here", self._give_up)
        self._other = push_button(
            "Begin on torch kernels",
            "Begin on torch kernels, the other engine",
            self._begin_on_torch,
        )
        self._put = push_button("Replace", "Replace the value from now on", self.put)
        self._file = push_button("File…", "Choose a file with one tensor", self._choose)

    # -- what the user wants ---------------------------------------------------------------

    @property
    def error(self) -> str:
        """Return why it failed, empty without an error."""
        return self._error.text

    @property
    def refused(self) -> str:
        """Return why the last replacement failed, empty if it worked."""
        return self._refused.text()

    def begin(self) -> None:
        """Run the method up to the chosen call."""
        call, what, one = self._call(), self._what, self._session
        if call is None or what is None or one is None:
            return
        form = self._jobs.run_form
        run = form.job(what)
        job = StepJob(
            program=what.program,
            method=self._method,
            call=call.number,
            inputs=run.inputs or "random",
            case=run.case if form.case < what.cases_of(self._method) else None,
            record=what.record,
            data_files=what.data_files,
            libraries=run.libraries,
            threads=run.threads,
            engine=str(self.engine.currentData()),
            backend_options=run.backend_options,
        )
        self.stepping.start(job, about=(one.id, call.delegate), replace_running=True, live=True)

    def _begin_on_torch(self) -> None:
        self.engine.setCurrentIndex(self.engine.findData(ENGINES[2]))
        self.begin()

    def step_on(self) -> None:
        """Run the next node."""
        walk = self.stepping.current
        if walk is not None:
            self.stepping.send(live_steps.run_to(walk.state.position + 1))

    def run_to(self) -> None:
        """Run all nodes before the chosen one."""
        row = self.nodes.current_key()
        if isinstance(row, int):
            self.stepping.send(live_steps.run_to(row))

    def finish(self) -> None:
        """Run the rest of the method."""
        self.stepping.send(live_steps.finish())

    def put(self) -> None:
        """Replace the chosen value by the input."""
        value = self.values.current_key()
        if isinstance(value, int) and self.what.text().strip():
            self.stepping.send(live_steps.replace(value, self.what.text().strip()))

    def _choose(self) -> None:
        title = "Tensor that replaces the value"
        if path := self._paths.open_file(self, title, "Tensors (*.pt);;All files (*)"):
            self.what.setText(path)

    def _give_up(self) -> None:
        self.stepping.cancel()

    def _value_chosen(self, row: int) -> None:
        value = self.values.rows.key(row)
        if isinstance(value, int):
            self.stepping.send(live_steps.look(value))
        self._refresh_buttons()

    def _lead(self, row: int, view: str) -> None:
        walk = self._walk()
        place = self.nodes.rows.key(row)
        if walk is None or not isinstance(place, int):
            return
        found = selection_of(self._places.get(walk.about[1]), self._method, place)
        if found is not None:
            self._own = found
            self._ask(Select(found, view))
        self._refresh_buttons()

    # -- what is shown ---------------------------------------------------------------------

    def show_state(self, state: State) -> None:
        """Offer the delegate calls of the method shown."""
        one = state.open_session
        if one is not self._session or state.method != self._method:
            self._session, self._method = one, state.method
            self._what = runnable(one.id, one.session) if one is not None else None
            self._calls, self._places, self._recorded = (), {}, {}
            if one is not None:
                session, method = one.session, state.method
                self._looking.submit(lambda _token: (method, calls_of(session, method)))
            self._refresh()
        self._light(state.selection)

    def _found(self, result: object) -> None:
        if not isinstance(result, tuple):
            return
        key, found = result
        if isinstance(key, int):
            self._places[key], self._recorded[key] = found
        elif key == self._method:
            self._calls = found
            choices = [(_call_text(call), str(call.number)) for call in found]
            kept = str(self.call.currentData())
            first = choices[0][1] if choices else ""
            known = kept in {value for _, value in choices}
            self.call.show_choices(choices, kept if known else first)
        self._shown = ()
        self._refresh()

    def _call(self) -> StepCall | None:
        number = str(self.call.currentData())
        return next((call for call in self._calls if str(call.number) == number), None)

    def _walk(self) -> JobProgress | None:
        """Return the stepped call if it belongs to the session and method shown."""
        walk, one = self.stepping.current, self._session
        if walk is None or one is None or walk.about[0] != one.id:
            return None
        return walk if walk.job.method == self._method else None

    def _refresh(self) -> None:
        walk = self._walk()
        able = bool(self._calls) and self._what is not None
        self._refresh_buttons()
        show_job_page(self._pages, 1 if able or walk is not None else 0)
        self._title.setText(_title(walk))
        self._error.show_outcome(None if walk is None else walk.outcome)
        self._refused.setText("" if walk is None else walk.state.refused)
        self._refused.setVisible(bool(self._refused.text()))
        started = walk is not None and (walk.running or bool(walk.state.nodes))
        self._parts.setCurrentIndex(1 if started else 0)
        at = walk.state if walk is not None else None
        shown = (at.facts, at.position, at.values, at.looked) if at is not None else ()
        if len(shown) != len(self._shown) or any(
            one is not other for one, other in zip(shown, self._shown, strict=True)
        ):
            self._shown = shown
            self._show_tables(walk)

    def _show_tables(self, walk: JobProgress | None) -> None:
        kept, chosen = self.nodes.current_key(), self.values.current_key()
        if walk is None or not walk.state.nodes:
            for table in (self.nodes, self.values, self.numbers):
                table.show_table(node_table((), {}))
            return
        self._look_up(walk)
        at = walk.state
        recorded = self._recorded.get(walk.about[1]) or at.nodes
        self.nodes.show_table(node_table(recorded, at.values, at.position))
        self.nodes.show_current(kept if isinstance(kept, int) else walk.state.position)
        self.nodes.highlight([walk.state.position])
        self.values.show_table(value_table(walk.state.values))
        if isinstance(chosen, int):
            self.values.show_current(chosen)
        looked: Mapping[str, Any] | None = walk.state.looked
        if looked is not None and looked["value"] in walk.state.values:
            shape = walk.state.values[looked["value"]]["shape"]
            self.numbers.show_table(number_table(looked, shape))
        self._refresh_buttons()

    def _look_up(self, walk: JobProgress) -> None:
        """Find the nodes of a call in the graph and in the record, in a thread."""
        delegate = walk.about[1]
        if self._session is None or delegate in self._places:
            return
        session, method, nodes = self._session.session, self._method, walk.state.nodes

        def work() -> tuple[Places, list[dict[str, Any]]]:
            record = with_recorded(session.record, method, nodes)
            return places_of(session, method, delegate), record

        self._looking.submit(lambda _token: (delegate, work()))

    def _light(self, selection: Selection) -> None:
        """Select the node of the call that corresponds to the selection of other views."""
        walk = self._walk()
        places = self._places.get(walk.about[1]) if walk is not None else None
        if places is None or selection == self._own:
            return
        rows = places.rows.get(selection.node, ())
        if rows:
            self.nodes.show_current(rows[0])
            self._refresh_buttons()

    def _refresh_buttons(self) -> None:
        walk = self._walk()
        active = walk is not None and walk.running
        ready = walk is not None and walk.running and walk.state.ready
        left = len(walk.state.nodes) - walk.state.position if walk is not None else 0
        row = self.nodes.current_key()
        self._begin.setVisible(not active)
        self._begin.setEnabled(self._call() is not None)
        self._begin.setText("Begin again" if walk is not None else "Begin")
        self._begin.setAccessibleName(f"{self._begin.text()}: {_BEGIN}")
        for button in (self._one, self._here, self._rest, self._end):
            button.setVisible(active)
        self._one.setEnabled(ready and left > 0)
        self._rest.setEnabled(ready)
        ahead = isinstance(row, int) and walk is not None and row > walk.state.position
        self._here.setEnabled(ready and ahead)
        self._end.setEnabled(active and walk is not None and not walk.cancelling)
        ended = walk.outcome.ended if walk is not None and walk.outcome is not None else None
        broke = ended in (Ended.FAILED, Ended.CRASHED)
        self._other.setVisible(broke and walk is not None and walk.job.engine != ENGINES[2])
        for field in (self.call, self.engine):
            field.setEnabled(not active)
        chosen = ready and isinstance(self.values.current_key(), int)
        for part in (self._put, self._file, self.what):
            part.setEnabled(chosen)

    def shut_down(self) -> None:
        """Stop running threads; called once before the window closes."""
        self._looking.close()

    def start_find(self) -> None:
        """Focus the filter of the nodes."""
        self.nodes.start_find()

    def step(self, by: int) -> bool:
        """Choose the next or previous node; return whether there was one."""
        return self.nodes.step(by)

    # -- layout ----------------------------------------------------------------------------

    def _lay_out(self) -> None:
        bar = QHBoxLayout()
        bar.setContentsMargins(12, 6, 12, 6)
        bar.setSpacing(8)
        set_job_page(self, self._pages, self._empty, bar, self._error, self._parts)
        bar.addWidget(self.call)
        bar.addWidget(self.engine)
        bar.addWidget(self._title, 1)
        for button in (self._end, self._rest, self._here, self._one, self._other, self._begin):
            bar.addWidget(button)
        split = QSplitter(Qt.Orientation.Horizontal)
        split.setChildrenCollapsible(False)
        self._parts.addWidget(self._start)
        self._parts.addWidget(split)
        one = QWidget()
        for part in (self.nodes, self.values, one):
            split.addWidget(part)
        split.setSizes([440, 440, 240])
        line = QHBoxLayout()
        line.setContentsMargins(8, 4, 8, 6)
        line.setSpacing(6)
        line.addWidget(self.what, 1)
        line.addWidget(self._file)
        line.addWidget(self._put)
        below = QVBoxLayout(one)
        below.setContentsMargins(0, 0, 0, 0)
        below.setSpacing(0)
        below.addWidget(self.numbers, 1)
        below.addWidget(self._refused)
        below.addLayout(line)


def _call_text(call: StepCall) -> str:
    return f"{call.number} · delegate {call.delegate}, {plural(call.nodes, 'payload node')}"


def _title(walk: JobProgress | None) -> str:
    if walk is None:
        return ""
    name = PurePath(walk.job.program).name
    if not walk.state.nodes:
        return f"{name}: running up to the call" if walk.running else ""
    facts = walk.state.facts
    source = f"{facts['source']}{'; ' + facts['note'] if facts['note'] else ''}"
    if walk.running:
        return f"before node {walk.state.position} of {len(walk.state.nodes):,} · {source}"
    if walk.outcome is None or walk.outcome.ended is not Ended.FINISHED:
        return f"ended before node {walk.state.position} of {len(walk.state.nodes):,} · {source}"
    outputs = [one for one in walk.outcome.result["outputs"] if one["kind"] == "tensor"]
    apart = [one["difference"] for one in outputs if one["difference"] is not None]
    if not apart:
        return f"finished · {source}"
    return f"outputs up to {max(apart):.4g} from the run without replacements · {source}"


SPEC = ViewSpec("step", "Step", Area.CENTRE, StepView, "step", without_session=True)
