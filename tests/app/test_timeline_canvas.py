"""The timeline canvas: drawing, selection, spans, keys, export."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QImage, QWheelEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from devtools_app.appearance.colours import NOT_DELEGATED
from devtools_app.viewmodels.canvas_data import TimelineData, TimelineLane
from devtools_app.widgets.timeline_canvas import TimelineCanvas
from devtools_app.widgets.timeline_places import LABELS, RULER
from inspector.units import Quantity
from tests.app.canvas_colours import colours

pytestmark = pytest.mark.gui
NAMES = ("forward", "delegate 0", "aten.erf", "unattributed", "Convolution")


def sample(quantity: Quantity = Quantity.TIME) -> TimelineData:
    """Return one run of 1 ms: method, operators, inside a delegate."""
    rows = (
        (0, 0.0, 1.0, -1, 0, False),
        (1, 0.0, 0.4, 0, 1, False),
        (1, 0.4, 0.8, NOT_DELEGATED, 2, False),
        (1, 0.8, 1.0, -1, 3, True),
        (2, 0.1, 0.3, 0, 4, False),
    )
    table = list(zip(*rows, strict=True))
    return TimelineData(
        lanes=(
            TimelineLane("method", "run 1"),
            TimelineLane("operators", "run 1", 1),
            TimelineLane("delegate 0", "run 1", 2),
        ),
        lane=np.array(table[0], np.int64),
        start=np.array(table[1]) * 1e6,
        end=np.array(table[2]) * 1e6,
        colour=np.array(table[3], np.int64),
        label=np.array(table[4], np.int64),
        names=NAMES,
        unattributed=np.array(table[5], np.bool_),
        quantity=quantity,
    )


def many(count: int, lanes: int) -> TimelineData:
    pick = np.random.default_rng(0)
    long = pick.lognormal(5, 1.0, (lanes, count))
    end = np.cumsum(long + pick.exponential(50, (lanes, count)), axis=1)
    return TimelineData(
        lanes=tuple(TimelineLane(f"lane {i}", f"run {i // 4}", i % 4) for i in range(lanes)),
        lane=np.repeat(np.arange(lanes), count),
        start=(end - long).ravel(),
        end=end.ravel(),
        colour=pick.integers(-2, 6, lanes * count),
        label=pick.integers(0, 5, lanes * count),
        names=NAMES,
        unattributed=np.zeros(lanes * count, np.bool_),
    )


@pytest.fixture
def canvas(qtbot: QtBot) -> TimelineCanvas:
    widget = TimelineCanvas(colours())
    widget.resize(1000, 300)
    qtbot.addWidget(widget)
    widget.set_data(sample())
    widget.show()
    qtbot.waitExposed(widget)
    return widget


def at(canvas: TimelineCanvas, row: int) -> QPoint:
    """Return the pixel in the middle of an event."""
    data = canvas.data
    assert data is not None
    time = float(data.start[row] + data.end[row]) / 2
    x = LABELS + (time - canvas.camera.x) * canvas.camera.sx
    found = [y for y in range(canvas.height()) if canvas.hit(QPointF(x, y)) == row]
    return QPoint(round(x), found[len(found) // 2])


def texts(path: Path) -> str:
    return "\n".join("".join(e.itertext()) for e in ET.parse(path).iter() if e.tag.endswith("text"))


def test_canvas_svg_names_lanes_events_and_units(canvas: TimelineCanvas, tmp_path: Path) -> None:
    canvas.render_to_svg(tmp_path / "t.svg")
    found = texts(tmp_path / "t.svg")
    for text in ("run 1", "operators", "forward", "aten.erf", "unattributed", "0.4 ms", " shown"):
        assert text in found, text


def test_canvas_ticks_are_never_shown_as_time(qtbot: QtBot, tmp_path: Path) -> None:
    widget = TimelineCanvas(colours())
    widget.resize(900, 250)
    qtbot.addWidget(widget)
    widget.set_data(sample(Quantity.TICKS))
    widget.render_to_svg(tmp_path / "t.svg")
    found = texts(tmp_path / "t.svg")
    assert "ticks" in found
    assert " ms" not in found
    assert "ticks" in widget.hover_text(2)


def test_canvas_event_has_its_colour_and_unattributed_is_hatched(canvas: TimelineCanvas) -> None:
    image = canvas.render_to_image(1.0)
    delegate = image.pixelColor(at(canvas, 1) + QPoint(60, 0))
    assert delegate.blue() > delegate.red() + 60
    spot = at(canvas, 3)
    around = {
        image.pixel(spot.x() + dx, spot.y() + 8 * s) for dx in range(-30, 30) for s in (-1, 1)
    }
    assert len(around) > 1  # a plain block has one


def test_canvas_density_shows_many_narrow_events(qtbot: QtBot) -> None:
    widget = TimelineCanvas(colours())
    widget.resize(1000, 300)
    qtbot.addWidget(widget)
    widget.set_data(many(20000, 4))
    image = widget.render_to_image(1.0)
    surface = QColor(colours().surface)
    y = next(y for y in range(int(RULER), 300) if widget.hit(QPointF(600, y)) >= 0) + 8
    filled = sum(image.pixelColor(x, y) != surface for x in range(int(LABELS) + 30, 970))
    assert filled > 770  # of 784


def test_click_selects_the_event_and_tells_its_row(canvas: TimelineCanvas, qtbot: QtBot) -> None:
    for row in range(5):
        with qtbot.waitSignal(canvas.selected) as told:
            qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=at(canvas, row))
        assert told.args == [row]
    assert "Convolution" in canvas.accessibleDescription()


@pytest.mark.parametrize("to_right", [False, True])
def test_click_keeps_what_is_below_the_pointer_where_a_panel_takes_room(
    canvas: TimelineCanvas, qtbot: QtBot, to_right: bool
) -> None:
    canvas.resize(800, 300)
    canvas.fit()
    lane = RULER + 60  # of the operators
    at = QPoint(760 if to_right else round(canvas.pixel_of(0.5e6)), lane)
    event = canvas.hit(QPointF(at))
    assert event >= 0
    qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=at)
    scale = canvas.camera.sx
    canvas.resize(500, 300)
    assert canvas.camera.sx == scale
    if to_right:  # it would lie below the panel
        assert LABELS < canvas.selected_left() < 500
    else:
        assert canvas.hit(QPointF(at)) == event
    canvas.resize(800, 300)
    canvas.select(-1)
    assert canvas.camera == canvas.whole()
    canvas.resize(1000, 300)  # which follows the room again
    assert canvas.camera == canvas.whole()


def test_set_selected_several_events_tells_nobody(canvas: TimelineCanvas, qtbot: QtBot) -> None:
    with qtbot.assertNotEmitted(canvas.selected):
        canvas.set_selected([1, 4])
    assert canvas.marks.selected == {1, 4}


def test_shift_drag_selects_a_span_and_escape_takes_it_back(
    canvas: TimelineCanvas, qtbot: QtBot, tmp_path: Path
) -> None:
    left, shift = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ShiftModifier
    start = at(canvas, 2)
    with qtbot.waitSignal(canvas.span_selected) as told:
        qtbot.mousePress(canvas, left, shift, start)
        qtbot.mouseMove(canvas, start + QPoint(40, 5))
        qtbot.mouseMove(canvas, start + QPoint(80, 5))
        qtbot.mouseRelease(canvas, left, shift, start + QPoint(80, 5))
    low, high = told.args
    assert (high - low) * canvas.camera.sx == pytest.approx(80, abs=1)
    canvas.render_to_svg(tmp_path / "t.svg")
    assert "0.0" in texts(tmp_path / "t.svg")
    qtbot.keyClick(canvas, Qt.Key.Key_Escape)
    assert canvas.marks.span is None


def test_drag_in_the_ruler_selects_a_span_too(canvas: TimelineCanvas, qtbot: QtBot) -> None:
    left = Qt.MouseButton.LeftButton
    with qtbot.waitSignal(canvas.span_selected):
        qtbot.mousePress(canvas, left, pos=QPoint(400, 10))
        qtbot.mouseMove(canvas, QPoint(430, 10))
        qtbot.mouseRelease(canvas, left, pos=QPoint(430, 10))


def wheel(canvas: TimelineCanvas, where: QPointF, steps: int) -> None:
    event = QWheelEvent(
        where,
        canvas.mapToGlobal(where),
        QPoint(),
        QPoint(0, steps),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(canvas, event)


def test_wheel_zooms_at_the_pointer_and_not_beyond_the_whole(canvas: TimelineCanvas) -> None:
    where = QPointF(700.0, 100.0)
    before, scale = canvas.time_at(700.0), canvas.camera.sx
    wheel(canvas, where, 600)
    assert canvas.time_at(700.0) == pytest.approx(before)
    assert canvas.camera.sx > scale * 1.5
    for _ in range(20):
        wheel(canvas, where, -1200)
    assert canvas.camera.sx == pytest.approx(scale)


def test_zoom_to_shows_the_span(canvas: TimelineCanvas) -> None:
    canvas.zoom_to(0.2e6, 0.3e6)
    assert canvas.time_at(LABELS) <= 0.2e6
    assert canvas.time_at(1000) >= 0.3e6
    assert canvas.time_at(1000) - canvas.time_at(LABELS) < 0.15e6


def test_arrow_keys_walk_in_time_and_between_lanes(canvas: TimelineCanvas, qtbot: QtBot) -> None:
    canvas.set_selected([1])
    found = []
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Left, Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_Up):
        qtbot.keyClick(canvas, key)
        found.append(min(canvas.marks.selected))
    assert found == [2, 1, 4, 1, 0]


def test_f_shows_the_selection_then_everything(canvas: TimelineCanvas, qtbot: QtBot) -> None:
    whole = canvas.camera
    canvas.set_selected([4])
    qtbot.keyClick(canvas, Qt.Key.Key_F)
    assert canvas.camera.sx > 3 * whole.sx
    qtbot.keyClick(canvas, Qt.Key.Key_F)
    assert canvas.camera == whole


def test_enter_tells_the_event_was_activated(canvas: TimelineCanvas, qtbot: QtBot) -> None:
    canvas.set_selected([2])
    with qtbot.waitSignal(canvas.activated) as told:
        qtbot.keyClick(canvas, Qt.Key.Key_Return)
    assert told.args == [2]


def test_words_give_exact_duration_and_share(canvas: TimelineCanvas) -> None:
    words = canvas.hover_text(2)
    assert "aten.erf" in words
    assert "400,000 ns" in words
    assert "40 %" in words
    assert "run 1 · operators" in words


def test_pan_stays_within_the_time_there_is(canvas: TimelineCanvas) -> None:
    canvas.zoom(4.0)
    canvas.pan(1e9, 1e9)
    assert canvas.camera.x >= -0.05e6
    canvas.pan(-1e9, -1e9)
    assert canvas.time_at(1000) <= 1.05e6


def test_many_lanes_scroll_to_the_selected_event(qtbot: QtBot) -> None:
    widget = TimelineCanvas(colours())
    widget.resize(800, 200)
    qtbot.addWidget(widget)
    widget.set_data(many(50, 40))
    widget.show()
    widget.set_selected([39 * 50 + 3])
    assert at(widget, 39 * 50 + 3).y() > RULER


@pytest.mark.parametrize("flame", [False, True])
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_canvas_renders_in_every_look(
    canvas: TimelineCanvas, tmp_path: Path, flame: bool, dark: bool, scale: float
) -> None:
    canvas.set_flame(flame)
    canvas.set_colours(colours(dark=dark))
    canvas.render_to_png(tmp_path / "t.png", scale)
    image = QImage(str(tmp_path / "t.png"))
    assert (image.width(), image.height()) == (round(1000 * scale), round(300 * scale))


def test_event_of_no_duration_can_be_seen_and_hit(qtbot: QtBot) -> None:
    data = sample()
    end = data.end.copy()
    end[4] = data.start[4]
    widget = TimelineCanvas(colours())
    widget.resize(1000, 300)
    qtbot.addWidget(widget)
    widget.set_data(
        TimelineData(
            data.lanes,
            data.lane,
            data.start,
            end,
            data.colour,
            data.label,
            data.names,
            data.unattributed,
        )
    )
    assert at(widget, 4).y() > RULER
