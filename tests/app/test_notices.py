"""Messages: of a session while it is shown, over the page, asked with the keyboard."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QPushButton, QWidget

from devtools_app.shell.window import MainWindow
from devtools_app.state.requests import Notice, ShowView
from devtools_app.widgets import message_strip
from devtools_app.widgets.legend import Legend
from devtools_app.widgets.message_strip import LEGEND_LINE
from tests.app.conftest import interactive
from tests.app.window_views import RECORDER_VIEWS, open_sample, view
from tests.inspector.sessions import DATA

pytestmark = [pytest.mark.gui, pytest.mark.slow]
OTHER = (str(DATA / "corpus/v1.5.1/mm_portable"),)
QUESTION = Notice(
    "This runs code.", "warning", offers=(("Run it", ShowView("two")),), decline="Do not run"
)


@pytest.fixture
def window(make_window, qtbot) -> MainWindow:
    made = make_window(views=RECORDER_VIEWS)
    open_sample(made, qtbot)
    made.activateWindow()
    made.dismiss_notice()
    return made


@pytest.fixture
def field(window: MainWindow) -> QLineEdit:
    """A field that has the keyboard."""
    found = view(window, "one").field
    found.setFocus()
    assert QApplication.focusWidget() is found
    return found


def focused() -> str:
    found = QApplication.focusWidget()
    assert isinstance(found, QPushButton)
    return found.text()


def press(key: Qt.Key) -> None:
    """Press a key where the keyboard is."""
    found = QApplication.focusWidget()
    assert found is not None
    QTest.keyClick(found, key)


def test_a_message_moves_nothing_below_it(window: MainWindow) -> None:
    before = window.centre.geometry()
    window.notice(Notice("Something failed. " * 20, "error"))
    QApplication.processEvents()
    assert window.strip.isVisible()
    assert window.centre.geometry() == before
    page = window.strip.parentWidget()
    assert page is not None
    assert page.rect().contains(window.strip.geometry())
    window.resize(window.width() - 100, window.height() - 60)
    assert page.rect().contains(window.strip.geometry())


@pytest.mark.parametrize("offers", [(), (("Compare", ShowView("compare")),)])
def test_a_short_message_leaves_the_begin_of_the_last_line_in_sight(window, offers) -> None:
    strip = window.strip
    page = strip.parentWidget()
    window.notice(Notice("keyword_spotter_1 is ready.", offers=offers))
    assert strip.geometry().left() > page.width() // 2
    assert page.width() - strip.geometry().right() < page.width() // 20
    short = strip.height()
    window.notice(Notice("It cannot be read, since it ends in the middle of a table. " * 9))
    assert strip.geometry().left() < page.width() // 20
    assert strip.height() > short  # a long one takes the whole width and wraps
    assert page.rect().contains(strip.geometry())


@pytest.mark.parametrize("view", ["timeline", "memory", "size"])
def test_a_message_leaves_the_legend_of_a_view_in_sight(make_window, qtbot, corpus, view) -> None:
    window = make_window()
    window.controller.open((str(corpus / "v1.5.1/convnet_xnnpack"),))
    window.resize(1280, 720)
    qtbot.waitUntil(window.strip.isVisible, timeout=5_000)  # asks for the unit of its ticks
    for name in (view, "overview", view):
        window.show_view(name)
    legends: list[Legend] = []

    def is_above() -> bool:
        legends[:] = [one for one in window.centre.findChildren(Legend) if one.isVisible()]
        strip = window.strip
        low = strip.mapTo(window, strip.rect().bottomLeft()).y()
        return bool(legends) and all(low < one.mapTo(window, QPoint()).y() for one in legends)

    qtbot.waitUntil(is_above, timeout=10_000)
    assert legends[0].objectName() == LEGEND_LINE


def test_a_question_has_the_keyboard_on_its_safe_button(window: MainWindow, field) -> None:
    window.notice(QUESTION)
    assert focused() == "Do not run"
    press(Qt.Key.Key_Tab)
    assert focused() == "Run it"
    press(Qt.Key.Key_Return)
    assert window.store.state.view == "two"
    assert window.strip.text == ""


@pytest.mark.parametrize("key", [Qt.Key.Key_Escape, Qt.Key.Key_Return])
def test_a_declined_question_returns_the_keyboard(window: MainWindow, field, key) -> None:
    window.notice(QUESTION)
    press(key)
    assert window.strip.text == ""
    assert QApplication.focusWidget() is field
    assert window.store.state.view == "one"


def test_a_message_that_asks_nothing_leaves_the_keyboard(window: MainWindow, field) -> None:
    window.notice(Notice("Compiled.", offers=(("Compare", ShowView("two")),)))
    assert QApplication.focusWidget() is field


def test_messages_are_shown_while_their_session_is(window: MainWindow, qtbot) -> None:
    first = window.store.state.current
    window.notice(Notice("Not recompiled.", "error", session=first))
    open_sample(window, qtbot, OTHER)
    second = window.store.state.current
    window.dismiss_notice()
    window.controller.show(first)
    assert window.strip.text == "Not recompiled."
    window.controller.show(second)
    assert window.strip.text == ""
    window.notice(Notice("Not run.", "error", session=first))  # which is not in front
    assert window.strip.text == ""
    window.controller.close(first)
    window.controller.show(second)
    assert window.strip.text == ""


def test_an_error_of_no_session_ends_with_the_next(window: MainWindow, qtbot, tmp_path) -> None:
    broken = tmp_path / "random.pte"
    broken.write_bytes(bytes(range(256)))
    open_sample(window, qtbot, (str(broken),))
    assert "random.pte" in window.strip.text
    first = window.store.state.current
    open_sample(window, qtbot, OTHER)
    window.dismiss_notice()
    window.controller.show(first)
    assert window.strip.text == ""


def test_a_message_about_reading_ends_when_it_is_read_again(window: MainWindow, qtbot) -> None:
    current = window.store.state.current
    window.notice(Notice("Files are lost.", "warning", session=current, until_read=True))
    with qtbot.waitSignal(window.controller.opener.ended, timeout=20_000):
        window.controller.reload()
    assert window.strip.text == ""


def test_a_message_leaves_the_line_over_the_panels_in_sight(window, qtbot) -> None:
    window.resize(1280, 720)
    window.notice(Notice("The trace does not name the unit of its ticks.", "info"))
    qtbot.waitUntil(window.strip.isVisible, timeout=5_000)
    bar, strip = window.fold_bar, window.strip
    assert bar.isVisible()
    top = bar.mapTo(window, bar.rect().topLeft()).y()
    assert strip.mapTo(window, strip.rect().bottomLeft()).y() < top


def in_the_tree(widget: QWidget) -> bool:
    """Return whether a screen reader that goes down from the window gets to a widget."""
    at = QAccessible.queryAccessibleInterface(widget)
    while (above := at.parent()) is not None and above.object() is not QApplication.instance():
        if above.indexOfChild(at) < 0:
            return False
        at = above
    return isinstance(at.object(), MainWindow)


def test_screen_readers_hear_of_a_message_and_get_to_its_buttons(window, monkeypatch) -> None:
    heard: list[str] = []
    monkeypatch.setattr(message_strip, "announce", lambda _strip, text: heard.append(text))
    window.notice(QUESTION)
    assert heard == ["warning: This runs code."]
    window.tour.start()  # a card in the same place
    lost = [one for one in interactive(window) if not in_the_tree(one)]
    assert [f"{type(one).__name__} {one.accessibleName()}" for one in lost] == []
