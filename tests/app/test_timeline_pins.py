"""Pinned lanes and the flow of data on the timeline."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtWidgets import QMenu
from pytestqt.qtbot import QtBot

from devtools_app.viewmodels.timeline_counters import IN_USE, row_steps
from devtools_app.viewmodels.timeline_flow import DataFlow
from devtools_app.views.timeline import TimelinePane
from devtools_app.widgets.timeline_places import RULER, Pin
from inspector.join.operands import Operands
from tests.app.sessions import opened
from tests.app.test_timeline_range import menu_at
from tests.app.timeline_traces import delegated_run, traced
from tests.app.view_bench import Bench

pytestmark = pytest.mark.gui
PROGRAM = "corpus/v1.5.1/tinygpt_xnnpack"


@pytest.fixture
def bench(qtbot: QtBot) -> Bench:
    made = Bench(qtbot, TimelinePane)
    made.pane.resize(1200, 700)
    made.open(traced([delegated_run(12), delegated_run(12, begin=9000)]))
    made.pane.activateWindow()
    pane_of(made).canvas.setFocus()
    return made


def pane_of(bench: Bench) -> TimelinePane:
    assert isinstance(bench.pane, TimelinePane)
    return bench.pane


def event_named(pane: TimelinePane, name: str) -> int:
    data = pane.canvas.data
    assert data is not None
    return [data.names[one] for one in data.label].index(name)


def test_p_keeps_all_events_of_a_name_at_the_top_also_of_another_run(
    bench: Bench, qtbot: QtBot
) -> None:
    pane, canvas = pane_of(bench), pane_of(bench).canvas
    canvas.select(event_named(pane, "gemm"))
    qtbot.keyClick(canvas, Qt.Key.Key_P)
    assert [pin.name for pin in canvas.pins] == ["gemm"]
    data = canvas.data
    assert data is not None
    for begin in (20.0, 160.0):  # of the first two calls
        hit = canvas.hit(QPointF(canvas.pixel_of(begin + 15.0), RULER + 18))
        assert data.names[int(data.label[hit])] == "gemm"
        assert data.start[hit] == begin
    lane = canvas.lane_at(QPointF(20, RULER + 18))
    assert canvas.lane_name(lane) == "all gemm"
    qtbot.keyClick(canvas, Qt.Key.Key_BracketRight)
    bench.settle()
    assert canvas.lane_name(canvas.lane_at(QPointF(20, RULER + 18))) == "all gemm"
    canvas.select(event_named(pane, "gemm"))
    qtbot.keyClick(canvas, Qt.Key.Key_P)
    assert canvas.pins == ()


def test_a_pinned_lane_stays_while_the_others_scroll(bench: Bench) -> None:
    pane, canvas = pane_of(bench), pane_of(bench).canvas
    pane.resize(900, 260)
    at = pane.runs.findData("all")
    pane.runs.setCurrentIndex(at)
    pane.runs.activated.emit(at)
    bench.settle()
    canvas.toggle_pin(Pin(label="calls", group="run 1", depth=1))
    canvas.pan(0.0, -1000.0)
    assert canvas.camera.y > 0
    lane = canvas.lane_at(QPointF(20, RULER + 18))
    assert canvas.lane_name(lane) == "run 1 · calls"
    assert canvas.render_to_image(1.0).width() == canvas.width()
    other = canvas.lane_at(QPointF(20, canvas.height() - 90.0))
    assert canvas.lane_name(other) != "run 1 · calls"


def test_menus_pin_and_unpin(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[QMenu] = []
    kept: list[QMenu] = []

    def popup(menu: QMenu, _at: QPoint) -> None:
        shown.append(menu)
        kept.append(menu)

    monkeypatch.setattr(QMenu, "popup", popup)
    pane, canvas = pane_of(bench), pane_of(bench).canvas
    y = next(y for y in range(canvas.height()) if canvas.lane_at(QPointF(20, y)) == 1)
    lines = menu_at(pane, QPoint(20, y + 4), shown)
    assert lines[:2] == ["Lane: calls", "Pin the lane at the top"]
    kept[-1].actions()[1].trigger()
    assert canvas.pins == (Pin(label="calls", depth=1),)
    lines = menu_at(pane, QPoint(20, int(RULER) + 18), shown)
    assert lines[:3] == ["Lane: calls", "Unpin the lane", "Unpin everything"]


def test_a_counter_has_a_menu_and_a_tooltip(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[QMenu] = []
    monkeypatch.setattr(QMenu, "popup", lambda menu, _at: shown.append(menu))
    bench = Bench(qtbot, TimelinePane)
    bench.open(opened(PROGRAM))
    pane, canvas = pane_of(bench), pane_of(bench).canvas
    y = next(y for y in range(canvas.height()) if canvas.counter_at(QPointF(400, y)) == 0)
    lines = menu_at(pane, QPoint(400, y + 5), shown)
    assert lines[0] == f"Counter: {IN_USE}"
    assert lines[1].startswith("Go to its largest value: ")
    assert lines[2] == "Show in Memory"
    words = canvas.tip_at(QPointF(500, y + 5)).splitlines()
    assert words[0] == IN_USE
    assert " B)" in words[1]
    assert words[1].endswith("of the largest")


def canvas_point(pane: TimelinePane, event: int) -> QPoint:
    """Return a pixel in an event."""
    canvas, data = pane.canvas, pane.canvas.data
    assert data is not None
    x = canvas.pixel_of(float(data.start[event] + data.end[event]) / 2)
    ys = (y for y in range(canvas.height()) if canvas.hit(QPointF(x, y)) == event)
    return QPoint(round(x), next(ys) + 4)


def test_selecting_a_call_draws_the_flow_of_its_values(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[QMenu] = []
    kept: list[QMenu] = []
    monkeypatch.setattr(QMenu, "popup", lambda menu, _at: (shown.append(menu), kept.append(menu)))
    bench = Bench(qtbot, TimelinePane)
    session = opened(PROGRAM)
    bench.open(session)
    pane, canvas = pane_of(bench), pane_of(bench).canvas
    data, content = canvas.data, pane._content
    assert data is not None
    assert content is not None
    assert content.timeline is not None
    steps, _, _ = row_steps(session)
    calls = np.flatnonzero((data.lane == 1) & ~data.unattributed)
    chosen = int(calls[4])
    canvas.select(chosen)
    index = content.index
    arrows = canvas.marks.flow
    assert arrows
    for source, target in arrows:
        writes = index.operands[int(steps[content.timeline.rows[source]])].writes
        reads = index.operands[int(steps[content.timeline.rows[target]])].reads
        assert set(writes) & set(reads)
        assert data.end[source] <= data.start[target]
        assert chosen in (source, target)
    canvas.render_to_image(1.0)
    lines = menu_at(pane, canvas_point(pane, chosen), shown)
    assert "Go along the flow of data" in lines
    flow = next(one for one in kept[0].actions() if one.menu()).menu()
    assert len(flow.actions()) == len(arrows)
    reader = next(one for one in flow.actions() if one.text().startswith("Reader: "))
    reader.trigger()
    assert canvas.current in {target for source, target in arrows if source == chosen}
    canvas.select(-1)
    assert canvas.marks.flow == ()


def test_flow_follows_the_last_writer_and_ends_where_a_value_is_overwritten() -> None:
    steps = [
        Operands((0,), (1,)),  # 0 writes 1
        Operands((1,), (2,)),
        Operands((1, 2), (1,)),  # reads 1 and writes it again
        Operands((1,), (3,)),
    ]
    flow = DataFlow(steps)
    assert flow.producers(1) == (0,)
    assert set(flow.producers(2)) == {0, 1}
    assert flow.producers(3) == (2,)
    assert flow.consumers(0) == (1, 2)
    assert flow.consumers(2) == (3,)
    assert flow.producers(9) == flow.consumers(-1) == ()


def test_pins_of_another_trace_are_left_out_until_it_is_back(bench: Bench) -> None:
    canvas = pane_of(bench).canvas
    canvas.set_pins((Pin("gemm", depth=1), Pin("unknown", depth=1)))
    data = canvas.data
    assert data is not None
    assert canvas.lane_at(QPointF(20, RULER + 18)) >= len(data.lanes)
    canvas.set_data(replace(data, names=tuple("x" for _ in data.names)))
    assert canvas.lane_at(QPointF(20, RULER + 40)) < len(data.lanes)
    canvas.set_data(data)
    assert canvas.lane_at(QPointF(20, RULER + 18)) >= len(data.lanes)
