"""A view that the user asks for is made in one event, filled in another, then has the keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from devtools_app.shell.central_area import ViewTabs
from devtools_app.shell.view_host import ViewHost
from devtools_app.shell.window import MainWindow
from devtools_app.views.spec import ViewContext
from devtools_app.widgets.empty_state import EmptyState
from tests.app.window_views import RECORDER_VIEWS, Recorder, host_of, open_sample

pytestmark = pytest.mark.gui


class Unmade(Recorder):
    """Cannot be made."""

    def __init__(self, context: ViewContext) -> None:
        raise RuntimeError("not made")


def tab_pressed(window: MainWindow, name: str) -> None:
    """Press the tab of a view with the mouse."""
    row = window.centre.findChildren(ViewTabs)[0]
    bar = row._bar
    at = bar.tabRect(row.names.index(name)).center()
    QTest.mouseClick(bar, Qt.MouseButton.LeftButton, pos=at)
    QApplication.sendPostedEvents(row)  # the row gives the view the keyboard


def menu_chosen(window: MainWindow, name: str) -> None:
    """Choose a view in the menu."""
    window.open_view(name)


BY = (tab_pressed, menu_chosen)
Ask = Callable[[MainWindow, str], None]


@pytest.fixture
def window(make_window, qtbot) -> MainWindow:
    views = tuple(
        replace(one, make=Unmade) if one.name == "timed" else one for one in RECORDER_VIEWS
    )
    found = make_window(views=tuple(replace(one, needs=lambda _session: None) for one in views))
    open_sample(found, qtbot)
    found.activateWindow()
    qtbot.waitUntil(found.isActiveWindow)
    return found


@pytest.mark.parametrize("ask", BY)
def test_it_is_made_and_filled_in_turns_and_has_the_keyboard(
    window: MainWindow, qtbot, monkeypatch, ask: Ask
) -> None:
    monkeypatch.setattr("devtools_app.jobs.gui_thread._SLICE_SECONDS", 0.0)
    turns: list[int] = []
    ticks = QTimer()
    ticks.timeout.connect(lambda: turns.append(1))
    ticks.start(0)
    happened: dict[str, int] = {}
    create, place, show = ViewHost._create_view, ViewHost._placed_view, ViewHost._show

    def created(host: ViewHost) -> QWidget:
        happened.setdefault(f"made {host.spec.name}", len(turns))
        return create(host)

    def placed(host: ViewHost) -> QWidget:
        happened.setdefault(f"placed {host.spec.name}", len(turns))
        return place(host)

    def shown(host: ViewHost, state) -> None:
        happened.setdefault(f"filled {host.spec.name}", len(turns))
        show(host, state)

    monkeypatch.setattr(ViewHost, "_create_view", created)
    monkeypatch.setattr(ViewHost, "_placed_view", placed)
    monkeypatch.setattr(ViewHost, "_show", shown)
    host = host_of(window, "two")
    ask(window, "two")
    asked = len(turns)
    assert host.view is None
    assert not [one for one in host.findChildren(EmptyState) if one.isVisible()]
    qtbot.waitUntil(lambda: not host._postponed)
    assert asked <= happened["made two"] < happened["placed two"] < happened["filled two"]
    assert isinstance(host.view, Recorder)
    assert host.view.isVisible()
    assert host.view.shown == [window.store.state]
    qtbot.waitUntil(host.view.field.hasFocus)


@pytest.mark.parametrize("ask", BY)
def test_the_keyboard_stays_where_the_user_went_meanwhile(
    window: MainWindow, qtbot, ask: Ask
) -> None:
    host = host_of(window, "two")
    first = host_of(window, "one").view
    assert isinstance(first, Recorder)
    first.field.setFocus()
    ask(window, "two")
    sides = [host_of(window, name).view for name in ("left", "right")]
    fields = [one.field for one in sides if isinstance(one, Recorder) and one.isVisible()]
    other = next(one for one in fields if not one.hasFocus())  # Qt gave it to one of them
    other.setFocus()
    qtbot.waitUntil(lambda: not host._postponed)
    QApplication.processEvents()
    assert other.hasFocus()


@pytest.mark.parametrize("ask", BY)
@pytest.mark.parametrize(("name", "words"), [("broken", "deliberate"), ("timed", "not made")])
def test_a_view_that_fails_says_so(
    window: MainWindow, qtbot, ask: Ask, name: str, words: str
) -> None:
    host = host_of(window, name)
    ask(window, name)
    qtbot.waitUntil(lambda: not host._postponed)
    QApplication.processEvents()
    shown = [one for one in host.findChildren(EmptyState) if one.isVisible()]
    assert len(shown) == 1
    assert "cannot be shown" in shown[0].accessibleName()
    assert words in shown[0].accessibleName()


@pytest.mark.parametrize("ask", BY)
def test_a_view_that_was_left_again_is_not_made(window: MainWindow, qtbot, ask: Ask) -> None:
    host = host_of(window, "two")
    ask(window, "two")
    window.show_view("one")
    qtbot.waitUntil(lambda: not host._postponed)
    QApplication.processEvents()
    assert host.view is None
    window.show_view("two")  # a program's call is answered at once
    assert isinstance(host.view, Recorder)
    assert host.view.shown == [window.store.state]
