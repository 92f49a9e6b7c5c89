"""The memory view: a planned buffer by address and instruction, and the cause of its peak."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QMenu, QSplitter, QVBoxLayout, QWidget
from typing_extensions import override

from devtools_app.appearance.theme import Theme
from devtools_app.state.state import State
from devtools_app.viewmodels.call_series import StateSeries, described, state_over_calls
from devtools_app.viewmodels.memory_map import (
    MemoryMap,
    arena_titles,
    measured_words,
    memory_map,
    on_one_scale,
    selected_values,
)
from devtools_app.views.editing import item_menu, named_menu, offer_edits_of_rows
from devtools_app.views.memory_planners import PlannerChoice
from devtools_app.views.pane import Pane
from devtools_app.views.pane_parts import CanvasImage, PanelActions
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.beside import Beside, with_legend
from devtools_app.widgets.empty_state import Need
from devtools_app.widgets.legend import Legend
from devtools_app.widgets.live_curve import LiveCurve
from devtools_app.widgets.memory_canvas import MemoryCanvas
from devtools_app.widgets.state_plot import StatePlot
from devtools_app.widgets.table_view import TableView
from devtools_app.widgets.time_strip import TimeStrip
from devtools_app.widgets.toolbar_combo import ToolbarCombo
from inspector.files.session import Session
from inspector.jobs.planning import PlannerResult, plans_of
from inspector.join.int_maps import GroupMap, places_of
from inspector.memory.plan import MemoryPlan
from inspector.profile.instruction_times import InstructionTimes, instruction_times
from inspector.profile.join_index import JoinIndex, join_index
from inspector.tables.calls import memory_calls
from inspector.tables.estimates import has_estimates, memories
from inspector.tables.memory import culprits, measured, memory_plan
from inspector.tables.planners import IN_FILE, planner_table
from inspector.tables.selection import Selection, SelectionKind, Units
from inspector.tables.table import Table

_NO_PROGRAM = Need(
    "No memory plan",
    "The plan is in the program: open its .pte (or .bpte) beside the files that are here.",
    "open('model.pte', 'wb').write(executorch_program.buffer)",
)
_NO_BUFFER = Need(
    "Nothing is planned",
    "This method plans no memory: its values are constants, scalars or owned by the caller.",
)


_ALL, _MEASURED, _PLANNERS, _ESTIMATE = "all", "measured", "planners", "estimate"
_CALLS = "calls"
_SCOPES = [
    ("at the peak", "peak"),
    ("all values", _ALL),
    ("planners", _PLANNERS),
    ("as measured", _MEASURED),
    ("state over calls", _CALLS),
    ("NPU (estimate)", _ESTIMATE),
]
# heights with text of the usual size from which one strip, or both, have room below the plan
_ONE, _BOTH = 250, 310
_DRAWING = 54  # percent of the room: in a small window the names of values are whole beside it


@dataclass(frozen=True, slots=True, eq=False)
class _MemoryContent:
    plan: MemoryPlan
    titles: tuple[str, ...]
    place: int
    map: MemoryMap | None
    table: Table
    index: JoinIndex
    measured: str
    times: InstructionTimes
    beside: MemoryMap | None = None
    estimated: bool = False
    state: StateSeries | None = None
    rows_of_value: GroupMap = field(default_factory=GroupMap)


class MemoryPane(CanvasImage, PanelActions, Pane):
    """Draws one planned buffer, its live bytes, and the table of values at the peak."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__(context, "Memory")
        self.canvas = MemoryCanvas(context.theme.canvas)
        self.other = MemoryCanvas(context.theme.canvas)
        self.curve = LiveCurve(context.theme)
        self.times = TimeStrip(context.theme)
        self.calls = StatePlot(context.theme)
        self.calls.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.legend = Legend(context.theme.canvas, line=True)
        self.table = TableView(context.theme, "values at the peak")
        self._content: _MemoryContent | None = None
        self._arena = 0
        self._plans: PlannerResult | None = None
        self._add_tools()
        self._add_content()
        self._connect()

    def _add_tools(self) -> None:
        self.arenas = ToolbarCombo(self.theme, "buffer", "Planned buffer to show")
        self.arenas.activated.connect(self._arena_chosen)
        self.add_tool(self.arenas)
        self.scope = ToolbarCombo(self.theme, "table", "Values to list")
        self.scope.show_choices(_SCOPES, _SCOPES[0][1])
        self.scope.activated.connect(self._scope_chosen)
        self.add_tool(self.scope)
        self.planners = PlannerChoice(self, self.context.jobs["plan"])
        self.planners.changed.connect(self._planner_chosen)
        self.add_button("", "Show the whole plan (Space)", self.canvas.fit, icon="fit", right=True)

    def _add_content(self) -> None:
        plans = QSplitter()
        plans.addWidget(self.canvas)
        plans.addWidget(self.other)
        plans.setChildrenCollapsible(False)
        self.other.setAccessibleName("Memory plan beside")
        self.other.hide()
        self._drawing = _Drawing(self.theme, plans, (self.curve, self.times), self.calls)
        self.splitter = Beside(with_legend(self._drawing, self.legend), self.table, _DRAWING)
        self.set_content(self.splitter)

    def _connect(self) -> None:
        self.canvas.selected.connect(self._value_chosen)
        self.canvas.menu_requested.connect(self._menu)
        self.canvas.step_selected.connect(self._step_chosen)
        self.other.selected.connect(self._other_value_chosen)
        self.other.step_selected.connect(self._step_chosen)
        self.canvas.view_changed.connect(self._follow)
        self.curve.step_selected.connect(self._step_chosen)
        self.times.step_selected.connect(self._step_chosen)
        self.calls.chosen.connect(self._call_chosen)
        self.table.row_chosen.connect(self._row_chosen)
        offer_edits_of_rows(self.table, self.context)
        self.theme.follow(self._restyle)

    def _restyle(self) -> None:
        for widget in (self.canvas, self.other, self.legend):
            widget.set_colours(self.theme.canvas)

    def _follow(self) -> None:
        """Show the same instructions in the strips, and in the plan beside."""
        camera = self.canvas.camera
        self.curve.follow(camera)
        self.times.follow(camera)

    # -- state -----------------------------------------------------------------------------

    @override
    def show_session(self, session: Session, state: State) -> None:
        """Show the plan of the method of a state."""
        unit, place, scope = state.units.size, self._arena, str(self.scope.currentData())
        self.planners.ask(state)
        names, found = self.planners.names, self.planners.found(state)
        key = (state.open_session, state.method, place, scope, unit, names, found is not None)
        key = (*key, self.planners.lent.isChecked())
        wanted = _MemoryRequest(place, unit, scope, names, found)
        self.request(key, lambda: _build(session, state.method, wanted))

    @override
    def show_result(self, result: object) -> None:
        """Draw a planned buffer."""
        before, self._content = (
            self._content,
            result if isinstance(result, _MemoryContent) else None,
        )
        content = self._content
        if content is None or content.map is None:
            self.show_need(_NO_PROGRAM if content is None else _NO_BUFFER)
            return
        self._arena = content.place
        choices = [(title, str(place)) for place, title in enumerate(content.titles)]
        self.arenas.show_choices(choices, str(content.place))
        old = before.map.arena if before is not None and before.map is not None else None
        shown = self.canvas.data
        scale = content.map.data.scale_bytes
        if old is not content.map.arena or shown is None or shown.scale_bytes != scale:
            self.canvas.set_data(content.map.data)
            self.curve.show_live(content.map.arena.live_bytes, content.map.arena.peak_instruction)
        self._show_beside(content)
        self.times.show_times(content.times, self.state.units.time)
        self._drawing.show_first(self.curve if content.times.reason else self.times)
        self._follow()
        self._show_calls(content)
        self.legend.set_entries(content.map.legend)
        self._offer_scopes()
        self.table.show_table(content.table)
        self._show_note()
        self.show_content()
        self.show_selection(self.state)

    def _show_note(self) -> None:
        content = self._content
        if content is not None and content.map is not None:
            waiting = "computing the plans…" if self.planners.computing else self.planners.problem
            words = (waiting, content.map.headline, content.measured, *content.map.issues)
            self.note.setText(" · ".join(filter(None, words)))
            self.note.setToolTip("\n".join(content.map.issues))

    def _show_calls(self, content: _MemoryContent) -> None:
        """Show the bytes of the state over calls instead of the strips by instruction."""
        state = content.state if self.scope.currentData() == _CALLS else None
        self._drawing.show_calls(visible=state is not None)
        if state is not None:
            self.calls.show_series(state, described(state), self.state.units.size)

    def _show_beside(self, content: _MemoryContent) -> None:
        beside = content.beside
        self.other.setVisible(beside is not None)
        if beside is None or self.other.data is not beside.data:
            self.other.set_data(None if beside is None else beside.data)

    def _planner_chosen(self) -> None:
        found = self.planners.found(self.state)
        if found is not None and found is not self._plans:
            self._plans = found  # what was just computed is shown; a choice of the user stays
            self._offer_scopes()
            self.scope.setCurrentIndex(self.scope.findData(_PLANNERS))
        self._show_note()
        self.show_state(self.state)

    def _arena_chosen(self, place: int) -> None:
        self._arena = place
        self.show_state(self.state)

    def _scope_chosen(self, _index: int) -> None:
        self.show_state(self.state)

    def _offer_scopes(self) -> None:
        content = self._content
        offered = {
            _MEASURED: content is not None and bool(content.measured),
            _PLANNERS: self.planners.found(self.state) is not None,
            _ESTIMATE: content is not None and content.estimated,
            _CALLS: content is not None and content.state is not None,
        }
        known = [one for one in _SCOPES if offered.get(one[1], True)]
        chosen = str(self.scope.currentData())
        there = chosen in (one for _, one in known)
        self.scope.show_choices(known, chosen if there else known[0][1])

    def _menu(self, at: QPoint) -> None:
        content, number = self._content, self.canvas.clicked
        if content is None or content.map is None:
            return
        menu = self._menu_of_all()
        if number >= 0:
            name = content.map.data.names[number]
            menu = item_menu(self.canvas, name, self.state.selection, SPEC.name, self.context)
        menu.popup(self.canvas.mapToGlobal(at))

    def _menu_of_all(self) -> QMenu:
        menu = named_menu(self.canvas, f"Memory: buffer {self.arenas.currentText()}")
        menu.addAction("Show the whole plan\tSpace", self.canvas.fit)
        menu.addSeparator()
        for place in range(self.scope.count()):
            text = f"Table: {self.scope.itemText(place)}"
            menu.addAction(text, partial(self._choose_scope, place))
        return menu

    def _choose_scope(self, place: int) -> None:
        self.scope.setCurrentIndex(place)
        self._scope_chosen(place)

    # -- selection -------------------------------------------------------------------------

    def _value_chosen(self, number: int) -> None:
        content = self._content
        if content is None or content.map is None:
            return
        if number < 0:
            self.select(Selection())
            return
        value = content.map.arena.values[number]
        self.select(
            Selection(
                SelectionKind.VALUE,
                self.state.method,
                value=value.value,
                instruction=value.made_by,
            )
        )

    def _other_value_chosen(self, number: int) -> None:
        """Select the value of the plan beside."""
        content = self._content
        if content is None or content.beside is None:
            return
        if number < 0:
            self.select(Selection())
            return
        value = content.beside.arena.values[number]
        kind = SelectionKind.VALUE
        self.select(
            Selection(kind, self.state.method, value=value.value, instruction=value.made_by)
        )

    def _row_chosen(self, row: int) -> None:
        key, state = self.table.rows.key(row), self._content.state if self._content else None
        if isinstance(key, int) and state is not None:  # a call
            self.calls.show_current(int((state.numbers == key).argmax()))
        else:
            self.select_key(key)

    def _call_chosen(self, place: int) -> None:
        if self._content is not None and self._content.state is not None:
            self.table.show_current(int(self._content.state.numbers[place]))

    def _step_chosen(self, step: int) -> None:
        self.select(Selection(SelectionKind.INSTRUCTION, self.state.method, instruction=step))

    @override
    def show_selection(self, state: State) -> None:
        content = self._content
        if content is None or content.map is None:
            return
        found = selected_values(content.map, state.selection, content.index)
        self.canvas.set_selected(found[0] if found else -1)
        self.canvas.set_step(state.selection.instruction)
        self.other.set_step(state.selection.instruction)
        self.times.set_step(state.selection.instruction)
        if content.beside is not None:
            also = selected_values(content.beside, state.selection, content.index)
            self.other.set_selected(also[0] if also else -1)
        self.curve.set_step(state.selection.instruction)
        rows_of = content.rows_of_value
        requested = (content.map.arena.values[place].value for place in found)
        highlighted = sorted(row for value in requested for row in rows_of.get(value, ()))
        self.table.highlight(highlighted)
        if state.selection.kind is SelectionKind.VALUE:
            self.table.show_current(content.table.key(highlighted[0]) if highlighted else None)


