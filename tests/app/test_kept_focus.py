"""The keyboard is never nowhere: buttons that take turns, and the first session that opens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QApplication, QHBoxLayout, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from devtools_app.sample_data import LOOP
from devtools_app.widgets.kept_focus import kept_focus
from tests.app.window_views import host_of, open_sample

pytestmark = pytest.mark.gui
BUTTONS = ("run", "cancel", "other")


@pytest.fixture
def buttons(qtbot: QtBot) -> Iterator[dict[str, QPushButton]]:
    page = QWidget()
    qtbot.addWidget(page)
    layout = QHBoxLayout(page)
    made = {name: QPushButton(name) for name in BUTTONS}
    for button in made.values():
        layout.addWidget(button)
    page.show()
    page.activateWindow()
    qtbot.waitUntil(page.isActiveWindow)
    yield made
    page.close()


TURNS = {  # had the keyboard, hidden, disabled, has it then
    "the button that takes its turn": ("run", "run", "", "cancel"),
    "one that is disabled": ("run", "", "run", "cancel"),
    "one that stays": ("cancel", "run", "", "cancel"),
    "another is left alone": ("other", "run", "", "other"),
    "the first that can be pressed": ("cancel", "cancel", "", "run"),
}


@pytest.mark.parametrize("case", TURNS)
def test_the_keyboard_goes_to_the_button_that_takes_its_turn(
    buttons: dict[str, QPushButton], case: str
) -> None:
    had, hidden, disabled, expected = TURNS[case]
    buttons[had].setFocus()
    with kept_focus(buttons["cancel"], buttons["run"]):
        for name, button in buttons.items():
            button.setVisible(name != hidden)
            button.setEnabled(name != disabled)
    assert QApplication.focusWidget() is buttons[expected]


def test_the_first_session_that_opens_has_the_keyboard(make_window, qtbot: QtBot) -> None:
    window = make_window()
    window.activateWindow()
    window._start_page.setFocus()
    open_sample(window, qtbot, LOOP)
    overview = host_of(window, "overview")
    qtbot.waitUntil(lambda: overview.isAncestorOf(QApplication.focusWidget() or window))
    window.open_view("graph")
    graph = host_of(window, "graph")
    qtbot.waitUntil(lambda: graph.isAncestorOf(QApplication.focusWidget() or window))
    open_sample(window, qtbot, LOOP)  # again: it stays where it is in a view that is in front
    assert QApplication.focusWidget() is not None
