"""A right click means what is under the pointer, in the drawings as in the tables."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QContextMenuEvent, QGuiApplication
from PySide6.QtWidgets import QApplication, QMenu

from devtools_app.shell.window import MainWindow
from devtools_app.viewmodels.edit_targets import edit_targets
from devtools_app.views.editing import fold_to_fit
from devtools_app.views.graph import GraphPane
from devtools_app.views.memory import MemoryPane
from devtools_app.views.timeline import TimelinePane
from devtools_app.widgets.canvas import Canvas
from inspector.recipes.edits import TargetKind
from inspector.tables.operators import operators_table
from inspector.tables.selection import Selection, SelectionKind, Units
from tests.app.sessions import opened
from tests.app.window_views import open_sample

pytestmark = pytest.mark.gui


@pytest.mark.parametrize("label", ["delegate overhead", "aten.mean.out", "Convolution"])
def test_edits_are_of_what_a_row_shows(label: str) -> None:
    session = opened("runs/convnet_xnnpack")
    table = operators_table(session, "forward", Units()).table
    row = next(n for n in range(table.length) if table.text(n, 0).startswith(label))
    key = table.key(row)
    assert isinstance(key, Selection)
    kinds = {one.kind for one in edit_targets(session, "forward", key)}
    assert (TargetKind.NODE in kinds) == (label != "delegate overhead")
    assert (TargetKind.PARTITION in kinds) == (label != "aten.mean.out")


def test_a_value_has_no_edits() -> None:
    session = opened("runs/convnet_xnnpack")
    value = Selection(SelectionKind.VALUE, "forward", value=0, instruction=0)
    assert edit_targets(session, "forward", value) == ()


def right_click(
    canvas: Canvas, shown: list[QMenu], wanted: Callable[[int], bool] = lambda item: item >= 0
) -> list[str]:
    """Click on the first item of a drawing that is wanted; return the lines of the menu."""
    lines = menu_lines(canvas, shown, wanted, keep=True)
    next(one for one in shown.pop().actions() if one.text() == "Copy the name").trigger()
    return lines


def menu_lines(
    canvas: Canvas, shown: list[QMenu], wanted: Callable[[int], bool], *, keep: bool = False
) -> list[str]:
    """Click on the first point of a drawing whose item is wanted; return the lines of the menu."""
    points = (
        QPoint(x, y) for y in range(5, canvas.height(), 6) for x in range(5, canvas.width(), 9)
    )
    at = next(one for one in points if wanted(canvas.hit(one.toPointF())))
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, canvas.mapToGlobal(at))
    QApplication.sendEvent(canvas, event)
    menu = shown[-1] if keep else shown.pop()
    return [one.text() for one in menu.actions()]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "elsewhere"), [("timeline", "Operators"), ("memory", "Graph")])
def test_a_drawing_has_a_menu_of_what_was_clicked(
    make_window, qtbot, monkeypatch, name: str, elsewhere: str
) -> None:
    shown: list[QMenu] = []
    monkeypatch.setattr(QMenu, "popup", lambda menu, _at: shown.append(menu))
    window: MainWindow = make_window()
    open_sample(window, qtbot)
    window.show_view(name)
    pane = next(host.view for host in window.hosts if host.spec.name == name)
    assert isinstance(pane, (TimelinePane, MemoryPane))
    qtbot.waitUntil(lambda: not pane.working, timeout=20_000)
    lines = right_click(pane.canvas, shown)
    assert window.store.state.selection
    assert QGuiApplication.clipboard().text().replace("&", "&&") == lines[0]
    assert f"Show in {elsewhere}" in lines
    assert f"Show in {name.title()}" not in lines
    if isinstance(pane, TimelinePane):
        content = pane._content
        assert content is not None
        assert content.timeline is not None
        rows = content.timeline.rows
        lines = right_click(pane.canvas, shown, lambda item: item >= 0 > rows[item])
        assert lines[1] == "Copy the name"
        assert not any(line.startswith("Show in") for line in lines)  # time that is of nothing
        assert lines[-1] == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "title", "command"),
    [
        ("timeline", "Timeline: run ", "Show all of the time\tSpace"),
        ("memory", "Memory: buffer 1", "Show the whole plan\tSpace"),
        ("graph", "Graph", "Show everything\tSpace"),
    ],
)
def test_a_click_beside_all_items_has_a_menu_of_the_drawing(
    make_window, qtbot, monkeypatch, name: str, title: str, command: str
) -> None:
    """Also while something is selected: the menu is of what was clicked, with the keys of that."""
    shown: list[QMenu] = []
    monkeypatch.setattr(QMenu, "popup", lambda menu, _at: shown.append(menu))
    window: MainWindow = make_window()
    open_sample(window, qtbot)
    window.show_view(name)
    pane = next(host.view for host in window.hosts if host.spec.name == name)
    assert isinstance(pane, (TimelinePane, MemoryPane, GraphPane))
    qtbot.waitUntil(lambda: not pane.working and not pane.canvas.is_empty(), timeout=20_000)
    if name != "graph":
        right_click(pane.canvas, shown)
        assert window.store.state.selection
    else:
        nodes = pane.canvas.placed.node_count
        right_click(pane.canvas, shown, lambda item: 0 <= item < nodes)
        assert pane.canvas.selected_item >= 0
    lines = menu_lines(pane.canvas, shown, lambda item: item < 0)
    assert lines[0].startswith(title)
    assert command in lines
    assert "Copy the name" not in lines
    corner = pane.canvas.mapToGlobal(QPoint(5, 5))
    event = QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, QPoint(5, 5), corner)
    QApplication.sendEvent(pane.canvas, event)
    assert shown.pop().actions()[0].text() != lines[0]  # the keyboard means what is selected


@pytest.mark.slow
def test_a_box_of_a_module_has_the_edits_of_that_module(make_window, qtbot, monkeypatch) -> None:
    shown: list[QMenu] = []
    monkeypatch.setattr(QMenu, "popup", lambda menu, _at: shown.append(menu))
    window: MainWindow = make_window()
    open_sample(window, qtbot)
    window.show_view("graph")
    pane = next(host.view for host in window.hosts if host.spec.name == "graph")
    assert isinstance(pane, GraphPane)
    qtbot.waitUntil(lambda: not pane.working and not pane.canvas.is_empty(), timeout=20_000)
    placed = pane.canvas.placed

    def module(item: int) -> str:
        boxed = item >= placed.node_count
        return placed.scene.cluster_info(placed.path_of(item)).module if boxed else ""

    lines = menu_lines(pane.canvas, shown, lambda item: bool(module(item)))
    path = module(pane.canvas.selected_item)
    assert f"This module: {path}" in lines
    assert any(line.startswith(f"Keep module {path} off") for line in lines)
    lines = menu_lines(pane.canvas, shown, lambda item: 0 <= item < placed.node_count)
    assert not any(line.startswith("This module: ") for line in lines)


@pytest.mark.usefixtures("qapp")
@pytest.mark.parametrize(("lines", "folded"), [(3, False), (60, True)])
def test_a_menu_that_is_too_high_has_its_views_in_a_submenu(lines: int, *, folded: bool) -> None:
    """Two columns would cover the window, and the line with the effect of an edit alone in one."""
    menu = QMenu()
    place = menu.addAction("Show in Graph")
    for number in range(lines):
        menu.addAction(f"line {number}")
    menu.aboutToShow.connect(lambda: fold_to_fit(menu, "Show in", [place]))
    menu.aboutToShow.emit()
    first = menu.actions()[0]
    inner = first.menu()
    assert (isinstance(inner, QMenu) and [one.text() for one in inner.actions()]) == (
        folded and ["Graph"]
    )
    assert first.text() == ("Show in" if folded else "Show in Graph")