def _value_of(key: object) -> int | None:
    return key.value if isinstance(key, Selection) else None


@dataclass(frozen=True, slots=True, eq=False)
class _MemoryRequest:
    """The content for a method: buffer, unit, rows, planners, and their plans once computed."""

    place: int
    unit: str
    scope: str
    names: tuple[str, str]
    found: PlannerResult | None


def _build(session: Session, method: str, wanted: _MemoryRequest) -> _MemoryContent | None:
    plan = memory_plan(session, method)
    if plan is None:
        return None
    index, unit = join_index(session, method), wanted.unit
    times = instruction_times(session, method, plan.instruction_count)
    titles = arena_titles(plan, unit)
    if not plan.arenas:
        return _MemoryContent(plan, titles, 0, None, Table(), index, "", times)
    place = min(wanted.place, len(plan.arenas) - 1)
    others = plans_of(plan, wanted.found) if wanted.found is not None else {}
    plans = {IN_FILE: plan, **others}
    drawn, beside = wanted.names
    name = drawn if drawn in plans else IN_FILE
    content = memory_map(session, plans[name], place, unit, planner=name if others else "")
    other = None
    if beside in plans:
        other = memory_map(session, plans[beside], place, unit, planner=beside)
        content, other = on_one_scale(content, other)
    words = measured_words(session, method, unit)
    units, estimated = Units(size=unit), has_estimates(session, method)
    state = state_over_calls(session, method)
    if words and wanted.scope == _MEASURED:
        table = measured(session, method, units)
    elif others and wanted.scope == _PLANNERS:
        table = planner_table(plan, others, units)
    elif estimated and wanted.scope == _ESTIMATE:
        table = memories(session, method, units)
    elif state is not None and wanted.scope == _CALLS:
        table = memory_calls(session, method, units)
    else:
        peak_only = wanted.scope != _ALL
        table = culprits(session, method, content.arena, peak_only=peak_only, size_unit=unit)
    rows_of = places_of(_value_of(table.key(row)) for row in range(table.length))
    return _MemoryContent(
        plan, titles, place, content, table, index, words, times, other, estimated, state, rows_of
    )


