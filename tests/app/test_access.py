"""The window without a mouse and without seeing it: names, focus, a walk by keys."""

from __future__ import annotations

import re
import threading

import pytest
import shiboken6
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QMainWindow,
    QPushButton,
    QTableView,
    QToolButton,
    QWidget,
)

from devtools_app.appearance.colours import CONTRAST_TEXT, contrast
from devtools_app.appearance.look import ThemeMode
from devtools_app.appearance.slices import Slices
from devtools_app.jobs.gui_thread import gui_thread
from devtools_app.jobs.latest import Latest
from devtools_app.sample_data import SAMPLE
from devtools_app.shell.focus_areas import stops
from devtools_app.shell.view_host import ViewHost
from devtools_app.shell.window import MainWindow
from devtools_app.state.requests import Notice, Select, ShowStatus
from devtools_app.views import VIEWS
from devtools_app.views.spec import Area
from devtools_app.widgets import canvas as canvases
from devtools_app.widgets.canvas import Canvas
from devtools_app.widgets.graph_canvas import GraphCanvas
from devtools_app.widgets.plot import Plot
from devtools_app.widgets.time_strip import TimeStrip
from inspector.tables.selection import Selection, SelectionKind
from tests.app.conftest import interactive
from tests.architecture.tree import ROOT

pytestmark = [pytest.mark.gui, pytest.mark.slow]
CENTRE = [view.name for view in VIEWS if view.area is Area.CENTRE]
DOCKS = [view.name for view in VIEWS if view.area is not Area.CENTRE]


@pytest.fixture
def others() -> set[threading.Thread]:
    """Return the threads that tests before this one have left: pools of libraries."""
    return set(threading.enumerate())


@pytest.fixture
def window(others, make_window, qtbot) -> MainWindow:
    found = make_window()
    found.setProperty("others", others)
    found.resize(1280, 800)
    with qtbot.waitSignal(found.controller.opener.ended, timeout=20_000):
        found.controller.open((str(SAMPLE),))
    return found


def nameless(root: QWidget) -> list[str]:
    """Return what takes the keyboard and has no name; parts inside a named widget count as it."""
    found = []
    for widget in interactive(root):
        at: QWidget | None = widget
        while at is not None and not at.accessibleName() and type(at).__name__.startswith("Q"):
            inside = at.parentWidget()
            composed = inside is not None and isinstance(inside, (QAbstractSpinBox, QComboBox))
            at = inside if composed else None
        if at is None or not at.accessibleName():
            found.append(f"{type(widget).__name__} in {type(widget.parentWidget()).__name__}")
    return found


def unsaid(root: QWidget) -> list[str]:
    """Return buttons whose name lacks their label, so that a voice cannot press what it reads."""
    found = {
        button.text().split("   ")[0].replace("&", "").rstrip(" …"): button
        for button in buttons(root)
    }
    return [
        f"{label}: {button.accessibleName()}"
        for label, button in found.items()
        if " ".join(label.lower().split()) not in button.accessibleName().lower()
    ]


def buttons(root: QWidget) -> list[QAbstractButton]:
    """Return the buttons that are shown with words."""
    every = root.findChildren(QAbstractButton)
    return [one for one in every if one.isVisible() and any(map(str.isalpha, one.text()))]


def unread(root: QWidget) -> list[str]:
    """Return names of labels that screen readers read in place of their words."""
    found = []
    for label in root.findChildren(QLabel):
        name = label.accessibleName()
        read = f"{name} {label.accessibleDescription() or label.toolTip()}"
        words = re.findall(r"[a-z]{4,}", re.sub(r"<[^>]*>|&\w+;|\u200b", "", label.text()).lower())
        if label.isVisible() and name and not all(one in read.lower() for one in words):
            found.append(f"{name}: {label.text()}")
    return found


@pytest.mark.parametrize("room", ["views", "dialogs", "shell", "widgets"])
def test_no_label_has_a_name_in_place_of_its_words(room: str) -> None:
    made = r"(\w+) = (?:ElidedLabel|QLabel|plain_label|text_label|problem_label)\("
    named = r"\b(\w+)\.setAccessibleName\(\"(.*)\"\)"
    found = []
    for path in (ROOT / "devtools_app" / room).glob("*.py"):
        labels = set(re.findall(made, text := path.read_text()))
        found += [(path.name, *one) for one in re.findall(named, text) if one[0] in labels]
    assert found == []


def settle(window: MainWindow, qtbot, name: str) -> None:
    """Bring a view to the front and wait until it has computed what it shows."""
    window.show_view(name)
    qtbot.wait(30)
    others = window.property("others")
    qtbot.waitUntil(lambda: not set(threading.enumerate()) - others, timeout=20_000)
    qtbot.waitUntil(lambda: not gui_thread().busy)
    qtbot.wait(30)


def host_of(window: MainWindow, name: str) -> ViewHost:
    return next(host for host in window.hosts if host.spec.name == name)


