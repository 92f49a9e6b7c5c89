"""The curve of live bytes is drawn in as many steps as its width shows, with every peak."""

from __future__ import annotations

import numpy as np
import pytest

from devtools_app.viewmodels.layout.camera import Camera
from devtools_app.viewmodels.layout.step_bins import step_bins
from devtools_app.widgets.live_curve import LiveCurve

WIDTH = 800


@pytest.mark.parametrize("steps", [1, 2, 7, 100, 4097, 50_001])
@pytest.mark.parametrize("most", [1, 3, 64, 2048])
@pytest.mark.parametrize("part", [(0.0, 1.0), (0.3, 0.31), (0.95, 1.4), (-0.5, 0.5)])
def test_bins_cover_what_is_seen_with_its_largest_values(
    steps: int, most: int, part: tuple[float, float]
) -> None:
    live = np.random.default_rng(steps).integers(0, 1 << 40, steps)
    low, high = part[0] * steps, part[1] * steps
    edges, largest = step_bins(live, low, high, most)
    seen = np.arange(max(int(np.floor(low)), 0), min(int(np.ceil(high)), steps))
    assert len(largest) <= most + 1
    assert edges[0] <= seen[0]
    assert edges[-1] > seen[-1]
    assert edges[-1] <= steps
    for left, right, value in zip(edges, edges[1:], largest, strict=False):
        assert value == live[left:right].max()


def test_bins_keep_their_edges_while_the_range_moves() -> None:
    live = np.arange(10_000)
    first, second = (set(step_bins(live, low, low + 5_000.0, 100)[0]) for low in (0.0, 1_333.0))
    assert len(first & second) >= 70


def test_bins_of_a_range_without_steps_are_none() -> None:
    for low, high in ((9.0, 12.0), (-4.0, -1.0), (3.0, 3.0)):
        edges, largest = step_bins(np.arange(5), low, high, 10)
        assert (len(edges), len(largest)) == (1, 0)


@pytest.mark.gui
def test_curve_of_many_steps_is_drawn_in_few_and_in_each_one_when_zoomed(qtbot, theme) -> None:
    live = np.random.default_rng(1).integers(1, 1 << 20, 50_000)
    live[31_234] = 1 << 21
    curve = LiveCurve(theme)
    qtbot.addWidget(curve)
    curve.resize(WIDTH, curve.height())
    curve.follow(Camera(0.0, 0.0, WIDTH / len(live), 1.0))
    curve.show()
    curve.show_live(live, 31_234)
    qtbot.waitUntil(lambda: curve.chart is not None and not curve.waiting)
    x, y = curve.chart._steps.getData()
    assert len(y) <= 2048
    assert y.max() == 1 << 21
    curve.follow(Camera(31_200.0, 0.0, 20.0, 1.0))
    x, y = curve.chart._steps.getData()
    assert y.tolist() == live[int(x[0]) : int(x[-1])].tolist()
    assert x[0] <= 31_200 < x[-1]
