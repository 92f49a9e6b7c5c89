"""Boxes of the graph view that are closed from its menu and by keys."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from devtools_app.views.graph import GraphPane
from inspector.tables.selection import Selection, SelectionKind
from tests.app.sessions import opened
from tests.app.view_bench import Bench

pytestmark = pytest.mark.gui
OTHERS = "Close all other boxes"
STAY = {  # program, box that is clicked or the box of a node, what stays open
    "module": (
        "tinygpt_portable",
        "b.0",
        ("b.0", "b.0/b.0.qkv", "b.0/b.0.o", "b.0/b.0.m1", "b.0/b.0.m2"),
    ),
    "module in a module": ("tinygpt_portable", "b.0/b.0.o", ("b.0", "b.0/b.0.o")),
    "delegate": ("tinygpt_xnnpack", "delegate 11", ("delegate 11",)),
    "delegate in a module": ("tinygpt_xnnpack", "b.1/delegate 7", ("b.1", "b.1/delegate 7")),
    "node of a delegate": ("tinygpt_xnnpack", "node of b.1/delegate 7", ("b.1", "b.1/delegate 7")),
    "node of a module": ("tinygpt_portable", "node of b.1", ("b.1",)),
    "node of none": ("tinygpt_portable", "node of ", ()),
}


@pytest.fixture
def menus(monkeypatch: pytest.MonkeyPatch) -> list[QMenu]:
    shown: list[QMenu] = []
    monkeypatch.setattr(QMenu, "popup", lambda menu, _at: shown.append(menu))
    return shown


def pane_of(qtbot: QtBot, program: str) -> tuple[Bench, GraphPane]:
    bench = Bench(qtbot, GraphPane)
    pane = bench.pane
    assert isinstance(pane, GraphPane)
    bench.open(opened(f"corpus/v1.5.1/{program}"))
    pane.boxes.open_all()
    bench.settle()
    return bench, pane


def opened_in(pane: GraphPane) -> set[str]:
    placed = pane.canvas.placed
    assert placed is not None
    tree = placed.scene.tree.paths
    return {"/".join(path) for path in placed.expanded if path in tree}


def select(pane: GraphPane, what: str) -> None:
    """Select a box by its path, or its first own node."""
    canvas, placed = pane.canvas, pane.canvas.placed
    assert placed is not None
    of_node = what.startswith("node of ")
    path = tuple(what.removeprefix("node of ").split("/"))
    cluster = placed.scene.tree.index[path if path != ("",) else ()]
    nodes = placed.scene.tree.node_cluster.tolist()
    canvas.select_item(nodes.index(cluster) if of_node else placed.node_count + cluster)


def choose(bench: Bench, menus: list[QMenu], words: str) -> bool:
    """Choose a line of the menu of what is selected; return whether it could be."""
    pane = bench.pane
    assert isinstance(pane, GraphPane)
    canvas = pane.canvas
    at = canvas.rect().center()
    reason = QContextMenuEvent.Reason.Keyboard
    QApplication.sendEvent(canvas, QContextMenuEvent(reason, at, canvas.mapToGlobal(at)))
    line = next(one for one in menus[-1].actions() if one.text().startswith(words))
    if line.isEnabled():
        line.trigger()
        bench.settle()
    return line.isEnabled()


@pytest.mark.parametrize("case", STAY)
def test_other_boxes_close_and_open_again(qtbot: QtBot, menus: list[QMenu], case: str) -> None:
    program, clicked, stay = STAY[case]
    bench, pane = pane_of(qtbot, program)
    every = opened_in(pane)
    select(pane, clicked)
    assert choose(bench, menus, OTHERS)
    assert opened_in(pane) == set(stay)
    assert not choose(bench, menus, OTHERS)  # none is left
    pane.canvas.select_item(-1)
    pane.boxes.open_all()
    bench.settle()
    assert opened_in(pane) == every


@pytest.mark.parametrize("by", ["menu", "key"])
def test_the_box_around_a_node_closes(qtbot: QtBot, menus: list[QMenu], by: str) -> None:
    bench, pane = pane_of(qtbot, "tinygpt_portable")
    every = opened_in(pane)
    select(pane, "node of b.0/b.0.o")
    if by == "menu":
        assert choose(bench, menus, "Close o around it")
    else:
        qtbot.keyClick(pane.canvas, Qt.Key.Key_C)
        bench.settle()
    assert opened_in(pane) == every - {"b.0/b.0.o"}
    select(pane, "b.0/b.0.o")
    if by == "menu":
        assert choose(bench, menus, "Close b.0 around it")
        assert "b.0" not in opened_in(pane)


def test_other_boxes_close_in_a_part_alone_and_while_a_search_is_on(
    qtbot: QtBot, menus: list[QMenu]
) -> None:
    bench, pane = pane_of(qtbot, "tinygpt_xnnpack")
    every = opened_in(pane)
    qtbot.keyClicks(pane.search.box, "linear")
    qtbot.waitUntil(lambda: bool(pane.search.found))
    select(pane, "b.1")
    pane.focus.only()
    bench.settle()
    pane.boxes.open_all()
    bench.settle()
    select(pane, "b.1/delegate 7")
    assert choose(bench, menus, OTHERS)
    assert opened_in(pane) == {"b.1", "b.1/delegate 7"}
    pane.focus.whole()
    bench.settle()
    assert opened_in(pane) == every  # the whole graph keeps its own


def selected_path(pane: GraphPane) -> str:
    canvas, placed = pane.canvas, pane.canvas.placed
    assert placed is not None
    item = canvas.selected_item
    return "/".join(placed.path_of(item)) if item >= placed.node_count else ""


@pytest.mark.parametrize("what", ["b.0", "b.0/b.0.o"])
@pytest.mark.parametrize("node", ["", "node of b.1"])  # that was selected before
def test_a_box_stays_selected_while_it_opens_and_closes(qtbot: QtBot, what: str, node: str) -> None:
    bench, pane = pane_of(qtbot, "tinygpt_portable")
    if node:
        select(pane, node)
        bench.settle()
    select(pane, what)
    for _ in range(3):
        qtbot.keyClick(pane.canvas, Qt.Key.Key_Return)
        bench.settle()
        assert selected_path(pane) == what
    bench.store.update(overlay="kind")
    bench.settle()
    assert selected_path(pane) == what


def test_a_selection_from_elsewhere_takes_the_mark_from_a_box(qtbot: QtBot) -> None:
    bench, pane = pane_of(qtbot, "tinygpt_xnnpack")
    select(pane, "b.0")
    bench.store.update(selection=Selection(SelectionKind.DELEGATE, "forward", delegate=7))
    bench.settle()
    assert selected_path(pane) == "b.1/delegate 7"
    bench.store.update(selection=Selection())
    bench.settle()
    assert selected_path(pane) == ""
