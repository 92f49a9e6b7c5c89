"""The calls of a sequence or of a generated text: their times, their growth, and the state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSplitter, QStackedWidget
from typing_extensions import override

from devtools_app.jobs.generated import generated_report
from devtools_app.state.requests import Select
from devtools_app.state.run_form import runnable
from devtools_app.state.state import State
from devtools_app.viewmodels.call_series import CallContent, StateSeries, call_content, described
from devtools_app.views.pane import Pane
from devtools_app.views.pane_parts import PanelActions
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.call_plot import CallDots, CallPlot
from devtools_app.widgets.empty_state import Need
from devtools_app.widgets.plot import NOTHING
from devtools_app.widgets.splitter import fill_splitter
from devtools_app.widgets.state_plot import StatePlot
from devtools_app.widgets.table_view import TableView
from devtools_app.widgets.toolbar_combo import ToolbarCombo
from inspector.files.session import Session
from inspector.tables.selection import Selection, SelectionKind
from inspector.units import format_time

_COMMAND = "etscope run model.pte --sequence inputs -o run"
_NOTHING = Need(
    "No calls of a sequence",
    "A program with state, such as a language model with its cache, is run once over other inputs"
    " each call: the files of a folder, or what a Python function gives. Open the trace of such a"
    " run beside the program, or the report of a generated text (etscope llm run -o); a text that"
    " is generated in the window has its calls here.",
    _COMMAND,
)
_FILTER = "Reports of calls (run.json generation.json);;JSON files (*.json);;All files (*)"
_CALLS, _STATE = "calls", "state"


class CallsPane(PanelActions, Pane):
    """Two plots above: time by position and bytes of state; the calls and their times below."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__(context, "Calls")
        self.sources = ToolbarCombo(context.theme, "report", "Report of calls to show")
        self.rows_of = ToolbarCombo(context.theme, "list", "Rows of the table")
        self.tensor = ToolbarCombo(context.theme, "state", "State tensor whose bytes are drawn")
        for combo in (self.sources, self.rows_of, self.tensor):
            self.add_tool(combo)
        self.add_button("Open calls…", "Open the report of other calls", self._choose, right=True)
        self.show_button = self.add_button(
            "Show in Timeline",
            "Show the run of the chosen call in the Timeline",
            lambda: self._lead(self._call, "timeline"),
            right=True,
        )
        self.plot, self.bytes = CallPlot(context.theme), StatePlot(context.theme)
        self.calls = TableView(context.theme, "calls of the sequence")
        self.state_changes = TableView(context.theme, "changes of state by each call")
        self.times = TableView(context.theme, "times of the calls")
        self.times.hide_tools()
        self._content: CallContent | None = None
        self._call: int | None = None
        self._chosen: tuple[object, str] = (None, "")  # session, and the report opened for it
        self.empty.add_button("Open calls…", self._choose)
        self._generation = context.jobs["generate"]
        self._generation.changed.connect(self._follow_generation)
        self._lay_out_content()
        self._connect()

    def _lay_out_content(self) -> None:
        whole = QSplitter(Qt.Orientation.Vertical)
        above, below = (QSplitter(Qt.Orientation.Horizontal) for _ in range(2))
        self._lists = QStackedWidget()
        self.set_content(whole)
        fill_splitter(whole, above, below, sizes=[260, 400])
        fill_splitter(above, self.plot, self.bytes, sizes=[500, 500])
        fill_splitter(below, self._lists, self.times, sizes=[610, 390])
        self._lists.addWidget(self.calls)
        self._lists.addWidget(self.state_changes)

    def _connect(self) -> None:
        for plot in (self.plot, self.bytes):
            plot.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            plot.chosen.connect(self._dot_choice(plot, ""))
            plot.activated.connect(self._dot_choice(plot, "timeline"))
        for table in (self.calls, self.state_changes):
            table.row_chosen.connect(self._row_choice(table, ""))
            table.row_activated.connect(self._row_choice(table, "timeline"))
        self.sources.activated.connect(lambda _index: self._open(str(self.sources.currentData())))
        self.rows_of.activated.connect(lambda _index: self._show_list())
        self.tensor.activated.connect(lambda _index: self._draw_state())

    # -- state -----------------------------------------------------------------------------

    @override
    def show_session(self, session: Session, state: State) -> None:
        """Show the calls of the session of a state."""
        owner, path = self._chosen
        one, units = state.open_session, state.units
        path = path if one is not None and owner == one.id else ""
        generated = self._generated(state)
        made = self._generation.current if generated is not None else None
        self.request(
            (one, path, units, made), lambda: call_content(session, path, units, generated)
        )

    def _generated(self, state: State) -> Mapping[str, Any] | None:
        """Return the report of the last text that the program of the session generated here."""
        one, found = state.open_session, self._generation.current
        what = None if one is None else runnable(one.id, one.session)
        if found is None or what is None or found.job.program != what.program:
            return None
        return generated_report(found)

    @override
    def show_result(self, result: object) -> None:
        """Show the calls."""
        self._content = result if isinstance(result, CallContent) else None
        content, self._call = self._content, None
        if content is None or content.calls is None or content.times is None:
            self._show_need(content)
            return
        self.sources.show_choices([(text, key) for text, key in content.sources], content.source)
        self.sources.setVisible(len(content.sources) > 1)
        self.calls.show_table(content.calls)
        self.times.show_table(content.times)
        self._show_state_of(content)
        self._draw_times(content)
        self.note.setText(content.headline)
        self.note.setToolTip(content.source)
        self.show_content()
        self._mark(None)
        self.show_selection(self.state)

    def _show_need(self, content: CallContent | None) -> None:
        if content is None:
            self.show_need(_NOTHING)
            return
        self.show_need(Need("The calls cannot be read", content.error, _COMMAND))

    def _show_state_of(self, content: CallContent) -> None:
        lists = [("calls", _CALLS)]
        if content.state is not None:
            lists.append(("changes of state", _STATE))
            self.state_changes.show_table(content.state)
        kept = str(self.rows_of.currentData())
        known = {key for _, key in lists}
        self.rows_of.show_choices(lists, kept if kept in known else _CALLS)
        self.rows_of.setVisible(len(lists) > 1)
        names = [(described(one), one.name) for one in content.series]
        kept, keys = str(self.tensor.currentData()), [key for _, key in names]
        self.tensor.show_choices(names, kept if kept in keys else next(iter(keys), ""))
        self.tensor.setVisible(len(names) > 1)
        self.bytes.setVisible(bool(names))
        self._show_list()
        self._draw_state()

    def _show_list(self) -> None:
        self._lists.setCurrentIndex(1 if self.rows_of.currentData() == _STATE else 0)

    def _draw_times(self, content: CallContent) -> None:
        later = content.later
        if later is None:
            return
        what = "tokens" if later.has_tokens else "calls"
        words = f"time of later {what} by position"
        if later.line is not None:
            words += f", growth {format_time(later.line[1])} a position (dashed)"
        self.plot.title.setText(words)
        self.plot.show_calls(later.positions, later.times, self.state.units.time, later.line)

    def _series(self) -> StateSeries | None:
        content, name = self._content, self.tensor.currentData()
        series = () if content is None else content.series
        return next((one for one in series if one.name == name), None)

    def _draw_state(self) -> None:
        series = self._series()
        title = described(series) if series is not None else "state"
        self.bytes.show_series(series, title, self.state.units.size)
        self._mark(self._call)

    def _follow_generation(self) -> None:
        if self.isVisible() and not self._generation.running:
            self.show_state(self.state)

    # -- reports ---------------------------------------------------------------------------

    def _choose(self) -> None:
        if path := self.context.paths.open_file(self, "Open calls", _FILTER):
            self._open(str(Path(path)))

    def _open(self, path: str) -> None:
        one = self.state.open_session
        self._chosen = (one.id if one is not None else None, path)
        self.show_state(self.state)

    # -- calls -----------------------------------------------------------------------------

    def _dot_choice(self, plot: CallDots, view: str) -> Callable[[int], None]:
        return lambda place: self._lead(self._call_at(plot, place), view)

    def _row_choice(self, table: TableView, view: str) -> Callable[[int], None]:
        return lambda row: self._lead(_call_of_key(table.rows.key(row)), view)

    def _call_at(self, plot: CallDots, place: int) -> int | None:
        content, series = self._content, self._series()
        later = None if content is None else content.later
        numbers = later if plot is self.plot else series
        return None if numbers is None else int(numbers.numbers[place])

    def _lead(self, call: int | None, view: str) -> None:
        """Select the events of a call, which the Timeline then shows."""
        self._mark(call)
        content = self._content
        found = content.events_of(call) if content is not None and call is not None else None
        if found is not None:
            selection = Selection(SelectionKind.EVENT, found.method, event=found.whole)
            self._ask(Select(selection, view))

    def _mark(self, call: int | None) -> None:
        """Mark a call in the plots and the tables."""
        content, self._call = self._content, call
        series = self._series()
        later = None if content is None else content.later
        for plot, numbers in ((self.plot, later), (self.bytes, series)):
            found = [] if numbers is None else (numbers.numbers == call).nonzero()[0].tolist()
            plot.show_current(found[0] if found else NOTHING)
        if call is not None:
            self.calls.show_current(call)
            keys = self.state_changes.rows
            rows = [at for at in range(keys.length) if _call_of_key(keys.key(at)) == call]
            self.state_changes.highlight(rows)
            if rows and not self.state_changes.hasFocus():
                self.state_changes.show_current(keys.key(rows[-1]))  # all of them are in sight
                self.state_changes.show_current(keys.key(rows[0]))
        known = content is not None and call is not None and content.events_of(call) is not None
        self.show_button.setEnabled(known)

    @override
    def show_selection(self, state: State) -> None:
        content, selection = self._content, state.selection
        if content is None or selection.kind is not SelectionKind.EVENT or selection.event is None:
            return
        call = content.call_of(selection.event)
        if call is not None and call != self._call:
            self._mark(call)

    @property
    @override
    def panel(self) -> TableView:
        return self.state_changes if self._lists.currentIndex() else self.calls


def _call_of_key(key: object) -> int | None:
    """Return the call of a row: its key, or the first part of it."""
    first = key[0] if isinstance(key, tuple) else key
    return first if isinstance(first, int) else None


SPEC = ViewSpec("calls", "Calls", Area.CENTRE, CallsPane, "timeline")
