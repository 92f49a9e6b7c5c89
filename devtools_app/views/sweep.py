"""The sweep view: the result of every grid point, and which points are Pareto-optimal."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PySide6.QtWidgets import QStackedWidget
from typing_extensions import override

from devtools_app.state.requests import EditRecipe, OpenPaths, StartSweep
from devtools_app.state.state import State
from devtools_app.state.sweep_file import RESULTS
from devtools_app.state.variant_steps import shown_variant
from devtools_app.viewmodels.sensitivity import (
    LEAVE_IN_FLOAT,
    LEAVE_IN_FLOAT_HELP,
    FloatOffer,
    float_offer,
    source_of,
)
from devtools_app.views.pane import Pane
from devtools_app.views.pane_parts import PanelActions
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.views.sweep_form import SweepFormPage
from devtools_app.widgets.beside import Beside
from devtools_app.widgets.empty_state import Need
from devtools_app.widgets.scatter_plot import ScatterPlot
from devtools_app.widgets.table_view import TableView
from devtools_app.widgets.toolbar_combo import ToolbarCombo
from inspector.experiments.sweeps.plan import request_of_results
from inspector.experiments.sweeps.request import SweepRequest, requested_job
from inspector.experiments.sweeps.results import PointResult, Results, Status, read_results
from inspector.tables.row_order import RowOrder
from inspector.tables.selection import Units
from inspector.tables.sensitivity import is_sensitivity, sensitivity_table
from inspector.tables.sweep import axes_of, first_axes, scatter, sweep_table
from inspector.units import format_elapsed, format_estimate

_NOTHING = Need(
    "No sweep is open",
    "A sweep compiles a recipe with every combination of some of its fields. Open a program whose"
    " recipe is known to start one here, or the results.json in the folder of a sweep.",
    "etscope sweep recipe.json --grid rules.min_nodes=1,5 --runs 20 -o sweep",
)
_FILTER = "Results of a sweep (results.json);;All files (*)"


@dataclass(frozen=True, slots=True, eq=False)
class _SweepContent:
    results: Results
    order: RowOrder
    folder: Path
    by_module: bool = False
    source: str = ""


class SweepPane(PanelActions, Pane):
    """A table of all points with two of their metrics drawn beside it."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__(context, "Sweep")
        self.table = TableView(context.theme, "points of the sweep")
        self.plot = ScatterPlot(context.theme, "Points by two metrics")
        self.across = ToolbarCombo(context.theme, "across", "Metric to the right")
        self.up = ToolbarCombo(context.theme, "up", "Metric upwards")
        for combo in (self.across, self.up):
            combo.activated.connect(lambda _index: self._draw())
            self.add_tool(combo)
        self.float_button = self.add_button(
            LEAVE_IN_FLOAT, LEAVE_IN_FLOAT_HELP, self.leave_in_float, right=True
        )
        self.open_button = self.add_button(
            "Open point", "Open the files of the chosen point", self.open_point, right=True
        )
        self.again_button = self.add_button(
            "Read again", "Read the results again", self.read_again, right=True
        )
        self.resume_button = self.add_button(
            "Resume", "Do the points that are pending or failed", self.resume, right=True
        )
        self.cancel_button = self.add_button(
            "Cancel", "Cancel the sweep; finished points are kept", self._cancel, right=True
        )
        self.new_button = self.add_button(
            "New sweep…", "Vary fields of the recipe shown", self.show_form, right=True
        )
        self.form = SweepFormPage(context)
        self.form.back.connect(self._show_results)
        self._sweeping = context.jobs.sweeping
        self._sweeping.changed.connect(self._followed)
        self._forming = False
        self._done = -1
        self._pages = QStackedWidget()
        self.empty.add_button("Open a sweep…", self._choose)
        self._content: _SweepContent | None = None
        self._reading = 0
        self._current = ""
        self._pages.addWidget(self.form)
        self._pages.addWidget(Beside(self.table, self.plot, 68))
        self.set_content(self._pages)
        self.table.row_chosen.connect(self._row_chosen)
        self.table.row_activated.connect(lambda row: self._open(str(self.table.rows.key(row))))
        self.plot.chosen.connect(self._dot_chosen)
        self.plot.activated.connect(self._open)

    # -- state -----------------------------------------------------------------------------

    @override
    def show_state(self, state: State) -> None:
        """Show the sweep of a state, or the form of a new one."""
        path, units = state.sweep, state.units
        if not path:
            self._content = None
        if not path or self._forming:
            self._show_form_page(state)
            return
        self.request((path, units, self._reading), lambda: _build(Path(path), units))
        self._show_offer()

    @override
    def show_result(self, result: object) -> None:
        """Show the results."""
        if not isinstance(result, _SweepContent):
            return
        former = self._content
        self._content = result
        results = result.results
        names = list(axes_of(results))
        first = first_axes(results)
        same = former is not None and former.results.metrics == results.metrics
        for combo, name in zip((self.across, self.up), first, strict=True):
            combo.show_choices(names, str(combo.currentData()) if same else name)
        self.table.show_table(result.order)
        self.note.setToolTip(f"{results.recipe}\n{result.folder}")
        self._draw()
        self._mark(self._current if any(one.key == self._current for one in results.points) else "")
        if self._forming:
            return
        self._pages.setCurrentIndex(1)
        self.show_content()
        self._show_tools()

    # -- a new one -------------------------------------------------------------------------

    def show_form(self) -> None:
        """Show the form of a new sweep."""
        self._forming = True
        self.show_state(self.state)

    def _show_results(self) -> None:
        self._forming = False
        self.forget()
        self.show_state(self.state)

    def _show_form_page(self, state: State) -> None:
        one = shown_variant(state)
        if one is None:
            self._forming = False
            self.show_need(_NOTHING)
            return
        self.forget()
        self.form.show_variant(one, has_results=bool(state.sweep))
        self._pages.setCurrentIndex(0)
        self.show_content()
        self._show_tools()

    def _show_tools(self) -> None:
        """Show the tools of the page in front."""
        content, forming = self._content, self._pages.currentIndex() == 0
        running = self._sweeping.running
        self._bar.setVisible(running or not forming)
        for tool in (self.across, self.up, self.open_button, self.again_button):
            tool.setVisible(not forming)
        by_module = self._content is not None and self._content.by_module
        self.float_button.setVisible(not forming and by_module)
        known = shown_variant(self.state) is not None
        self.new_button.setVisible(not forming and known and not running)
        self.cancel_button.setVisible(running)
        self.cancel_button.setEnabled(running and not self._is_cancelling())
        points = content.results.points if content is not None else ()
        open_ends = any(one.status is not Status.DONE for one in points)
        self.resume_button.setVisible(not forming and not running and open_ends)
        if running or forming:
            self.note.setText(self._progress())
        elif content is not None:
            self.note.setText(_note(content.results))

    def _is_cancelling(self) -> bool:
        found = self._sweeping.current
        return found is not None and found.cancelling

    def _progress(self) -> str:
        """Return how far the running sweep is, empty without one."""
        found = self._sweeping.current
        if found is None or found.outcome is not None:
            return found.outcome.sentence if found is not None and found.outcome else ""
        if not found.total:
            return "Preparing the points"
        words = [f"{found.done:,} of {found.total:,} points · {format_elapsed(found.seconds)}"]
        if found.cancelling:
            words.append("cancelling")
        elif found.done:
            left = found.seconds / found.done * found.left
            words.append(f"about {format_estimate(left)} left")
        return " · ".join([*words, *found.at_work[:1]])

    def _followed(self) -> None:
        """Show the progress of a sweep; its points as they end."""
        found = self._sweeping.current
        if found is None:
            return
        ours = self.state.sweep == str(Path(found.target) / RESULTS)
        if ours and self._forming and found.outcome is None:
            self._forming = False
            self._done = -1
        done = -2 if found.outcome is not None else found.done
        if ours and done != self._done and not self._forming:
            self._done = done
            self.read_again()
        if self.stack.currentIndex() == 1:
            self._show_tools()

    def _cancel(self) -> None:
        self._sweeping.cancel()

    def resume(self) -> None:
        """Do the points of the sweep shown that are pending or failed."""
        content = self._content
        if content is not None:
            self._ask(StartSweep(self._request_of(content), str(content.folder)))

    def _request_of(self, content: _SweepContent) -> SweepRequest:
        """Return the request of a sweep: that of the history, else what its results tell."""
        folder = str(content.folder.absolute())
        for entry in self.context.jobs.history.entries:
            if entry.kind == "sweep" and entry.target == folder:
                return requested_job(entry)
        return request_of_results(content.results)

    def read_again(self) -> None:
        """Read the results again: a sweep may still be running."""
        self._reading += 1
        self.show_state(self.state)

    def _choose(self) -> None:
        if path := self.context.paths.open_file(self, "Open a sweep", _FILTER):
            self._ask(OpenPaths((path,)))

    # -- points ----------------------------------------------------------------------------

    def _draw(self) -> None:
        content = self._content
        if content is None:
            return
        across, up = self.across.currentData(), self.up.currentData()
        units = self.state.units
        found = (
            scatter(content.results, str(across), str(up), units.time, units.size)
            if across is not None and up is not None
            else None
        )
        self.plot.show_scatter(found)

    def _row_chosen(self, row: int) -> None:
        self._mark(str(self.table.rows.key(row)))

    def _dot_chosen(self, key: str) -> None:
        self.table.show_current(key)
        self._mark(key)

    def _mark(self, key: str) -> None:
        self._current = key
        self.plot.show_current(key)
        point = self._point(key)
        self.open_button.setEnabled(point is not None and bool(point.files))
        self._show_offer()

    def _offer(self) -> FloatOffer | None:
        content = self._content
        if content is None or not content.by_module:
            return None
        return float_offer(self._point(self._current), shown_variant(self.state), content.source)

    def _show_offer(self) -> None:
        self.float_button.setEnabled(self._offer() is not None)

    def leave_in_float(self) -> None:
        """Change the recipe so that the module of the chosen point is not quantized."""
        offer = self._offer()
        if offer is not None:
            words = f"{offer.described}: press Ctrl+R to recompile"
            self._ask(EditRecipe(offer.job, words))

    def _point(self, key: str) -> PointResult | None:
        content = self._content
        if content is None:
            return None
        return next((one for one in content.results.points if one.key == key), None)

    def open_point(self) -> None:
        """Open the files of the chosen point as a session."""
        self._open(self._current)

    def _open(self, key: str) -> None:
        point, content = self._point(key), self._content
        if point is not None and content is not None and point.files:
            folder = content.folder / point.folder
            self._ask(OpenPaths(tuple(str(folder / name) for name in point.files)))

    @override
    def shut_down(self) -> None:
        self.form.shut_down()
        super().shut_down()


def _build(path: Path, units: Units) -> _SweepContent:
    results = read_results(path)
    by_module = is_sensitivity(results)
    if by_module:
        table = sensitivity_table(results, units)
    else:
        table = sweep_table(results, units.time, units.size)
    order = RowOrder(table).prepare()
    folder = path if path.is_dir() else path.parent
    return _SweepContent(results, order, folder, by_module, source_of(results))


def _note(results: Results) -> str:
    done, failed, waiting = (
        results.count(one) for one in (Status.DONE, Status.FAILED, Status.WAITING)
    )
    text = [f"{done:,} of {len(results.points):,} points done"]
    text += [f"{failed:,} failed"] if failed else []
    text += [f"{waiting:,} pending"] if waiting else []
    text.append(f"{sum(results.best()):,} on the front of {' and '.join(results.objectives)}")
    return " · ".join(text)


SPEC = ViewSpec("sweep", "Sweep", Area.CENTRE, SweepPane, "sweep", without_session=True)
