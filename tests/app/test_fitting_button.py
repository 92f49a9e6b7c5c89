"""Buttons whose words are fewer where there is little room."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QHBoxLayout, QWidget

from devtools_app.appearance.look import BASE_SIZE
from devtools_app.views.node import NodePane
from devtools_app.widgets.push_button import FittingButton, push_button
from tests.app.clipped import cut_texts
from tests.app.window_views import open_sample

pytestmark = pytest.mark.gui
WORDS = ("Change the recipe here…", "Change recipe…", "Change…")


@pytest.mark.parametrize("size", [BASE_SIZE, 20, 2 * BASE_SIZE])
@pytest.mark.parametrize("width", [150, 220, 330, 600])
def test_words_fit_the_button_when_the_room_or_the_text_changes(
    qtbot, theme, width: int, size: int
) -> None:
    page = QWidget()
    qtbot.addWidget(page)
    button = FittingButton(WORDS, "Change the recipe", "Change how this is compiled")
    line = QHBoxLayout(page)
    line.addWidget(button)
    line.addStretch(1)
    page.resize(width, 60)
    page.show()
    theme.set_size(size)
    qtbot.waitUntil(lambda: not theme.busy)
    qtbot.wait(20)
    assert cut_texts(page) == []
    assert button.accessibleName() == "Change the recipe"
    page.resize(3000, 60)
    qtbot.waitUntil(lambda: button.text() == WORDS[0])


@pytest.mark.slow
@pytest.mark.parametrize("size", [BASE_SIZE, 20, 2 * BASE_SIZE])
def test_change_of_the_recipe_is_not_cut_in_a_narrow_panel(make_window, qtbot, size: int) -> None:
    window = make_window()
    window.resize(1280, 800)
    open_sample(window, qtbot)
    window.show_view("node")
    window.commands.set_font_size(size)
    pane = window.findChild(NodePane)
    assert isinstance(pane, NodePane)
    qtbot.waitUntil(lambda: not window.theme.busy)
    qtbot.wait(60)
    assert pane._change.text() not in cut_texts(window)


def test_a_button_is_pressed_by_its_label_or_by_what_it_does(qtbot) -> None:
    named = {
        label: push_button(label, name, lambda: None).accessibleName()
        for label, name in (("Open…", "Read gates from a file"), ("Copy", "Copy the message"))
    }
    assert named == {"Open…": "Open: Read gates from a file", "Copy": "Copy the message"}
