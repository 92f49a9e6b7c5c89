"""A file of torch.export.save in the window: its graph, and its nodes selected."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

import devtools_app.sample_data
from devtools_app.views.graph import GraphPane
from inspector.files.load import load_session
from inspector.findings.next_steps import NextAction, next_steps
from inspector.graph.model_graph import model_graph
from inspector.tables.operators import operators_table
from inspector.tables.selection import AUTOMATIC, Selection
from tests.app.view_bench import Bench

pytestmark = pytest.mark.gui


def exported(folder: Path) -> Path:
    """Return a file as torch writes it, of the program that the sample records."""
    record = Path(devtools_app.sample_data.__file__).parent / "demo/keyword_spotter.etrecord"
    with zipfile.ZipFile(record) as archive:
        program = archive.read("exported_program")
    path = folder / "net.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("net/models/model.json", program)
        archive.writestr("net/archive_version", "0")
    return path


def test_exported_program_is_drawn_and_its_nodes_are_selected(qtbot: QtBot, tmp_path: Path) -> None:
    bench = Bench(qtbot, GraphPane)
    pane = bench.pane
    assert isinstance(pane, GraphPane)
    bench.open(load_session([exported(tmp_path)]))
    assert not bench.empty
    placed = pane.canvas.placed
    assert placed is not None
    assert placed.node_count > 20
    pane.canvas.select_item(int(placed.nodes[0]))
    assert bench.store.state.selection.graph == "exported_program"


def test_exported_program_stands_beside_the_compiled_one(qtbot: QtBot, tmp_path: Path) -> None:
    bench = Bench(qtbot, GraphPane)
    pane = bench.pane
    assert isinstance(pane, GraphPane)
    folder = Path(devtools_app.sample_data.__file__).parent / "demo/keyword_spotter"
    bench.open(load_session([folder / "model.pte", exported(tmp_path)]))
    names = [str(pane.graphs.itemData(n)) for n in range(pane.graphs.count())]
    assert names[0] == "compiled"
    assert "exported_program" in names


def test_operators_of_an_exported_program_are_listed_and_it_can_be_compiled(tmp_path: Path) -> None:
    path = exported(tmp_path)
    session = load_session([path])
    table = operators_table(session, "forward", AUTOMATIC).table
    graph = model_graph(session, "forward", "exported_program")
    assert graph is not None
    names = {node.name for node in graph.nodes}
    assert table.length > 10
    for row in range(table.length):
        key = table.key(row)
        assert isinstance(key, Selection)
        assert key.graph == "exported_program"
        assert key.node in names
    assert "not delegated" not in {table.text(row, 7) for row in range(table.length)}
    first = next_steps(session)[0]
    assert (first.action, first.view) == (NextAction.COMPILE, "recipe")
    assert first.command == f"etscope compile {path} -o compiled"
