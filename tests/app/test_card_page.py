"""Cards of a page are placed and painted once they are all there."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from devtools_app.shell.focus_areas import stops
from devtools_app.widgets.card_page import CardPage

pytestmark = pytest.mark.gui
WORDS = "a sentence that wraps in a narrow column, and then once more " * 3


def _fill(page: CardPage, count: int) -> list[QLabel]:
    page.begin()
    page.clear()
    labels = [QLabel(f"{number} {WORDS}") for number in range(count)]
    for number, label in enumerate(labels):
        label.setWordWrap(True)
        (page.add_left, page.add_right, page.add_far)[number % 3](label)
    return labels


def _settled(page: CardPage) -> bool:
    return page.viewport().updatesEnabled()


@pytest.mark.parametrize("width", [300, 900, 1700])
@pytest.mark.parametrize("count", [1, 7, 60])
def test_all_words_of_cards_fit_once_the_page_is_painted(qtbot, width: int, count: int) -> None:
    page = CardPage("page")
    qtbot.addWidget(page)
    page.resize(width, 400)
    page.show()
    labels = _fill(page, count)
    assert not _settled(page)
    page.end()
    qtbot.waitUntil(lambda: _settled(page))
    assert all(one.height() >= one.heightForWidth(one.width()) for one in labels)
    assert page.widget().height() >= max(one.geometry().bottom() for one in labels)
    assert {one.isVisible() for one in labels} == {True}


def test_a_page_that_is_filled_again_meanwhile_shows_the_new_cards(qtbot) -> None:
    page = CardPage("page")
    qtbot.addWidget(page)
    page.resize(500, 300)
    page.show()
    for _ in range(3):
        _fill(page, 5)
        page.end()
    last = _fill(page, 40)
    qtbot.wait(40)  # the timers of the former ones
    assert not _settled(page), "cards that are still being added are not shown"
    page.end()
    qtbot.waitUntil(lambda: _settled(page))
    assert all(one.height() >= one.heightForWidth(one.width()) for one in last)
    page.verticalScrollBar().setValue(200)
    again = _fill(page, 40)
    page.end()
    qtbot.waitUntil(lambda: _settled(page))
    assert page.verticalScrollBar().value() == 200
    assert again[-1].isVisible()


@pytest.mark.parametrize("count", [1, 4, 9])
@pytest.mark.parametrize("times", [1, 3])
def test_tab_goes_from_the_page_to_its_cards_and_then_on(qtbot, count: int, times: int) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    lines = QVBoxLayout(window)
    page, other = CardPage("page"), QPushButton("another view")
    for one in (page, other):
        lines.addWidget(one)
    window.show()
    for _ in range(times):
        page.begin()
        page.clear()
        buttons = [QPushButton(str(number)) for number in range(count)]
        for number, button in enumerate(buttons):
            (page.add_left, page.add_right)[number % 2](button)
        page.end()
        qtbot.waitUntil(lambda: _settled(page))
        qtbot.wait(5)
    assert stops(window) == [page, *buttons[::2], *buttons[1::2], other]
