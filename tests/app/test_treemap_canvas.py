"""The treemap canvas: cells, looking into parts and out again, words, keys, export."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QImage
from pytestqt.qtbot import QtBot

from devtools_app.viewmodels.canvas_data import TreemapData
from devtools_app.widgets.treemap_canvas import TreemapCanvas
from tests.app.canvas_colours import colours

pytestmark = pytest.mark.gui
FILE, CONSTANTS, DELEGATE, WEIGHT, BIAS, BLOB, TABLES = range(7)


def parts(tiny: int = 0) -> TreemapData:
    """Return a file of constants, a delegate and tables, and some parts of one byte."""
    names = ["model.pte", "constants", "delegate 0", "conv.weight", "conv.bias", "blob", "tables"]
    nbytes = [1000_000, 600_000, 300_000, 500_000, 100_000, 300_000, 100_000]
    parent = [-1, 0, 0, 1, 1, 2, 0]
    names += [f"tiny {i}" for i in range(tiny)]
    nbytes += [1] * tiny
    parent += [0] * tiny
    nbytes[0] += tiny
    return TreemapData(
        tuple(names),
        np.array(nbytes, np.int64),
        np.array(parent, np.int64),
        np.array([0, 0, 1, 0, 0, 1, -2] + [-1] * tiny, np.int64),
        ("file", "group", "group", "constant", "constant", "payload", "table") + ("gap",) * tiny,
    )


@pytest.fixture
def canvas(qtbot: QtBot) -> TreemapCanvas:
    widget = TreemapCanvas(colours())
    widget.resize(900, 600)
    qtbot.addWidget(widget)
    widget.set_data(parts())
    widget.show()
    qtbot.waitExposed(widget)
    return widget


def inside(canvas: TreemapCanvas, part: int) -> QPoint:
    picture = canvas.drawing(canvas.size())
    assert picture is not None
    box = picture.box_of(part)
    assert box is not None
    return QPoint(round(box[0] + 8), round(box[1] + 8))


def texts(path: Path) -> str:
    return "\n".join("".join(e.itertext()) for e in ET.parse(path).iter() if e.tag.endswith("text"))


def test_canvas_svg_names_parts_sizes_and_the_whole(canvas: TreemapCanvas, tmp_path: Path) -> None:
    canvas.render_to_svg(tmp_path / "z.svg")
    found = texts(tmp_path / "z.svg")
    for text in ("model.pte", "constants", "conv.weight", "488.3 KiB", "1,000,000 B"):
        assert text in found, text


def test_canvas_small_parts_become_one_named_cell(canvas: TreemapCanvas, tmp_path: Path) -> None:
    canvas.set_data(parts(60_000))
    canvas.render_to_svg(tmp_path / "z.svg")
    assert "60,000 smaller parts" in texts(tmp_path / "z.svg")
    picture = canvas.drawing(canvas.size())
    assert picture is not None
    gathered = next(cell for cell in picture.cells if cell.part < 0)
    x, y, w, h = gathered.box
    tip = canvas.tip_at(QPointF(x + w / 2, y + h / 2))
    assert "60,000 smaller parts of model.pte" in tip
    assert "60,000 B" in tip


def test_click_selects_the_innermost_part(canvas: TreemapCanvas, qtbot: QtBot) -> None:
    for part in (CONSTANTS, WEIGHT, BIAS, BLOB, TABLES):
        with qtbot.waitSignal(canvas.selected) as told:
            qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=inside(canvas, part))
        assert told.args == [part]


def test_double_click_looks_into_a_part_and_backspace_out_again(
    canvas: TreemapCanvas, qtbot: QtBot
) -> None:
    at, left = inside(canvas, CONSTANTS), Qt.MouseButton.LeftButton
    qtbot.mouseClick(canvas, left, pos=at)
    with qtbot.waitSignal(canvas.root_changed) as told:
        qtbot.mouseDClick(canvas, left, pos=at)
    assert told.args == [CONSTANTS]
    picture = canvas.drawing(canvas.size())
    assert picture is not None
    assert {cell.part for cell in picture.cells} == {WEIGHT, BIAS}
    qtbot.keyClick(canvas, Qt.Key.Key_Backspace)
    assert canvas.root == FILE
    assert canvas.marks.selected == CONSTANTS


def test_double_click_means_the_part_that_was_pressed_if_others_move_meanwhile(
    canvas: TreemapCanvas, qtbot: QtBot
) -> None:
    at, left = inside(canvas, CONSTANTS), Qt.MouseButton.LeftButton
    qtbot.mouseClick(canvas, left, pos=at)
    canvas.resize(at.x() + 20, at.y() // 2)  # as when a panel comes with the selection
    qtbot.mouseDClick(canvas, left, pos=at)
    assert canvas.root == CONSTANTS


def test_crumb_leads_back_to_the_whole(canvas: TreemapCanvas, qtbot: QtBot) -> None:
    canvas.set_root(CONSTANTS)
    canvas.repaint()
    qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=QPoint(20, 14))
    assert canvas.root == FILE


def test_enter_on_a_leaf_tells_it_was_activated(canvas: TreemapCanvas, qtbot: QtBot) -> None:
    canvas.set_selected(TABLES)
    with qtbot.waitSignal(canvas.activated) as told:
        qtbot.keyClick(canvas, Qt.Key.Key_Return)
    assert told.args == [TABLES]
    assert canvas.root == FILE


def test_set_selected_of_an_unseen_part_looks_into_the_part_around(canvas: TreemapCanvas) -> None:
    canvas.resize(150, 130)
    canvas.set_selected(BIAS)
    assert canvas.root in (CONSTANTS, FILE)
    picture = canvas.drawing(canvas.size())
    assert picture is not None
    assert picture.box_of(BIAS) is not None


def test_arrow_keys_go_to_the_nearest_cell(canvas: TreemapCanvas, qtbot: QtBot) -> None:
    canvas.set_selected(WEIGHT)
    seen = {WEIGHT}
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Down, Qt.Key.Key_Right, Qt.Key.Key_Up):
        qtbot.keyClick(canvas, key)
        seen.add(canvas.marks.selected)
    assert len(seen) >= 3
    assert seen <= {WEIGHT, BIAS, BLOB, TABLES}


def test_words_give_path_kind_exact_bytes_and_shares(canvas: TreemapCanvas) -> None:
    words = canvas.hover_text(BIAS).splitlines()
    assert words[0] == "constants › conv.bias"
    assert words[1] == "constant"
    assert "100,000 B" in words[2]
    assert "10 %" in words[2]
    assert words[3] == "16.7 % of constants"


def test_hover_tells_the_part(canvas: TreemapCanvas, qtbot: QtBot) -> None:
    with qtbot.waitSignal(canvas.hovered) as told:
        qtbot.mouseMove(canvas, inside(canvas, BLOB))
    assert told.args == [BLOB]


def test_accessible_description_names_whole_and_selection(canvas: TreemapCanvas) -> None:
    canvas.set_selected(WEIGHT)
    description = canvas.accessibleDescription()
    assert description.startswith("model.pte, 976.6 KiB, 6 parts in all")
    assert "conv.weight" in description


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("tiny", [0, 50_000])
def test_canvas_renders_in_every_look(
    canvas: TreemapCanvas, tmp_path: Path, dark: bool, tiny: int
) -> None:
    canvas.set_colours(colours(dark=dark))
    canvas.set_data(parts(tiny))
    canvas.render_to_png(tmp_path / "z.png", 2.0)
    image = QImage(str(tmp_path / "z.png"))
    assert (image.width(), image.height()) == (1800, 1200)


def test_part_without_bytes_is_an_empty_canvas(canvas: TreemapCanvas) -> None:
    nothing = np.zeros(1, np.int64)
    canvas.set_data(TreemapData(("file",), nothing, nothing - 1, nothing))
    assert canvas.is_empty()
    assert canvas.accessibleDescription() == "Nothing to draw"
