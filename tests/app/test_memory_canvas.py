"""The memory canvas: blocks at their address and step, peak, bounds, selection, keys, export."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QImage, QPainter
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from devtools_app.appearance.colours import NOT_DELEGATED
from devtools_app.appearance.look import BASE_SIZE
from devtools_app.appearance.theme import Theme
from devtools_app.viewmodels.canvas_data import MemoryData
from devtools_app.widgets import memory_canvas_paint
from devtools_app.widgets.graph_canvas_text import TextCache
from devtools_app.widgets.memory_canvas import MemoryCanvas
from devtools_app.widgets.memory_canvas_paint import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    MemoryDrawing,
    MemoryMarks,
    screen_boxes,
)
from tests.app.canvas_colours import colours

pytestmark = pytest.mark.gui
KIB = 1024


def plan(count: int = 0) -> MemoryData:
    """Return three values of 64 to 256 KiB over 10 steps, or many random ones."""
    if count:
        pick = np.random.default_rng(2)
        first = pick.integers(0, 500, count)
        return MemoryData(
            names=tuple(f"value_{i}" for i in range(count)),
            first=first,
            last=first + pick.integers(0, 9, count),
            offset=pick.integers(0, 2**20, count),
            nbytes=pick.integers(0, 2**14, count),
            colour=pick.integers(-2, 4, count),
            strong=pick.random(count) < 0.1,
            steps=510,
            planned_bytes=2**20 + 2**14,
        )
    return MemoryData(
        names=("linear", "mul_1", "add_3"),
        first=np.array([0, 2, 5]),
        last=np.array([4, 6, 9]),
        offset=np.array([0, 256 * KIB, 0]),
        nbytes=np.array([256 * KIB, 64 * KIB, 128 * KIB]),
        colour=np.array([0, NOT_DELEGATED, 1]),
        strong=np.array([True, True, False]),
        steps=10,
        planned_bytes=320 * KIB,
        peak_step=2,
        peak_bytes=320 * KIB,
        lower_bound_bytes=300 * KIB,
        planner="greedy",
    )


@pytest.fixture
def canvas(qtbot: QtBot) -> MemoryCanvas:
    widget = MemoryCanvas(colours())
    widget.resize(800, 500)
    qtbot.addWidget(widget)
    widget.set_data(plan())
    widget.show()
    qtbot.waitExposed(widget)
    return widget


def middle(canvas: MemoryCanvas, value: int) -> QPoint:
    assert canvas.data is not None
    x, y, w, h = screen_boxes(canvas.data, canvas.camera, canvas.size())[value].tolist()
    return QPointF(x + w / 2, y + h / 2).toPoint()


def texts(path: Path) -> str:
    return "\n".join("".join(e.itertext()) for e in ET.parse(path).iter() if e.tag.endswith("text"))


def test_screen_boxes_place_address_upwards_and_step_to_the_right(canvas: MemoryCanvas) -> None:
    assert canvas.data is not None
    boxes = screen_boxes(canvas.data, canvas.camera, QSize(800, 500))
    linear, mul, add = boxes.tolist()
    assert linear[0] == pytest.approx(LEFT)
    assert linear[1] + linear[3] == pytest.approx(500 - BOTTOM)
    assert mul[1] + mul[3] == pytest.approx(linear[1])
    assert mul[0] == pytest.approx(LEFT + 2 * canvas.camera.sx)
    assert linear[2] == pytest.approx(5 * canvas.camera.sx)  # the last step is inclusive
    assert add[3] == pytest.approx(linear[3] / 2)


def test_canvas_svg_names_peak_plan_bound_values_and_axes(
    canvas: MemoryCanvas, tmp_path: Path
) -> None:
    canvas.render_to_svg(tmp_path / "m.svg")
    found = texts(tmp_path / "m.svg")
    for text in (
        "peak 320 KiB live",
        "planned 320 KiB (greedy)",
        "lower bound 300 KiB",
        "linear · 256 KiB",
        "instruction",
        "256 KiB",
    ):
        assert text in found, text


def test_canvas_without_peak_and_bound_claims_none(canvas: MemoryCanvas, tmp_path: Path) -> None:
    canvas.set_data(plan(40))
    canvas.render_to_svg(tmp_path / "m.svg")
    found = texts(tmp_path / "m.svg")
    assert "peak" not in found
    assert "lower bound" not in found
    assert "planned" in found


def test_canvas_strong_value_is_darker_than_a_tinted_one(canvas: MemoryCanvas) -> None:
    image = canvas.render_to_image(1.0)
    strong = image.pixelColor(middle(canvas, 0) + QPoint(0, 30))
    palette = colours()
    assert abs(strong.blue() - QColor(palette.backend(0)).blue()) < 14
    tinted = image.pixelColor(middle(canvas, 2) + QPoint(0, 30))
    assert tinted.lightness() > QColor(palette.backend(1)).lightness() + 20


def test_click_selects_the_value_and_tells_its_number(canvas: MemoryCanvas, qtbot: QtBot) -> None:
    for value in range(3):
        with qtbot.waitSignal(canvas.selected) as told:
            qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=middle(canvas, value))
        assert told.args == [value]
    assert "add_3" in canvas.accessibleDescription()


def test_double_click_means_the_value_that_was_pressed_if_others_move_meanwhile(
    canvas: MemoryCanvas, qtbot: QtBot
) -> None:
    at, left = middle(canvas, 1), Qt.MouseButton.LeftButton
    qtbot.mouseClick(canvas, left, pos=at)
    canvas.resize(260, 500)  # as when a panel comes with the selection
    with qtbot.waitSignal(canvas.activated, timeout=1000) as told:
        qtbot.mouseDClick(canvas, left, pos=at)
    assert told.args == [1]


def test_click_on_the_axis_selects_the_step(canvas: MemoryCanvas, qtbot: QtBot) -> None:
    x = round(LEFT + 3.5 * canvas.camera.sx)
    with qtbot.waitSignal(canvas.step_selected) as told:
        qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=QPoint(x, 480))
    assert told.args == [3]
    assert canvas.marks.step == 3


def test_value_at_takes_the_smallest_of_overlapping_blocks(canvas: MemoryCanvas) -> None:
    data = plan()
    small = data.nbytes.copy()
    small[1] = 16 * KIB
    inside = MemoryData(
        data.names,
        data.first,
        data.last,
        np.array([0, 64 * KIB, 0]),
        small,
        data.colour,
        data.strong,
        10,
        data.planned_bytes,
    )
    canvas.set_data(inside)
    assert canvas.hit(QPointF(middle(canvas, 1))) == 1


def test_words_give_exact_size_address_and_lifetime(canvas: MemoryCanvas) -> None:
    assert canvas.hover_text(1).splitlines() == [
        "mul_1",
        "64 KiB (65,536 B) at 0x40000",
        "live from instruction 2 to 6",
    ]


def test_arrow_keys_walk_in_time_and_address(canvas: MemoryCanvas, qtbot: QtBot) -> None:
    canvas.set_selected(0)
    found = []
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Left, Qt.Key.Key_Up, Qt.Key.Key_Down):
        qtbot.keyClick(canvas, key)
        found.append(canvas.marks.selected)
    assert found == [1, 0, 1, 2]


def test_f_shows_the_value_then_everything(canvas: MemoryCanvas, qtbot: QtBot) -> None:
    whole = canvas.camera
    canvas.set_selected(1)
    qtbot.keyClick(canvas, Qt.Key.Key_F)
    assert canvas.camera.sy > whole.sy
    qtbot.keyClick(canvas, Qt.Key.Key_F)
    assert canvas.camera == whole


@pytest.mark.parametrize("axes", ["xy", "x", "y"])
def test_zoom_keeps_the_point_and_the_other_axis(canvas: MemoryCanvas, axes: str) -> None:
    before = canvas.camera
    at = QPointF(300.0, 300.0)
    step = before.x + (at.x() - LEFT) / before.sx
    canvas.zoom(2.0, at, axes)
    after = canvas.camera
    assert after.x + (at.x() - LEFT) / after.sx == pytest.approx(step, abs=1e-6)
    assert (after.sx > before.sx) is ("x" in axes)
    assert (after.sy > before.sy) is ("y" in axes)


def test_zoom_out_stops_at_the_whole(canvas: MemoryCanvas) -> None:
    whole = canvas.camera
    canvas.zoom(0.01)
    assert canvas.camera == whole
    canvas.zoom(1e9)
    assert canvas.camera.sx < whole.sx * 1e5


def test_resize_keeps_the_whole_in_view(canvas: MemoryCanvas) -> None:
    canvas.resize(500, 300)
    assert canvas.data is not None
    boxes = screen_boxes(canvas.data, canvas.camera, canvas.size())
    assert (boxes[:, 0] + boxes[:, 2] <= 500).all()
    assert (boxes[:, 1] >= TOP).all()


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("count", [0, 5000])
def test_canvas_renders_in_every_look(
    canvas: MemoryCanvas, tmp_path: Path, dark: bool, count: int
) -> None:
    canvas.set_colours(colours(dark=dark))
    canvas.set_data(plan(count))
    canvas.set_step(4)
    canvas.render_to_png(tmp_path / "m.png", 1.5)
    image = QImage(str(tmp_path / "m.png"))
    assert (image.width(), image.height()) == (1200, 750)


def test_values_of_no_bytes_and_one_step_are_fine(canvas: MemoryCanvas) -> None:
    one = np.array([0])
    data = MemoryData(("a",), one, one, one, one, one, np.array([False]), 1, 0)
    canvas.set_data(data)
    assert canvas.render_to_image(1.0).width() == 800


@pytest.mark.parametrize("names", [("permute", "v8", "add"), ("v8", "permute", "add")])
@pytest.mark.parametrize(("steps", "labels"), [((0, 3), 2), ((4, 9), 3)])
def test_values_that_share_a_place_have_one_label(
    canvas: MemoryCanvas, monkeypatch, names: tuple[str, ...], steps: tuple[int, int], labels: int
) -> None:
    """A view has the place of its base: both names over each other cannot be read."""
    first, last = steps
    data = replace(
        plan(),
        names=names,
        first=np.array([0, first, 0]),
        last=np.array([3, last, 9]),
        offset=np.array([0, 0, 128 * KIB]),
        nbytes=np.array([128 * KIB] * 3),
    )
    named: list[str] = []

    def lines(painter: MemoryDrawing, value: int, _room: float, _height: float) -> list[str]:
        named.append(painter.data.names[value])
        return []

    monkeypatch.setattr(MemoryDrawing, "block_lines", lines)
    canvas.set_data(data)
    canvas.render_to_image(1.0)
    assert {"permute", "add"} <= set(named)
    assert len(named) == labels


@pytest.mark.parametrize("height", [15.0, 60.0])
@pytest.mark.parametrize("share", [0.3, 0.75, 1.0])
def test_blocks_keep_the_number_of_their_name_and_their_bytes(
    qapp: QApplication, share: float, height: float
) -> None:
    data = replace(plan(), names=("aten_convolution_default_12", "", ""))
    texts = TextCache()
    painter = MemoryDrawing(data, colours(), texts)
    metrics = texts.font(colours(), 11)[1]
    whole = f"{data.names[0]} · 256 KiB"
    room = share * metrics.horizontalAdvance(whole) + 1
    lines = painter.block_lines(0, room, height)
    assert all(metrics.horizontalAdvance(line) <= room for line in lines)
    if share == 1.0:
        assert lines == [whole]
    elif height > 15 or share == 0.3:
        assert lines[0].endswith("_12")
        assert (lines[1:] == ["256 KiB"]) == (height > 15)
    else:
        assert lines[0].startswith("convolution_")
        assert lines[0].endswith("…_12 · 256 KiB")


class TextRecorder(QPainter):
    """A painter that keeps where each text is."""

    def __init__(self, image: QImage) -> None:
        super().__init__(image)
        self.places: list[tuple[str, QRectF]] = []

    def drawText(self, *args: Any) -> Any:  # noqa: N802  # pyright: ignore
        at, text = args
        metrics = QFontMetricsF(self.font())
        place = QRectF(at.x(), at.y() - metrics.ascent(), 0, metrics.ascent())
        place.setWidth(metrics.horizontalAdvance(text))
        self.places.append((text, place))
        return super().drawText(at, text)


@pytest.mark.parametrize("size", [BASE_SIZE, 2 * BASE_SIZE])
@pytest.mark.parametrize("nbytes", [20, 40, 60, 200])
def test_labels_of_bounds_cover_no_name(theme: Theme, size: int, nbytes: int) -> None:
    """Blocks as wide as the plot leave the label of the lower bound no free place."""
    theme.set_size(size)
    data = replace(
        plan(),
        first=np.array([6, 0, 0]),
        last=np.array([9, 5, 9]),
        offset=np.array([300 - nbytes, 300 - nbytes, 0]) * KIB,
        nbytes=np.array([nbytes, nbytes, 40]) * KIB,
    )
    canvas = MemoryCanvas(theme.canvas)
    canvas.resize(560, 380)
    canvas.set_data(data)
    image = QImage(560, 380, QImage.Format.Format_RGB32)
    painter, drawing = TextRecorder(image), MemoryDrawing(data, theme.canvas, TextCache())
    drawing.paint(painter, canvas.size(), canvas.camera, MemoryMarks())
    painter.end()
    places = painter.places
    theme.set_size(BASE_SIZE)
    (bound,) = (place for text, place in places if "lower bound" in text)
    names = [(text, place) for text, place in places if "KiB" in text or text in data.names]
    assert any(text.startswith("linear") for text, _ in places) or nbytes < 60
    assert not [text for text, one in names if one != bound and one.intersects(bound)]


@pytest.mark.parametrize("steps", [3_000, 20_000])
@pytest.mark.parametrize("places", [1, 2, 3])
def test_values_thinner_than_a_pixel_fill_their_pixels_once(
    canvas: MemoryCanvas, monkeypatch, steps: int, places: int
) -> None:
    at = np.arange(steps)
    data = replace(
        plan(),
        names=tuple(f"v{one}" for one in range(steps)),
        first=at,
        last=at,
        offset=at % places * 64 * KIB,
        nbytes=np.full(steps, 64 * KIB),
        colour=np.zeros(steps, np.int64),
        strong=np.ones(steps, np.bool_),
        steps=steps,
        planned_bytes=64 * KIB * places,
        peak_step=None,
        lower_bound_bytes=None,
    )
    drawn: list[int] = []
    paint = memory_canvas_paint.draw_rects
    monkeypatch.setattr(
        memory_canvas_paint,
        "draw_rects",
        lambda painter, rects: (drawn.append(len(rects)), paint(painter, rects)),
    )
    canvas.set_data(data)
    image = canvas.render_to_image(1.0)
    wide = int(canvas.width() - LEFT - RIGHT)
    assert sum(drawn) <= places * (wide + 1)
    for place in range(places):
        box = screen_boxes(data, canvas.camera, canvas.size())[place]
        y = round(float(box[1] + box[3] / 2))
        row = {image.pixelColor(round(LEFT) + x, y).name() for x in range(2, wide - 2)}
        assert len(row) == 1, f"a gap at place {place}"
    canvas.set_selected(5)
    drawn.clear()
    canvas.render_to_image(1.0)
    assert sum(drawn) <= places * (wide + 1)
