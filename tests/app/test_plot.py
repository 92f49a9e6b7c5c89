"""Plots draw what is seen, once for all that changed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QVBoxLayout, QWidget

from devtools_app.appearance.theme import Theme
from devtools_app.widgets.call_plot import CallPlot
from devtools_app.widgets.chart import Chart
from devtools_app.widgets.gap_plots import GrowthPlot
from devtools_app.widgets.plot import Plot
from devtools_app.widgets.roofline_plot import RooflinePlot
from devtools_app.widgets.state_plot import StatePlot

pytestmark = pytest.mark.gui


class _Counting(Plot):
    drawn = 0

    def is_empty(self) -> bool:
        return False

    def draw(self, chart) -> None:
        self.drawn += 1
        chart.show_range((0.0, 1.0), (0.0, 1.0))


@pytest.fixture
def plot(qtbot, theme) -> _Counting:
    page = QWidget()
    qtbot.addWidget(page)
    found = _Counting(theme, "plot")
    QVBoxLayout(page).addWidget(found)
    page.resize(400, 300)
    found.page = page  # which is destroyed with its last reference
    return found


def test_first_drawing_is_an_event_after_its_surface(qtbot, plot, monkeypatch) -> None:
    turns: list[tuple[int, int]] = []  # surfaces and drawings, after each turn of the plot
    draw = _Counting._draw

    def noted(self: _Counting) -> None:
        draw(self)
        turns.append((len(self.findChildren(Chart)), self.drawn))
        assert self.waiting == (self.chart is None)

    monkeypatch.setattr(_Counting, "_draw", noted)
    plot.window().show()
    qtbot.waitUntil(lambda: plot.drawn > 0)
    assert turns[-2:] == [(1, 0), (1, 1)]
    assert plot.chart is not None


@pytest.mark.parametrize("changes", [1, 5])
def test_hidden_plot_is_drawn_when_it_is_shown(qtbot, plot, changes: int) -> None:
    for _ in range(changes):
        plot.redraw(whole=True)
    assert not plot.drawn
    plot.window().show()
    qtbot.waitUntil(lambda: plot.drawn > 0 and not plot.waiting)
    plot.window().hide()
    drawn = plot.drawn
    for _ in range(changes):
        plot.redraw()
    assert plot.drawn == drawn
    plot.window().show()
    assert plot.drawn == drawn + 1


def test_plot_that_is_resized_often_is_drawn_once(qtbot, plot) -> None:
    plot.window().show()
    qtbot.waitUntil(lambda: plot.drawn > 0 and not plot.waiting)
    drawn = plot.drawn
    for width in range(500, 420, -2):
        plot.resize(width, 280)
    assert plot.waiting
    assert plot.drawn == drawn
    qtbot.waitUntil(lambda: not plot.waiting)
    # twice where the layout of the page answers only after the first drawing
    assert drawn < plot.drawn <= drawn + 2


def test_plot_that_is_seen_is_drawn_at_once(qtbot, plot) -> None:
    plot.window().show()
    qtbot.waitUntil(lambda: plot.drawn > 0 and not plot.waiting)
    drawn = plot.drawn
    plot.redraw()
    assert plot.drawn == drawn + 1


@pytest.mark.parametrize("top", [1e-5, 0.82, 1.0, 4096.0, 3e9])
@pytest.mark.parametrize("side", ["left", "bottom"])
def test_titles_of_axes_have_no_factor_beside_the_unit_of_the_labels(
    qtbot, theme, top: float, side: str
) -> None:
    page = QWidget()
    qtbot.addWidget(page)
    page.resize(300, 200)
    chart = Chart(page)
    chart.resize(300, 200)
    chart.begin(theme.palette, theme.sans(), theme.palette.surface)
    chart.show_range((0.0, top), (0.0, top))
    chart.axis(side, [(0.0, "0"), (top, "82")], title="delegated / %")
    page.show()
    assert "delegated / %" in chart._item.getAxis(side).labelString()
    assert "(x" not in chart._item.getAxis(side).labelString()


@pytest.mark.parametrize(
    ("make", "down"),
    [
        (lambda theme: GrowthPlot(theme, 1e-12), 1),
        (CallPlot, 1),
        (StatePlot, 1),
        (RooflinePlot, -1),
    ],
)
def test_the_arrow_down_leads_to_the_next_row_where_points_are_rows_in_order(
    qtbot, theme: Theme, monkeypatch: pytest.MonkeyPatch, make: Callable[[Theme], Plot], down: int
) -> None:
    plot = make(theme)
    qtbot.addWidget(plot)
    taken: list[int] = []
    monkeypatch.setattr(plot, "step", lambda by: taken.append(by) or True)
    keys = (Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_Right, Qt.Key.Key_Left)
    for key in keys:
        qtbot.keyClick(plot, key)
    assert taken == [down, -down, 1, -1]
