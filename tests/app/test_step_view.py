"""Stepping inside of a delegate in the window: a real worker that waits between two nodes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import torch
from PySide6.QtWidgets import QLabel, QPushButton

from devtools_app.shell.window import MainWindow
from devtools_app.state.requests import Select
from devtools_app.views.step import StepView
from inspector.graph.model_graph import COMPILED
from inspector.jobs.messages import Ended
from inspector.tables.selection import Selection, SelectionKind
from inspector.tables.steps import (
    calls_of,
    node_table,
    number_table,
    places_of,
    value_table,
)
from tests.app.sessions import DATA, opened
from tests.app.window_views import host_of

pytestmark = [pytest.mark.gui, pytest.mark.slow]
NET = DATA / "corpus/v1.5.1/convnet_xnnpack"
PATIENCE = 100_000  # ms; a worker loads torch first


def panel(window: MainWindow, qtbot, *paths: Path) -> StepView:
    window.controller.open(tuple(map(str, paths)))
    qtbot.waitUntil(lambda: window.store.state.session is not None, timeout=20_000)
    window.bound["step"].trigger()
    found = host_of(window, "step").view
    assert isinstance(found, StepView)
    qtbot.waitUntil(lambda: found.call.count() > 0, timeout=20_000)
    return found


def press(view: StepView, name: str) -> None:
    button = next(b for b in view.findChildren(QPushButton) if b.accessibleName() == name)
    assert button.isVisible()
    assert button.isEnabled(), name
    button.click()


def walk_of(view: StepView, qtbot):
    """Return the walk when it waits for a command, or has ended."""

    def there() -> bool:
        walk = view.stepping.current
        return walk is not None and (walk.state.ready or not walk.running)

    qtbot.waitUntil(there, timeout=PATIENCE)
    return view.stepping.current


@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_walk_stops_reads_replaces_and_goes_on(make_window, qtbot, tmp_path, engine) -> None:
    window = make_window()
    view = panel(window, qtbot, NET / "model.pte", NET / "model.etrecord")
    told = [one for one in view.findChildren(QLabel) if one.text() == "Not started"]
    assert sum(one.isVisible() for one in told) == 1
    view.engine.setCurrentIndex(view.engine.findData(engine))
    press(view, "Begin: run the method up to the call")
    walk = walk_of(view, qtbot)
    assert (walk.state.position, len(walk.state.nodes)) == (0, 6)
    press(view, "Step: run the next node")
    assert walk_of(view, qtbot).state.position == 1
    qtbot.waitUntil(lambda: "aten_convolution_default" in view.nodes.rows.columns[5].values)
    name = "aten_convolution_default_2"
    window.router(Select(Selection(SelectionKind.NODE, "forward", COMPILED, name)))
    qtbot.waitUntil(lambda: view.nodes.current_key() == 3)
    press(view, "Run to here: all nodes before the one chosen")
    walk = walk_of(view, qtbot)
    assert walk.state.position == 3
    made = walk.state.nodes[1]["outputs"][0]
    assert view.values.show_current(made)
    view.values.row_chosen.emit(view.values.current_row())
    assert len(walk_of(view, qtbot).state.looked["numbers"]) == 2048
    assert view.numbers.rows.length == 2048
    for what, words in (("1e", "No such file"), (str(tmp_path), "is a directory")):
        view.what.setText(what)
        press(view, "Replace the value from now on")
        walk_of(view, qtbot)
        assert words.lower() in view.refused.lower()
    torch.save(torch.zeros(3), tmp_path / "small.pt")
    view.what.setText(str(tmp_path / "small.pt"))
    press(view, "Replace the value from now on")
    assert "shape" in walk_of(view, qtbot).state.refused
    last = walk_of(view, qtbot).state.nodes[2]["outputs"][0]
    assert view.values.show_current(last)
    view.what.setText("0.5")
    press(view, "Replace the value from now on")
    value = walk_of(view, qtbot).state.values[last]
    assert (value["min"], value["max"], value["replaced"]) == (0.5, 0.5, True)
    assert view.refused == ""
    press(view, "Go on: run the rest of the method")
    qtbot.waitUntil(lambda: not view.stepping.running, timeout=PATIENCE)
    outcome = view.stepping.current.outcome
    assert outcome.ended is Ended.FINISHED, outcome
    assert outcome.result["outputs"][0]["difference"] > 0
    source = "host emulation" if engine == "torch" else outcome.result["source"]
    assert outcome.result["source"] == source


def test_walk_that_dies_offers_the_other_engine_and_another_begins(make_window, qtbot) -> None:
    window = make_window()
    view = panel(window, qtbot, NET / "model.pte")
    press(view, "Begin: run the method up to the call")
    walk_of(view, qtbot)
    os.kill(view.stepping.pid, signal.SIGSEGV)
    qtbot.waitUntil(lambda: not view.stepping.running, timeout=PATIENCE)
    assert view.stepping.current.outcome.ended is Ended.CRASHED
    assert "SIGSEGV" in view.error
    press(view, "Begin on torch kernels, the other engine")
    walk = walk_of(view, qtbot)
    assert (walk.job.engine, walk.state.position) == ("torch", 0)
    press(view, "End it here")
    qtbot.waitUntil(lambda: not view.stepping.running, timeout=PATIENCE)


def test_calls_and_places_are_those_of_the_payloads() -> None:
    session = opened(NET)
    calls = calls_of(session, "forward")
    assert [(call.number, call.delegate, call.nodes) for call in calls] == [(0, 0, 6), (1, 1, 1)]
    places = places_of(session, "forward", 0)
    assert places.names[1] == "aten_convolution_default"
    assert places.names[0] == ""
    assert all(row in places.rows[name] for row, name in enumerate(places.names) if name)
    assert calls_of(session, "other") == ()


def test_tables_of_a_walk_say_what_ran_and_where_numbers_are() -> None:
    node = {"kind": "Add", "debug_handle": None, "ran": False}
    nodes = [{**node, "node": at, "inputs": [at], "outputs": [at + 1]} for at in range(3)]
    states = [list(node_table(nodes, {}, at).columns[1].values) for at in (1, None)]
    assert states == [["ran", "next", "not run"], ["not run"] * 3]
    table = node_table(nodes, {1: {"replaced": True}}, 2)
    assert list(table.columns[1].values) == ["replaced", "ran", "next"]
    facts = {"dtype": "int8", "shape": [2, 3], "min": None, "mean": None, "max": None}
    value = {**facts, "value": 4, "made_by": 1, "replaced": True, "nan": 2, "inf": 0}
    given = {**value, "value": 0, "made_by": None, "replaced": False, "nan": 0}
    values = value_table({0: given, 4: value})
    assert list(values.keys) == [4, 0]
    assert list(values.columns[-1].values) == ["replaced, 2 NaN", ""]
    numbers = number_table({"numbers": [1, 2, 3, 4]}, [2, 3])
    assert [list(column.values) for column in numbers.columns] == [
        [0, 0, 0, 1],
        [0, 1, 2, 0],
        [1, 2, 3, 4],
    ]
    quantized = {**given, "real": {"min": -0.5, "mean": 0.25, "max": 1.5}}
    assert list(value_table({0: quantized}).columns[-1].values) == ["stands for -0.5 to 1.5"]
    both = number_table({"numbers": [1, 2], "real": [0.5, 1.0]}, [2])
    assert list(both.columns[-1].values) == [0.5, 1.0]
