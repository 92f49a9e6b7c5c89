"""Sensitivity in the window: modules quantized one at a time, and the one left in float."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from devtools_app.shell.window import MainWindow
from devtools_app.state.trusted_code import agree
from devtools_app.views.sweep import SweepPane
from inspector.experiments.sweeps.plan import plan_of_request
from inspector.experiments.sweeps.request import SweepRequest, sweep_command
from inspector.experiments.sweeps.results import PointResult, Results, Status, results_text
from inspector.experiments.sweeps.sensitivity import MODE, MODULES
from inspector.recipes.data_source import EXAMPLE
from tests.app.window_views import host_of, open_sample
from tests.inspector.cli_runs import run
from tests.inspector.test_sensitivity import SOURCE

pytestmark = [pytest.mark.gui, pytest.mark.slow]
NAMES = ["first", "second", "last"]


@pytest.fixture(scope="module", params=["weight-only", ""])
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that is quantized by a mode, and one that is not."""
    home = tmp_path_factory.mktemp("layers")
    source = home / "model.py"
    source.write_text(SOURCE)
    mode = ("--quantize", request.param) if request.param else ()
    words = ("--partitioner", "xnnpack", *mode, "-o", str(home / "out"))
    found = run("compile", f"{source}:first", *words)
    assert found.code == 0, found.err
    agree([str(source)])
    return home / "out"


@pytest.fixture
def pane(make_window: Any, qtbot: QtBot, compiled: Path) -> SweepPane:
    window = make_window()
    window.resize(1280, 800)
    open_sample(window, qtbot, (str(compiled / "model.pte"), str(compiled / "model.etrecord")))
    window.show_view("sweep")
    found = host_of(window, "sweep").view
    assert isinstance(found, SweepPane)
    qtbot.waitUntil(found.form.isVisible)
    return found


def _window(pane: SweepPane) -> MainWindow:
    window = pane.window()
    assert isinstance(window, MainWindow)
    return window


def results(recipe: str) -> Results:
    rows = [("", []), *(("none", [f"{name}=weight-only"]) for name in NAMES), ("weight-only", [])]
    snr = [140.0, 20.0, 45.0, 40.0, 19.0]
    points = [
        PointResult(
            number,
            f"key{number}",
            {MODE: mode, MODULES: modules},
            Status.DONE,
            metrics={"size": 1000.0, "eval.snr": snr[number]},
        )
        for number, (mode, modules) in enumerate(rows)
    ]
    return Results(recipe, (MODE, MODULES), tuple(points), ("size", "eval.snr"))


def test_one_click_asks_for_a_point_for_each_module(
    pane: SweepPane, qtbot: QtBot, compiled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, form = _window(pane), pane.form
    if not window.recipe_store.variant.draft.present.quantising.mode:
        assert not form.each_module.isEnabled()
        assert "quantizes nothing by a mode" in form.each_module.toolTip()
        return
    found: list[SweepRequest] = []
    monkeypatch.setattr(
        window.jobs.sweeping, "start", lambda request, _target: found.append(request) or ""
    )
    row = form.fields.rows[0]
    row.values.setText("many")  # what is varied does not matter here
    row.edited.emit()
    qtbot.waitUntil(lambda: not form.start.isEnabled())
    qtbot.mouseClick(form.each_module, Qt.MouseButton.LeftButton)
    (request,) = found
    assert (request.settings.data, request.settings.method) == (EXAMPLE, "")
    form.fields.method.setText("prefill")
    qtbot.mouseClick(form.each_module, Qt.MouseButton.LeftButton)
    assert found[1].settings.method == "prefill"
    assert "--method=prefill" in sweep_command(found[1], "out")
    form.fields.method.clear()
    plan = plan_of_request(request)
    assert [list(dict(one.changes)[MODULES]) for one in plan.points] == [
        [],
        *([f"{name}=weight-only"] for name in NAMES),
        [],
    ]
    command = sweep_command(request, "out")
    assert f"--sensitivity --record={compiled / 'model.etrecord'}" in command
    assert "--grid" not in command
    form.fields.folder.clear()
    form.fields.edited.emit()
    qtbot.waitUntil(lambda: not form.each_module.isEnabled())
    assert "folder" in form.each_module.toolTip()


def test_the_module_that_costs_most_is_left_in_float_by_a_click(
    pane: SweepPane, qtbot: QtBot, compiled: Path, tmp_path: Path
) -> None:
    window = _window(pane)
    store = window.recipe_store
    if not store.variant.draft.present.quantising.mode:
        assert not pane.float_button.isVisible()
        return
    path = tmp_path / "results.json"
    path.write_text(results_text(results(str(compiled / "recipe.json"))))
    window.controller.open((str(path),))
    qtbot.waitUntil(lambda: pane.table.rows.length == 5)
    shown = [pane.table.rows.text(row, 0) for row in range(5)]
    assert shown == ["first", "last", "second", "the recipe", "nothing quantized"]
    assert pane.float_button.isVisible()
    assert not pane.float_button.isEnabled()
    pane.table.setFocus()
    pane.table.show_current("key1")
    pane.table.row_chosen.emit(0)
    assert pane.float_button.isEnabled()
    QTest.mouseClick(pane.float_button, Qt.MouseButton.LeftButton)
    assert store.variant.draft.present.quantising.modules == ("first=none",)
    assert store.variant.draft.present.quantising.mode == "weight-only"
    qtbot.waitUntil(lambda: not pane.float_button.isEnabled())  # nothing is left to change
    pane.table.row_chosen.emit(4)
    assert not pane.float_button.isEnabled()


def test_a_sweep_of_another_program_offers_no_edit(
    pane: SweepPane, qtbot: QtBot, compiled: Path, tmp_path: Path
) -> None:
    if not _window(pane).recipe_store.variant.draft.present.quantising.mode:
        return
    path = tmp_path / "results.json"
    path.write_text(results_text(results(str(tmp_path / "recipe.json"))))
    _window(pane).controller.open((str(path),))
    qtbot.waitUntil(lambda: pane.table.rows.length == 5)
    pane.table.row_chosen.emit(0)
    assert not pane.float_button.isEnabled()