def _needs(session: Session) -> Need | None:
    return None if session.program is not None else _NO_PROGRAM


class _Drawing(QWidget):
    """The plan over its strips, which are hidden if the height is too small, or over the calls."""

    def __init__(
        self, theme: Theme, plan: QWidget, strips: tuple[QWidget, QWidget], calls: QWidget
    ) -> None:
        super().__init__()
        self._theme = theme
        self._strips, self._first, self._calls = strips, strips[0], calls
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(plan, 2)
        for strip in strips:
            layout.addWidget(strip)
        layout.addWidget(calls, 1)
        calls.hide()
        theme.follow(self._show_strips)

    def show_first(self, strip: QWidget) -> None:
        """Choose the strip to show where only one has room."""
        self._first = strip
        self._show_strips()

    def show_calls(self, *, visible: bool) -> None:
        """Show the plot over calls, or the strips."""
        self._calls.setVisible(visible)
        self._show_strips()

    def _show_strips(self) -> None:
        room = self.height() / self._theme.scale if self._calls.isHidden() else 0
        for strip in self._strips:
            strip.setVisible(room >= (_ONE if strip is self._first else _BOTH))

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_strips()


SPEC = ViewSpec("memory", "Memory", Area.CENTRE, MemoryPane, "memory", needs=_needs)
