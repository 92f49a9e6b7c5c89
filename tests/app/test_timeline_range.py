"""Ranges of the timeline by mouse and keys: their table, marks, measures, export and search."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from devtools_app.state.requests import ShowStatus
from devtools_app.views.timeline import TimelinePane
from devtools_app.widgets.files import PathChooser
from devtools_app.widgets.timeline_canvas import TimelineCanvas
from devtools_app.widgets.timeline_places import LABELS, RULER
from inspector.tables.selection import SelectionKind
from inspector.units import format_time
from tests.app.timeline_traces import delegated_run, traced
from tests.app.view_bench import Bench

pytestmark = pytest.mark.gui
LEFT, SHIFT = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ShiftModifier


@pytest.fixture
def bench(qtbot: QtBot) -> Bench:
    made = Bench(qtbot, TimelinePane)
    made.pane.resize(1200, 700)
    session = traced(
        [delegated_run(12), delegated_run(12, begin=9000), delegated_run(12, begin=20_000)]
    )
    made.open(session)
    made.pane.show()
    qtbot.waitExposed(made.pane)
    made.pane.activateWindow()
    pane_of(made).canvas.setFocus()
    return made


def pane_of(bench: Bench) -> TimelinePane:
    assert isinstance(bench.pane, TimelinePane)
    return bench.pane


def point(canvas: TimelineCanvas, time: float, lane: int = 1) -> QPoint:
    """Return the pixel of a time in a lane."""
    ys = [y for y in range(canvas.height()) if canvas.lane_at(QPointF(300, y)) == lane]
    return QPoint(round(canvas.pixel_of(time)), ys[len(ys) // 2])


def drag(qtbot: QtBot, canvas: TimelineCanvas, start: QPoint, end: QPoint, keys=SHIFT) -> None:
    qtbot.mousePress(canvas, LEFT, keys, start)
    qtbot.mouseMove(canvas, (start + end) / 2)
    qtbot.mouseMove(canvas, end)
    qtbot.mouseRelease(canvas, LEFT, keys, end)


def settle(bench: Bench, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: not pane_of(bench).range.working, timeout=10_000)


def test_a_dragged_range_lists_its_operators_with_their_sums(bench: Bench, qtbot: QtBot) -> None:
    pane = pane_of(bench)
    assert not pane.range.isVisible()
    drag(qtbot, pane.canvas, point(pane.canvas, 12), point(pane.canvas, 283))
    settle(bench, qtbot)
    assert pane.range.isVisible()
    # borders go to those of events: from the first call to the end of the second
    assert pane.canvas.marks.span == (10.0, 285.0)
    assert "275 ns" in pane.range.summary.text()
    assert "cut" not in pane.range.summary.text()
    table = pane.range.table.rows
    names = [table.columns[0].cell(row) for row in range(table.length)]
    assert names.count("gemm") == 2
    key = table.key(names.index("gemm"))
    pane.range.table.show_current(key)
    pane.range.table.row_chosen.emit(names.index("gemm"))
    assert bench.store.state.selection.kind is SelectionKind.EVENT


def test_a_range_ends_with_the_events_and_says_its_sums_first(bench: Bench, qtbot: QtBot) -> None:
    pane = pane_of(bench)
    canvas = pane.canvas
    drag(qtbot, canvas, point(canvas, 12), QPoint(canvas.width() - 1, point(canvas, 12).y()))
    settle(bench, qtbot)
    assert canvas.marks.span == (10.0, float(canvas.data.end.max()))
    length = format_time(canvas.marks.span[1] - 10.0)
    first, sums, *_ = pane.range.summary.text().split(" · ")
    assert first.startswith(f"{length}, from")
    assert sums.startswith("delegates")
    assert pane.range.height() >= canvas.height()


def test_escape_closes_the_range_before_the_selection(bench: Bench, qtbot: QtBot) -> None:
    pane = pane_of(bench)
    pane.canvas.select(5)
    pane.canvas.select_span((0.0, 100.0))
    settle(bench, qtbot)
    pane.canvas.setFocus()
    qtbot.keyClick(pane.canvas, Qt.Key.Key_Escape)
    assert pane.canvas.marks.span is None
    assert not pane.range.isVisible()
    assert pane.canvas.marks.selected == {5}


def test_the_range_tool_selects_without_a_modifier(bench: Bench, qtbot: QtBot) -> None:
    pane = pane_of(bench)
    before = pane.canvas.camera
    qtbot.keyClick(pane.canvas, Qt.Key.Key_R)
    assert pane.range_tool.isChecked()
    none = Qt.KeyboardModifier.NoModifier
    drag(qtbot, pane.canvas, point(pane.canvas, 200), point(pane.canvas, 900), none)
    assert pane.canvas.camera == before
    assert pane.canvas.marks.span is not None
    qtbot.keyClick(pane.canvas, Qt.Key.Key_R)
    assert not pane.canvas.range_tool


def test_a_border_of_the_range_can_be_dragged(bench: Bench, qtbot: QtBot) -> None:
    pane = pane_of(bench)
    pane.canvas.select_span((10.0, 285.0))
    none = Qt.KeyboardModifier.NoModifier
    drag(qtbot, pane.canvas, point(pane.canvas, 285.0), point(pane.canvas, 1000.0), none)
    low, high = pane.canvas.marks.span or (0.0, 0.0)
    assert low == 10.0
    assert high == pytest.approx(1000.0, abs=15)


def test_shift_click_measures_from_the_selected_event(bench: Bench, qtbot: QtBot) -> None:
    pane = pane_of(bench)
    qtbot.mouseClick(pane.canvas, LEFT, pos=point(pane.canvas, 60))
    qtbot.mouseClick(pane.canvas, LEFT, SHIFT, point(pane.canvas, 340))
    assert pane.canvas.marks.span == (10.0, 390.0)  # the first call to the third


def test_f_zooms_to_the_range_and_m_marks_it(bench: Bench, qtbot: QtBot) -> None:
    pane, canvas = pane_of(bench), pane_of(bench).canvas
    canvas.select_span((10.0, 285.0))
    qtbot.keyClick(canvas, Qt.Key.Key_F)
    assert canvas.time_at(LABELS) < 10.0 < 285.0 < canvas.time_at(canvas.width())
    assert canvas.time_at(canvas.width()) < 320.0
    qtbot.keyClick(canvas, Qt.Key.Key_M)
    assert canvas.marks.flags == ((10.0, 285.0),)
    at = QPointF(canvas.pixel_of(10.0) + 4, RULER - 6)
    assert canvas.tip_at(at).splitlines()[:2] == ["mark 1", "275 ns (275 ns)"]
    canvas.clear_selection()
    qtbot.mouseClick(canvas, LEFT, pos=at.toPoint())
    assert canvas.marks.span == (10.0, 285.0)
    qtbot.keyClick(canvas, Qt.Key.Key_BracketRight)  # marks stay when another run is shown
    bench.settle()
    assert canvas.marks.flags == ((10.0, 285.0),)
    canvas.select_span((10.0, 285.0))
    qtbot.keyClick(canvas, Qt.Key.Key_M)
    assert canvas.marks.flags == ()
    settle(bench, qtbot)
    assert pane.range.isVisible()


def test_j_goes_to_the_slowest_call_and_then_to_the_next(bench: Bench, qtbot: QtBot) -> None:
    canvas = pane_of(bench).canvas
    data = canvas.data
    assert data is not None
    found = []
    for _ in range(13):
        qtbot.keyClick(canvas, Qt.Key.Key_J)
        event = min(canvas.marks.selected)
        found.append(float(data.end[event] - data.start[event]))
    assert found == [*[100.0] * 12, 35.0]


def test_shift_j_shows_the_slowest_run(qtbot: QtBot) -> None:
    bench = Bench(qtbot, TimelinePane)
    bench.open(
        traced([delegated_run(2), delegated_run(9, begin=9000), delegated_run(2, begin=20_000)])
    )
    pane = pane_of(bench)
    assert pane.runs.currentText() != "run 2"
    pane.activateWindow()
    pane.canvas.setFocus()
    qtbot.keyClick(pane.canvas, Qt.Key.Key_J, SHIFT)
    bench.settle()
    assert pane.runs.currentText().startswith("run 2")


def test_search_marks_matches_and_goes_from_one_to_the_next(bench: Bench, qtbot: QtBot) -> None:
    pane = pane_of(bench)
    qtbot.keyClick(pane.canvas, Qt.Key.Key_Slash)
    assert pane.search.field.hasFocus()
    qtbot.keyClicks(pane.search.field, "gemm")
    qtbot.keyClick(pane.search.field, Qt.Key.Key_Return)
    assert pane.search.matches.text() == "1 of 12"
    found = []
    for _ in range(13):
        assert pane.step(1)
        found.append(min(pane.canvas.marks.selected))
    assert len(set(found)) == 12
    assert pane.step(-1)
    assert pane.search.matches.text() == "1 of 12"
    qtbot.keyClick(pane.canvas, Qt.Key.Key_F3)
    assert pane.search.matches.text() == "2 of 12"
    pane.search.search("duration>=100ns kernels")
    assert pane.search.matches.text() == "none found"
    pane.search.search("duration>=100ns calls")
    assert pane.search.matches.text().endswith("12")
    pane.search.search("/[/")
    assert "regular expression" in pane.search.field.toolTip()


def test_found_events_are_ringed(bench: Bench) -> None:
    pane = pane_of(bench)
    before = pane.canvas.render_to_image(1.0)
    pane.search.search("gemm")
    after = pane.canvas.render_to_image(1.0)
    at = point(pane.canvas, 20.0, 2)
    ring = {after.pixel(at.x() + dx, at.y()) for dx in range(-3, 4)}
    assert (
        any(before.pixel(at.x() + dx, at.y()) not in ring for dx in range(-3, 4)) or before != after
    )


@pytest.mark.parametrize(("suffix", "start"), [("tsv", "operator\t"), ("csv", "operator,")])
def test_a_range_is_exported_as_a_table(
    bench: Bench, qtbot: QtBot, tmp_path: Path, suffix: str, start: str
) -> None:
    pane = pane_of(bench)
    pane.canvas.select_span((10.0, 285.0))
    settle(bench, qtbot)
    path = tmp_path / f"range.{suffix}"
    assert pane.export_to(path)
    qtbot.waitUntil(path.exists)
    assert path.read_text().startswith(start)


def test_a_range_is_exported_as_a_chrome_trace(
    bench: Bench, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pane = pane_of(bench)
    pane.canvas.select_span((10.0, 285.0))
    settle(bench, qtbot)
    path = tmp_path / "range.json"
    monkeypatch.setattr(PathChooser, "save_file", lambda *_: str(path))
    pane.export_range()
    settle(bench, qtbot)
    qtbot.waitUntil(lambda: ShowStatus(f"Exported {path}") in bench.asked)
    slices = [one for one in json.loads(path.read_text())["traceEvents"] if one["ph"] == "X"]
    assert sum(one["name"] == "gemm" for one in slices) == 2


def menu_at(pane: TimelinePane, at: QPoint, shown: list[QMenu]) -> list[str]:
    canvas = pane.canvas
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, canvas.mapToGlobal(at))
    QApplication.sendEvent(canvas, event)
    return [action.text() for action in shown.pop().actions()]


def test_every_place_has_a_menu_that_begins_with_its_name(
    bench: Bench, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[QMenu] = []
    monkeypatch.setattr(QMenu, "popup", lambda menu, _at: shown.append(menu))
    pane, canvas = pane_of(bench), pane_of(bench).canvas
    canvas.set_flags(((10.0, 110.0), (500.0, 600.0)))
    data = canvas.data
    assert data is not None
    gap = int(np.flatnonzero(data.unattributed & (data.lane == 2))[0])
    middle = float(data.start[gap] + data.end[gap]) / 2
    found = {
        "event": menu_at(pane, point(canvas, 25.0, 2), shown),
        "gap": menu_at(pane, point(canvas, middle, 2), shown),
        "lane": menu_at(pane, QPoint(20, point(canvas, 0, 2).y()), shown),
        "mark": menu_at(pane, QPoint(round(canvas.pixel_of(10.0)) + 4, int(RULER) - 6), shown),
        "ruler": menu_at(pane, QPoint(700, 5), shown),
    }
    canvas.select_span((0.0, 900.0))
    below = QPoint(round(canvas.pixel_of(300.0)), canvas.height() - 5)
    found["range"] = menu_at(pane, below, shown)
    assert {name: lines[0] for name, lines in found.items()} == {
        "event": "gemm",
        "gap": "unattributed",
        "lane": "Lane: kernels",
        "mark": "Mark 1: 100 ns",
        "ruler": f"Timeline: {pane.runs.currentText()}",
        "range": "Range of 0.9 µs",
    }
    assert "Measure to the start of mark 2: 490 ns" in found["mark"]
    assert "Select its time as range: 30 ns" in found["event"]
    assert "Show in Operators" in found["event"]
    assert not any(line.startswith("Show in") for line in found["gap"])


def test_a_flame_has_no_clock_and_no_range(bench: Bench, qtbot: QtBot) -> None:
    pane = pane_of(bench)
    at = pane.runs.findData("flame")
    pane.runs.setCurrentIndex(at)
    pane.runs.activated.emit(at)
    bench.settle()
    pane.canvas.select_span((0.0, 100.0))
    assert not pane.range.isVisible()


def test_ranges_of_all_runs_add_them_up(bench: Bench, qtbot: QtBot) -> None:
    pane = pane_of(bench)
    for key, words in (("all", "sums over 3 runs"), ("clock", "sums over 1 of 3 runs")):
        at = pane.runs.findData(key)
        pane.runs.setCurrentIndex(at)
        pane.runs.activated.emit(at)
        bench.settle()
        pane.canvas.select_span((10.0, 110.0))
        settle(bench, qtbot)
        assert words in pane.range.summary.text()


def test_the_menu_of_an_event_marks_the_event_also_beside_a_range(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[QMenu] = []
    monkeypatch.setattr(QMenu, "popup", lambda menu, _at: kept.append(menu))
    canvas = pane_of(bench).canvas
    canvas.select_span((0.0, 900.0))
    at = point(canvas, 25.0, 2)
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, canvas.mapToGlobal(at))
    QApplication.sendEvent(canvas, event)
    next(one for one in kept[0].actions() if one.text() == "Mark its time").trigger()
    assert canvas.marks.flags == ((20.0, 50.0),)


def test_the_chosen_event_stays_current_where_all_runs_have_it(bench: Bench, qtbot: QtBot) -> None:
    pane, canvas = pane_of(bench), pane_of(bench).canvas
    at = pane.runs.findData("all")
    pane.runs.setCurrentIndex(at)
    pane.runs.activated.emit(at)
    bench.settle()
    data = canvas.data
    assert data is not None
    pane.resize(1000, 240)
    third = np.flatnonzero((data.lane == 7) & ~data.unattributed)  # calls of the third run
    canvas.show_event(int(third[0]))
    before = canvas.camera
    canvas.select(int(third[2]))
    assert len(canvas.marks.selected) == 3
    assert canvas.current == third[2]
    assert canvas.camera == before  # not scrolled to the first run
    qtbot.keyClick(canvas, Qt.Key.Key_Right)
    assert canvas.current == third[3]
