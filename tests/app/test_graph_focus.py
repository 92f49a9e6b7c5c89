"""Parts of a graph: paths, what leads to a node and what follows, a part alone, saved filters."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from devtools_app.state.requests import ShowStatus
from devtools_app.state.settings import Settings, settings_content, settings_from
from devtools_app.views.graph import GraphPane
from devtools_app.views.pane import Pane
from devtools_app.views.partitions import PartitionsPane
from devtools_app.views.source import SourcePane
from devtools_app.widgets.graph_canvas import GraphCanvas
from inspector.files.load import load_session
from inspector.graph.model_graph import ModelGraph, model_graph
from inspector.graph.reach import ancestors, around, descendants, subgraph, ways_between
from tests.app.sessions import chain_session, opened
from tests.app.view_bench import Bench
from tests.inspector.sessions import DATA

pytestmark = pytest.mark.gui
XNNPACK = "corpus/v1.5.1/tinygpt_xnnpack"


def graph_of(name: str = XNNPACK) -> ModelGraph:
    found = model_graph(opened(name), "forward")
    assert found is not None
    return found


def test_ancestors_and_descendants_of_a_chain_are_the_rest_of_it() -> None:
    graph = model_graph(chain_session(6), "forward")
    assert graph is not None
    count = len(graph.nodes)
    for node in range(count):
        assert ancestors(graph, [node]) == set(range(node + 1))
        assert descendants(graph, [node]) == set(range(node, count))
    ways = ways_between(graph, [5], [2])
    assert ways is not None
    assert ways.shortest == (2, 3, 4, 5)
    assert ways.nodes == {2, 3, 4, 5}


def test_ways_are_the_nodes_before_one_end_and_after_the_other() -> None:
    graph = graph_of()
    first, last = graph.nodes[0].id, graph.nodes[-1].id
    ways = ways_between(graph, [first], [last])
    assert ways is not None
    assert ways.nodes == descendants(graph, [first]) & ancestors(graph, [last])
    pairs = {(edge.source, edge.target) for edge in graph.edges}
    assert all(step in pairs for step in zip(ways.shortest, ways.shortest[1:], strict=False))
    alone = next(n.id for n in graph.nodes if n.id not in ancestors(graph, [first]) | ways.nodes)
    other = ways_between(graph, [alone], [first])
    assert other is None or {alone, first} <= other.nodes


def test_subgraph_keeps_nodes_and_the_edges_between_them() -> None:
    graph = graph_of()
    kept = tuple(sorted(around(graph, [10])))
    part = subgraph(graph, kept)
    assert [node.name for node in part.nodes] == [graph.nodes[node].name for node in kept]
    inside = [edge for edge in graph.edges if edge.source in kept and edge.target in kept]
    assert len(part.edges) == len(inside)
    for edge in part.edges:
        assert part.nodes[edge.source].id == edge.source


# -- the view


def pane_of(qtbot: QtBot, name: str = XNNPACK) -> tuple[Bench, GraphPane]:
    bench = Bench(qtbot, GraphPane)
    pane = bench.pane
    assert isinstance(pane, GraphPane)
    bench.open(opened(name))
    pane.boxes.open_all()
    bench.settle()
    return bench, pane


def point(canvas: GraphCanvas, item: int) -> QPoint:
    assert canvas.placed is not None
    x, y, w, h = canvas.placed.boxes[item].tolist()
    return QPointF(*canvas.camera.to_screen(x + w / 2, y + h / 2)).toPoint()


def click(
    qtbot: QtBot, canvas: GraphCanvas, item: int, keys: Qt.KeyboardModifier | None = None
) -> None:
    canvas.show_item(item)
    modifier = keys or Qt.KeyboardModifier.NoModifier
    qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, modifier, pos=point(canvas, item))


def lit(canvas: GraphCanvas) -> set[int]:
    found = canvas.lit_items
    return set() if found is None else set(found.tolist())


def test_brackets_highlight_what_leads_to_a_node_and_what_follows(qtbot: QtBot) -> None:
    _, pane = pane_of(qtbot)
    graph = graph_of()
    pane.canvas.setFocus()
    click(qtbot, pane.canvas, 20)
    qtbot.keyClick(pane.canvas, Qt.Key.Key_BracketLeft)
    assert lit(pane.canvas) == ancestors(graph, [20])
    assert "before" in pane.note.text()
    qtbot.keyClick(pane.canvas, Qt.Key.Key_BracketRight)
    assert lit(pane.canvas) == descendants(graph, [20])
    assert "after" in pane.note.text()
    outside = next(node.id for node in graph.nodes if node.id not in descendants(graph, [20]))
    click(qtbot, pane.canvas, outside)
    assert not lit(pane.canvas)
    assert "after" not in pane.note.text()


def test_control_click_highlights_the_path_from_the_selection(qtbot: QtBot) -> None:
    _, pane = pane_of(qtbot)
    graph = graph_of()
    ways = ways_between(graph, [5], [25])
    assert ways is not None
    pane.canvas.setFocus()
    click(qtbot, pane.canvas, 5)
    click(qtbot, pane.canvas, 25, Qt.KeyboardModifier.ControlModifier)
    assert lit(pane.canvas) == ways.nodes
    assert "on ways between" in pane.note.text()
    assert pane.canvas.selected_item == 5
    faint = pane.canvas.render_to_image(1.0)
    pane.focus.clear()
    assert pane.canvas.render_to_image(1.0) != faint


def test_control_click_without_a_first_end_names_what_to_do(qtbot: QtBot) -> None:
    bench, pane = pane_of(qtbot)
    click(qtbot, pane.canvas, 5, Qt.KeyboardModifier.ControlModifier)
    assert ShowStatus("Select another box first: a path has two ends") in bench.asked


def test_x_shows_the_highlighted_part_alone_and_shift_x_all_again(qtbot: QtBot) -> None:
    bench, pane = pane_of(qtbot)
    graph = graph_of()
    pane.canvas.setFocus()
    click(qtbot, pane.canvas, 12)
    qtbot.keyClick(pane.canvas, Qt.Key.Key_BracketLeft)
    qtbot.keyClick(pane.canvas, Qt.Key.Key_X)
    bench.settle()
    placed = pane.canvas.placed
    assert placed is not None
    assert placed.node_count == len(ancestors(graph, [12]))
    assert pane.whole.isVisible()
    assert pane.note.text().startswith("a part: ")
    item = placed.scene.index[graph.nodes[12].name]
    assert pane.canvas.selected_item in (item, int(placed.item_of_node[item]))
    qtbot.keyClick(pane.canvas, Qt.Key.Key_X, Qt.KeyboardModifier.ShiftModifier)
    bench.settle()
    assert pane.canvas.placed is not None
    assert pane.canvas.placed.node_count == len(graph.nodes)
    assert not pane.whole.isVisible()


@pytest.mark.parametrize("shifted", [Qt.Key.Key_X, Qt.Key.Key_M])
def test_a_part_and_the_whole_graph_are_brought_into_view(qtbot: QtBot, shifted: Qt.Key) -> None:
    bench, pane = pane_of(qtbot)
    pane.canvas.setFocus()
    click(qtbot, pane.canvas, 12)
    pane.canvas.zoom(4.0)
    for key, modifier in (
        (Qt.Key.Key_Z, Qt.KeyboardModifier.NoModifier),
        (shifted, Qt.KeyboardModifier.ShiftModifier),
    ):
        qtbot.keyClick(pane.canvas, key, modifier)
        bench.settle()
        zoomed = pane.canvas.camera.sx
        pane.canvas.fit()
        assert pane.canvas.camera.sx == zoomed
        pane.canvas.zoom(4.0)


def test_z_shows_a_box_with_its_neighbours(qtbot: QtBot) -> None:
    bench, pane = pane_of(qtbot)
    graph = graph_of()
    pane.canvas.setFocus()
    click(qtbot, pane.canvas, 12)
    qtbot.keyClick(pane.canvas, Qt.Key.Key_Z)
    bench.settle()
    assert pane.canvas.placed is not None
    assert pane.canvas.placed.node_count == len(around(graph, [12]))


def test_matches_of_a_search_are_shown_alone(qtbot: QtBot) -> None:
    bench, pane = pane_of(qtbot)
    pane.search.box.setFocus()
    qtbot.keyClicks(pane.search.box, "linear")
    qtbot.waitUntil(lambda: pane.search.found is not None)
    found = pane.search.found
    assert found
    pane.canvas.setFocus()
    qtbot.keyClick(pane.canvas, Qt.Key.Key_X)
    bench.settle()
    assert pane.canvas.placed is not None
    assert set(pane.canvas.placed.scene.names) == set(found)


def test_another_session_is_drawn_whole(qtbot: QtBot) -> None:
    bench, pane = pane_of(qtbot)
    pane.canvas.select_item(12)
    pane.focus.neighbours()
    bench.settle()
    bench.open(chain_session(7))
    assert pane.canvas.placed is not None
    assert pane.canvas.placed.node_count == 9
    assert not pane.whole.isVisible()


# -- saved filters


def test_filters_are_saved_used_and_removed(qtbot: QtBot) -> None:
    bench, pane = pane_of(qtbot)

    def lines() -> list[str]:
        pane.search.menu.aboutToShow.emit()
        return [action.text() for action in pane.search.menu.actions() if action.text()]

    assert lines() == ["Type a filter to save it"]
    pane.search.box.show_text("/linear|softmax/")
    assert lines() == ["Save “/linear|softmax/”"]
    pane.search.menu.actions()[-1].trigger()
    assert bench.store.state.graph_filters == ("/linear|softmax/",)
    pane.search.use("")
    assert pane.search.found is None
    assert lines()[0] == "/linear|softmax/"
    pane.search.menu.actions()[0].trigger()
    assert pane.search.box.text() == "/linear|softmax/"
    assert pane.search.found
    assert lines()[-1] == "Remove “/linear|softmax/”"
    pane.search.menu.actions()[-1].trigger()
    assert bench.store.state.graph_filters == ()


def test_saved_filters_are_kept_in_the_settings() -> None:
    kept = Settings(graph_filters=("conv", "/a|b/"))
    assert settings_from(settings_content(kept)).graph_filters == ("conv", "/a|b/")


# -- menu


def menu_at(
    pane: GraphPane, at: QPoint, monkeypatch: pytest.MonkeyPatch
) -> tuple[QMenu, list[str]]:
    shown: list[QMenu] = []
    monkeypatch.setattr(QMenu, "popup", lambda menu, _at: shown.append(menu))
    canvas = pane.canvas
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, canvas.mapToGlobal(at))
    QApplication.sendEvent(canvas, event)
    return shown[0], [action.text() for action in shown[0].actions()]


def test_menu_names_a_node_a_box_an_edge_and_the_ground(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, pane = pane_of(qtbot)
    canvas, placed = pane.canvas, pane.canvas.placed
    assert placed is not None
    node = int(placed.nodes[3])
    canvas.show_item(node)
    _, lines = menu_at(pane, point(canvas, node), monkeypatch)
    assert placed.scene.names[node] in lines[0]
    assert "Highlight what leads here\t[" in lines
    assert "Show in Operators" in lines

    edge = next(
        number
        for number in range(len(placed.edges))
        if len(placed.polyline(number)) > 1 and abs(placed.polyline(number)[0, 1]) > 0
    )
    one, two = placed.polyline(edge)[:2].tolist()
    canvas.set_camera(canvas.camera.centred(*one, canvas.room().width(), canvas.room().height()))
    middle = ((one[0] + two[0]) / 2, (one[1] + two[1]) / 2)
    at = QPointF(*canvas.camera.to_screen(*middle)).toPoint()
    menu, lines = menu_at(pane, at, monkeypatch)
    source, target = (placed.title_of(end) for end in placed.edges[edge].tolist())
    assert lines[0].startswith(f"{source} → {target}")
    go = next(action for action in menu.actions() if action.text() == f"Go to {target}")
    go.trigger()
    assert placed.title_of(canvas.selected_item) == target

    canvas.fit()
    _, lines = menu_at(pane, QPoint(2, 2), monkeypatch)
    canvas.select_item(-1)
    _, lines = menu_at(pane, QPoint(2, 2), monkeypatch)
    assert lines[0] == "Graph"


def test_commands_of_a_menu_stand_in_groups(qtbot: QtBot) -> None:
    _bench, pane = pane_of(qtbot)
    menu = QMenu()
    qtbot.addWidget(menu)
    pane.focus.fill(menu)
    words = [one.text().partition("\t")[0] for one in menu.actions()]
    parts = words.index(""), words.index("Show only this")
    assert words[:3] == [word for word in words[:3] if word.startswith("Highlight")]
    assert parts == (3, 4)  # a line between them


@pytest.mark.parametrize("view", [GraphPane, SourcePane, PartitionsPane])
def test_a_record_whose_graphs_are_lost_is_not_asked_for_again(
    view: type[Pane], qtbot: QtBot, tmp_path: Path
) -> None:
    whole = (DATA / XNNPACK / "model.etrecord").read_bytes()
    (tmp_path / "cut.etrecord").write_bytes(whole[:5000])
    bench = Bench(qtbot, view)
    pane = bench.pane
    bench.open(load_session([tmp_path / "cut.etrecord"]))
    bench.settle()
    assert "is under Issues" in pane.empty.accessibleName() + pane.empty.accessibleDescription()
