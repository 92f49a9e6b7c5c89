"""The graph coloured by values of a file: its choice, its legend, and the ways to open it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from devtools_app.shell.window import MainWindow
from devtools_app.state.requests import ShowStatus
from devtools_app.state.state import State
from devtools_app.state.transitions import add_session
from devtools_app.viewmodels.canvas_data import Swatch
from devtools_app.viewmodels.data_colours import data_overlays, shown_overlay
from devtools_app.views.graph import GraphPane
from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.graph.model_graph import model_graph
from tests.app.sessions import DATA
from tests.app.view_bench import Bench
from tests.app.window_views import open_sample

pytestmark = pytest.mark.gui
MODEL = DATA / "corpus/v1.5.1/convnet_xnnpack"


def names() -> list[str]:
    found = model_graph(load_session([MODEL]), "forward")
    assert found is not None
    return [node.name for node in found.nodes]


def with_values(folder: Path, content: dict[str, float]) -> Session:
    path = folder / "energy.json"
    path.write_text(json.dumps(content))
    return load_session([MODEL, path])


def shown(qtbot: QtBot, session: Session) -> tuple[Bench, GraphPane]:
    bench = Bench(qtbot, GraphPane)
    pane = bench.pane
    assert isinstance(pane, GraphPane)
    bench.open(session)
    bench.store.update(overlay=data_overlays(session)[0][0])
    bench.settle()
    return bench, pane


def test_values_colour_their_nodes_and_the_legend_counts_the_rest(
    qtbot: QtBot, tmp_path: Path
) -> None:
    known = names()
    bench, pane = shown(qtbot, with_values(tmp_path, {known[1]: 2.0, known[2]: 6.0, "gone": 1.0}))
    overlay = pane.canvas.overlay
    assert overlay.values is not None
    assert overlay.values[[1, 2]].tolist() == [0.0, 1.0]
    assert int(np.isnan(overlay.values).sum()) == len(known) - 2
    labels = [entry.label for entry in overlay.legend]
    assert "Fill: energy" in labels
    assert f"{len(known) - 2} nodes without a value" in labels
    assert "1 name of no node here" in labels
    ramp = next(entry for entry in overlay.legend if entry.swatch is Swatch.RAMP)
    assert (ramp.low, ramp.high, ramp.diverging) == ("2", "6", False)
    assert ShowStatus("energy: no node of this graph is called gone") in bench.asked
    placed = pane.canvas.placed
    assert placed is not None
    assert placed.scene.sublabels[2] == "6"


def test_a_part_has_the_colours_and_the_unknown_names_of_the_whole_graph(
    qtbot: QtBot, tmp_path: Path
) -> None:
    known = names()
    numbered = {str(at): {"value": float(at)} for at in range(len(known))}
    path = tmp_path / "energy.json"
    path.write_text(json.dumps({"main": {"results": numbered | {"gone": {"value": 1.0}}}}))
    bench, pane = shown(qtbot, load_session([MODEL, path]))
    pane.boxes.open_all()
    bench.settle()
    item = len(known) - 2
    pane.canvas.show_item(item)
    assert pane.canvas.placed is not None
    x, y, w, h = pane.canvas.placed.boxes[item].tolist()
    centre = QPointF(*pane.canvas.camera.to_screen(x + w / 2, y + h / 2)).toPoint()
    qtbot.mouseClick(pane.canvas, Qt.MouseButton.LeftButton, pos=centre)
    pane.canvas.setFocus()
    qtbot.keyClick(pane.canvas, Qt.Key.Key_Z)
    bench.settle()
    overlay = pane.canvas.overlay
    assert overlay.values is not None
    drawn = pane.canvas.placed.scene.names
    at = [known.index(name) for name in drawn]
    assert 1 < len(drawn) < len(known)
    assert overlay.values * (max(at) - min(at)) + min(at) == pytest.approx(at)
    assert "1 name of no node here" in [line.label for line in overlay.legend]


def test_signed_values_have_a_scale_around_zero(qtbot: QtBot, tmp_path: Path) -> None:
    known = names()
    _, pane = shown(qtbot, with_values(tmp_path, {known[1]: -1.0, known[2]: 4.0, known[3]: 0.0}))
    overlay = pane.canvas.overlay
    assert overlay.values is not None
    assert overlay.diverging
    assert overlay.values[[1, 2, 3]].tolist() == [0.375, 1.0, 0.5]


def test_colours_by_a_file_that_is_gone_are_those_by_time(tmp_path: Path) -> None:
    session = with_values(tmp_path, {names()[1]: 1.0})
    state = add_session(State(overlay="data 0"), session, ())
    assert shown_overlay(state) == "data 0"
    other = add_session(State(overlay="data 0"), load_session([MODEL]), ())
    assert shown_overlay(other) == "time"


@pytest.mark.slow
def test_values_that_are_dropped_colour_the_session_shown(
    make_window, qtbot: QtBot, tmp_path: Path
) -> None:
    window: MainWindow = make_window()
    open_sample(window, qtbot, (str(MODEL),))
    path = tmp_path / "energy.csv"
    path.write_text(f"node,energy,cycles\n{names()[1]},3,5\n{names()[2]},4,6\n")
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    event = QDropEvent(
        QPoint(300, 300).toPointF(),
        Qt.DropAction.CopyAction,
        data,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    handle = window.windowHandle()
    assert handle is not None
    QApplication.sendEvent(handle, event)
    qtbot.waitUntil(lambda: window.store.state.overlay == "data 0", timeout=10_000)
    assert len(window.store.state.sessions) == 1
    session = window.store.state.session
    assert session is not None
    assert [one.title for one in session.node_data] == ["energy", "cycles"]
    combo = window.top_bar.overlay_choice
    assert combo.currentText() == "energy"
    assert combo.itemText(combo.count() - 1) == "cycles"


@pytest.mark.slow
def test_values_are_chosen_from_the_menu(
    make_window, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window: MainWindow = make_window()
    assert not window.bound["colour_by_file"].isEnabled()
    open_sample(window, qtbot, (str(MODEL),))
    path = tmp_path / "energy.json"
    path.write_text(json.dumps({names()[1]: 3}))
    monkeypatch.setattr(
        type(window.context.paths), "open_files", lambda *_args: (str(path),), raising=True
    )
    window.bound["colour_by_file"].trigger()
    qtbot.waitUntil(lambda: window.store.state.overlay == "data 0", timeout=10_000)
    assert window.store.state.view == "graph"


@pytest.mark.slow
def test_values_are_named_on_the_command_line(make_window, qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "energy.json"
    path.write_text(json.dumps({names()[1]: 3}))
    window: MainWindow = make_window()
    open_sample(window, qtbot, (str(MODEL), str(path)))
    assert window.store.state.overlay == "data 0"
    assert len(window.store.state.sessions) == 1
