"""Any tensor: statistics, histogram, image of a slice, values as a table, difference of two."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSplitter, QStackedWidget, QVBoxLayout, QWidget
from typing_extensions import override

from devtools_app.jobs.computed import Computed
from devtools_app.jobs.latest import Latest, Token
from devtools_app.state.requests import ChooseFiles
from devtools_app.state.state import OpenSession, State
from devtools_app.viewmodels.selected_tensors import selected_tensors
from devtools_app.viewmodels.tensor_look import (
    HERE,
    KEPT,
    TensorPicture,
    TensorReport,
    kept_key,
    tensor_picture,
    tensor_report,
)
from devtools_app.views.pane import Pane
from devtools_app.views.pane_parts import PanelActions
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.empty_state import Need
from devtools_app.widgets.fact_panel import FactPanel
from devtools_app.widgets.slice_bar import SliceBar
from devtools_app.widgets.splitter import fill_splitter
from devtools_app.widgets.table_view import TableView
from devtools_app.widgets.tensor_plots import TensorHeat, ValueHistogram
from devtools_app.widgets.toolbar_combo import ToolbarCombo
from inspector.files.session import Session
from inspector.tables.facts import FactSheet
from inspector.tables.selection import Selection
from inspector.tables.table import Table
from inspector.tables.tensor import list_table
from inspector.tensors.images import SliceChoice
from inspector.tensors.sources import TensorSource, kept_pair, session_tensors

_NOTHING = Need(
    "No tensors",
    "Weights are in a program (.pte), its data files (.ptd) and an ETRecord; logged values are in"
    " the debug buffer of a run that logged them.",
    "etscope run model.pte -o run --debug-level intermediate",
)
_NO_NAMES = Need(
    "Values without names",
    "A debug buffer is open. Only the ETDump of its run shows which values it has, of which type"
    " and shape: open the .etdp file beside it.",
)
_IMAGE, _VALUES = "image", "values"
_NONE = ""
Open = Callable[[], TensorSource]


@dataclass(frozen=True, slots=True, eq=False)
class _TensorList:
    session: Session
    sources: tuple[TensorSource, ...]
    table: Table
    selected: tuple[str, ...]
    rows: list[int]  # of the selected ones


class TensorPane(PanelActions, Pane):
    """The tensors of a session at the left with the facts of one, its drawings at the right."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__(context, "Tensor")
        self.list = TableView(context.theme, "tensors")
        self.facts = FactPanel(context.theme, "Statistics of the tensor")
        self.histogram = ValueHistogram(context.theme)
        self.heat = TensorHeat(context.theme)
        self.values = TableView(context.theme, "values")
        self.slices = SliceBar(context.theme)
        self.others = ToolbarCombo(context.theme, "less", "Tensor to compare with")
        self.shown = ToolbarCombo(context.theme, "show", "Image or table of values")
        self.shown.show_choices([("image", _IMAGE), ("values", _VALUES)], _IMAGE)
        self._open = self.empty.add_button(
            "Open files…", lambda: self._ask(ChooseFiles(beside=True))
        )
        self._open.hide()
        self._content: _TensorList | None = None
        self._selection: Selection | None = None
        self._session: OpenSession | None = None
        self._shown_key: str = ""
        self._other: str = ""
        self._choice: SliceChoice | None = None
        self._report_key: object = None
        self._work: Callable[[Token], TensorReport] | None = None
        self._reports: Computed[TensorReport] = Computed("tensor statistics", self)
        self._pictures = Latest("tensor image", self)
        self._lay_out_content()
        self._connect()

    def _lay_out_content(self) -> None:
        for tool in (self.shown, self.others, self.slices):
            self.add_tool(tool)
        page, whole = QWidget(), QSplitter(Qt.Orientation.Horizontal)
        left, right = (QSplitter(Qt.Orientation.Vertical) for _ in range(2))
        self.drawn = QStackedWidget()
        self.set_content(page)
        layout = QVBoxLayout(page)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(whole)
        fill_splitter(whole, left, right, sizes=[500, 570])
        whole.setStretchFactor(0, 1)
        whole.setStretchFactor(1, 2)
        fill_splitter(left, self.list, self.facts, sizes=[190, 260])
        fill_splitter(right, self.histogram, self.drawn, sizes=[120, 330])
        self.drawn.addWidget(self.heat)
        self.drawn.addWidget(self.values)

    def _connect(self) -> None:
        self.list.row_chosen.connect(self._row_chosen)
        self.shown.activated.connect(self._show_drawing)
        self.others.activated.connect(self._other_chosen)
        self.slices.changed.connect(self._slice_chosen)
        self._reports.ready.connect(self._report_ready)
        self._reports.failed.connect(self._failed_tensor)
        self._pictures.ready.connect(self._show_picture)
        self._pictures.failed.connect(self._failed_tensor)
        self._reports.busy_changed.connect(self._show_waiting)

    # -- state -----------------------------------------------------------------------------

    @override
    def show_state(self, state: State) -> None:
        """Show a state; without a session nothing of a former one is kept."""
        if state.session is None:
            self._release()
        super().show_state(state)

    def _release(self) -> None:
        """Drop objects that keep the files of a session open."""
        self._reports.forget()
        self._pictures.cancel()
        self._content, self._work, self._session = None, None, None
        self._shown_key = self._other = _NONE
        self.list.show_table(Table())
        self.values.show_table(Table())
        self.heat.show_image(None, str)

    @override
    def show_session(self, session: Session, state: State) -> None:
        """Show the tensors of the session of a state, and the one that was chosen."""
        method, selection, units = state.method, state.selection, state.units

        def work() -> _TensorList:
            found = session_tensors(session)
            wanted = selected_tensors(session, method, selection)
            keys = tuple(one.key for one in wanted)
            table = list_table(found, units)
            rows = [row for row in range(table.length) if table.key(row) in keys]
            return _TensorList(session, found, table, keys, rows)

        self.request((state.open_session, method, selection, units), work)

    @override
    def show_result(self, result: object) -> None:
        """Show the list, and the tensor of the state or of the selection."""
        if not isinstance(result, _TensorList):
            return
        before, self._content = self._content, result
        if not result.sources and not self.state.tensor.startswith(KEPT):
            self._open.show()
            session = self.state.session
            alone = session is not None and session.debug_buffer is not None and not session.dumps
            self.show_need(_NO_NAMES if alone else _NOTHING)
            return
        if before is None or before.sources is not result.sources:
            self.list.show_table(result.table)
        self.show_content()
        selection, session = self.state.selection, self.state.open_session
        moved = self._selection is not None and selection != self._selection
        other_session = session is not self._session
        self._selection, self._session = selection, session
        if other_session:
            self._reports.forget()
        wanted = self.state.tensor
        keys = {one.key for one in result.sources}
        if result.selected and (moved or not wanted) and wanted == self._shown_key:
            wanted = _largest(result.sources, result.selected)
        if wanted not in keys and not wanted.startswith(KEPT):
            wanted = _largest(result.sources, result.selected or keys)
        self.list.highlight(result.rows)
        self._show_tensor(wanted, again=other_session)

    @override
    def show_selection(self, state: State) -> None:
        """Show the tensor that was chosen elsewhere."""
        if self._content is not None and state.tensor not in ("", self._shown_key):
            self._show_tensor(state.tensor)

    def _row_chosen(self, row: int) -> None:
        self._show_tensor(str(self.list.rows.key(row)))

    def _show_tensor(self, key: str, *, again: bool = False) -> None:
        if key == self._shown_key and not again:
            return
        self._shown_key = key
        self._other = key if key.startswith(KEPT) else _NONE
        self.list.show_current(key)
        self.values.show_table(Table())
        if self.state.tensor != key:
            self.store.update(tensor=key)
        self._begin()

    # -- one tensor ------------------------------------------------------------------------

    def _begin(self) -> None:
        """Compute the statistics, and the image of the slice."""
        content = self._content
        if content is None:
            return
        units, sources = self.state.units, content.sources
        sessions = tuple(self.state.sessions)
        here = self.state.open_session
        key = self._shown_key
        found = partial(_opened, key, sources)
        other = self._opener(self._other)
        name = self.others.currentText() if self._other else ""
        others = tuple((one.id, one.session) for one in sessions if one is not here)
        kept = self._kept()

        def work(token: Token) -> TensorReport:
            return tensor_report(found(), other, name, (sources, others, kept), units, token.check)

        self._report_key = (id(content.session), self._shown_key, self._other, units)
        self._work = work
        known = self._reports.ask(self._report_key, work)
        if known is None:
            self.histogram.show_summary(None, "Reading the values…")
        else:
            self._show_report(known)
        self._draw()

    def _report_ready(self, key: object) -> None:
        if key == self._report_key and self._work is not None:
            known = self._reports.ask(self._report_key, self._work)
            if known is not None:
                self._show_report(known)

    def _opener(self, key: str) -> Open | None:
        """Return a function that returns the tensor to compare with, None for none."""
        content = self._content
        if not key or content is None:
            return None
        if key.startswith(KEPT):
            return partial(_kept_reference, key)
        session_id, _, inner = key.partition(" ")
        if session_id == HERE:
            return partial(_opened, inner, content.sources)
        found = next((one for one in self.state.sessions if one.id == session_id), None)
        return None if found is None else partial(_of_session, found.session, inner)

    def _kept(self) -> dict[tuple[int, int], str]:
        """Return (instruction, output) -> key of the tensor kept by the comparison."""
        gap, found = self.state.gap, self.context.jobs["gap"].current
        if gap is None or found is None or found.folder is None:
            return {}
        rows = (row for row in gap.outside() if row.kept)
        return {(row.instruction, row.slot): kept_key(found.folder / row.kept) for row in rows}

    def _draw(self) -> None:
        content = self._content
        if content is None:
            return
        key, other = self._shown_key, self._opener(self._other)
        found = partial(_opened, key, content.sources)
        choice, values = self._choice, self.shown.currentData() == _VALUES
        self._pictures.submit(
            lambda token: tensor_picture(found(), other, choice, token.check, values=values)
        )

    def _show_report(self, known: TensorReport) -> None:
        self.facts.show_sheet(FactSheet(known.source.name, known.source.origin, known.groups))
        self.others.show_choices(list(known.others), self._other)
        self.histogram.show_summary(known.summary, known.problem)
        self.note.setText(known.problem or known.words)
        self.note.setToolTip(known.problem or known.words)

    def _show_picture(self, result: object) -> None:
        if not isinstance(result, TensorPicture):
            return
        self._choice = result.choice
        self.slices.show_slice(result.sizes, result.choice)
        self.heat.show_image(result.image, result.describe, result.problem)
        if result.values is not None:
            self.values.show_table(result.values)
        self._show_page()

    def _show_page(self) -> None:
        page = self.values if self.shown.currentData() == _VALUES else self.heat
        self.drawn.setCurrentWidget(page)

    def _show_drawing(self, _index: int) -> None:
        self._show_page()
        self._draw()

    def _slice_chosen(self, choice: SliceChoice) -> None:
        self._choice = choice
        self._draw()

    def _other_chosen(self, _index: int) -> None:
        self._other = str(self.others.currentData() or _NONE)
        self._begin()

    def _failed_tensor(self, error: object) -> None:
        text = str(error) or type(error).__name__
        self.note.setText(text)
        self.facts.show_sheet(FactSheet("This tensor cannot be shown", text))
        self.histogram.show_summary(None, text)
        self.heat.show_image(None, str, text)

    def _show_waiting(self, on: bool) -> None:
        if on:
            self.busy.start("Reading the values")
        else:
            self.busy.stop()

    def _stop(self) -> None:
        super()._stop()
        self._reports.forget()
        self._pictures.cancel()

    @property
    def reading(self) -> bool:
        """Return whether statistics or an image are being computed."""
        return self._reports.busy or self._pictures.busy

    @property
    @override
    def panel(self) -> TableView:
        return self.list

    @override
    def shut_down(self) -> None:
        """Stop running threads; called once before the window closes."""
        self._reports.close()
        self._pictures.close()
        super().shut_down()


def _largest(sources: tuple[TensorSource, ...], keys: Collection[str]) -> str:
    """Return the key of the largest tensor with values among some, the first of several."""
    found = [one for one in sources if one.key in keys]
    known = [one for one in found if not one.missing] or found
    return max(known, key=lambda one: one.nbytes or 0).key


def _opened(key: str, sources: tuple[TensorSource, ...]) -> TensorSource:
    if key.startswith(KEPT):
        return kept_pair(Path(key.removeprefix(KEPT)), "values of the run", "")[0]
    return next(one for one in sources if one.key == key)


def _kept_reference(key: str) -> TensorSource:
    return kept_pair(Path(key.removeprefix(KEPT)), "reference", "")[1]


def _of_session(session: Session, key: str) -> TensorSource:
    return next(one for one in session_tensors(session) if one.key == key)


SPEC = ViewSpec("tensor", "Tensor", Area.CENTRE, TensorPane, "tensor")
