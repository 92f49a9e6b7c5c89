"""A file of torch.export.save in the window: its graph, and its nodes selected."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

import devtools_app.sample_data
from devtools_app.views.graph import GraphPane
from inspector.files.load import load_session
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
