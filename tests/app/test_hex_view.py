"""The bytes of a file: walking, selecting, copying, and where the rows end."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication, QPixmap

from devtools_app.viewmodels.hexdump import hex_rows, row_count
from devtools_app.widgets.hex_view import HexView

pytestmark = [pytest.mark.gui, pytest.mark.slow]


@pytest.fixture
def hexes(qtbot, theme) -> HexView:
    view = HexView(theme)
    qtbot.addWidget(view)
    view.resize(640, 200)
    view.show_data(memoryview(bytes(range(256)) * 8), base=0x1000)
    view.show()
    return view


def test_hex_view_walks_selects_and_copies(hexes, qtbot):
    with qtbot.waitSignal(hexes.moved) as told:
        qtbot.keyClick(hexes, Qt.Key.Key_Down)
    assert told.args == [0x1010]
    qtbot.keyClick(hexes, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClick(hexes, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "10 11"
    assert "0x1011" in hexes.accessibleDescription()


def test_hex_view_mark_scrolls_there(hexes):
    hexes.mark(0x1000 + 1600, 4)
    assert hexes.verticalScrollBar().value() > 50
    hexes.copy()
    assert QGuiApplication.clipboard().text() == "40 41 42 43"


def test_hex_view_ends_are_walls(hexes, qtbot):
    control = Qt.KeyboardModifier.ControlModifier
    for key, offset in ((Qt.Key.Key_End, 0x17FF), (Qt.Key.Key_Home, 0x1000)):
        qtbot.keyClick(hexes, key, control)
        assert hexes.cursor_offset == offset
    qtbot.keyClick(hexes, Qt.Key.Key_Up)
    assert hexes.cursor_offset == 0x1000


def test_hex_view_click_finds_the_byte_under_the_pointer(hexes, qtbot):
    x = int(hexes._hex_x(5) + 4)
    qtbot.mouseClick(
        hexes.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(x, int(hexes._line * 2.5))
    )
    assert hexes.cursor_offset == 0x1000 + 2 * 16 + 5


def test_hex_view_of_nothing_paints(hexes, qtbot):
    hexes.show_data(memoryview(b""))
    hexes.go_to(5)
    qtbot.keyClick(hexes, Qt.Key.Key_Down)
    assert not QPixmap(hexes.grab()).isNull()


@pytest.mark.parametrize(("size", "rows"), [(0, 0), (1, 1), (16, 1), (17, 2)])
def test_hex_rows_cover_every_byte_once(size, rows):
    data = memoryview(bytes(range(size)))
    assert row_count(size) == rows
    found = hex_rows(data, 0, 99)
    assert "".join("".join(row.cells) for row in found) == bytes(data).hex()
    assert all(len(row.text) == len(row.cells) for row in found)
