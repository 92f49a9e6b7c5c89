"""Large text enlarges the drawings as a whole: words, lanes, rulers, maps, and where a click is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, QSize, Qt
from PySide6.QtGui import QFontInfo, QFontMetricsF, QImage
from pytestqt.qtbot import QtBot

from devtools_app.appearance.look import BASE_SIZE
from devtools_app.appearance.theme import Theme
from devtools_app.viewmodels.canvas_data import LegendEntry, Swatch
from devtools_app.viewmodels.layout.cluster_tree import expand_all
from devtools_app.viewmodels.layout.engine import lay_out
from devtools_app.widgets.canvas import Canvas
from devtools_app.widgets.graph_canvas import GraphCanvas
from devtools_app.widgets.legend import Legend, fitting
from devtools_app.widgets.live_curve import LiveCurve
from devtools_app.widgets.memory_canvas import MemoryCanvas
from devtools_app.widgets.memory_canvas_paint import LEFT, RIGHT
from devtools_app.widgets.time_strip import TimeStrip
from devtools_app.widgets.timeline_canvas import TimelineCanvas
from devtools_app.widgets.treemap_canvas import TreemapCanvas
from inspector.profile.instruction_times import InstructionTimes
from tests.app import (
    test_graph_canvas,
    test_memory_canvas,
    test_timeline_canvas,
    test_treemap_canvas,
)
from tests.app.canvas_colours import colours
from tests.app.layout_scenes import transformer

pytestmark = pytest.mark.gui
ROOM = QSize(65 * BASE_SIZE, 40 * BASE_SIZE)  # whole pixels with each size of text
Drawn = TypeVar("Drawn", bound=Canvas)
SIZES = [BASE_SIZE * 3 // 2, BASE_SIZE * 2, BASE_SIZE * 3]


def timeline() -> TimelineCanvas:
    canvas = TimelineCanvas(colours())
    canvas.set_data(test_timeline_canvas.sample())
    canvas.set_flags(((2e5, 4e5),))
    return canvas


def many_events() -> TimelineCanvas:
    canvas = TimelineCanvas(colours())
    canvas.set_data(test_timeline_canvas.many(20_000, 6))
    return canvas


def memory() -> MemoryCanvas:
    canvas = MemoryCanvas(colours())
    canvas.set_data(test_memory_canvas.plan())
    return canvas


def sizes() -> TreemapCanvas:
    canvas = TreemapCanvas(colours())
    canvas.set_data(test_treemap_canvas.parts(tiny=400))
    return canvas


def graph() -> GraphCanvas:
    canvas = GraphCanvas(colours())
    scene = test_graph_canvas.sample()
    canvas.set_graph(lay_out(scene, expand_all(scene.tree)))
    return canvas


def large_graph() -> GraphCanvas:
    canvas = GraphCanvas(colours())
    scene = transformer(6)
    canvas.set_graph(lay_out(scene, expand_all(scene.tree)))
    return canvas


DRAWINGS = [timeline, many_events, memory, sizes, graph, large_graph]
MAKES = pytest.mark.parametrize("make", DRAWINGS, ids=lambda make: make.__name__)


def shown(qtbot: QtBot, canvas: Drawn, text: int) -> Drawn:
    """Return a canvas with text of a size, and room in proportion."""
    canvas.set_colours(colours(text=text))
    canvas.resize(ROOM * canvas.colours.scale)
    qtbot.addWidget(canvas)
    canvas.show()
    qtbot.waitExposed(canvas)
    return canvas


def pixels(image: QImage) -> np.ndarray:
    image = image.convertToFormat(QImage.Format.Format_RGB32)
    table = np.frombuffer(bytes(image.constBits()), np.uint8)
    return table.reshape(image.height(), image.bytesPerLine() // 4, 4)[:, : image.width(), :3]


def difference(one: QImage, two: QImage) -> float:
    """Return the mean difference of two images, of 255."""
    a, b = pixels(one).astype(np.int16), pixels(two).astype(np.int16)
    assert a.shape == b.shape
    return float(np.abs(a - b).mean())


@MAKES
@pytest.mark.parametrize("text", SIZES)
def test_a_drawing_with_large_text_is_the_usual_one_enlarged(
    qtbot: QtBot, make: Callable[[], Canvas], text: int
) -> None:
    usual, large = shown(qtbot, make(), BASE_SIZE), shown(qtbot, make(), text)
    scale = large.colours.scale
    wanted, found = usual.render_to_image(scale), large.render_to_image(1.0)
    plain = shown(qtbot, make(), BASE_SIZE)
    plain.resize(ROOM * scale)
    # lines of one pixel stay as thin as they are
    assert difference(wanted, found) < 1.5
    assert difference(plain.render_to_image(1.0), found) > 1.5 * difference(wanted, found)


@MAKES
def test_a_change_of_text_size_and_back_leaves_the_same_drawing(
    qtbot: QtBot, make: Callable[[], Canvas]
) -> None:
    canvas = shown(qtbot, make(), BASE_SIZE)
    before = canvas.render_to_image(1.0)
    canvas.set_colours(colours(text=2 * BASE_SIZE))
    qtbot.wait(1)
    assert canvas.render_to_image(1.0) != before
    canvas.set_colours(colours())
    qtbot.wait(1)
    assert canvas.render_to_image(1.0) == before


@pytest.mark.parametrize("text", [BASE_SIZE, *SIZES])
def test_clicks_and_hover_are_where_things_are_drawn(qtbot: QtBot, text: int) -> None:
    for made in (timeline(), memory(), sizes(), graph()):
        chosen: list[object] = []
        canvas = shown(qtbot, made, text)
        canvas.selected.connect(chosen.append)
        at = pixel_of_an_item(canvas)
        qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=at)
        assert len(chosen) == 1
        assert chosen != [-1]
        assert canvas.tip_at(canvas.spot(at))
        tall = canvas.height() / canvas.colours.scale
        assert canvas.spot(QPointF(canvas.rect().bottomRight())).y() < tall


def pixel_of_an_item(canvas: Canvas) -> QPoint:
    """Return a pixel of the widget at which something can be chosen, farthest from its corner."""
    scale = canvas.colours.scale
    grid = [(x, y) for x in range(6, ROOM.width(), 12) for y in range(6, ROOM.height(), 12)]
    for x, y in sorted(grid, key=sum, reverse=True):
        at = (QPointF(x, y) * scale).toPoint()
        if canvas.hit(QPointF(x, y)) >= 0 and canvas.hit(canvas.spot(at)) >= 0:
            return at
    raise AssertionError("nothing is drawn")


def test_the_map_and_the_legend_are_enlarged_within_the_widget(qtbot: QtBot) -> None:
    usual, large = shown(qtbot, large_graph(), BASE_SIZE), shown(qtbot, large_graph(), 26)
    for canvas in (usual, large):
        canvas.zoom(8.0)
        assert canvas.minimap.isVisible()
        assert canvas.rect().contains(canvas.minimap.geometry())
    assert large.minimap.size() == usual.minimap.size() * 2
    centres = []
    for canvas, scale in ((usual, 1), (large, 2)):
        at = QPointF(70, 60) * scale
        qtbot.mousePress(canvas.minimap, Qt.MouseButton.LeftButton, pos=at.toPoint())
        left, top, right, bottom = canvas.visible_part()
        centres.append(((left + right) / 2, (top + bottom) / 2))
    assert centres[0] == pytest.approx(centres[1], rel=0.01)


@pytest.mark.parametrize("text", [BASE_SIZE, *SIZES[:2]])
def test_strips_below_the_plan_have_its_columns(qtbot: QtBot, theme: Theme, text: int) -> None:
    theme.set_size(text)
    plan, strip, curve = memory(), TimeStrip(theme), LiveCurve(theme)
    scale = theme.scale
    shown(qtbot, plan, text)
    strip.show_times(InstructionTimes(np.arange(1.0, 11.0)))
    curve.show_live(np.arange(10), 3)
    for one in (strip, curve):
        qtbot.addWidget(one)
        one.resize(plan.width(), one.height())
        one.follow(plan.camera)
        one.show()
        qtbot.waitExposed(one)
    qtbot.waitUntil(lambda: curve.chart is not None and not curve.waiting)
    assert strip.height() == round(62 * scale)
    assert curve.height() == round(76 * scale)
    step = (plan.width() / scale - LEFT - RIGHT) / 10
    for number in range(10):
        x = (LEFT + (number + 0.5) * step) * scale
        assert strip.step_at(x) == number
        assert curve.pick(QPointF(x, curve.height() / 2)) == number
    assert strip.step_at(LEFT * scale - 2) is None


def test_an_exported_graph_is_whole_with_large_text(qtbot: QtBot, tmp_path) -> None:
    for text in (BASE_SIZE, 2 * BASE_SIZE):
        shown(qtbot, graph(), text).render_whole(tmp_path / f"{text}.png")
    one, two = (QImage(str(tmp_path / f"{text}.png")) for text in (BASE_SIZE, 2 * BASE_SIZE))
    assert two.size() == one.size() * 2
    assert difference(one.scaled(two.size()), two) < 12
    assert QFontInfo(colours(text=26).font).pixelSize() == 26


@pytest.mark.parametrize("text", [BASE_SIZE, *SIZES])
def test_a_line_of_a_legend_that_is_too_long_for_a_narrow_canvas_says_so(text: int) -> None:
    metrics = QFontMetricsF(colours(text=text).sized(12))
    words = "no times: open the ETDump of a run"
    whole = metrics.horizontalAdvance(words)
    for room in (40.0, whole / 2, whole, 2 * whole):
        shown = fitting(words, metrics, room)
        assert metrics.horizontalAdvance(shown) <= room
        assert shown == words if room > 1.5 * whole else shown.endswith("…")


def test_a_legend_draws_nothing_over_its_right_border(qtbot: QtBot) -> None:
    legend = Legend(colours(), line=True)
    qtbot.addWidget(legend)
    legend.set_entries([LegendEntry("no times: open the ETDump of a run", Swatch.PLAIN)])
    legend.resize(140, legend.heightForWidth(140))
    shown = pixels(legend.grab().toImage()).astype(np.int16)
    edge = shown[:, -3:]
    assert np.abs(edge - edge[0, 0]).max() < 8
