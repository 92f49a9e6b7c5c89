"""The sweep in the window: opened without a session, its table and plot, a point opened."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from devtools_app.shell.window import MainWindow
from devtools_app.state.sweep_file import sweep_path
from devtools_app.views.sweep import SweepPane
from inspector.experiments.sweeps.results import METRICS, PointResult, Results, Status, results_text
from inspector.tables.sweep import (
    axes_of,
    first_axes,
    metric_text,
    scatter,
    short_titles,
    sweep_table,
)

pytestmark = pytest.mark.gui

DATA = Path(__file__).parents[1] / "data"
CONVNET = DATA / "corpus/v1.5.1/convnet_xnnpack"
PATIENCE = 20_000  # ms
# latency in ms and size in bytes; the last of the four is beaten by the second
NUMBERS = ((4.0, 1000), (2.0, 3000), (1.0, 9000), (3.0, 4000))
FILES = ("model.pte", "model.etrecord")


def results() -> Results:
    points = [
        PointResult(
            number,
            f"key{number}",
            {"rules.min_nodes": number + 1, "partitioners": ["xnnpack"] if number else []},
            Status.DONE,
            metrics={"delegated": 25.0 * number, "latency": latency, "size": size},
            files=FILES,
        )
        for number, (latency, size) in enumerate(NUMBERS)
    ]
    failed = PointResult(4, "key4", {"rules.min_nodes": 5, "partitioners": ["nobody"]})
    points.append(replace(failed, status=Status.FAILED, sentence="unknown partitioner 'nobody'"))
    points.append(replace(failed, number=5, key="key5"))
    fields = ("rules.min_nodes", "partitioners")
    return Results("/made/recipe.json", fields, tuple(points), ("latency", "size"))


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    folder = tmp_path / "sweep"
    for one in results().points[:2]:
        place = folder / one.folder
        place.mkdir(parents=True)
        for name in FILES:
            shutil.copyfile(CONVNET / name, place / name)
    (folder / "results.json").write_text(results_text(results()))
    return folder


def shown(window: MainWindow, qtbot, path: Path) -> SweepPane:
    window.controller.open((str(path),))
    qtbot.waitUntil(lambda: window.findChild(SweepPane) is not None, timeout=PATIENCE)
    found = window.findChild(SweepPane)
    assert isinstance(found, SweepPane)
    qtbot.waitUntil(lambda: found.table.rows.length > 0, timeout=PATIENCE)
    return found


# ---- in the window
@pytest.mark.slow
def test_sweep_opens_without_a_session_and_a_point_becomes_one(
    make_window, qtbot, sweep: Path
) -> None:
    window = make_window()
    pane = shown(window, qtbot, sweep)
    assert window.store.state.view == "sweep"
    assert pane.isVisible()
    assert pane.note.text() == (
        "4 of 6 points done · 1 failed · 1 pending · 3 on the front of latency and size"
    )
    assert (pane.across.currentData(), pane.up.currentData()) == ("size", "latency")
    assert not pane.open_button.isEnabled()
    qtbot.waitUntil(lambda: pane.plot.chart is not None)
    place = pane.plot.place_of("key1")
    assert place is not None
    QTest.mouseClick(pane.plot, Qt.MouseButton.LeftButton, pos=place.toPoint())
    assert pane.table.current_key() == "key1"
    assert pane.open_button.isEnabled()
    pane.open_button.click()
    qtbot.waitUntil(lambda: window.store.state.session is not None, timeout=PATIENCE)
    paths = {Path(file.path) for file in window.store.state.session.files}
    assert paths == {sweep / "points/key1" / name for name in FILES}
    window.store.update(view="sweep")
    assert pane.plot.current == "key1"


@pytest.mark.slow
def test_points_are_chosen_in_both_and_results_read_again(make_window, qtbot, sweep: Path) -> None:
    pane = shown(make_window(), qtbot, sweep)
    _choose(pane)
    _draw_others(pane)
    _read_more(pane, qtbot, sweep)
    for text in ('{"sweep": 9}', '{"sweep": 1, "points": 3}', '{"sweep":'):
        _damage(pane, qtbot, sweep, text)


def _choose(pane: SweepPane) -> None:
    seen: list[str] = []
    while pane.plot.step(1):
        seen.append(pane.plot.current)
        assert pane.table.current_key() == pane.plot.current
    assert seen == ["key0", "key1", "key3", "key2"]  # by size
    QTest.keyClick(pane.plot, Qt.Key.Key_Left)
    assert pane.plot.current == "key3"
    pane._row_chosen(4)
    assert pane.plot.current == "key4"
    assert not pane.open_button.isEnabled()  # a failed point has no files
    assert pane.plot.place_of("key4") is None
    _zoom(pane)


def _zoom(pane: SweepPane) -> None:
    plot = pane.plot
    scatter_shown, chart = plot._scatter, plot.chart
    assert scatter_shown is not None
    assert chart is not None
    for _ in range(8):
        QTest.keyClick(plot, Qt.Key.Key_Plus)
    (low, high), _ = chart.ranges
    axis = scatter_shown.across
    assert (high - low) < (axis.high - axis.low) / 5
    marks = [value for value, _ in chart.getPlotItem().getAxis("bottom")._tickLevels[0]]
    assert len(marks) > 1
    assert all(low <= value <= high for value in marks)
    QTest.keyClick(plot, Qt.Key.Key_Space)
    assert chart.ranges[0] == pytest.approx((axis.low, axis.high))


def _draw_others(pane: SweepPane) -> None:
    before = pane.plot.accessibleDescription()
    assert "4 points by size / KiB and latency / ms, 3 of them Pareto-optimal" in before
    pane.up.setCurrentIndex(pane.up.findData("delegated"))
    pane.up.activated.emit(pane.up.currentIndex())
    assert "by size / KiB and delegated / %" in pane.plot.accessibleDescription()


def _read_more(pane: SweepPane, qtbot, sweep: Path) -> None:
    pane._row_chosen(1)
    found = results()
    last = replace(found.points[5], status=Status.DONE, metrics={"size": 5, "latency": 9.0})
    grown = replace(found, points=(*found.points[:5], last))
    (sweep / "results.json").write_text(results_text(grown))
    pane.read_again()
    qtbot.waitUntil(lambda: pane.note.text().startswith("5 of 6"), timeout=PATIENCE)
    assert pane.plot.current == "key1"
    assert pane.up.currentData() == "delegated"


def _damage(pane: SweepPane, qtbot, sweep: Path, text: str) -> None:
    (sweep / "results.json").write_text(text)
    pane.read_again()
    qtbot.waitUntil(lambda: not pane.working, timeout=PATIENCE)
    assert pane.stack.currentIndex() == 0
    said = " ".join(label.text() for label in pane.empty.findChildren(QLabel))
    assert "results.json" in said


# ---- without a window
@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("results.json", '{"sweep": 1}', True),
        ("other.json", ' \n{ "sweep":1', True),
        ("results.json", '{"points": []}', False),
        ("results.txt", '{"sweep": 1}', False),
        ("results.json", "", False),
    ],
)
def test_sweep_is_told_by_its_beginning(tmp_path: Path, name: str, text: str, found: bool) -> None:
    (tmp_path / name).write_text(text)
    assert sweep_path(str(tmp_path / name)) == (str(tmp_path / name) if found else "")
    assert sweep_path(str(tmp_path)) == ""  # no points beside it
    (tmp_path / "points").mkdir()
    wanted = found and name == "results.json"
    assert sweep_path(str(tmp_path)) == (str(tmp_path / name) if wanted else "")
    assert sweep_path(str(tmp_path / "none.json")) == ""


def test_table_has_a_row_a_point_with_units() -> None:
    table = sweep_table(results())
    titles = [column.heading for column in table.columns]
    assert titles == [
        "#",
        "state",
        "front",
        "min_nodes",
        "partitioners",
        "latency / ms",
        "size / KiB",
        "delegated / %",
        "compile",
        "why",
    ]
    by_title = {column.title: column for column in table.columns}
    cells = {
        title: [column.text(value) for value in column.values] for title, column in by_title.items()
    }
    assert cells["partitioners"] == ["none", "xnnpack", "xnnpack", "xnnpack", "nobody", "nobody"]
    assert cells["front"] == ["best", "best", "best", "", "", ""]
    assert cells["latency"] == ["4.000", "2.000", "1.000", "3.000", "—", "—"]
    assert cells["why"][4] == "unknown partitioner 'nobody'"


def test_state_is_last_where_all_is_done_and_equal_ends_are_told_apart() -> None:
    done = tuple(one for one in results().points if one.status is Status.DONE)
    titles = [one.title for one in sweep_table(replace(results(), points=done)).columns]
    assert titles[:2] == ["#", "front"]
    assert titles[-3:] == ["state", "compile", "why"]
    assert short_titles(["rules.deny", "quantization.deny", "rules.min_nodes", "python"]) == {
        "rules.deny": "rules.deny",
        "quantization.deny": "quantization.deny",
        "rules.min_nodes": "min_nodes",
        "python": "python",
    }


def test_front_of_the_plot_is_of_the_two_metrics_shown() -> None:
    found = scatter(results(), "size", "delegated")
    assert found is not None
    assert [dot.key for dot in found.front()] == ["key0", "key1", "key3"]
    assert found.left_out == 2
    assert "size 2.93 KiB" in next(dot for dot in found.dots if dot.key == "key1").words
    assert metric_text(results().points[1], "latency") == "2 ms"
    assert scatter(results(), "arena", "size") is None
    assert first_axes(results()) == ("size", "latency")
    alike = tuple(replace(one, metrics={**one.metrics, "size": 2.0}) for one in results().points)
    assert "size" not in first_axes(replace(results(), points=alike))
    assert ("latency (less is better)", "latency") in axes_of(results())


VALUES = st.one_of(st.floats(0, 1e12, allow_nan=False), st.floats(1e-9, 1e-3), st.just(0.0))


@settings(deadline=None)
@given(name=st.sampled_from(sorted(METRICS)), values=st.lists(VALUES, min_size=1, max_size=6))
def test_axes_hold_all_values_and_a_few_round_marks(name: str, values: list[float]) -> None:
    points = tuple(
        PointResult(number, f"k{number}", {}, Status.DONE, metrics={name: value})
        for number, value in enumerate(values)
    )
    found = scatter(Results("", (), points, (name,)), name, name)
    assert found is not None
    axis = found.across
    assert all(0 <= axis.share(dot.x) <= 1 for dot in found.dots)
    assert len(axis.ticks) <= 12
    assert all(axis.low <= value <= axis.high and text for value, text in axis.ticks)
    assert len({text for _, text in axis.ticks}) == len(axis.ticks) or math.isclose(
        axis.low, axis.high, rel_tol=1e-4
    )


def test_results_of_nothing_have_no_axes() -> None:
    nothing = Results("", ("a",), (PointResult(0, "k", {"a": 1}),), ("size",))
    assert first_axes(nothing) == ("", "")
    assert sweep_table(nothing).length == 1
    assert json.loads(results_text(nothing))["points"][0]["status"] == "waiting"


@settings(deadline=None)
@given(
    st.sampled_from(["latency", "size", "gap.max_abs", "delegated"]),
    st.floats(0, 0.999),
    st.floats(1, 1e5),
)
def test_marks_of_a_part_of_an_axis_lie_in_it_and_differ(
    name: str, share: float, factor: float
) -> None:
    points = tuple(
        PointResult(number, f"k{number}", {}, Status.DONE, metrics={name: value})
        for number, value in enumerate((1.0, 97.0))
    )
    found = scatter(Results("", (), points, (name,)), name, name)
    assert found is not None
    axis = found.across
    wide = (axis.high - axis.low) / factor
    low = axis.low + share * (axis.high - axis.low - wide)
    marks = axis.ticks_between(low, low + wide)
    assert len(marks) <= 12
    assert all(low <= value <= low + wide for value, _ in marks)
    assert len({text for _, text in marks}) == len(marks)
