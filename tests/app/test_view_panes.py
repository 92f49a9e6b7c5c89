"""The drawn views with sessions of every kind: whole, partial, empty, tiny, large."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import QAbstractButton, QComboBox, QLineEdit

from devtools_app.appearance.look import ThemeMode
from devtools_app.views import graph, memory, partitions, size, timeline
from devtools_app.views import structure as structure_view
from devtools_app.views.spec import CanDraw, CanExport, ViewSpec
from devtools_app.views.structure_model import StructureModel
from inspector.files.session import Session
from inspector.structure.files import structure
from inspector.tables.selection import NOTHING, Selection, SelectionKind
from tests.app.sessions import chain_session, opened
from tests.app.view_bench import Bench

# What the offscreen platform says whenever a window is shown.
_SAID = "This plugin does not support propagateSizeHints"
pytestmark = [pytest.mark.gui, pytest.mark.qt_log_ignore(_SAID), pytest.mark.slow]
SPECS = (graph, timeline, memory, size, partitions, structure_view)
XNNPACK = "corpus/v1.5.1/tinygpt_xnnpack"
EMPTY = Session("empty", ())


@pytest.fixture(params=[module.SPEC for module in SPECS], ids=lambda spec: spec.name)
def spec(request: pytest.FixtureRequest) -> ViewSpec:
    return request.param


@pytest.fixture
def bench(qtbot, spec: ViewSpec) -> Bench:
    return Bench(qtbot, spec.make)


def test_view_without_session_teaches(bench: Bench) -> None:
    assert bench.empty
    assert "open" in bench.pane.empty.accessibleName().lower()


def test_view_of_a_whole_session_shows_content(bench: Bench) -> None:
    bench.open(opened(XNNPACK))
    assert not bench.empty


@pytest.mark.parametrize("name", ["model.pte", "model.etrecord", "run.etdp", "run.debug"])
def test_view_with_one_file_shows_it_or_teaches(bench: Bench, spec: ViewSpec, name: str) -> None:
    session = opened(f"corpus/v1.5.1/mm_xnnpack/{name}")
    bench.open(session)
    if bench.empty:
        assert len(bench.pane.empty.accessibleName()) > 20
    if spec.needs(session) is not None:
        assert bench.empty


@pytest.mark.parametrize("operators", [0, 3])
def test_view_of_a_tiny_program_works(bench: Bench, operators: int) -> None:
    bench.open(chain_session(operators))
    bench.select(Selection(SelectionKind.INSTRUCTION, "forward", instruction=0))
    bench.pane.grab()


def test_view_of_no_files_works(bench: Bench) -> None:
    bench.open(EMPTY)
    bench.pane.grab()


def test_view_shows_another_palette(bench: Bench) -> None:
    bench.open(opened(XNNPACK))
    before = bench.pane.grab().toImage()
    bench.theme.set_mode(ThemeMode.DARK)
    assert bench.pane.grab().toImage() != before


def test_view_takes_every_kind_of_selection(bench: Bench) -> None:
    bench.open(opened(XNNPACK))
    for selection in (
        Selection(SelectionKind.NODE, "forward", "compiled", "aten_linear_default"),
        Selection(SelectionKind.NODE, "forward", "compiled", "no such node"),
        Selection(SelectionKind.INSTRUCTION, "forward", instruction=4),
        Selection(SelectionKind.INSTRUCTION, "forward", instruction=99999),
        Selection(SelectionKind.EVENT, "forward", event=5),
        Selection(SelectionKind.VALUE, "forward", value=28),
        Selection(SelectionKind.DELEGATE, "forward", delegate=2),
        Selection(SelectionKind.PART, part="nowhere@1+2"),
        NOTHING,
    ):
        bench.select(selection)
        assert bench.store.state.selection == selection
    assert not bench.empty


def test_view_controls_have_names(bench: Bench) -> None:
    bench.open(opened(XNNPACK))
    assert bench.pane.accessibleName()
    for kind in (QAbstractButton, QComboBox, QLineEdit):
        for widget in bench.pane.findChildren(kind):
            if widget.isVisible():
                assert widget.accessibleName() or widget.toolTip() or widget.objectName(), widget


def test_view_writes_picture_and_table(bench: Bench, tmp_path: Path) -> None:
    bench.open(opened(XNNPACK))
    pane = bench.pane
    if isinstance(pane, CanDraw):
        for ending in ("png", "svg"):
            pane.save_image(tmp_path / f"x.{ending}")
            assert (tmp_path / f"x.{ending}").stat().st_size > 500
    if isinstance(pane, CanExport):
        assert pane.export_to(tmp_path / "x.tsv")
        bench.qtbot.waitUntil((tmp_path / "x.tsv").exists)
        assert len((tmp_path / "x.tsv").read_text().splitlines()) > 2


def test_view_recovers_from_work_that_fails(bench: Bench) -> None:
    bench.open(opened(XNNPACK))

    def fail() -> object:
        raise ValueError("the reason")

    bench.pane.request("other", fail)
    bench.settle()
    assert bench.empty
    assert "the reason" in bench.pane.empty.accessibleName()
    bench.pane.show_state(bench.store.state)
    bench.settle()
    assert not bench.empty


def _graph(qtbot) -> tuple[Bench, graph.GraphPane]:
    bench = Bench(qtbot, graph.GraphPane)
    pane = bench.pane
    assert isinstance(pane, graph.GraphPane)
    return bench, pane


def test_graph_opens_and_closes_boxes_through_the_state(qtbot) -> None:
    bench, pane = _graph(qtbot)
    bench.open(opened(XNNPACK))
    pane.boxes.close_all()
    bench.settle()
    assert pane.canvas.placed is not None
    assert not (~pane.canvas.placed.collapsed).any()
    pane.boxes.open_all()
    bench.settle()
    assert not pane.canvas.placed.collapsed.any()
    assert bench.store.state.expanded


def test_graph_selects_nodes_and_delegates(qtbot) -> None:
    bench, pane = _graph(qtbot)
    bench.open(opened(XNNPACK))
    pane.canvas.select_item(5)
    assert bench.store.state.selection.kind is SelectionKind.NODE
    placed = pane.canvas.placed
    assert placed is not None
    tree = placed.scene.tree
    cluster = next(number for number, path in enumerate(tree.paths) if path[-1:] == ("delegate 3",))
    pane.canvas.select_item(placed.node_count + cluster)
    assert bench.store.state.selection == Selection(SelectionKind.DELEGATE, "forward", delegate=3)


def test_graph_reveals_what_another_view_selected(qtbot) -> None:
    bench, pane = _graph(qtbot)
    bench.open(opened(XNNPACK))
    pane.boxes.close_all()
    bench.settle()
    bench.select(Selection(SelectionKind.NODE, "forward", "compiled", "aten_linear_default"))
    assert pane.reveal_button.isEnabled()
    pane.reveal()
    bench.settle()
    assert not pane.reveal_button.isEnabled()
    placed = pane.canvas.placed
    assert placed is not None
    assert pane.canvas.selected_item == placed.scene.index["aten_linear_default"]


def test_graph_search_counts_and_steps(qtbot) -> None:
    bench, pane = _graph(qtbot)
    bench.open(opened(XNNPACK))
    pane.search.box.setFocus()
    qtbot.keyClicks(pane.search.box, "linear")
    qtbot.keyClick(pane.search.box, Qt.Key.Key_Return)
    bench.settle()
    first = bench.store.state.selection.node
    assert "linear" in first
    qtbot.keyClick(pane.search.box, Qt.Key.Key_F3)
    bench.settle()
    assert bench.store.state.selection.node != first
    assert " of " in pane.note.text()


def test_graph_of_another_overlay_keeps_camera_and_selection(qtbot) -> None:
    bench, pane = _graph(qtbot)
    bench.open(opened(XNNPACK))
    pane.canvas.select_item(3)
    before = pane.canvas.camera
    bench.store.update(overlay="bytes")
    bench.settle()
    assert pane.canvas.camera == before
    assert pane.canvas.selected_item == 3


def test_graph_of_ten_thousand_operators_is_shown(qtbot) -> None:
    bench, pane = _graph(qtbot)
    bench.open(chain_session(10_000))
    assert pane.canvas.placed is not None
    assert pane.canvas.placed.node_count == 10_002


def test_memory_value_and_row_select_each_other(qtbot) -> None:
    bench = Bench(qtbot, memory.MemoryPane)
    pane = bench.pane
    assert isinstance(pane, memory.MemoryPane)
    bench.open(opened(XNNPACK))
    pane.canvas.select(0)
    chosen = bench.store.state.selection
    assert chosen.kind is SelectionKind.VALUE
    key = pane.table.rows.key(0)
    assert isinstance(key, Selection)
    bench.select(key)
    assert pane.canvas.marks.selected >= 0
    assert pane.table.current_key() == key


def test_timeline_shows_each_choice_and_selects_events(qtbot) -> None:
    bench = Bench(qtbot, timeline.TimelinePane)
    pane = bench.pane
    assert isinstance(pane, timeline.TimelinePane)
    bench.open(opened(XNNPACK))
    for at in range(pane.runs.count()):
        pane.runs.setCurrentIndex(at)
        pane.runs.activated.emit(at)
        bench.settle()
        assert pane.canvas.data is not None
        assert len(pane.canvas.data.start)
    pane.runs.setCurrentIndex(1)
    pane.runs.activated.emit(1)
    bench.settle()
    data = pane.canvas.data
    assert data is not None
    event = int(np.flatnonzero(~data.unattributed & (data.lane == 1))[0])
    pane.canvas.select(event)
    assert bench.store.state.selection.kind is SelectionKind.EVENT
    assert pane.canvas.marks.selected


def test_size_finds_duplicates_when_asked(qtbot) -> None:
    bench = Bench(qtbot, size.SizePane)
    pane = bench.pane
    assert isinstance(pane, size.SizePane)
    bench.open(opened(XNNPACK))
    titles = [column.title for column in pane.table.rows.columns]
    assert "same content as" not in titles
    pane.find_duplicates()
    qtbot.waitUntil(lambda: not pane.hashing, timeout=10_000)
    assert "duplicate" in pane.note.text() or "repeat" in pane.note.text()


def test_structure_shows_the_bytes_of_a_field(qtbot) -> None:
    bench = Bench(qtbot, structure_view.StructurePane)
    pane = bench.pane
    assert isinstance(pane, structure_view.StructurePane)
    bench.open(opened("corpus/v1.5.1/mm_xnnpack/model.pte"))
    header = pane.model.index(0, 0, pane.model.index(0, 0))
    pane.tree.expand(header)
    pane.tree.setCurrentIndex(pane.model.index(2, 0, header))
    assert "magic" in pane.note.text()
    assert pane.hex.cursor_offset == 8
    pane.offset.setText("0x40")
    qtbot.keyClick(pane.offset, Qt.Key.Key_Return)
    assert pane.hex.cursor_offset == 0x40


def test_structure_model_obeys_qt(qtbot) -> None:
    model = StructureModel()
    model.set_nodes(structure(opened("corpus/v1.5.1/mm_xnnpack/model.pte")))
    # The tester opens all it sees while it looks, so it comes after the reset.
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal, model)
    top = model.index(0, 0)
    assert model.rowCount(top) > 1
    assert model.rowCount(model.index(0, 0, top)) == 7
    assert not model.canFetchMore(QModelIndex())


def test_view_reloads_a_session_under_the_same_name(bench: Bench) -> None:
    bench.open(opened(XNNPACK))
    state = bench.store.state
    one = state.sessions[0]
    other = replace(one, session=opened("corpus/v1.5.1/mm_xnnpack"), revision=1)
    bench.store.update(sessions=(other,))
    bench.settle()
    bench.pane.grab()


@pytest.mark.parametrize("width", [1063, 1220, 1400])
def test_facts_of_the_graph_have_room_beside_its_tools(qtbot, width: int) -> None:
    """Buttons lose their words before the note loses its own."""
    bench = Bench(qtbot, graph.GraphPane)
    bench.pane.resize(width, 560)
    bench.open(opened(XNNPACK))
    assert bench.pane.note.text()
    assert bench.pane.note.shown == bench.pane.note.text()
