"""The numeric gap in the window: a comparison, its rows, one tensor, what is missing, cancel."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QTableView

from devtools_app.shell.window import MainWindow
from devtools_app.state.requests import EditRecipe, ShowLosses
from devtools_app.state.variants import History, opened
from devtools_app.views.compare import ComparePane, _nothing
from devtools_app.views.gap import GapPane
from devtools_app.views.gap_need import needs
from devtools_app.views.tensor import TensorPane
from devtools_app.widgets.tolerance_fields import ToleranceFields
from inspector.files.load import load_session
from inspector.jobs import run as jobs
from inspector.jobs.gap import GapJob
from inspector.numerics.metrics import Tolerance, measure
from inspector.numerics.report import EDGE, FLOAT, Row, RunGap
from inspector.recipes.compile_job import NOT_QUANTIZED, CompileJob, Quantization, Source
from inspector.recipes.recipe import Recipe
from inspector.tables.layer_losses import layer_losses
from inspector.tables.numeric_gap import (
    FLOOR,
    MEASURES,
    call_gap_table,
    gap_table,
    growth,
    summary,
    tensor_look,
)
from inspector.tables.selection import Selection, SelectionKind
from tests.inspector.jobs_here import Here

pytestmark = [pytest.mark.gui, pytest.mark.slow]

DATA = Path(__file__).parents[1] / "data"
PATIENCE = 100_000  # ms


def pane(window: MainWindow, qtbot, folder: Path) -> GapPane:
    """Open a folder and bring up the view."""
    window.controller.open((str(folder),))
    qtbot.waitUntil(lambda: window.store.state.session is not None, timeout=20_000)
    window.store.update(view="gap")
    qtbot.waitUntil(lambda: window.findChild(GapPane) is not None, timeout=20_000)
    found = window.findChild(GapPane)
    assert isinstance(found, GapPane)
    return found


def with_another(window: MainWindow, qtbot) -> tuple[str, str]:
    """Open a second session; return the ids of both."""
    window.controller.open((str(DATA / "corpus/v1.5.1/mm_portable"),))
    qtbot.waitUntil(lambda: len(window.store.state.sessions) == 2, timeout=20_000)
    first, second = (one.id for one in window.store.state.sessions)
    return first, second


@pytest.mark.parametrize("few", [1000, 0])  # rows that are listed at once, others in a thread
def test_comparison_shows_rows_and_tensors_and_leaves_nothing_behind(
    make_window, qtbot, monkeypatch, few: int
) -> None:
    monkeypatch.setattr(jobs, "Worker", Here)
    monkeypatch.setattr("devtools_app.views.gap._FEW", few)
    window = make_window()
    found = pane(window, qtbot, DATA / "corpus/v1.5.1/mm_xnnpack")
    found.compare()
    qtbot.waitUntil(lambda: found.gap_runner.current.state is not None, timeout=PATIENCE)
    qtbot.waitUntil(lambda: not found._filling.busy)
    assert found.note.text().startswith("No node exceeds the tolerance by its own error · 4 of 4")
    assert found.runs.count() == 3
    first = found._run
    found.runs.setCurrentIndex(1)
    found._run_chosen()
    assert (found._run is first) is (few == 0)  # rows that are clicked are still those listed
    found.runs.setCurrentIndex(0)
    found._run_chosen()
    qtbot.waitUntil(lambda: not found._filling.busy)
    assert found._run is first
    rows = found._run.rows
    assert found.table.rows.length == len(rows) == 7  # 4 outputs, 3 nodes inside delegates

    place = next(row.order for row in rows if row.node == "aten_mm_default_1")
    found._row_chosen(place)
    assert window.store.state.selection.node == "aten_mm_default_1"
    assert window.store.state.gap is found._run  # which colours the graph
    other = Selection(SelectionKind.NODE, method="forward", node="aten_mm_default")
    window.store.update(selection=other)
    wanted = next(row.order for row in rows if row.node == "aten_mm_default" and row.compared)
    qtbot.waitUntil(lambda: found._current == wanted, timeout=20_000)
    found._row_chosen(place)
    qtbot.waitUntil(lambda: found.worst.rows.length == 4, timeout=20_000)
    found.worst.setFixedWidth(240)
    QApplication.processEvents()
    assert not found.worst.findChild(QTableView).horizontalScrollBar().isVisible()
    assert "4 elements" in found.plot.accessibleDescription()

    missing = next(row for row in rows if not row.compared)
    found._place_chosen(missing.order)
    assert found.plot.accessibleDescription() == missing.reason

    folder = found.gap_runner.current.folder
    assert any(folder.glob("*.npz"))
    window.close()
    assert not folder.exists()


def test_comparison_of_sessions_lists_gaps_once_both_are_known(
    make_window, qtbot, monkeypatch
) -> None:
    monkeypatch.setattr(jobs, "Worker", Here)
    window = make_window()
    store = window.store
    found = pane(window, qtbot, DATA / "corpus/v1.5.1/mm_xnnpack")
    found.compare()
    qtbot.waitUntil(lambda: len(store.state.all_gaps) == 1, timeout=PATIENCE)
    first, second = with_another(window, qtbot)
    store.update(view="compare", compared=(first, second))
    qtbot.waitUntil(lambda: window.findChild(ComparePane) is not None, timeout=20_000)
    beside = window.findChild(ComparePane)
    assert isinstance(beside, ComparePane)
    qtbot.waitUntil(lambda: beside._content is not None, timeout=PATIENCE)
    made = beside._content
    assert made is not None
    assert _nothing("gaps", made).title == f"The values of {second} are not compared yet"
    assert _nothing("memory", made).title == "No difference: memory"

    store.update(view="gap", current=second)
    found.compare()
    qtbot.waitUntil(lambda: len(store.state.all_gaps) == 2, timeout=PATIENCE)
    store.update(view="compare")
    qtbot.waitUntil(lambda: beside._content is not made, timeout=PATIENCE)
    made = beside._content
    assert made is not None
    assert made.unknown == ""
    assert "aten_mm_default_1" in {one.node for one in made.comparison.gaps}


def test_comparison_stays_while_another_session_is_shown_and_goes_with_its_own(
    make_window, qtbot, monkeypatch
) -> None:
    monkeypatch.setattr(jobs, "Worker", Here)
    window = make_window()
    store = window.store
    found = pane(window, qtbot, DATA / "corpus/v1.5.1/mm_xnnpack")
    found.compare()
    first, second = with_another(window, qtbot)
    window.show_view("gap")
    qtbot.waitUntil(lambda: not found.gap_runner.running, timeout=PATIENCE)
    assert found.empty.isVisible()
    folder = found.gap_runner.current.folder
    window.controller.show(first)
    qtbot.waitUntil(lambda: not found.empty.isVisible(), timeout=20_000)
    assert found.table.rows.length == 7
    assert folder.exists()
    window.controller.close(first)
    qtbot.waitUntil(lambda: not folder.exists(), timeout=20_000)
    assert store.state.current == second
    assert found.empty.isVisible()


@pytest.mark.parametrize(
    ("files", "missing"),
    [
        (("model.pte",), "its ETRecord, a run with values"),
        (("model.etrecord",), "the program, a run with values"),
        (("run.etdp",), "the program, its ETRecord, a run with values"),
        (("run.etdp", "run.debug"), "the program, its ETRecord"),
        (("model.pte", "run.etdp", "run.debug"), "its ETRecord"),
        (("model.etrecord", "run.etdp", "run.debug"), "the program"),
    ],
)
def test_what_is_missing_of_a_comparison_is_named(files: tuple[str, ...], missing: str) -> None:
    need = needs(load_session([str(DATA / "corpus/v1.5.1/mm_xnnpack" / one) for one in files]))
    assert need is not None
    assert need.title == "No run to compare"
    assert need.text.endswith(f" Missing here: {missing}.")
    assert needs(load_session([str(DATA / "extra/map_rows")])) is None


def test_missing_values_are_one_click_that_runs_and_compares(
    make_window, qtbot, monkeypatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(jobs, "Worker", Here)
    corpus = DATA / "corpus/v1.5.1/mm_portable"
    for name in ("model.pte", "model.etrecord", "run.etdp"):
        shutil.copy(corpus / name, tmp_path)
    window = make_window()
    asked: list[tuple[Any, str]] = []
    monkeypatch.setattr(
        window.jobs["run"],
        "start",
        lambda job, target, **_options: asked.append((job, target)) or "",
    )
    found = pane(window, qtbot, tmp_path)
    qtbot.waitUntil(found._log.isVisible, timeout=20_000)
    assert not found._begin.isVisible()
    need = needs(window.store.state.session)
    assert need is not None
    assert str(tmp_path / "run.debug") in need.text
    found._log.click()
    ((job, target),) = asked
    assert (job.debug_level, job.program) == ("intermediate", str(tmp_path / "model.pte"))
    assert not Path(target).exists()  # files of its own

    made = ("model.pte", "model.etrecord")
    logged = tuple(str(corpus / name) for name in ("run.etdp", "run.debug"))
    files = (*(str(tmp_path / name) for name in made), *logged)
    window.controller.open_result(files)
    qtbot.waitUntil(lambda: found._run is not None, timeout=PATIENCE)
    assert found.table.rows.length


def test_cancelled_comparison_leaves_a_usable_view(make_window, qtbot) -> None:
    found = pane(make_window(), qtbot, DATA / "corpus/v1.5.1/mm_portable")
    for _ in range(10):  # a warm worker may be done before it is told
        found.compare()
        found.gap_runner.cancel()
        qtbot.waitUntil(lambda: not found.gap_runner.current.running, timeout=PATIENCE)
        if found.gap_runner.current.error:
            break
    assert found.gap_runner.current.error.startswith("cancelled")
    qtbot.waitUntil(found.empty.isVisible, timeout=PATIENCE)


# ---- without a window
def _row(order: int, error: float | None, **more: Any) -> Row:
    zero = np.zeros(4, np.float32)
    found = None if error is None else measure(zero + 1, zero + 1 + error, "float32", Tolerance())
    reason = "" if found is not None else "not traced"
    row = Row("instruction", "forward", order, 0, "aten::add.out", node=f"n{order}", order=order)
    return replace(row, total=found, own=found, reason=reason, **more)


def test_growth_is_in_decades_above_the_floor_and_misses_what_is_missing() -> None:
    run = RunGap("forward", 0, 0, -1, "", "", (_row(0, 0.0), _row(1, None), _row(2, 0.5)))
    total, own = growth(run)
    assert total[0] == 0
    assert np.isnan(total[1])
    assert total[2] == pytest.approx(np.log10(0.5 / FLOOR))
    assert np.array_equal(own, total, equal_nan=True)


def test_a_call_without_compared_values_has_not_been_found_without_divergence() -> None:
    runs = [
        RunGap("forward", 0, 0, at, "", "", (_row(0, error, diverges=bool(error)),))
        for at, error in enumerate((None, 0.0, 0.5))
    ]
    table = call_gap_table(runs)
    assert [str(table.text(row, 5)) for row in range(3)] == ["not compared", "none", "n0"]


@pytest.mark.parametrize(
    ("errors", "diverging", "start"),
    [
        ((None, None, 0.1, 0.5), (), 3),  # the largest own error
        ((None, 0.1, 0.5), (1,), 1),  # what diverges first, though another error is larger
        ((None, 0.0, 0.0), (), 1),  # compared, at least
        ((None, None), (), 0),
    ],
)
def test_view_begins_with_a_row_that_has_something_to_look_at(errors, diverging, start) -> None:
    rows = tuple(_row(at, error, diverges=at in diverging) for at, error in enumerate(errors))
    found = RunGap("forward", 0, 0, -1, "", "", rows).starting_row()
    assert found is not None
    assert found.order == start
    assert RunGap("forward", 0, 0, -1, "", "", ()).starting_row() is None


def test_table_and_summary_name_the_first_divergence() -> None:
    rows = (_row(0, 0.0), _row(1, 0.5, diverges=True), _row(2, None))
    run = RunGap("forward", 0, 0, -1, "", "", rows)
    assert summary(run).startswith("First divergence: n1, off by 0.5 by itself · 2 of 3 outputs")
    table = gap_table(run.rows)
    states = next(column for column in table.columns if column.title == "state")
    assert list(states.values) == [None, "diverges", "not compared"]


@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 5), (2, 3, 4), (700, 900)])
def test_tensor_look_finds_the_worst_element_of_any_shape(tmp_path: Path, shape) -> None:
    reference = np.zeros(shape, np.float32)
    found = reference.copy()
    if found.size:
        found.ravel()[-1] = 2.5
    np.savez(tmp_path / "kept.npz", reference=reference, run=found)
    look = tensor_look(tmp_path / "kept.npz")
    assert look.shape == shape
    assert int(look.counts.sum()) == reference.size
    assert look.heat.shape[0] <= 256
    assert look.heat.shape[1] <= 256
    if found.size:
        assert look.worst[0][1:] == (0.0, 2.5, 2.5)
        assert look.heat.max() == 1.0


def test_plots_draw_in_every_state(qtbot, theme) -> None:
    from devtools_app.widgets.gap_plots import DifferencePlot, GrowthPlot

    growth_plot, difference = GrowthPlot(theme, FLOOR), DifferencePlot(theme)
    for widget in (growth_plot, difference):
        qtbot.addWidget(widget)
        widget.resize(400, 240)
        widget.show()
    blank = [_picture(growth_plot), _picture(difference)]
    growth_plot.show_errors(np.array([1.0, np.nan, 3.0]), np.array([1.0, np.nan, 2.0]), {2})
    growth_plot.show_current(2)
    difference.show_differences(np.array([1, 5, 1]), 2.0, np.eye(3))
    qtbot.waitUntil(lambda: not growth_plot.waiting)
    drawn = [_picture(growth_plot), _picture(difference)]
    assert all(one != other for one, other in zip(blank, drawn, strict=True))


def _picture(widget) -> bytes:
    image = widget.grab().toImage().convertToFormat(QImage.Format.Format_RGB888)
    return bytes(image.constBits())


def test_errors_are_measured_by_any_metric() -> None:
    run = RunGap("forward", 0, 0, -1, "", "", (_row(0, 0.0), _row(1, 0.5), _row(2, None)))
    for name, used in MEASURES.items():
        total, _ = growth(run, name)
        assert total[0] == 0
        assert total[1] > 0 or name == "cosine"  # a vector of twos has the angle of one of ones
        assert np.isnan(total[2])
        table = gap_table(run.rows, name)
        column = next(column for column in table.columns if column.title == used.title)
        assert column.values[2] is None
    metrics = run.rows[1].total
    assert metrics is not None
    assert MEASURES["rms"].get(metrics) == pytest.approx(0.5)
    assert MEASURES["noise"].get(metrics) == pytest.approx(0.5)


def test_tolerance_is_read_and_wrong_ones_are_named(qtbot) -> None:
    fields = ToleranceFields()
    qtbot.addWidget(fields)
    fields.show()
    confirmed: list[bool] = []
    fields.confirmed.connect(lambda: confirmed.append(True))
    assert fields.read() == (None, 0.0)
    qtbot.keyClicks(fields.relative, "1e-3")
    qtbot.keyClick(fields.relative, Qt.Key.Key_Return)
    assert fields.read() == (1e-3, 0.0)
    assert confirmed == [True]
    qtbot.keyClicks(fields.absolute, "-1")
    qtbot.keyClick(fields.absolute, Qt.Key.Key_Return)
    assert fields.read() is None
    assert confirmed == [True]
    assert fields.absolute.toolTip().startswith("Expected a number")


def row(order: int, module: str, noise: float, place: str = "inside") -> Row:
    reference = np.linspace(1.0, 2.0, 8)
    own = measure(reference, reference * (1 + noise), "float64", Tolerance())
    return Row(
        place, "forward", 0, order, "add", node=f"n{order}", module=module, own=own, order=order
    )


def test_losses_by_module_are_those_of_the_worst_output_and_count_it_once() -> None:
    rows = (
        row(0, "", 0.01),
        row(1, "first", 0.02),
        row(2, "first", 0.05),
        row(3, "second", 0.03),
        replace(row(4, "second", 0.05, "instruction"), node="n2"),  # n2 as it leaves its delegate
    )
    found = layer_losses(RunGap("forward", 0, 0, -1, "", "float", rows, is_float=True))
    named = [(one.module, one.worst.order, one.outputs) for one in found]
    assert named == [("first", 2, 2), ("second", 3, 1), ("", 0, 1)]
    assert [one.own.noise for one in found] == pytest.approx([0.05, 0.03, 0.01], rel=1e-3)


def test_a_float_reference_lists_modules_and_one_of_them_is_left_in_float(
    make_window, qtbot
) -> None:
    window = make_window()
    found = pane(window, qtbot, DATA / "corpus/v1.5.1/mm_xnnpack")
    rows = (row(0, "", 0.01), row(1, "first", 0.02), row(2, "second", 0.05))
    run = RunGap("forward", 0, 0, -1, "", "float", rows, is_float=True)
    asked: list[object] = []
    found._ask = asked.append
    found._show_run(run)
    assert found.table.rows.length == 3
    assert not found.lists.isHidden()
    assert found._current == 2  # the largest loss
    assert not found._float.isEnabled()  # no recipe is known
    found.leave_in_float()
    assert asked == []

    job = CompileJob(Source("m.py", "f"), quantising=Quantization("static"))
    store = window.store
    recipe = Recipe(job)
    store.update(history=opened(History(), store.state.current, recipe, ("m.pte",)))
    found._row_chosen(2)  # the last of the table: nodes of no module
    assert not found._float.isEnabled()
    found._row_chosen(0)
    assert found._float.isEnabled()
    found.leave_in_float()
    (edit,) = [one for one in asked if isinstance(one, EditRecipe)]
    assert edit.job.quantising.modules == (f"second={NOT_QUANTIZED}",)

    found._show_run(replace(run, is_float=False))
    assert found.lists.isHidden()
    assert found._float.isHidden()


@pytest.mark.parametrize("width", [1280, 1900])
def test_the_node_panel_that_a_row_opens_moves_no_button_for_that_row(
    make_window, qtbot, width: int
) -> None:
    window = make_window()
    window.resize(width, 720)
    found = pane(window, qtbot, DATA / "corpus/v1.5.1/mm_xnnpack")
    rows = tuple(replace(row(at, "first", 0.02), graph_node="aten_mm_default") for at in range(2))
    found._show_run(RunGap("forward", 0, 0, -1, "", "float", rows, is_float=True))
    found.show_content()
    qtbot.wait(60)
    before, wide = found._float.mapTo(window, QPoint()), found.width()
    found.table.row_chosen.emit(0)
    qtbot.waitUntil(lambda: found.width() < wide)
    qtbot.wait(60)
    assert found._float.mapTo(window, QPoint()) == before


def test_losses_are_asked_for_beside_the_float_program(make_window, qtbot, monkeypatch) -> None:
    window = make_window()
    found = pane(window, qtbot, DATA / "corpus/v1.5.1/mm_xnnpack")
    started: list[GapJob] = []
    monkeypatch.setattr(
        found.gap_runner, "start", lambda job, **_options: started.append(job) or ""
    )
    window.router(ShowLosses(window.store.state.current, FLOAT))
    assert found.references.currentData() == FLOAT
    assert [one.reference for one in started] == [FLOAT]
    found.references.setCurrentIndex(found.references.findData(EDGE))
    found.references.activated.emit(found.references.currentIndex())
    assert [one.reference for one in started] == [FLOAT, ""]


def test_metric_and_tolerance_are_chosen_in_the_view_and_a_row_opens_its_tensor(
    make_window, qtbot, monkeypatch
) -> None:
    monkeypatch.setattr(jobs, "Worker", Here)
    window = make_window()
    found = pane(window, qtbot, DATA / "corpus/v1.5.1/mm_xnnpack")
    found.tolerance.absolute.setText("0.25")
    found.compare()
    qtbot.waitUntil(lambda: found.gap_runner.current.state is not None, timeout=PATIENCE)
    job = found.gap_runner.current.job
    assert (job.relative, job.absolute) == (None, 0.25)
    assert found.references.findData("edge") >= 0
    found.measures.setCurrentIndex(found.measures.findData("rms"))
    found.measures.activated.emit(1)
    assert "RMS" in [column.title for column in found.table.rows.columns]
    row = next(row.order for row in found._run.rows if row.kept)
    found.table.show_current(row)
    found.table.row_activated.emit(row)
    assert window.store.state.view == "tensor"
    assert window.store.state.tensor.startswith("kept ")
    qtbot.waitUntil(lambda: window.findChild(TensorPane) is not None, timeout=20_000)
    tensor = window.findChild(TensorPane)
    assert isinstance(tensor, TensorPane)
    qtbot.waitUntil(lambda: tensor.note.text().startswith("less reference"), timeout=20_000)
    groups = [group.title for group in tensor.facts.sheet.groups]
    assert groups == ["Difference", "Each element"]


def test_plots_of_differences_are_described_as_they_are(theme, qtbot) -> None:
    from devtools_app.widgets.gap_plots import DifferencePlot

    look = DifferencePlot(theme)
    qtbot.addWidget(look)
    look.show_differences(np.array([1, 4, 2]), 0.5, np.ones((2, 2)))
    for plot in (look.counts, look.heat):
        assert plot.accessibleDescription().startswith("7 elements, differ by up to 0.5")
    look.show_text("Not compared")
    assert look.counts.accessibleDescription() == "Not compared"