def test_every_control_of_every_view_has_a_name(window, qtbot):
    found = {}
    for name in CENTRE + DOCKS:
        settle(window, qtbot, name)
        assert host_of(window, name).isVisible()
        found[name] = nameless(host_of(window, name)) + unsaid(host_of(window, name))
        found[name] += unread(window)
    assert {name: missing for name, missing in found.items() if missing} == {}


def known_to_its_parent(widget: QWidget) -> bool:
    """Return whether a screen reader comes to a widget from the window downwards."""
    at = QAccessible.queryAccessibleInterface(widget)
    while at.object() is not widget.window():
        above = at.parent()
        if above.indexOfChild(at) < 0:
            return False
        at = above
    return True


def test_what_lies_over_the_views_can_be_reached_by_a_screen_reader(window, qtbot) -> None:
    window._notices.show(Notice("A question", decline="No", offers=(("Yes", ShowStatus("")),)))
    window.tour.start()
    qtbot.waitUntil(lambda: window.tour.card is not None and window.tour.card.isVisible())
    over = [*interactive(window.strip), *interactive(window.tour.card)]
    assert len(over) > 4
    assert [one.accessibleName() for one in over if not known_to_its_parent(one)] == []


def test_buttons_that_clear_a_field_have_its_name(window, qtbot) -> None:
    for name in ("graph", "operators", "guide"):
        settle(window, qtbot, name)
    fields = window.findChildren(QLineEdit)
    buttons = [one for each in fields for one in each.findChildren(QToolButton)]
    assert len(buttons) > 2
    assert not [one for one in buttons if not one.accessibleName().startswith("Clear: ")]


def test_every_control_around_the_views_has_a_name(window):
    outside = [
        one
        for one in interactive(window)
        if not any(host.isAncestorOf(one) for host in window.hosts)
    ]
    assert outside
    assert [type(one).__name__ for one in outside if not one.accessibleName()] == []
    assert unsaid(window) + unread(window) == []


def test_start_page_controls_have_names(make_window):
    window = make_window()
    assert nameless(window) == unsaid(window) == []


def walk(window: MainWindow, qtbot, host: ViewHost) -> bool:
    """Press Tab until the keyboard has left the view; return whether it ever did."""
    inside = False
    for _ in range(300):
        focus = QApplication.focusWidget()
        if focus is None:
            return False
        if inside and not host.isAncestorOf(focus):
            return True
        inside = inside or host.isAncestorOf(focus)
        qtbot.keyClick(focus, Qt.Key.Key_Tab)
    return False


def test_every_view_takes_the_keyboard_and_gives_it_back(window, qtbot):
    window.activateWindow()
    stuck = []
    for name in CENTRE + DOCKS:
        settle(window, qtbot, name)
        if interactive(host_of(window, name)) and not walk(window, qtbot, host_of(window, name)):
            stuck.append(name)
    assert stuck == []


def test_every_view_follows_theme_and_text_size(window, qtbot):
    for name in CENTRE + DOCKS:
        settle(window, qtbot, name)
    window.commands.set_theme(ThemeMode.DARK)
    window.commands.set_font_size(18)
    for name in CENTRE + DOCKS:
        window.show_view(name)
        host = host_of(window, name)
        assert not host.grab().isNull()
        assert "cannot be shown" not in host._error.accessibleName()


def test_window_is_no_wider_than_a_small_screen(window):
    for name in CENTRE + DOCKS:
        window.show_view(name)
    assert window.minimumSizeHint().width() <= 1280
    assert window.minimumSizeHint().height() <= 800


def test_keyboard_goes_through_what_can_be_seen_and_comes_back(window, qtbot) -> None:
    window.activateWindow()
    for name in ("overview", "partitions", "notes", "log", "operators"):
        window.show_view(name)
        qtbot.waitUntil(lambda: not any(job.busy for job in window.findChildren(Latest)))
        for key in (Qt.Key.Key_Tab, Qt.Key.Key_Backtab):
            stops, behind = _stops(window, qtbot, key)
            assert len(stops) == len(set(stops)), name
            assert not behind, (name, behind)


def _stops(window: MainWindow, qtbot, key: Qt.Key) -> tuple[list[QWidget], list[QWidget]]:
    """Return what a key goes through until it comes back, and what of it was off the window."""
    start = QApplication.focusWidget()
    assert start is not None
    qtbot.keyClick(start, key)  # a view that is shown may have the focus without being a stop
    now = QApplication.focusWidget()
    stops: list[QWidget] = []
    behind: list[QWidget] = []
    while len(stops) < 150:
        assert now is not None
        if stops and now is stops[0]:
            return stops, behind
        stops.append(now)
        behind += [now] if _is_behind(window, now) else []
        qtbot.keyClick(now, key)
        now = QApplication.focusWidget()
    raise AssertionError("the keyboard does not come back")


def _is_behind(window: MainWindow, widget: QWidget) -> bool:
    """Return whether a widget is off the window, as panels behind another tab are."""
    return not window.rect().intersects(QRect(widget.mapTo(window, QPoint(0, 0)), widget.size()))


