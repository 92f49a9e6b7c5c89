"""The memory view: plans of two planners beside each other, and the time of each instruction."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from devtools_app.viewmodels.layout.camera import Camera
from devtools_app.views.memory import MemoryPane
from devtools_app.widgets.memory_canvas_paint import LEFT
from devtools_app.widgets.time_strip import TimeStrip
from inspector.files.load import load_session
from inspector.jobs import run as jobs
from inspector.profile.instruction_times import InstructionTimes, instruction_times
from inspector.profile.methods import time_of
from inspector.tables.planners import IN_FILE
from tests.app.sessions import DATA, opened
from tests.app.view_bench import Bench
from tests.inspector.jobs_here import Here

pytestmark = pytest.mark.gui


# -- times ------------------------------------------------------------------------------------


def test_times_of_instructions_add_up_to_delegates_and_operators() -> None:
    session = opened("runs/convnet_xnnpack")
    found = instruction_times(session, "forward", 4)
    time = time_of(session, "forward")
    assert time is not None
    whole = time.delegates_ms + time.operators_ms + time.control_ms
    assert found.mean_ns.sum() == pytest.approx(whole * 1e6)
    assert not found.logged
    assert not found.reason


def test_times_are_missing_with_a_reason_without_a_trace() -> None:
    session = load_session([DATA / "runs/convnet_xnnpack/model.pte"])
    found = instruction_times(session, "forward", 4)
    assert np.isnan(found.mean_ns).all()
    assert found.reason == "no trace"


def strip(theme, qtbot, times: list[float], width: int = 500) -> TimeStrip:
    """Return a strip with the whole method shown."""
    found = TimeStrip(theme)
    qtbot.addWidget(found)
    found.resize(width, found.height())
    found.show_times(InstructionTimes(np.array(times), reason=""))
    plot = found._plot()
    found.follow(Camera(0.0, 0.0, plot.width() / len(times), 1.0))
    found.show()
    return found


def test_bars_are_as_high_as_times_and_missing_ones_are_hatched(theme, qtbot) -> None:
    found = strip(theme, qtbot, [100.0, np.nan, 50.0, 0.0])
    bars, gaps = found.boxes()
    assert len(bars) == 3
    assert len(gaps) == 1
    assert bars[0, 3] == pytest.approx(2 * bars[1, 3])
    assert gaps[0, 0] == pytest.approx(bars[0, 0] + bars[0, 2] + 1, abs=1.0)
    assert found.text_of(1) == "instruction 1: time missing, the trace has none of it"
    assert found.text_of(0).startswith("instruction 0: 100 ns")
    image = found.grab().toImage()
    middle = int(gaps[0, 0] + gaps[0, 2] / 2)
    column = {image.pixelColor(middle, y).name() for y in range(20, found.height() - 5)}
    assert len(column) > 1  # lines on the ground
    chosen: list[int] = []
    found.step_selected.connect(chosen.append)
    at = QPoint(int(bars[1, 0] + 3), found.height() - 10)
    QTest.mouseClick(found, Qt.MouseButton.LeftButton, pos=at)
    assert chosen == [2]
    assert found.step_at(LEFT - 5) is None


def test_many_instructions_are_drawn_a_pixel_each(theme, qtbot) -> None:
    times = np.ones(100_000)
    times[54_321] = 7.0
    times[10:4000] = np.nan
    found = strip(theme, qtbot, times.tolist())
    bars, gaps = found.boxes()
    assert len(bars) + len(gaps) <= found.width()
    highest = bars[np.argmax(bars[:, 3])]
    assert found.step_at(highest[0] + 1) == pytest.approx(54_321, abs=500)
    assert len(gaps) >= 1


# -- planners ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("trace", "first"), [(True, "times"), (False, "curve")])
def test_times_come_before_the_bytes_where_one_strip_has_room(
    qtbot, tmp_path, trace: bool, first: str
) -> None:
    folder = shutil.copytree(DATA / "runs/convnet_portable", tmp_path / "net")
    if not trace:
        for path in folder.glob("*.etdp"):
            path.unlink()
    bench = Bench(qtbot, MemoryPane)
    pane = bench.pane
    assert isinstance(pane, MemoryPane)
    bench.open(load_session([folder]))
    heights = {280: {first}, 400: {"times", "curve"}, 200: set()}
    for height, wanted in heights.items():
        pane._drawing.setFixedHeight(height)
        bench.settle()
        shown = {name for name in ("times", "curve") if getattr(pane, name).isVisibleTo(pane)}
        assert shown == wanted


@pytest.mark.slow
def test_two_planners_stand_beside_each_other_on_one_scale(make_window, qtbot, monkeypatch) -> None:
    monkeypatch.setattr(jobs, "Worker", Here)
    window = make_window()
    window.resize(1280, 900)
    window.controller.open((str(DATA / "runs/convnet_portable"),))
    qtbot.waitUntil(lambda: window.store.state.session is not None, timeout=20_000)
    window.show_view("memory")
    pane = window.findChild(MemoryPane)
    assert isinstance(pane, MemoryPane)
    qtbot.waitUntil(lambda: not pane.working, timeout=20_000)
    assert not pane.other.isVisible()
    assert pane.times.isVisible()
    known = np.isfinite(pane.times._times.mean_ns)
    assert known.all()
    assert [pane.scope.itemText(n) for n in range(pane.scope.count())][:2] == [
        "at the peak",
        "all values",
    ]

    pane.planners.beside.setCurrentIndex(pane.planners.beside.findData("naive"))
    pane.planners.beside.activated.emit(2)
    qtbot.waitUntil(lambda: pane.other.isVisible() and not pane.working, timeout=20_000)
    left, right = pane.canvas.data, pane.other.data
    assert left is not None
    assert right is not None
    assert (left.planner, right.planner) == (IN_FILE, "naive")
    assert right.planned_bytes > left.planned_bytes
    assert left.scale_bytes == right.scale_bytes == right.planned_bytes
    qtbot.waitUntil(lambda: str(pane.scope.currentData()) == "planners", timeout=20_000)
    qtbot.waitUntil(lambda: pane.table.rows.length == 4, timeout=20_000)
    assert pane.table.rows.text(0, 0) == IN_FILE

    pane.other.select(0)
    value = window.store.state.selection.value
    chosen = pane.canvas.marks.selected
    assert pane._content.map.arena.values[chosen].value == value
    before, empty = right.planned_bytes, replace(right, planned_bytes=0)
    QTest.mouseClick(pane.planners.lent, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: 0 < (pane.other.data or empty).planned_bytes < before, timeout=20_000)

    pane.planners.drawn.setCurrentIndex(pane.planners.drawn.findData("greedy"))
    pane.planners.drawn.activated.emit(1)
    qtbot.waitUntil(lambda: pane.canvas.data.planner == "greedy", timeout=20_000)
    pane.planners.beside.setCurrentIndex(0)
    pane.planners.beside.activated.emit(0)
    qtbot.waitUntil(lambda: not pane.other.isVisible(), timeout=20_000)


@pytest.mark.slow
def test_a_program_that_is_gone_is_a_problem_in_words(
    make_window, qtbot, monkeypatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(jobs, "Worker", Here)
    copy = tmp_path / "run"
    shutil.copytree(DATA / "runs/convnet_portable", copy)
    window = make_window()
    window.controller.open((str(copy),))
    qtbot.waitUntil(lambda: window.store.state.session is not None, timeout=20_000)
    window.show_view("memory")
    pane = window.findChild(MemoryPane)
    assert isinstance(pane, MemoryPane)
    qtbot.waitUntil(lambda: not pane.working, timeout=20_000)
    (copy / "model.pte").unlink()
    pane.planners.beside.setCurrentIndex(2)
    pane.planners.beside.activated.emit(2)
    qtbot.waitUntil(lambda: bool(pane.planners.problem), timeout=20_000)
    qtbot.waitUntil(lambda: pane.note.text().startswith("the plans could not"), timeout=20_000)
    assert pane.planners.problem.endswith("model.pte: No such file or directory")
