"""Two graphs side by side: aligned, moved and selected together, differences on both."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QToolButton
from pytestqt.qtbot import QtBot

from devtools_app.viewmodels.layout.cluster_tree import expand_all
from devtools_app.viewmodels.layout.engine import LayoutCache
from devtools_app.viewmodels.pair_scene import ABSENT, build_pair, union_scene
from devtools_app.views.graph import GraphPane
from devtools_app.widgets.graph_canvas import GraphCanvas
from inspector.compare.graph_pair import Difference, GraphPair, graph_pair, partners
from inspector.files.session import Session
from inspector.graph.model_graph import COMPILED, graph_names
from tests.app.sessions import chain_session, opened
from tests.app.view_bench import Bench

pytestmark = pytest.mark.gui
PORTABLE, XNNPACK = "corpus/v1.5.1/convnet_portable", "corpus/v1.5.1/convnet_xnnpack"


def pair_of(one: Session, two: Session, names: tuple[str, str] = (COMPILED, COMPILED)) -> GraphPair:
    found = graph_pair((one, names[0]), (two, names[1]), "forward")
    assert found is not None
    return found


def test_a_graph_beside_itself_differs_nowhere() -> None:
    session = opened(XNNPACK)
    found = pair_of(session, session)
    assert not found.old
    assert not [one for one in found.new.values() if one.what is not None]


@pytest.mark.parametrize("folder", [PORTABLE, XNNPACK])
def test_a_graph_beside_its_own_instructions_has_no_other_operator(folder: str) -> None:
    session = opened(folder)
    found = pair_of(session, session, (COMPILED, "instructions"))
    assert found.alignment.pairs
    assert not [one.words for one in found.new.values() if one.what is Difference.CHANGED]


def test_instructions_beside_their_graph_are_in_its_modules() -> None:
    session = opened(PORTABLE)
    found = pair_of(session, session, (COMPILED, "instructions"))
    alone = union_scene(pair_of(session, session)).scene.scene.tree
    assert len(alone.paths)
    assert union_scene(found).scene.scene.tree.paths == alone.paths


def test_a_delegated_program_beside_a_portable_one_runs_elsewhere() -> None:
    found = pair_of(opened(PORTABLE), opened(XNNPACK))
    kinds = {one.what for one in found.new.values()}
    assert Difference.BACKEND in kinds
    moved = next(node for node, one in found.new.items() if one.what is Difference.BACKEND)
    assert "portable → XNNPACK" in found.new[moved].words
    assert found.old[found.alignment.to_old[moved]].words == found.new[moved].words


def test_a_longer_chain_has_the_rest_only_on_its_side() -> None:
    found = pair_of(chain_session(3), chain_session(5))
    assert not found.old
    assert [one.what for one in found.new.values()] == [Difference.ONLY] * 2


def test_union_places_pairs_once_and_keeps_the_rest_of_both() -> None:
    for one, two in ((opened(PORTABLE), opened(XNNPACK)), (chain_session(9), chain_session(4))):
        found = pair_of(one, two)
        union = union_scene(found)
        counts = [int((side != ABSENT).sum()) for side in union.places]
        assert counts == [len(found.alignment.old.nodes), len(found.alignment.new.nodes)]
        assert len(union.graph.nodes) == sum(counts) - len(partners(found.alignment))
        for number, (old, new) in enumerate(union.places.T.tolist()):
            if old != ABSENT and new != ABSENT:
                assert partners(found.alignment)[old] == new
            assert union.graph.nodes[number].id == number


def test_sides_draw_their_own_nodes_and_lines_in_the_same_places() -> None:
    one, two = opened(PORTABLE), opened(XNNPACK)
    found = pair_of(one, two)
    union = union_scene(found)
    opened_boxes = expand_all(union.scene.scene.tree)
    sources = ((one, COMPILED), (two, COMPILED))
    drawn = build_pair(found, union, sources, "forward", opened_boxes, None, LayoutCache())
    for which, side in enumerate(drawn.sides):
        present = np.flatnonzero(union.places[which] != ABSENT)
        assert side.placed.nodes.tolist() == present.tolist()
        assert np.array_equal(side.placed.boxes[present], drawn.placed.boxes[present])
        shown = {tuple(edge) for edge in side.placed.edges.tolist()}
        own = {(int(side.items[e.source]), int(side.items[e.target])) for e in side.graph.edges}
        assert own <= shown
        assert len(side.ghosts) == len(drawn.placed.nodes) - len(present)
        assert side.overlay.categories is not None
    labels = [entry.label for entry in drawn.legend]
    assert any(label.startswith("another backend (") for label in labels)


def test_times_below_a_step_of_their_clock_are_bounded_on_both_sides() -> None:
    session = opened("runs/convnet_xnnpack")
    found = pair_of(session, session)
    union = union_scene(found)
    boxes, sources = expand_all(union.scene.scene.tree), ((session, COMPILED),) * 2
    drawn = build_pair(found, union, sources, "forward", boxes, None, LayoutCache())
    for side in drawn.sides:
        texts = list(side.placed.scene.sublabels)
        assert any(text.startswith("< 1 µs") for text in texts)
        assert not any(text.startswith("0 ns") for text in texts)


# -- the view


def pane_of(qtbot: QtBot) -> tuple[Bench, GraphPane]:
    bench = Bench(qtbot, GraphPane)
    pane = bench.pane
    assert isinstance(pane, GraphPane)
    bench.open(opened(PORTABLE))
    bench.open(opened(XNNPACK))
    return bench, pane


def choose(bench: Bench, pane: GraphPane, start: str) -> None:
    combo = pane.beside.combo
    at = next(n for n in range(combo.count()) if combo.itemText(n).startswith(start))
    combo.setCurrentIndex(at)
    combo.activated.emit(at)
    bench.settle()


def centre(canvas: GraphCanvas, item: int) -> QPointF:
    assert canvas.placed is not None
    x, y, w, h = canvas.placed.boxes[item].tolist()
    return QPointF(*canvas.camera.to_screen(x + w / 2, y + h / 2))


def test_second_session_is_drawn_beside_and_moves_along(qtbot: QtBot) -> None:
    bench, pane = pane_of(qtbot)
    choose(bench, pane, "A  ")
    left, right = pane.drawing.both.canvases
    assert left.isVisible()
    assert right.isVisible()
    assert left.camera == right.camera
    left.zoom(2.0)
    right.pan(40, 25)
    assert left.camera == right.camera
    QTest.keyClick(left, Qt.Key.Key_Space)
    assert left.camera == right.camera
    assert [title.text()[:1] for title in pane.drawing.both.titles] == ["B", "A"]
    assert "differ" in pane.note.text()
    choose(bench, pane, "nothing")
    assert pane.canvas.isVisible()
    assert not left.isVisible()


def test_both_show_the_whole_in_a_room_that_grows_until_the_user_moves_them(qtbot: QtBot) -> None:
    bench, pane = pane_of(qtbot)
    pane.resize(1200, 300)
    choose(bench, pane, "A  ")
    left, right = pane.drawing.both.canvases
    qtbot.waitUntil(lambda: left.camera == right.camera)
    before = left.camera
    pane.resize(1200, 800)
    bench.settle()
    grown = left.camera
    assert grown == right.camera
    assert grown.sx > before.sx * 1.5
    right.pan(40, 25)
    moved = right.camera
    pane.resize(1300, 900)
    bench.settle()
    assert left.camera == right.camera == moved


def test_click_on_one_side_selects_on_both_and_in_the_window(qtbot: QtBot) -> None:
    bench, pane = pane_of(qtbot)
    choose(bench, pane, "A  ")
    pane.boxes.open_all()
    bench.settle()
    left, right = pane.drawing.both.canvases
    assert left.placed is not None
    assert right.placed is not None
    item = next(one for one in right.placed.nodes.tolist() if one in left.placed.nodes)
    right.fit()
    qtbot.mouseClick(right, Qt.MouseButton.LeftButton, pos=centre(right, item).toPoint())
    bench.settle()
    assert left.selected_item == right.selected_item == item
    assert bench.store.state.selection.node == pane.drawing.both.node_at(0, item)
    other = next(one for one in left.placed.nodes.tolist() if one not in (item,))
    qtbot.mouseClick(left, Qt.MouseButton.LeftButton, pos=centre(left, other).toPoint())
    assert right.selected_item == other


def test_boxes_open_and_matches_are_marked_on_both(qtbot: QtBot) -> None:
    bench, pane = pane_of(qtbot)
    choose(bench, pane, "A  ")
    pane.boxes.close_all()
    bench.settle()
    left, right = pane.drawing.both.canvases
    assert left.placed is not None
    assert right.placed is not None
    assert left.placed.expanded == right.placed.expanded == frozenset()
    pane.search.box.setFocus()
    qtbot.keyClicks(pane.search.box, "linear")
    qtbot.keyClick(pane.search.box, Qt.Key.Key_Return)
    bench.settle()
    assert "found" in pane.note.text()
    assert left.selected_item == right.selected_item >= 0


def test_two_graphs_of_one_session_stand_beside_each_other(qtbot: QtBot) -> None:
    bench = Bench(qtbot, GraphPane)
    pane = bench.pane
    assert isinstance(pane, GraphPane)
    session = opened(XNNPACK)
    bench.open(session)
    others = [name for name in graph_names(session, "forward") if name != COMPILED]
    assert pane.beside.combo.count() == 1 + len(others)
    choose(bench, pane, others[-1].split("/")[0])
    assert pane.drawing.both.isVisible()


@pytest.mark.parametrize("width", [320, 450, 600, 900])
def test_tools_are_whole_in_a_narrow_view(qtbot: QtBot, width: int) -> None:
    bench, pane = pane_of(qtbot)
    pane.resize(width, 500)
    bench.settle()
    for button in pane.findChildren(QToolButton):
        if button.isVisible() and button.text():
            assert button.width() >= button.sizeHint().width(), button.text()
            assert button.toolTip()
    for combo in (pane.graphs, pane.beside.combo):
        if combo.isVisible() and width >= 450:
            assert combo.width() >= combo.minimumSizeHint().width()


def test_tools_have_words_where_there_is_room_and_icons_where_there_is_none(qtbot: QtBot) -> None:
    bench, pane = pane_of(qtbot)
    words = [button for button in pane.findChildren(QToolButton) if button.text() == "Open all"]
    styles = Qt.ToolButtonStyle
    for width, style in ((1800, styles.ToolButtonTextOnly), (500, styles.ToolButtonIconOnly)):
        pane.resize(width, 500)
        bench.settle()
        assert [button.toolButtonStyle() for button in words] == [style]
    pane.resize(1800, 500)
    bench.settle()
    assert words[0].toolButtonStyle() == styles.ToolButtonTextOnly
    assert words[0].width() >= words[0].fontMetrics().horizontalAdvance("Open all")


def test_one_map_stands_beside_both_and_moves_them(qtbot: QtBot) -> None:
    bench, pane = pane_of(qtbot)
    pane.resize(1200, 700)
    choose(bench, pane, "A  ")
    view = pane.drawing.both
    left, right = view.canvases
    pane.boxes.close_all()
    bench.settle()
    left.fit()
    bench.settle()
    assert not view.minimap.isVisible()
    pane.boxes.open_all()
    bench.settle()
    left.zoom(4.0)
    bench.settle()
    assert view.minimap.isVisible()
    assert not left.minimap.isVisible()
    assert view.minimap.geometry().width() + right.width() + left.width() <= view.width()
    image = view.minimap.grab().toImage()
    colours = {image.pixel(x, y) for x in range(20, 140, 4) for y in range(10, 130, 4)}
    assert len(colours) > 2
    before = left.camera
    qtbot.mouseClick(view.minimap, Qt.MouseButton.LeftButton, pos=view.minimap.rect().center())
    assert left.camera == right.camera != before
    view.resize(600, 500)
    assert not view.minimap.isVisible()  # both graphs need the room