def test_view_that_was_still_at_work_has_the_keyboard_when_it_is_ready(window, qtbot) -> None:
    window.activateWindow()
    for name in CENTRE:
        window.show_view(name)
        jobs = (*window.findChildren(Latest), *window.findChildren(Slices))
        qtbot.waitUntil(lambda jobs=jobs: not any(job.busy for job in jobs))
        focus = QApplication.focusWidget()
        assert focus is not None, name
        assert focus.focusPolicy() & Qt.FocusPolicy.TabFocus, name
        assert window.centre.current is not None
        assert window.centre.current.isAncestorOf(focus), name


def test_everything_that_takes_the_keyboard_has_a_role(window, qtbot) -> None:
    plain = {QAccessible.Role.NoRole, QAccessible.Role.Client, QAccessible.Role.Pane}
    found = set()
    for name in CENTRE + DOCKS:
        settle(window, qtbot, name)
        for one in interactive(host_of(window, name)):
            interface = QAccessible.queryAccessibleInterface(one)
            drawn = isinstance(one, QLineEdit)  # a name and a description only
            if interface.role() in plain and interface.childCount() == 0 and not drawn:
                found.add((name, type(one).__name__, interface.role().name))
    assert found == set()


def test_f6_goes_through_the_areas_and_tab_reaches_all_of_each(window, qtbot) -> None:
    window.activateWindow()
    node = Selection(SelectionKind.NODE, method="forward", node="aten_convolution_default")
    window.router(Select(node))  # the Node panel is an area as well
    for name in ("overview", "graph", "partitions", "tensor", "run", "compare"):
        settle(window, qtbot, name)
        areas = window._areas()
        visited = []
        for _ in areas:
            QTest.keyClick(window, Qt.Key.Key_F6)
            visited.append(window.areas.current)
        assert {id(one) for one in visited if one is not None} >= {
            id(one) for one in areas if stops(one)
        }, name
        QTest.keyClick(window, Qt.Key.Key_F6, Qt.KeyboardModifier.ShiftModifier)
        assert window.areas.current is visited[-2], name
        counts = {f"{type(one).__name__} {at}": len(stops(one)) for at, one in enumerate(areas)}
        # a step of Tab forwards, or of Shift+Tab backwards
        assert max(counts.values()) <= 40, (name, counts)


def test_a_window_keeps_its_parts_when_the_last_widget_of_its_tab_order_goes(qtbot) -> None:
    window, last = QMainWindow(), QPushButton("last")
    table = QTableView(window)
    window.setCentralWidget(table)
    last.setParent(window)
    qtbot.addWidget(window)
    window.show()
    head = table.horizontalHeader()
    window.findChildren(QWidget)  # as searches for widgets do: the headings belong to the window
    assert stops(window) == [table, last]
    shiboken6.delete(last)
    assert shiboken6.isValid(head)


def test_words_keep_their_contrast_after_a_switch_while_the_window_is_open(window, qtbot) -> None:
    for name in CENTRE + DOCKS:
        settle(window, qtbot, name)
    grounds = ("raised", "sunken", "surface")
    for mode in (ThemeMode.DARK, ThemeMode.LIGHT):
        window.commands.set_theme(mode)
        qtbot.waitUntil(lambda: not window.theme.busy)
        palette = window.theme.palette
        found = set()
        for label in window.findChildren(QLabel):
            ink = label.palette().color(label.foregroundRole()).name()
            least = min(contrast(ink, getattr(palette, ground)) for ground in grounds)
            if label.isEnabled() and label.text() and least < CONTRAST_TEXT:
                found.add((label.text()[:40], ink))
        assert found == set(), mode


def test_drawings_have_a_role_and_name_the_table_with_the_same_facts(window, qtbot) -> None:
    roles = {QAccessible.Role.Canvas, QAccessible.Role.Chart}
    found = {}
    for name in CENTRE:
        settle(window, qtbot, name)
        host = host_of(window, name)
        for one in host.findChildren(QWidget):
            if isinstance(one, (Canvas, Plot, TimeStrip)) and one.isVisibleTo(host):
                interface = QAccessible.queryAccessibleInterface(one)
                assert interface.role() in roles, (name, type(one).__name__)
                about = interface.text(QAccessible.Text.Description)
                assert interface.text(QAccessible.Text.Name), name
                assert about, (name, type(one).__name__)
                if not isinstance(one, TimeStrip) and not one.is_empty():
                    assert "As a table: " in about, (name, about)
                    found[type(one).__name__] = about
    assert {"GraphCanvas", "TimelineCanvas", "MemoryCanvas", "TreemapCanvas"} <= set(found)


def test_selection_of_a_drawing_is_read_out_once(window, qtbot, monkeypatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(canvases, "announce", lambda _widget, text: read.append(text))
    settle(window, qtbot, "graph")
    canvas = host_of(window, "graph").findChild(GraphCanvas)
    names = [canvas.placed.scene.names[int(node)] for node in canvas.placed.nodes[:2]]
    window.activateWindow()
    canvas.setFocus()
    qtbot.waitUntil(canvas.hasFocus)
    for name in names:
        canvas.set_selected(name)
        canvas.describe()
    assert len(read) == 2
    assert read[0] != read[1]
    assert f"Selected: {read[1]}" in canvas.accessibleDescription()
