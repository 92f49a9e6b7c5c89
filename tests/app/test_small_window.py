"""Small windows: the middle keeps its room, nothing is cut, and all of it comes back."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QRect, Qt
from PySide6.QtWidgets import QApplication, QMainWindow, QPushButton, QWidget

from devtools_app.appearance.theme import Theme
from devtools_app.shell.dock_room import shares
from devtools_app.shell.first_size import fit_to_screen
from devtools_app.shell.window import MainWindow
from devtools_app.viewmodels.canvas_data import LegendEntry, Swatch
from devtools_app.viewmodels.headline import Slice
from devtools_app.views.graph import GraphPane
from devtools_app.views.memory import _Drawing
from devtools_app.widgets.command_text import CommandText
from devtools_app.widgets.empty_state import EmptyState, Need
from devtools_app.widgets.legend import Legend
from devtools_app.widgets.live_curve import LiveCurve
from devtools_app.widgets.memory_canvas import MemoryCanvas
from devtools_app.widgets.time_bar import TimeBar
from tests.app.view_bench import Bench
from tests.app.window_views import RECORDER_VIEWS, open_sample

pytestmark = [pytest.mark.gui, pytest.mark.slow]
CODE = "executorch_program.write_to_file(open('a_long_name_of_a_model.pte', 'wb'))"
LEFT, RIGHT = Qt.DockWidgetArea.LeftDockWidgetArea, Qt.DockWidgetArea.RightDockWidgetArea


@given(st.integers(0, 900), st.integers(0, 900), st.integers(-50, 2000), st.integers(0, 300))
@settings(max_examples=100, deadline=None)
def test_shares_give_what_lacks_as_far_as_they_can(
    left: int, right: int, short: int, least: int
) -> None:
    found = shares({LEFT: left, RIGHT: right}, short, least)
    given_up = left + right - sum(found.values())
    most = max(left - least, 0) + max(right - least, 0)
    assert given_up == min(max(short, 0), most)
    for area, size in ((LEFT, left), (RIGHT, right)):
        assert min(size, least) <= found[area] <= size
    if found[LEFT] < left and found[RIGHT] < right:
        assert abs(found[LEFT] - found[RIGHT]) <= 1


def _widths(window: MainWindow) -> tuple[int, int, int]:
    middle = window.centralWidget()
    assert middle is not None
    docks = window.docks.by_name
    return docks["left"].width(), middle.width(), docks["right"].width()


def test_panels_give_way_in_a_small_window_and_come_back(make_window, qtbot) -> None:
    window = make_window(views=RECORDER_VIEWS)
    window.resize(1280, 800)
    open_sample(window, qtbot)
    qtbot.waitUntil(lambda: _widths(window)[0] == 216)
    before = _widths(window)
    window.resize(820, 640)
    qtbot.waitUntil(lambda: _widths(window)[1] >= 430)
    left, _middle, right = _widths(window)
    assert left < before[0] or right < before[2]
    window.resize(1280, 800)
    qtbot.waitUntil(lambda: _widths(window) == before)


def test_panel_that_was_moved_in_a_small_window_stays_as_it_is(make_window, qtbot) -> None:
    window = make_window(views=RECORDER_VIEWS)
    open_sample(window, qtbot)
    window.resize(820, 640)
    qtbot.waitUntil(lambda: _widths(window)[1] >= 430)
    window.resizeDocks([window.docks.by_name["right"]], [180], Qt.Orientation.Horizontal)
    qtbot.waitUntil(lambda: _widths(window)[2] == 180)
    window.resize(1280, 800)
    qtbot.waitUntil(lambda: _widths(window)[1] > 700)
    assert _widths(window)[2] == 180


@pytest.mark.parametrize("width", [150, 260, 420, 1000])
def test_command_shows_every_letter_at_any_width(qtbot, theme: Theme, width: int) -> None:
    text = CommandText(CODE)
    qtbot.addWidget(text)
    text.setFont(theme.mono())
    text.resize(width, text.height())
    text.show()
    text.resize(width, text.height())
    room = text.viewport().height()
    assert text.lines() * text.fontMetrics().lineSpacing() <= room
    assert text.document().idealWidth() <= text.viewport().width()
    assert (text.lines() > 1) == (text.sizeHint().width() > width)


def test_command_of_an_empty_state_is_copied_whole_and_is_no_stop_for_tab(qtbot, theme) -> None:
    state = EmptyState(theme, Need("No trace", "Open one.", CODE))
    qtbot.addWidget(state)
    state.resize(300, 300)
    state.show()
    button = next(one for one in state.findChildren(QPushButton) if one.isVisible())
    button.click()
    assert QApplication.clipboard().text() == CODE
    command = state.findChild(CommandText)
    assert command is not None
    assert not command.focusPolicy() & Qt.FocusPolicy.TabFocus
    assert command.accessibleName().endswith(CODE)


@pytest.mark.parametrize("width", [180, 330, 900])
def test_parts_of_the_time_wrap_and_are_seen_whole(qtbot, theme: Theme, width: int) -> None:
    bar = TimeBar(theme)
    qtbot.addWidget(bar)
    words = ("delegates", "operators", "control", "unattributed")
    bar.show_slices(
        [Slice(word, 123400.0, 0.25, "123.4 µs", "123,400 ns", "timeline") for word in words]
    )
    bar.resize(width, bar.heightForWidth(width))
    bar.show()
    buttons = bar.findChildren(QPushButton)
    assert len(buttons) == len(words)
    boxes = [
        button.rect().translated(button.mapTo(bar, button.rect().topLeft())) for button in buttons
    ]
    assert all(bar.rect().contains(box) for box in boxes)
    assert not any(one.intersects(two) for one in boxes for two in boxes if one is not two)
    assert all(button.width() >= button.sizeHint().width() for button in buttons)


def test_legend_swatch_has_the_colour_that_is_painted(qtbot, theme: Theme) -> None:
    entries = [LegendEntry("XNNPACK", Swatch.FILL, 0)]
    shades = []
    for strength in (1.0, 0.5):
        legend = Legend(theme.canvas, line=True, strength=strength)
        qtbot.addWidget(legend)
        legend.resize(300, 40)
        legend.set_entries(entries)
        picture = legend.grab().toImage()
        shades.append(picture.pixelColor(17, 13).name())
    assert shades[0] == theme.canvas.reference(0).lower()
    assert shades[0] != shades[1]


@pytest.mark.parametrize(("height", "both"), [(200, False), (240, False), (320, True)])
def test_memory_plan_has_its_height_before_the_curve(qtbot, theme, height: int, both: bool) -> None:
    plan, curve = MemoryCanvas(theme.canvas), LiveCurve(theme)
    times = QWidget()
    drawing = _Drawing(theme, plan, (curve, times), QWidget())
    qtbot.addWidget(drawing)
    drawing.resize(400, 500)
    drawing.show()
    drawing.resize(400, height)
    qtbot.waitUntil(lambda: curve.isVisible() == both)
    assert times.isVisible() <= curve.isVisible()
    assert plan.height() >= 120


@pytest.mark.parametrize("width", [380, 430, 520, 900])
def test_tools_of_a_view_do_not_cover_each_other_at_any_width(qtbot, width: int) -> None:
    bench = Bench(qtbot, GraphPane)
    bench.pane.show_content()
    bench.pane.resize(width, 400)
    QApplication.processEvents()
    direct = Qt.FindChildOption.FindDirectChildrenOnly
    children = bench.pane._bar.findChildren(QWidget, options=direct)
    tools = [one for one in children if one.isVisible() and one.width() > 0]
    assert len(tools) > 5
    for one, other in combinations(tools, 2):
        inner = one.geometry().adjusted(2, 0, -2, 0)  # a frame may touch the next one
        assert not inner.intersects(other.geometry()), (one, other)


@pytest.mark.parametrize(
    ("screen", "size"),
    [((1280, 720), (1278, 686)), ((1920, 1080), (1280, 800)), ((1024, 768), (1022, 734))],
)
def test_the_first_window_lies_within_the_screen(qtbot, screen, size) -> None:
    window = QMainWindow()
    qtbot.addWidget(window)
    window.resize(1280, 800)
    fit_to_screen(window, QRect(0, 0, *screen))
    assert (window.width(), window.height()) == size
