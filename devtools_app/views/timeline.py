"""The timeline view: events over time, by run, and a flame chart."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QSplitter
from typing_extensions import override

from devtools_app.state.requests import GoTo, ShowStatus, ShowView
from devtools_app.state.state import OpenSession, Place, State
from devtools_app.viewmodels.scene_search import related_to
from devtools_app.viewmodels.timeline_content import (
    FLAME,
    RUN,
    SESSIONS,
    TimelineContent,
    timeline_content,
)
from devtools_app.viewmodels.timeline_sessions import SessionBeside
from devtools_app.views.editing import offer_edits_of_rows
from devtools_app.views.pane import Pane
from devtools_app.views.pane_parts import CanvasImage
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.views.timeline_find import EventSearch
from devtools_app.views.timeline_menu import timeline_menu
from devtools_app.views.timeline_range import FILTERS, RangePanel, range_content
from devtools_app.widgets.beside import with_legend
from devtools_app.widgets.empty_state import Need
from devtools_app.widgets.files import Done, unreported
from devtools_app.widgets.legend import Legend
from devtools_app.widgets.timeline_canvas import TimelineCanvas
from devtools_app.widgets.timeline_canvas_paint import STRENGTH
from devtools_app.widgets.toolbar_combo import ToolbarCombo
from inspector.files.session import Session
from inspector.profile.methods import why_no_events
from inspector.profile.time_range import TimeRange
from inspector.tables.selection import Selection, SelectionKind

_CANVAS, _PANEL = 50, 50  # percent of the height with a range
_NO_TRACE = Need(
    "No run to show",
    "Times come from an ETDump: run the program with an event tracer and open the .etdp file"
    " beside it.",
    "runtime.load_program('model.pte', enable_etdump=True)  # then write_etdump_result_to_file()",
)
_NOT_RUN = Need(
    "Not run yet",
    "Run the program here, or elsewhere with an event tracer, and open the .etdp file beside it.",
    _NO_TRACE.command,
)
_NO_RUN = Need(
    "No run of this method",
    "The ETDump that is open has no events of this method. Choose another method, or open the"
    " trace of a run of this one.",
)


class TimelinePane(CanvasImage, Pane):
    """Draws runs in lanes, or the flame of their mean."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__(context, "Timeline")
        self.canvas = TimelineCanvas(context.theme.canvas)
        self.legend = Legend(context.theme.canvas, line=True, strength=STRENGTH)
        self.range = RangePanel(context.theme)
        self._content: TimelineContent | None = None
        self._chosen = ""
        self._drawn_for: object = None
        self._methods: dict[str, str] = {}  # that were shown last, by session
        self._followed = Selection()
        self._wanted: tuple[object, int] | None = None  # a row that the run has to have
        self._add_tools()
        self._run = self.empty.add_button("Run…", lambda: self._ask(ShowView("run")))
        self.splitter = QSplitter(Qt.Orientation.Vertical)
        self.splitter.addWidget(with_legend(self.canvas, self.legend))
        self.splitter.addWidget(self.range)
        self.splitter.setChildrenCollapsible(False)
        self.splitter.setSizes([_CANVAS * 10, _PANEL * 10])
        self.range.hide()
        self.set_content(self.splitter)
        self._connect()

    def _add_tools(self) -> None:
        self.runs = ToolbarCombo(self.theme, "show", "Runs to show")
        self.runs.activated.connect(self._run_chosen)
        self.runs.setToolTip("Runs to show  ([ and ]: the one before, the next)")
        self.add_tool(self.runs)
        self.range_tool = self.add_button(
            "Range",
            "Select a range of time by dragging; Shift+drag does so at any time",
            lambda: self._use_range_tool(not self.canvas.range_tool),
            keys="R",
            right=True,
        )
        self.range_tool.setCheckable(True)
        self.add_button(
            "Slowest",
            "Go to the slowest call, then to the next",
            self.go_to_slowest,
            keys="J",
            right=True,
        )
        self.search = EventSearch(self, self.canvas)
        self.add_button("", "Show all of the time (Space)", self.canvas.fit, icon="fit", right=True)
        self.add_keys("[", lambda: self._step_run(-1))
        self.add_keys("]", lambda: self._step_run(1))
        self.add_keys("Shift+J", self.show_slowest_run)
        self.range.add_button("Zoom", "Zoom to the range (F)", self.canvas.focus_selection)
        self.range.add_button("Mark", "Mark the range (M)", self.canvas.toggle_mark)
        self.range.add_button("Export…", "Write the range as a table or a trace", self.export_range)
        self.range.add_button("Close", "Close the range (Esc)", self.canvas.clear_selection)

    def _connect(self) -> None:
        self.canvas.selected.connect(self._event_chosen)
        self.canvas.span_selected.connect(self._span_chosen)
        self.canvas.menu_requested.connect(self._menu)
        self.range.table.row_chosen.connect(
            lambda row: self.select_key(self.range.table.rows.key(row))
        )
        offer_edits_of_rows(self.range.table, self.context)
        self.theme.follow(self._restyle)

    def _restyle(self) -> None:
        self.canvas.set_colours(self.theme.canvas)
        self.legend.set_colours(self.theme.canvas)

    # -- state -----------------------------------------------------------------------------

    @override
    def show_session(self, session: Session, state: State) -> None:
        """Show the runs of the method of a state."""
        if not session.dumps:
            self._content = None
            self._run.setVisible(session.program is not None)
            self.show_need(_NOT_RUN if session.program is not None else _NO_TRACE)
            return
        self._run.hide()
        chosen, method, row = self._chosen, state.method, self._wanted_row(state)
        self._methods[state.current] = method
        others = [
            SessionBeside(_title(one), one.session, self._methods.get(one.id, ""))
            for one in state.sessions
        ]
        several = tuple(state.sessions) if len(others) > 1 else ()
        key = (state.open_session, method, chosen, several, row)
        self.request(key, lambda: timeline_content(session, method, chosen, others, row))

    def _wanted_row(self, state: State) -> int | None:
        """Return the row of an event that was selected elsewhere, whose run is shown then."""
        selection, here = state.selection, (state.open_session, state.method)
        if selection != self._followed:
            self._followed = selection
            content, event = self._content, selection.event
            one_run = not self._chosen or self._chosen.startswith(RUN)
            if one_run and selection.kind is SelectionKind.EVENT and event is not None:
                drawn = content is not None and here == self._drawn_for
                if content is None or not drawn or not content.events_of([event]):
                    self._wanted = (here, event)
        return self._wanted[1] if self._wanted is not None and self._wanted[0] == here else None

    @override
    def show_result(self, result: object) -> None:
        """Draw runs."""
        if not isinstance(result, TimelineContent):
            return
        before, self._content = self._content, result
        self.runs.show_choices(result.choices, result.chosen)
        content = result.timeline
        if content is None:
            session = self.state.session
            why = why_no_events(session) if session is not None else ""
            self.show_need(Need("No events to show", f"{why}.") if why else _NO_RUN)
            return
        drawn_for = (self.state.open_session, self.state.method)
        if drawn_for != self._drawn_for:
            self._drawn_for = drawn_for
            self.canvas.set_flags(())
        camera, both = self.canvas.camera, before is not None and before.chosen == result.chosen
        self.canvas.set_flame(result.chosen == FLAME)
        self.canvas.set_data(content.data, result.places)
        if both and result.chosen == SESSIONS:  # another session is current, the drawing the same
            self.canvas.set_camera(camera)
        self.search.again()
        self._span_chosen(0.0, 0.0)
        self.legend.set_entries(content.legend)
        self.note.setText(content.note)
        self.note.setToolTip(content.note.replace(" · ", "\n"))
        self.show_content()
        self.show_selection(self.state)

    def _run_chosen(self, _index: int) -> None:
        self._show_run(str(self.runs.currentData()))

    def _show_run(self, key: str) -> None:
        self._chosen, self._wanted = key, None
        self.show_state(self.state)

    def _step_run(self, by: int) -> None:
        at = self.runs.currentIndex() + by
        if 0 <= at < self.runs.count():
            self.runs.setCurrentIndex(at)
            self._run_chosen(at)

    def show_slowest_run(self) -> None:
        """Show the run that took longest."""
        content = self._content
        if content is not None and content.slowest:
            self._show_run(content.slowest)

    def go_to_slowest(self) -> None:
        """Select the longest call; pressed again, the next longest."""
        self.canvas.go_to(self.canvas.slowest_call())

    def _menu(self, at: QPoint) -> None:
        menu = timeline_menu(self, at)
        if menu is not None:
            menu.popup(self.canvas.mapToGlobal(at))

    # -- range -----------------------------------------------------------------------------

    def _use_range_tool(self, on: bool) -> None:
        self.canvas.range_tool = on
        self.range_tool.setChecked(on)

    def _span_chosen(self, start: float, end: float) -> None:
        content, session = self._content, self.state.session
        has_range = end > start and content is not None and bool(content.run)
        self.range.setVisible(has_range)
        if content is None or session is None or not has_range:
            self.range.clear()
            return
        span = TimeRange(start, end, content.run)
        self.range.show_range(session, self.state.method, span, self.state.units)

    def export_range(self) -> None:
        """Ask for a file and write the range to it."""
        name = self.context.paths.save_file(self, "Export the range", "range.tsv", FILTERS)
        if name:
            self.export_to(Path(name), lambda path: self._ask(ShowStatus(f"Exported {path}")))

    def export_to(self, path: Path, done: Done = unreported) -> bool:
        """Begin to write the range, else the visible part, as TSV, CSV or a Chrome trace."""
        content, session = self._content, self.state.session
        if self.range.content is not None or content is None or session is None:
            return self.range.export_to(path, done)
        if not content.run:
            self._ask(ShowStatus("A flame has no ranges of time: choose a run"))
            return False
        span = TimeRange(*self.canvas.seen(), content.run)
        method, units = self.state.method, self.state.units
        self.range.write(path, lambda: range_content(session, method, span, units), done)
        return True

    @override
    def shut_down(self) -> None:
        super().shut_down()
        self.range.shut_down()

    # -- selection -------------------------------------------------------------------------

    def start_find(self) -> None:
        """Focus the search field."""
        self.search.start()

    def step(self, by: int) -> bool:
        """Go to the next match of the search, else to the next event of the lane."""
        return self.search.step(by) if self.search.active else self.canvas.step(by)

    def row_of(self, event: int) -> int:
        """Return the row of the profile of an event that is drawn, or -1."""
        content = self._content
        if content is None or content.timeline is None or event < 0:
            return -1
        return int(content.timeline.rows[event])

    def _event_chosen(self, event: int) -> None:
        content = self._content
        if content is None:
            return
        row = self.row_of(event)
        if event < 0:
            self.select(Selection())
        elif row >= 0 and not content.own(event):
            self._go_to_other(content, event, row)
        elif row >= 0:
            step = content.index.event_instruction.get(row)
            self.select(
                Selection(SelectionKind.EVENT, self.state.method, event=row, instruction=step)
            )
        else:
            self.canvas.set_flow(())

    def _go_to_other(self, content: TimelineContent, event: int, row: int) -> None:
        """Select an event of another session, which is then the one shown."""
        place = int(content.owner[event]) if content.owner is not None else 0
        method = content.methods.get(place, self.state.method)
        selection = Selection(SelectionKind.EVENT, method, event=row)
        self._ask(GoTo(Place(self.state.sessions[place].id, method, selection)))

    @override
    def show_selection(self, state: State) -> None:
        content = self._content
        if content is None or content.timeline is None or state.session is None:
            return
        selection = state.selection
        if selection.kind is SelectionKind.EVENT and selection.event is not None:
            requested: tuple[int, ...] = (selection.event,)
        else:
            requested = related_to(selection, content.index).events
        found = content.events_of(requested)
        if set(found) != set(self.canvas.marks.selected):
            self.canvas.set_selected(found)
        chosen = selection.kind is SelectionKind.EVENT and found
        self.canvas.set_flow(content.arrows(state.session, self.canvas.current) if chosen else ())


def _title(one: OpenSession) -> str:
    return f"{one.id}  {one.session.name}"


def _needs(session: Session) -> Need | None:
    """Return the missing requirement; a program alone can be run here."""
    return None if session.dumps or session.program is not None else _NO_TRACE


SPEC = ViewSpec("timeline", "Timeline", Area.CENTRE, TimelinePane, "timeline", needs=_needs)
