"""What a view says when it has nothing to show: the command, and what there is height for."""

from __future__ import annotations

from itertools import combinations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from devtools_app.widgets.empty_state import EmptyState, Need

pytestmark = [pytest.mark.gui, pytest.mark.slow]

_LONG = "A function that returns a module becomes a program. " * 4


def test_empty_state_copies_its_command(qtbot, theme):
    empty = EmptyState(theme, Need("No trace", "Because.", "run --etdump"))
    qtbot.addWidget(empty)
    empty.show()
    qtbot.mouseClick(empty.findChild(QPushButton), Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == "run --etdump"
    pressed = []
    qtbot.mouseClick(
        empty.add_button("Open…", lambda: pressed.append(1)), Qt.MouseButton.LeftButton
    )
    assert pressed == [1]


@pytest.mark.parametrize(
    ("height", "said"), [(90, False), (110, False), (130, False), (180, True), (500, True)]
)
def test_empty_state_leaves_out_what_it_has_no_height_for(qtbot, theme, height, said):
    empty = EmptyState(theme, Need("No compile yet", _LONG, "etscope compile"))
    qtbot.addWidget(empty)
    button = empty.add_button("Compile…", empty.update)
    empty.resize(560, height)
    empty.show()
    own = [one for one in empty.findChildren(QWidget) if one.parent() is empty]
    shown = [one for one in own if one.isVisible()]
    assert button in shown
    for one, other in combinations((one.geometry() for one in shown), 2):
        assert not one.intersects(other)
    assert (_LONG in [one.text() for one in shown if isinstance(one, QLabel)]) == said
    assert empty.toolTip() == ("" if said else _LONG)
    assert all(empty.rect().contains(one.geometry()) for one in shown)
    empty.resize(560, 500)
    assert all(one.isVisible() for one in own)
