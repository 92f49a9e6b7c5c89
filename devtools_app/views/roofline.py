"""Operators below the limits of the machine: what bounds each of them, and how near it is."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSplitter
from typing_extensions import override

from devtools_app.state.state import State
from devtools_app.viewmodels.roofline_points import RooflineScene, roofline_scene
from devtools_app.viewmodels.scene_search import related_to
from devtools_app.views.pane import Pane
from devtools_app.views.pane_parts import PanelActions
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.beside import with_legend
from devtools_app.widgets.empty_state import Need
from devtools_app.widgets.kept_focus import kept_focus
from devtools_app.widgets.legend import Legend
from devtools_app.widgets.roofline_plot import RooflinePlot
from devtools_app.widgets.table_view import TableView
from inspector.files.session import Session
from inspector.jobs.calibrate import usual_job
from inspector.join.int_maps import GroupMap, places_of
from inspector.profile.join_index import JoinIndex, join_index
from inspector.roofline.rows import known_limits, roofline
from inspector.tables.selection import Selection, Units
from inspector.units import format_elapsed

_NOTHING = Need(
    "No operators",
    "FLOPs and bytes follow from the shapes in the program (.pte) or the ETRecord, rates from the"
    " times in an ETDump. Open a program and the trace of a run of it.",
    "etscope run model.pte -o run",
)


@dataclass(frozen=True, slots=True, eq=False)
class _RooflineContent:
    scene: RooflineScene
    index: JoinIndex
    rows_of_event: GroupMap
    rows_of_instruction: GroupMap


class RooflinePane(PanelActions, Pane):
    """The operators as points above, as a table below."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__(context, "Roofline")
        self.runner = context.jobs["calibrate"]
        self.plot = RooflinePlot(context.theme)
        self.legend = Legend(context.theme.canvas, line=True)
        self.table = TableView(context.theme, "operators at their limits")
        self._content: _RooflineContent | None = None
        self._calibrate = self.add_button(
            "Calibrate", "Measure the limits of this machine", self.calibrate, right=True
        )
        self._cancel = self.add_button(
            "Cancel", "Cancel the calibration", self.runner.cancel, right=True
        )
        self._cancel.hide()
        parts = QSplitter(Qt.Orientation.Vertical)
        parts.addWidget(with_legend(self.plot, self.legend))
        parts.addWidget(self.table)
        parts.setChildrenCollapsible(False)
        parts.setSizes([420, 240])
        self.set_content(parts)
        self.plot.chosen.connect(self._row_chosen)
        self.table.row_chosen.connect(self._row_chosen)
        self.theme.changed.connect(self._recolour)  # ends with the view
        self.runner.changed.connect(self._show_job)
        self.runner.finished.connect(lambda _job: self._measured())

    # -- state -----------------------------------------------------------------------------

    @override
    def show_session(self, session: Session, state: State) -> None:
        """Show the operators of the method of a state."""
        method, units = state.method, state.units
        key = (state.open_session, method, units)
        self.request(key, lambda: _build(session, method, units))

    @override
    def show_result(self, result: object) -> None:
        """Show the operators of a method."""
        self._content = result if isinstance(result, _RooflineContent) else None
        if self._content is None:
            self.show_need(_NOTHING)
            return
        scene = self._content.scene
        self.plot.show_scene(scene)
        self.plot.show_message(_why_empty(scene))
        self.legend.set_entries(scene.legend)
        self.table.show_table(scene.table)
        self.show_content()
        self._show_job()
        self.show_selection(self.state)

    # -- calibration -----------------------------------------------------------------------

    def begin(self) -> None:
        """Measure this machine in a worker."""
        self.calibrate()

    def calibrate(self) -> None:
        """Measure this machine in a worker."""
        with kept_focus(self._cancel, self._calibrate):
            self.runner.start(usual_job(), replace_running=True)

    def _measured(self) -> None:
        self.forget()
        if self.isVisible():
            self.show_state(self.state)

    def _show_job(self) -> None:
        found, content = self.runner.current, self._content
        running = found is not None and found.running
        self._cancel.setVisible(running)
        self._calibrate.setVisible(not running)
        if content is None:
            return
        words = content.scene.words
        if found is not None and found.running:
            at = found.counted
            far = f": {at.done:,} of {at.total:,} limits" if at is not None else ""
            words = f"Calibrating{far} · {format_elapsed(found.seconds)}"
        elif found is not None and found.error:
            words = f"{found.error} · {words}"
        self.note.setText(words)
        self.note.setToolTip(words)

    # -- selection -------------------------------------------------------------------------

    def _recolour(self) -> None:
        self.legend.set_colours(self.theme.canvas)

    def _row_chosen(self, row: int) -> None:
        if self._content is None:
            return
        key = self._content.scene.table.key(row)
        if isinstance(key, Selection):
            self.select(key)

    @override
    def show_selection(self, state: State) -> None:
        content = self._content
        if content is None:
            return
        related = related_to(state.selection, content.index)
        of, wanted = content.rows_of_event, related.events
        if not wanted:
            of, wanted = content.rows_of_instruction, related.instructions
        found = sorted(row for one in wanted for row in of.get(one, ()))
        self.plot.show_rows(frozenset(found))
        self.table.highlight(found)
        if found:
            self.table.show_current(content.scene.table.key(found[0]))


def _why_empty(scene: RooflineScene) -> str:
    if not any(row.time_ns for row in scene.roofline.rows):
        return "No times: open the trace of a run (run.etdp) beside the program"
    return "No operator has FLOPs, bytes and a time"


def _build(session: Session, method: str, units: Units) -> _RooflineContent | None:
    found = roofline(session, method, known_limits(session))
    if not found.rows:
        return None
    of_event = places_of(row.event for row in found.rows)
    of_instruction = places_of(row.instruction for row in found.rows)
    scene = roofline_scene(found, units)
    return _RooflineContent(scene, join_index(session, method), of_event, of_instruction)


def _needs(session: Session) -> Need | None:
    has_any = session.program is not None or session.record is not None or session.timed_dumps
    return None if has_any else _NOTHING


SPEC = ViewSpec("roofline", "Roofline", Area.CENTRE, RooflinePane, "roofline", needs=_needs)
