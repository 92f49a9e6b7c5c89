"""The choices of toolbars: what they show and tell, and their lists while choices change."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from devtools_app.widgets.toolbar_combo import ToolbarCombo

pytestmark = pytest.mark.gui


def test_toolbar_combo_shows_and_tells(qtbot, theme):
    combo = ToolbarCombo(theme, "method", "Method")
    qtbot.addWidget(combo)
    combo.show()
    with qtbot.assertNotEmitted(combo.activated):
        combo.show_choices([("forward", "forward"), ("decode", "decode")], "decode")
    assert combo.currentData() == "decode"
    with qtbot.waitSignal(combo.activated):
        qtbot.keyClick(combo, Qt.Key.Key_Up)
    assert combo.currentData() == "forward"
    combo.show_choices([], "")
    assert not combo.isEnabled()
    assert not combo.grab().isNull()


@pytest.mark.qt_log_ignore("This plugin does not support")  # lists without a screen
@pytest.mark.parametrize(("before", "after"), [(2, 5), (5, 2), (1, 9)])
def test_an_open_list_shows_the_choices_that_came_meanwhile(qtbot, theme, before, after):
    def choices(count: int) -> list[tuple[str, str]]:
        return [(f"choice {number}", str(number)) for number in range(count)]

    combo = ToolbarCombo(theme, "table", "Table")
    qtbot.addWidget(combo)
    combo.show_choices(choices(before), "0")
    combo.show()
    combo.showPopup()
    combo.show_choices(choices(after), "0")
    qtbot.waitUntil(combo.view().isVisible)
    qtbot.wait(50)
    rows, room = combo.view(), combo.view().viewport()
    boxes = [rows.visualRect(combo.model().index(row, 0)) for row in range(after)]
    assert all(box.top() >= 0 and box.bottom() <= room.height() + 1 for box in boxes)
    assert room.height() <= (after + 1) * boxes[0].height()
    combo.hidePopup()
    combo.show_choices(choices(before), "0")
    assert not combo.view().isVisible()
