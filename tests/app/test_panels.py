"""Room for the views: what is folded, what follows the selection, what the user has arranged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt, QTimer
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QHeaderView,
    QTabBar,
    QTableView,
    QWidget,
)

from devtools_app.appearance.look import BASE_SIZE
from devtools_app.sample_data import LOOP
from devtools_app.shell.below_panels import OPEN_FROM, ROWS
from devtools_app.shell.view_host import ViewHost
from devtools_app.shell.window import MainWindow
from devtools_app.state import requests
from devtools_app.state.panel_layout import Showing
from devtools_app.views.operators import OperatorsPane
from inspector.tables.selection import NOTHING, Selection, SelectionKind
from tests.app.window_views import host_of, open_sample

pytestmark = [pytest.mark.gui, pytest.mark.slow]
SIZES = ((1280, 720), (1440, 900), (2560, 1440))
NODE = Selection(SelectionKind.NODE, "forward", "compiled", "aten_erf_default")
CONTROL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def window(make_window: Callable[..., MainWindow], qtbot) -> MainWindow:
    made = make_window()
    open_sample(made, qtbot)
    made.activateWindow()
    return made


def resize(window: MainWindow, qtbot, size: tuple[int, int]) -> None:
    window.resize(*size)
    qtbot.wait(60)


def part_of_views(window: MainWindow) -> float:
    return (window.centre.width() * window.centre.height()) / (window.width() * window.height())


def rows_seen(window: MainWindow, qtbot) -> float:
    """Return how many rows of the operators are in sight."""
    qtbot.waitUntil(lambda: host_of(window, "operators").view is not None)
    pane = host_of(window, "operators").view
    assert isinstance(pane, OperatorsPane)
    qtbot.waitUntil(lambda: not pane.working, timeout=20_000)
    qtbot.wait(30)
    views = pane.panel.findChildren(QAbstractItemView)
    grid = next(one for one in views if one.isVisible() and not isinstance(one, QHeaderView))
    return grid.viewport().height() / pane.panel._row_height()


@pytest.mark.parametrize("size", SIZES)
def test_views_have_their_part_of_the_window(window, qtbot, size) -> None:
    resize(window, qtbot, size)
    assert window.size().toTuple() == size
    if size[1] >= OPEN_FROM:
        assert window.below.open == "operators"
        assert rows_seen(window, qtbot) >= ROWS
        window.below.toggle()
    assert window.below.open == ""
    qtbot.waitUntil(lambda: part_of_views(window) >= 0.60)
    window.below.toggle()
    assert window.below.open == "operators"
    qtbot.waitUntil(lambda: part_of_views(window) >= 0.45)


@pytest.mark.parametrize("size", SIZES)
def test_middle_keeps_its_width_beside_the_node_panel(window, qtbot, size) -> None:
    resize(window, qtbot, size)
    window.router(requests.Select(NODE))
    qtbot.waitUntil(lambda: window.docks.by_name["node"].isVisible())
    qtbot.waitUntil(lambda: window.centre.width() >= 0.6 * size[0])


def test_buttons_of_panels_yield_to_the_tabs(window, qtbot) -> None:
    """At 1280 pixels with the Node panel three of the tabs were behind arrows."""
    resize(window, qtbot, (1280, 720))
    bar = window.centre.findChild(QTabBar)
    buttons, more = window.panel_buttons.buttons, window.panel_buttons.more
    assert not more.isVisible()
    assert all(button.isVisible() for button in buttons.values())
    window.router(requests.Select(NODE))
    qtbot.waitUntil(more.isVisible)
    assert not any(button.isVisible() for button in buttons.values())
    assert len(window.centre.names) > 9
    qtbot.waitUntil(lambda: bar.width() >= bar.sizeHint().width())
    menu = more.menu()
    menu.aboutToShow.emit()
    shown = {action.text(): action for action in menu.actions()}
    assert shown["Node"].isChecked()
    assert not shown["Findings"].isChecked()
    shown["Findings"].trigger()
    assert window.docks.by_name["findings"].isVisible()
    window.router(requests.Select(NOTHING))
    qtbot.waitUntil(lambda: not more.isVisible())
    assert all(button.isVisible() for button in buttons.values())


@pytest.mark.parametrize("size", SIZES)
def test_top_bar_fits(window, qtbot, size) -> None:
    resize(window, qtbot, size)
    assert window.top_bar.sizeHint().width() <= size[0]
    bar = window.centre.findChildren(QWidget, "tabRow")[0]
    assert bar.sizeHint().width() <= window.centre.width()


# -- below ------------------------------------------------------------------------------------


def test_line_tells_the_number_and_the_slowest_operator(make_window, qtbot) -> None:
    window = make_window()
    open_sample(window, qtbot, (LOOP[0],))
    qtbot.waitUntil(lambda: "slowest: " in window.fold_bar.text, timeout=20_000)
    count, _, slowest = window.fold_bar.text.partition(" · slowest: ")
    assert int(count.replace(",", "")) > 5
    assert slowest.split()[-1] == "%"
    assert any(unit in slowest for unit in ("µs", "ms", "ns"))
    assert window.fold_bar.buttons["issues"].text() == "Issues 0"


def test_panels_below_are_open_one_at_a_time(window, qtbot) -> None:
    docks, buttons = window.docks.by_name, window.fold_bar.buttons
    names = [one.accessibleName() for one in buttons.values()]
    assert names == ["Operators", "Jobs", "Issues", "Log"]
    qtbot.mouseClick(buttons["operators"], Qt.MouseButton.LeftButton)
    assert docks["operators"].isVisible()
    qtbot.mouseClick(buttons["log"], Qt.MouseButton.LeftButton)
    assert [name for name in buttons if docks[name].isVisible()] == ["log"]
    assert [name for name in buttons if buttons[name].isChecked()] == ["log"]
    qtbot.keyClick(window, Qt.Key.Key_J, CONTROL)
    assert window.below.open == ""
    qtbot.keyClick(window, Qt.Key.Key_J, CONTROL)
    assert window.below.open == "log"
    window.router(requests.ShowView("issues"))
    assert window.below.open == "issues"


def test_panel_below_that_was_chosen_stays_in_a_window_of_another_size(window, qtbot) -> None:
    resize(window, qtbot, (1440, 900))
    assert window.below.open == "operators"
    resize(window, qtbot, (1280, 720))
    assert window.below.open == ""
    window.below.toggle("log")
    resize(window, qtbot, (1440, 900))
    resize(window, qtbot, (1280, 720))
    assert window.below.open == "log"
    window.bound["reset_layout"].trigger()
    assert window.below.open == ""


def test_operators_are_open_beside_what_is_looked_at_only(window, qtbot) -> None:
    window.resize(1440, OPEN_FROM)
    qtbot.waitUntil(lambda: window.below.open == "operators")
    window.bound["prove"].trigger()
    assert not window.below.open
    window.bound["look"].trigger()
    qtbot.waitUntil(lambda: window.below.open == "operators")
    window.bound["change_program"].trigger()
    assert not window.below.open
    window.below.toggle()
    assert window.below.open == "operators"
    qtbot.wait(50)
    window.bound["prove"].trigger()
    assert not window.below.open
    window.bound["change_program"].trigger()
    assert window.below.open == "operators"  # the user opened it here


def test_sessions_have_room_in_every_group(window, qtbot) -> None:
    window.resize(1440, OPEN_FROM)
    sessions = window.docks.by_name["sessions"]
    window.bound["prove"].trigger()
    window.bound["look"].trigger()
    window.controller.open(tuple(LOOP[1:2]))
    qtbot.waitUntil(lambda: len(window.store.state.sessions) == 2, timeout=20_000)
    for group in ("look", "prove"):
        window.bound[group].trigger()
        qtbot.waitUntil(lambda: sessions.height() >= 2 * 80)
    window.bound["reset_layout"].trigger()
    qtbot.wait(50)
    assert sessions.height() >= 2 * 80
    before = sessions.height()
    window.commands.set_font_size(20)
    qtbot.waitUntil(lambda: sessions.height() >= 2 * 80 * window.theme.scale)
    assert sessions.height() > before


def test_columns_are_as_before_when_large_text_is_small_again(window, qtbot) -> None:
    window.resize(1440, OPEN_FROM)
    sessions, files = (window.docks.by_name[name] for name in ("sessions", "files"))
    grid = files.findChild(QTableView)
    qtbot.waitUntil(lambda: grid.model().rowCount() > 0)
    before, row = sessions.width(), grid.rowHeight(0)
    for size in (18, 26):
        window.commands.set_font_size(size)
        qtbot.waitUntil(lambda: not window.theme.busy)
        qtbot.wait(50)
    assert sessions.width() > before
    window.commands.set_font_size(BASE_SIZE)
    qtbot.waitUntil(lambda: not window.theme.busy)
    qtbot.waitUntil(lambda: sessions.width() == before)
    assert grid.rowHeight(0) == row


@pytest.mark.parametrize("size", [(1280, 720), (1440, 900), (2560, 1440)])
def test_two_views_side_by_side_have_half_of_the_middle_each(window, qtbot, size) -> None:
    window.resize(*size)
    window.show_view("graph")
    qtbot.wait(50)
    window.bound["split"].trigger()
    qtbot.waitUntil(lambda: window.centre.count() == 2)
    qtbot.wait(50)
    left, right = window.centre.sizes()
    assert abs(left - right) <= 1
    assert left > 400


@pytest.mark.qt_log_ignore("This plugin does not support")  # windows without a screen
def test_panel_below_floats_and_does_not_fold_others(window, qtbot) -> None:
    window.below.toggle("operators")
    window.fold_bar.float_pressed.emit()
    assert window.docks.by_name["operators"].isFloating()
    assert window.below.open == ""
    window.below.toggle("log")
    assert window.docks.by_name["operators"].isVisible()


# -- the node panel ---------------------------------------------------------------------------


def test_node_panel_comes_with_a_selection_and_goes_with_escape(window, qtbot) -> None:
    dock = window.docks.by_name["node"]
    window.show_view("graph")
    focus = QApplication.focusWidget()
    assert not dock.isVisible()
    window.router(requests.Select(NODE))
    assert dock.isVisible()
    assert QApplication.focusWidget() is focus
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert not dock.isVisible()
    assert not window.store.state.selection


def test_notice_has_escape_before_the_node_panel(window, qtbot) -> None:
    window.router(requests.Select(NODE))
    window.notice(requests.Notice("Something happened."))
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert window.docks.by_name["node"].isVisible()
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert not window.docks.by_name["node"].isVisible()


def test_node_panel_that_the_user_pinned_or_closed_holds(window) -> None:
    dock = window.docks.by_name["node"]
    dock.toggleViewAction().trigger()
    assert dock.isVisible()
    window.router(requests.Select(NODE))
    window.commands.clear()
    assert dock.isVisible()
    dock.toggleViewAction().trigger()
    window.router(requests.Select(NODE))
    assert not dock.isVisible()
    window.bound["reset_layout"].trigger()
    assert dock.isVisible()


def test_node_panel_comes_behind_the_panel_in_use(window, qtbot) -> None:
    window.show_view("recipe")
    qtbot.waitUntil(lambda: window.docks.by_name["recipe"].in_front)
    window.router(requests.Select(NODE))
    qtbot.wait(30)
    assert not window.docks.by_name["node"].isHidden()
    assert window.docks.by_name["recipe"].in_front


def test_box_that_was_clicked_stays_in_sight_beside_the_node_panel(window, qtbot) -> None:
    window.show_view("graph")
    pane = host_of(window, "graph").view
    qtbot.waitUntil(lambda: pane.canvas.placed is not None and not pane.working, timeout=20_000)
    pane.boxes.open_all()  # it is in a box
    canvas = pane.canvas
    index = canvas.placed.scene.index
    qtbot.waitUntil(
        lambda: not np.isnan(canvas.placed.boxes[index["aten_erf_default"]]).any(), timeout=20_000
    )
    item = canvas.placed.scene.index["aten_erf_default"]
    canvas.show_item(item)
    x, y, width, height = canvas.placed.boxes[item].tolist()

    def place() -> QPoint:
        return QPointF(*canvas.camera.to_screen(x + width / 2, y + height / 2)).toPoint()

    canvas.pan(canvas.room().width() - width * canvas.camera.sx / 2 - 30 - place().x(), 0)
    before = canvas.room().width()
    qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=place())
    assert window.store.state.selection.node == "aten_erf_default"
    qtbot.waitUntil(lambda: canvas.room().width() < before)
    right = canvas.camera.to_screen(x + width, y)[0]
    assert canvas.room().width() - 100 < right <= canvas.room().width()


@pytest.mark.parametrize("name", ["jobs", "issues", "log"])
def test_a_panel_below_that_a_menu_switches_on_is_the_one_seen(window, qtbot, name: str) -> None:
    docks = window.docks.by_name
    docks["operators"].bring_up()
    qtbot.waitUntil(lambda: window.below.open == "operators")
    docks[name].toggleViewAction().trigger()
    qtbot.waitUntil(lambda: docks[name].in_front and docks["operators"].isHidden())
    assert window.below.open == name
    docks[name].toggleViewAction().trigger()
    assert not window.below.open


# -- panels at the sides, arrangements -------------------------------------------------------


def test_findings_are_there_once_and_one_click_away(window, qtbot) -> None:
    dock = window.docks.by_name["findings"]
    assert window.store.state.view == "overview"
    assert not dock.isVisible()
    button = window.panel_buttons.buttons["findings"]
    assert button.accessibleName() == "Panel Findings"
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert dock.isVisible()
    assert button.isChecked()
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert not dock.isVisible()


def test_findings_that_are_brought_up_get_more_room_than_the_files(window, qtbot) -> None:
    resize(window, qtbot, (1280, 720))
    files, findings = (window.docks.by_name[name] for name in ("files", "findings"))
    findings.bring_up()
    qtbot.waitUntil(lambda: findings.height() > 1.5 * files.height(), timeout=5000)
    assert files.height() > 100
    window.resizeDocks([files, findings], [300, 200], Qt.Orientation.Vertical)
    qtbot.wait(50)
    heights = files.height(), findings.height()
    findings.bring_up()  # it was there: what the user moved stays
    qtbot.wait(50)
    assert (files.height(), findings.height()) == heights


def test_own_arrangements_are_saved_chosen_and_removed(window, make_window, qtbot) -> None:
    docks = window.docks.by_name
    docks["files"].close()
    docks["notes"].show()
    window.bound["save_layout"].trigger()
    dialog = window.arrangements.dialog
    dialog.setTextValue("  my  notes ")
    dialog.accept()
    window.bound["reset_layout"].trigger()
    assert docks["files"].isVisible()
    assert not docks["notes"].isVisible()
    entries = [one.text() for one in window.arrangements.menu.actions()]
    assert entries[0] == "my notes"
    window.arrangements.menu.actions()[0].trigger()
    assert not docks["files"].isVisible()
    assert docks["notes"].isVisible()
    window.close()
    again = make_window()
    open_sample(again, qtbot)
    assert list(again.controller.settings.arrangements) == ["my notes"]
    again.arrangements.choose("my notes")
    assert again.docks.by_name["notes"].isVisible()
    again.arrangements.remove("my notes")
    assert again.controller.settings.arrangements == {}
    assert "my notes" not in [one.text() for one in again.arrangements.menu.actions()]


def test_what_the_user_decided_is_kept_over_a_restart(window, make_window, qtbot) -> None:
    window.docks.by_name["node"].toggleViewAction().trigger()
    window.below.toggle("log")
    window.close()
    again = make_window()
    open_sample(again, qtbot)
    assert again.following.showing is Showing.ALWAYS
    assert again.docks.by_name["node"].isVisible()
    assert again.below.open == "log"
    assert again.below.chosen


def test_panels_that_appear_together_are_filled_in_turns(
    make_window: Callable[..., MainWindow], qtbot, monkeypatch
) -> None:
    monkeypatch.setattr("devtools_app.jobs.gui_thread._SLICE_SECONDS", 0.0)
    made: list[tuple[str, int]] = []
    turns: list[int] = []
    ticks = QTimer()
    ticks.timeout.connect(lambda: turns.append(1))
    create = ViewHost._create_view

    def created(host: ViewHost) -> QWidget:
        if host.view is None:
            made.append((host.spec.name, len(turns)))
        return create(host)

    monkeypatch.setattr(ViewHost, "_create_view", created)
    window = make_window()
    ticks.start(0)
    open_sample(window, qtbot)
    panels = [at for name, at in made if name in window.docks.by_name]
    assert len(panels) >= 2
    assert len(set(panels)) == len(panels), made


def test_a_panel_that_is_asked_for_is_filled_at_once(window: MainWindow) -> None:
    host = host_of(window, "jobs")
    host.postpone()
    window.show_view("operators")
    host.refresh()
    assert host.view is None
    window.show_view("jobs")
    assert host.view is not None
