"""The memory view: a planned buffer by address and instruction, and the cause of its peak."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPoint
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget
from typing_extensions import override

from devtools_app.state.state import State
from devtools_app.viewmodels.memory_map import (
    MemoryMap,
    arena_titles,
    measured_words,
    memory_map,
    selected_values,
)
from devtools_app.views.editing import item_menu
from devtools_app.views.pane import Pane
from devtools_app.views.pane_parts import CanvasImage, PanelActions
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.beside import Beside, with_legend
from devtools_app.widgets.empty_state import Need
from devtools_app.widgets.legend import Legend
from devtools_app.widgets.live_curve import LiveCurve
from devtools_app.widgets.memory_canvas import MemoryCanvas
from devtools_app.widgets.table_view import TableView
from devtools_app.widgets.toolbar_combo import ToolbarCombo
from inspector.files.session import Session
from inspector.memory.plan import MemoryPlan
from inspector.profile.join_index import JoinIndex, join_index
from inspector.tables.memory import culprits, measured, memory_plan
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


_ALL, _MEASURED = "all", "measured"
_SCOPES = [("at the peak", "peak"), ("all values", _ALL), ("as measured", _MEASURED)]
_BOTH = 270  # height from which there is room for the plan and the curve


@dataclass(frozen=True, slots=True, eq=False)
class _MemoryContent:
    plan: MemoryPlan
    titles: tuple[str, ...]
    place: int
    map: MemoryMap | None
    table: Table
    index: JoinIndex
    measured: str


class MemoryPane(CanvasImage, PanelActions, Pane):
    """Draws one planned buffer, its live bytes, and the table of values at the peak."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__(context, "Memory")
        self.canvas = MemoryCanvas(context.theme.canvas)
        self.curve = LiveCurve(context.theme)
        self.legend = Legend(context.theme.canvas, line=True)
        self.table = TableView(context.theme, "values at the peak")
        self._content: _MemoryContent | None = None
        self._arena = 0
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
        self.add_button("", "Show the whole plan (Space)", self.canvas.fit, icon="fit", right=True)

    def _add_content(self) -> None:
        drawing = _Drawing(self.canvas, self.curve)
        self.splitter = Beside(with_legend(drawing, self.legend), self.table)
        self.set_content(self.splitter)

    def _connect(self) -> None:
        self.canvas.selected.connect(self._value_chosen)
        self.canvas.menu_requested.connect(self._menu)
        self.canvas.step_selected.connect(self._step_chosen)
        self.canvas.view_changed.connect(lambda: self.curve.follow(self.canvas.camera))
        self.curve.step_selected.connect(self._step_chosen)
        self.table.row_chosen.connect(self._row_chosen)
        self.theme.changed.connect(self._restyle)

    def _restyle(self) -> None:
        for widget in (self.canvas, self.legend):
            widget.set_colours(self.theme.canvas)

    # -- state -----------------------------------------------------------------------------

    @override
    def show_session(self, session: Session, state: State) -> None:
        """Show the plan of the method of a state."""
        unit, place, scope = state.units.size, self._arena, str(self.scope.currentData())
        key = (state.open_session, state.method, place, scope, unit)
        self.request(key, lambda: _build(session, state.method, place, unit, scope))

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
        if old is not content.map.arena:
            self.canvas.set_data(content.map.data)
            self.curve.show_live(content.map.arena.live_bytes, content.map.arena.peak_instruction)
            self.curve.follow(self.canvas.camera)
        self.legend.set_entries(content.map.legend)
        self._offer_scopes(content)
        self.table.show_table(content.table)
        self.note.setText(
            " · ".join(filter(None, (content.map.headline, content.measured, *content.map.issues)))
        )
        self.note.setToolTip("\n".join(content.map.issues))
        self.show_content()
        self.show_selection(self.state)

    def _arena_chosen(self, place: int) -> None:
        self._arena = place
        self.show_state(self.state)

    def _scope_chosen(self, _index: int) -> None:
        self.show_state(self.state)

    def _offer_scopes(self, content: _MemoryContent) -> None:
        known = _SCOPES if content.measured else _SCOPES[:-1]
        chosen = str(self.scope.currentData())
        there = chosen in (one for _, one in known)
        self.scope.show_choices(known, chosen if there else known[0][1])

    def _menu(self, at: QPoint) -> None:
        content, number = self._content, self.canvas.marks.selected
        if content is None or content.map is None or number < 0:
            return
        name = content.map.data.names[number]
        menu = item_menu(self.canvas, name, self.state.selection, SPEC.name, self.context)
        menu.popup(self.canvas.mapToGlobal(at))

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

    def _row_chosen(self, row: int) -> None:
        self.select_key(self.table.rows.key(row))

    def _step_chosen(self, step: int) -> None:
        self.select(Selection(SelectionKind.INSTRUCTION, self.state.method, instruction=step))

    @override
    def show_selection(self, state: State) -> None:
        content = self._content
        if content is None or content.map is None:
            return
        found = selected_values(content.map.arena, state.selection, content.index)
        self.canvas.set_selected(found[0] if found else -1)
        self.canvas.set_step(state.selection.instruction)
        self.curve.set_step(state.selection.instruction)
        requested = {content.map.arena.values[place].value for place in found}
        rows = self.table.rows
        highlighted = [row for row in range(rows.length) if _value_of(rows.key(row)) in requested]
        self.table.highlight(highlighted)
        if state.selection.kind is SelectionKind.VALUE:
            self.table.show_current(rows.key(highlighted[0]) if highlighted else None)

    @property
    @override
    def panel(self) -> TableView:
        return self.table


def _value_of(key: object) -> int | None:
    return key.value if isinstance(key, Selection) else None


def _build(
    session: Session, method: str, place: int, unit: str, scope: str
) -> _MemoryContent | None:
    plan = memory_plan(session, method)
    if plan is None:
        return None
    index = join_index(session, method)
    titles = arena_titles(plan, unit)
    if not plan.arenas:
        return _MemoryContent(plan, titles, 0, None, Table(), index, "")
    place = min(place, len(plan.arenas) - 1)
    content = memory_map(session, plan, place, unit)
    words = measured_words(session, method, unit)
    if words and scope == _MEASURED:
        table = measured(session, method, Units(size=unit))
    else:
        peak_only = scope != _ALL
        table = culprits(session, method, content.arena, peak_only=peak_only, size_unit=unit)
    return _MemoryContent(plan, titles, place, content, table, index, words)


def _needs(session: Session) -> Need | None:
    return None if session.program is not None else _NO_PROGRAM


class _Drawing(QWidget):
    """The plan over the curve, which is hidden if the height is too small for both."""

    def __init__(self, plan: QWidget, curve: QWidget) -> None:
        super().__init__()
        self._curve = curve
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(plan, 1)
        layout.addWidget(curve)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._curve.setVisible(self.height() >= _BOTH)


SPEC = ViewSpec("memory", "Memory", Area.CENTRE, MemoryPane, "memory", needs=_needs)
