"""Batch drawing from numpy memory, contrast arithmetic, text shortening and text collisions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPen
from pytestqt.qtbot import QtBot

from devtools_app.appearance.colours import contrast, luminance
from devtools_app.appearance.paint_theme import ink_on, mix, readable
from devtools_app.widgets.batch import draw_lines, draw_rects
from devtools_app.widgets.graph_canvas_text import Occupied, TextCache
from tests.app.canvas_colours import colours

pytestmark = pytest.mark.gui
colour = st.integers(0, 0xFFFFFF).map(lambda value: f"#{value:06x}")


def blank() -> QImage:
    image = QImage(100, 80, QImage.Format.Format_RGB32)
    image.fill(QColor("#ffffff"))
    return image


def test_draw_rects_fills_each_rectangle(qtbot: QtBot) -> None:
    image = blank()
    with QPainter(image) as painter:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor("#ff0000"))
        draw_rects(painter, np.array([[10.0, 10, 20, 5], [50, 40, 3, 30]]))
    red = [(x, y) for x in range(100) for y in range(80) if image.pixel(x, y) == 0xFFFF0000]
    expected = {(x, y) for x in range(10, 30) for y in range(10, 15)}
    expected |= {(x, y) for x in range(50, 53) for y in range(40, 70)}
    assert set(red) == expected


def test_draw_lines_joins_both_ends(qtbot: QtBot) -> None:
    image = blank()
    with QPainter(image) as painter:
        painter.setPen(QPen(QColor("#0000ff"), 1))
        draw_lines(painter, np.array([[5.0, 5, 95, 5], [5, 70, 5, 20]]))
    for x, y in ((5, 5), (50, 5), (94, 5), (5, 45)):
        assert image.pixelColor(x, y) == QColor("#0000ff")
    assert image.pixelColor(50, 40) == QColor("#ffffff")


@pytest.mark.parametrize("draw", [draw_rects, draw_lines])
@pytest.mark.parametrize(
    "array",
    [np.zeros((3, 4), np.float32), np.zeros((3, 3)), np.zeros(4), np.zeros((2, 4), np.int64)],
)
def test_batch_other_memory_is_refused(qtbot: QtBot, draw, array: np.ndarray) -> None:
    image = blank()
    with QPainter(image) as painter, pytest.raises(ValueError, match="expected float64"):
        draw(painter, array)


@pytest.mark.parametrize("draw", [draw_rects, draw_lines])
def test_batch_takes_nothing_and_slices_with_gaps(qtbot: QtBot, draw) -> None:
    image = blank()
    with QPainter(image) as painter:
        painter.setPen(QColor("#00aa00"))
        draw(painter, np.zeros((0, 4)))
        wide = np.zeros((10, 8))
        wide[:, ::2] = [20.0, 20.0, 40.0, 20.0]
        draw(painter, wide[::3, ::2])
    assert image.pixelColor(40, 20) == QColor("#00aa00")


def test_batch_more_than_one_chunk_is_drawn_to_the_end(qtbot: QtBot) -> None:
    image = blank()
    rects = np.tile(np.array([1.0, 1, 2, 2]), (70000, 1))
    rects[-1] = [60, 60, 5, 5]
    with QPainter(image) as painter:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor("#123456"))
        draw_rects(painter, rects)
    assert image.pixelColor(62, 62) == QColor("#123456")


@pytest.mark.slow
@given(colour)
def test_ink_on_any_fill_can_be_read(fill: str) -> None:
    assert contrast(ink_on(fill), fill) >= 4.5


@given(colour, st.sampled_from(["#ffffff", "#f7f7f5", "#17181a", "#1f2226"]))
def test_readable_any_hue_reaches_text_contrast(hue: str, ground: str) -> None:
    assert contrast(readable(hue, ground, ink_on(ground)), ground) >= 4.5


@given(colour, colour, st.floats(0, 1))
def test_mix_lies_between(a: str, b: str, share: float) -> None:
    found = int(mix(a, b, share)[1:], 16)
    for shift in (0, 8, 16):
        low, high = sorted((int(a[1:], 16) >> shift & 255, int(b[1:], 16) >> shift & 255))
        assert low <= found >> shift & 255 <= high
    assert 0 <= luminance(mix(a, b, share)) <= 1


slow = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.slow
@slow
@given(st.text(max_size=60), st.integers(1, 400), st.sampled_from([8, 11, 13, 30]))
def test_fitted_text_is_never_wider_than_its_room(
    qtbot: QtBot, text: str, room: int, pixels: int
) -> None:
    cache = TextCache()
    short, width = cache.fitted(colours(), text, room, pixels)
    metrics = cache.font(colours(), pixels)[1]
    assert width <= room + 1
    assert metrics.horizontalAdvance(short) <= room + 1
    assert cache.fitted(colours(), text, room, pixels) == (short, width)


boxes = st.tuples(st.floats(-500, 500), st.floats(-500, 500), st.floats(1, 300), st.floats(1, 300))


@given(st.lists(boxes, max_size=40))
def test_occupied_never_gives_the_same_place_twice(
    wanted: list[tuple[float, float, float, float]],
) -> None:
    taken = Occupied()
    given_away = [box for box in wanted if taken.claim(*box)]
    for at, (x, y, w, h) in enumerate(given_away):
        for left, top, wide, high in given_away[at + 1 :]:
            apart = x >= left + wide or left >= x + w or y >= top + high or top >= y + h
            assert apart


def test_occupied_free_place_is_given() -> None:
    taken = Occupied()
    assert taken.claim(0, 0, 100, 10)
    assert not taken.claim(90, 5, 100, 10)
    assert taken.claim(100, 0, 100, 10)
