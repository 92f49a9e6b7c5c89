"""The facts of a graph as tables beside its drawing."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from devtools_app.views.graph import GraphPane
from devtools_app.views.spec import CanExport
from inspector.graph.model_graph import model_graph
from inspector.tables.selection import Selection
from tests.app.sessions import opened
from tests.app.view_bench import Bench

pytestmark = pytest.mark.gui
MODEL = "corpus/v1.5.1/convnet_xnnpack"


def pane_of(qtbot: QtBot) -> tuple[Bench, GraphPane]:
    bench = Bench(qtbot, GraphPane)
    pane = bench.pane
    assert isinstance(pane, GraphPane)
    bench.open(opened(MODEL))
    return bench, pane


def listed(bench: Bench, pane: GraphPane, name: str) -> int:
    at = pane.tables.lists.findData(name)
    pane.tables.lists.setCurrentIndex(at)
    pane.tables.lists.activated.emit(at)
    settle(bench, pane)
    return pane.tables.table.rows.length


def settle(bench: Bench, pane: GraphPane) -> None:
    bench.qtbot.waitUntil(lambda: not pane.tables.working, timeout=10_000)
    bench.settle()


def test_every_fact_of_the_drawing_is_a_row(qtbot: QtBot) -> None:
    bench, pane = pane_of(qtbot)
    graph = model_graph(opened(MODEL), "forward")
    assert graph is not None
    assert not pane.tables.table.isVisible()
    pane.canvas.setFocus()
    qtbot.keyClick(pane.canvas, Qt.Key.Key_T, Qt.KeyboardModifier.ShiftModifier)
    settle(bench, pane)
    assert pane.tables.table.isVisible()
    assert pane.tables.table.rows.length == len(graph.nodes)
    assert listed(bench, pane, "edges") == len(graph.edges)
    assert listed(bench, pane, "boundaries") > 0
    assert listed(bench, pane, "node-data") == 0
    pane.tables.toggle()
    assert not pane.tables.table.isVisible()


def test_row_and_box_select_each_other(qtbot: QtBot) -> None:
    bench, pane = pane_of(qtbot)
    pane.boxes.open_all()
    bench.settle()
    pane.tables.toggle()
    settle(bench, pane)
    pane.tables.table.step(1)
    bench.settle()
    node = bench.store.state.selection.node
    placed = pane.canvas.placed
    assert placed is not None
    assert node
    assert pane.canvas.selected_item == placed.scene.index[node]
    pane.canvas.select_item(5)
    bench.settle()
    row = pane.tables.table.current_row()
    assert row is not None
    key = pane.tables.table.rows.key(row)
    assert isinstance(key, Selection)
    assert key.node == placed.scene.names[5]


def test_part_alone_lists_the_part(qtbot: QtBot) -> None:
    bench, pane = pane_of(qtbot)
    pane.boxes.open_all()
    bench.settle()
    pane.tables.toggle()
    pane.canvas.select_item(5)
    pane.focus.neighbours()
    bench.settle()
    settle(bench, pane)
    assert pane.canvas.placed is not None
    assert pane.tables.table.rows.length == pane.canvas.placed.node_count


def test_export_writes_the_edges_without_a_table(qtbot: QtBot, tmp_path: Path) -> None:
    _, pane = pane_of(qtbot)
    assert isinstance(pane, CanExport)
    path = tmp_path / "graph.tsv"
    assert pane.export_to(path)
    qtbot.waitUntil(path.exists)
    lines = path.read_text().splitlines()
    graph = model_graph(opened(MODEL), "forward")
    assert graph is not None
    assert len(lines) == 1 + len(graph.edges)
    assert lines[0].startswith("source")
