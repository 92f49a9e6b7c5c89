"""The timeline view: events over time, by run, and a flame chart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPoint
from typing_extensions import override

from devtools_app.state.requests import ShowView
from devtools_app.state.state import State
from devtools_app.viewmodels.layout.timeline_bins import TimelineIndex
from devtools_app.viewmodels.scene_search import related_to
from devtools_app.viewmodels.timeline import (
    Timeline,
    absolute_runs,
    aligned_runs,
    median_run,
    one_run,
    timeline_runs,
)
from devtools_app.viewmodels.timeline_flame import flame_timeline, has_flame
from devtools_app.views.editing import item_menu
from devtools_app.views.pane import Pane
from devtools_app.views.pane_parts import CanvasImage
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.beside import with_legend
from devtools_app.widgets.empty_state import Need
from devtools_app.widgets.legend import Legend
from devtools_app.widgets.timeline_canvas import TimelineCanvas
from devtools_app.widgets.timeline_canvas_paint import STRENGTH
from devtools_app.widgets.toolbar_combo import ToolbarCombo
from inspector.files.session import Session
from inspector.profile.join_index import JoinIndex, join_index
from inspector.tables.selection import Selection, SelectionKind

_FLAME, _ALIGNED, _ABSOLUTE, _RUN = "flame", "aligned", "absolute", "run "
_MOST_LISTED = 200  # runs in the chooser; all runs together show the others
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


@dataclass(frozen=True, slots=True, eq=False)
class _TimelineContent:
    choices: list[tuple[str, str]]
    chosen: str
    timeline: Timeline | None
    index: JoinIndex
    places: TimelineIndex | None


class TimelinePane(CanvasImage, Pane):
    """Draws runs in lanes, or the flame of their mean."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__(context, "Timeline")
        self.canvas = TimelineCanvas(context.theme.canvas)
        self.legend = Legend(context.theme.canvas, line=True, strength=STRENGTH)
        self._content: _TimelineContent | None = None
        self._chosen = ""
        self.runs = ToolbarCombo(self.theme, "show", "Runs to show")
        self.runs.activated.connect(self._run_chosen)
        self.add_tool(self.runs)
        self.add_button("", "Show all of the time (Space)", self.canvas.fit, icon="fit", right=True)
        self.add_keys("[", lambda: self._step(-1))
        self.add_keys("]", lambda: self._step(1))
        self.runs.setToolTip("Runs to show  ([ and ]: the one before, the next)")
        self._run = self.empty.add_button("Run…", lambda: self._ask(ShowView("run")))
        self.set_content(with_legend(self.canvas, self.legend))
        self.canvas.selected.connect(self._event_chosen)
        self.canvas.menu_requested.connect(self._menu)
        self.theme.changed.connect(self._restyle)

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
        chosen, method = self._chosen, state.method
        key = (state.open_session, method, chosen)
        self.request(key, lambda: _build(session, method, chosen))

    @override
    def show_result(self, result: object) -> None:
        """Draw runs."""
        if not isinstance(result, _TimelineContent):
            return
        self._content = result
        self.runs.show_choices(result.choices, result.chosen)
        content = result.timeline
        if content is None:
            self.show_need(_NO_RUN)
            return
        self.canvas.set_flame(result.chosen == _FLAME)
        self.canvas.set_data(content.data, result.places)
        self.legend.set_entries(content.legend)
        self.note.setText(content.note)
        self.note.setToolTip(content.note.replace(" · ", "\n"))
        self.show_content()
        self.show_selection(self.state)

    def _run_chosen(self, _index: int) -> None:
        self._chosen = str(self.runs.currentData())
        self.show_state(self.state)

    def _step(self, by: int) -> None:
        at = self.runs.currentIndex() + by
        if 0 <= at < self.runs.count():
            self.runs.setCurrentIndex(at)
            self._run_chosen(at)

    def _menu(self, at: QPoint) -> None:
        content, marked = self._content, self.canvas.marks.selected
        if content is None or content.timeline is None or not marked:
            return
        event, data = min(marked), content.timeline.data
        name = data.names[int(data.label[event])]
        known = int(content.timeline.rows[event]) >= 0  # a gap between events has no row
        selection = self.state.selection if known else Selection()
        menu = item_menu(self.canvas, name, selection, SPEC.name, self.context)
        menu.popup(self.canvas.mapToGlobal(at))

    # -- selection -------------------------------------------------------------------------

    def _event_chosen(self, event: int) -> None:
        content = self._content
        if content is None or content.timeline is None:
            return
        row = int(content.timeline.rows[event]) if event >= 0 else -1
        if event < 0:
            self.select(Selection())
        elif row >= 0:
            step = content.index.event_instruction.get(row)
            self.select(
                Selection(SelectionKind.EVENT, self.state.method, event=row, instruction=step)
            )

    @override
    def show_selection(self, state: State) -> None:
        content = self._content
        if content is None or content.timeline is None:
            return
        selection = state.selection
        if selection.kind is SelectionKind.EVENT and selection.event is not None:
            requested: tuple[int, ...] = (selection.event,)
        else:
            requested = related_to(selection, content.index).events
        found = (
            np.flatnonzero(np.isin(content.timeline.rows, requested)).tolist() if requested else []
        )
        if set(found) != set(self.canvas.marks.selected):
            self.canvas.set_selected(found)


def _build(session: Session, method: str, chosen: str) -> _TimelineContent:
    choices, chosen, timeline = _timeline(session, method, chosen)
    places = TimelineIndex(timeline.data) if timeline is not None else None
    return _TimelineContent(choices, chosen, timeline, join_index(session, method), places)


def _timeline(
    session: Session, method: str, chosen: str
) -> tuple[list[tuple[str, str]], str, Timeline | None]:
    """Return the choices, the current one, and its events."""
    runs = timeline_runs(session, method)
    listed = runs[:_MOST_LISTED]
    choices = [(run.label, f"{_RUN}{place}") for place, run in enumerate(listed)]
    executed = [place for place, run in enumerate(runs) if run.executes]
    if len(runs) > 1:
        choices += [
            ("all runs, side by side", _ALIGNED),
            ("all runs, one after another", _ABSOLUTE),
        ]
    if executed and has_flame(session, method):
        choices.append(("flame of the mean run", _FLAME))
    if not runs:
        return choices, "", None
    keys = [key for _, key in choices]
    if chosen not in keys:
        chosen = f"{_RUN}{median_run(listed)}"
    if chosen == _FLAME:
        return choices, chosen, flame_timeline(session, method)
    if chosen == _ALIGNED:
        return choices, chosen, aligned_runs(session, runs)
    if chosen == _ABSOLUTE:
        return choices, chosen, absolute_runs(session, runs)
    place = int(chosen.removeprefix(_RUN))
    return choices, chosen, one_run(session, runs[place : place + 1])


def _needs(session: Session) -> Need | None:
    """Return what is missing; a program alone can be run here."""
    return None if session.dumps or session.program is not None else _NO_TRACE


SPEC = ViewSpec("timeline", "Timeline", Area.CENTRE, TimelinePane, "timeline", needs=_needs)
