"""The Roofline view: points, limits, selection, and the calibration as a job."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from devtools_app.viewmodels.roofline_points import (
    RooflinePoint,
    RooflineScene,
    decades,
    point_columns,
    roofline_scene,
    seen_points,
)
from devtools_app.views.roofline import RooflinePane
from inspector.files.machine import this_machine, torch_release
from inspector.jobs.messages import Ended, Outcome
from inspector.roofline.calibration import COPY, Calibration, Ceiling, save_calibration
from inspector.roofline.rows import Limits, limits_of, roofline
from inspector.tables.roofline import roofline_table
from inspector.tables.selection import AUTOMATIC, SelectionKind
from tests.app.window_views import open_sample
from tests.inspector.jobs_here import Scripted
from tests.inspector.sessions import DATA, session

SAMPLE = DATA / "corpus/v1.5.1/convnet_xnnpack"
RUN = DATA / "runs/convnet_xnnpack"


def _calibration() -> Calibration:
    compute = (Ceiling("float32", 1, 1e11, 9e10, 1.1e11, 9),)
    memory = (Ceiling(COPY, 1, 1e10, 9e9, 1.1e10, 9),)
    date = "2026-01-01T00:00:00+00:00"
    return Calibration(this_machine(), torch_release(), date, compute, memory)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_points_lie_at_intensity_and_rate_below_the_lines() -> None:
    one = session(SAMPLE)
    found = roofline(one, "forward", limits_of(one, _calibration()))
    scene = roofline_scene(found, AUTOMATIC)
    placed = [found.rows[point.row] for point in scene.points]
    assert all(row.flops_per_s and row.work.intensity for row in placed)
    point, row = scene.points[0], placed[0]
    assert 10**point.x == pytest.approx(row.work.intensity)
    assert 10**point.y == pytest.approx(row.flops_per_s)
    largest = max(scene.points, key=lambda each: each.diameter)
    assert found.rows[largest.row].time_ns == max(each.time_ns or 0 for each in placed)
    peak, memory = scene.ceilings
    assert (peak.x[0], peak.y) == (1.0, (11.0, 11.0))  # the ridge is at peak / bandwidth
    assert memory.y[1] == pytest.approx(11.0)
    assert "values logged" in scene.words
    coarse = sum(row.is_coarse and row.work.flops != 0 for row in found.rows)
    labels = [entry.label for entry in scene.legend]
    assert f"{coarse} too short for their clock" in labels
    assert labels[:2] == ["XNNPACK", "not delegated"]  # what the colours mean
    unplaced = sum(int(one.split()[0]) for one in scene.unplaced)
    assert len(scene.points) + unplaced == len(found.rows)


def test_table_bounds_times_below_a_step_of_their_clock() -> None:
    found = roofline(session(RUN), "forward", Limits())
    table = roofline_table(found.rows, "forward", AUTOMATIC)
    cells = [table.columns[3].cell(row) for row in range(table.length)]
    below = [row.time_ns is not None and row.time_ns < row.tick_ns for row in found.rows]
    assert any(below)
    assert [cell == "< 1 µs" for cell in cells] == below


def test_without_a_calibration_there_are_points_and_no_lines() -> None:
    scene = roofline_scene(roofline(session(SAMPLE), "forward", Limits()), AUTOMATIC)
    assert scene.points
    assert scene.ceilings == ()
    assert "not calibrated" in scene.words


def test_ticks_are_powers_of_ten() -> None:
    assert [text for _, text in decades(-1.5, 4.2)] == ["0.1", "1", "10", "100", "1 k", "10 k"]


def _crowd(count: int) -> RooflineScene:
    """A scene of so many points of two backends, some of them at the same place."""
    scene = roofline_scene(roofline(session(SAMPLE), "forward", Limits()), AUTOMATIC)
    pick = random.Random(0)
    operators = [
        dataclasses.replace(scene.roofline.rows[0], backend=one) for one in ("", "XnnpackBackend")
    ]
    points = tuple(
        RooflinePoint(
            row,
            round(pick.uniform(*scene.across), 2),
            round(pick.uniform(*scene.up), 2),
            pick.uniform(7.0, 26.0),
            pick.choice(operators),
        )
        for row in range(count)
    )
    places, rows, backends, owners = point_columns(points)
    columns = {"places": places, "rows": rows, "backends": backends, "owners": owners}
    return dataclasses.replace(scene, points=points, **columns)


def test_points_of_a_crowd_are_drawn_together_and_none_is_lost_that_can_be_told_apart() -> None:
    scene = _crowd(5_000)
    groups = list(seen_points(scene, (1e-6, 1e-6)))
    assert len(groups) <= 2 * 20  # of each backend one for each diameter in pixels
    drawn = {
        (backend, diameter, *scene.places[number, :2])
        for backend, diameter, seen in groups
        for number in seen.tolist()
    }
    wanted = {(one.backend, round(one.diameter), one.x, one.y) for one in scene.points}
    assert drawn == wanted
    coarse = list(seen_points(scene, (1.0, 1.0)))
    assert sum(len(seen) for *_, seen in coarse) < sum(len(seen) for *_, seen in groups)


@pytest.fixture
def pane(make_window: Any, qtbot: QtBot) -> RooflinePane:
    window = make_window()
    open_sample(window, qtbot, (str(SAMPLE),))
    window.show_view("roofline")
    found: RooflinePane = window.findChild(RooflinePane)
    qtbot.waitUntil(lambda: bool(found.plot.points) and not found.plot.waiting)
    return found


@pytest.mark.slow
def test_a_click_and_a_key_select_the_operator_everywhere(pane: RooflinePane) -> None:
    pane.plot.choose(2)
    selection = pane.state.selection
    assert selection.kind is SelectionKind.EVENT
    assert pane.plot.marked == {pane.plot.points[2].row}
    assert pane.table.current_row() == pane.plot.points[2].row
    assert pane.plot.pick(pane.plot.pixel_of(pane.plot.points[2].x, pane.plot.points[2].y)) == 2
    assert pane.plot.step(1)
    assert pane.state.selection != selection
    assert "FLOPs a byte" in pane.plot.hover_text(0)


@pytest.mark.slow
def test_a_crowd_of_points_has_few_items_and_the_pointer_finds_the_nearest(
    pane: RooflinePane,
) -> None:
    plot, scene = pane.plot, _crowd(5_000)
    plot.chosen.disconnect()  # the table has other rows
    plot.show_scene(scene)
    assert plot._chart is not None
    assert len(plot._chart.plotItem.items) < 100
    for number in (0, 17, 4_999):
        at = plot.pixel_of(scene.points[number].x, scene.points[number].y)
        found = scene.points[plot.pick(at)]
        assert (found.x, found.y) == (scene.points[number].x, scene.points[number].y)
    plot.show_rows(frozenset((17,)))
    assert plot.step(1)
    after = scene.points[next(iter(plot.marked))]
    assert after.x >= scene.points[17].x


@pytest.mark.slow
def test_calibration_is_a_job_with_progress_and_an_end(
    pane: RooflinePane, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Scripted()
    monkeypatch.setattr("inspector.jobs.run.Worker", lambda *_args, **_more: worker)
    assert "not calibrated" in pane.note.toolTip()
    pane.calibrate()
    assert worker.request["kind"] == "calibrate"
    assert pane.note.toolTip().startswith("Calibrating")
    assert pane._cancel.isVisible()
    save_calibration(_calibration())
    worker.outcome = Outcome(
        Ended.FINISHED,
        result={"machine": {"cpu": "x", "cores": 1, "system": ""}} | {"torch": "2", "date": ""},
    )
    qtbot.waitUntil(lambda: "1 thread on" in pane.note.toolTip())
    assert pane._calibrate.isVisible()


@pytest.mark.slow
def test_cancelled_calibration_is_told_and_nothing_is_lost(
    pane: RooflinePane, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Scripted()
    monkeypatch.setattr("inspector.jobs.run.Worker", lambda *_args, **_more: worker)
    pane.calibrate()
    pane.runner.cancel()
    qtbot.waitUntil(lambda: not pane.runner.running)
    assert "cancelled" in pane.note.toolTip()
    assert pane.plot.points
