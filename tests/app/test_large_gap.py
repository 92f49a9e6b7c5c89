"""The error along a program of many outputs: few marks are drawn, and no large error is lost."""

from __future__ import annotations

import numpy as np
import pytest

from devtools_app.widgets.chart import Chart
from devtools_app.widgets.gap_plots import GrowthPlot, outline

pytestmark = pytest.mark.gui


@pytest.mark.parametrize("count", [0, 1, 2500, 2501, 9_999, 50_000])
def test_outline_keeps_the_largest_of_each_stretch(count: int) -> None:
    values = np.random.default_rng(count).random(2 * count)
    places = np.arange(0, 2 * count, 2)
    found = outline(values, places)
    assert len(found) == min(count, 2500)
    assert (np.diff(found) > 0).all()
    assert set(found) <= set(places)
    largest = np.sort(values[places])[::-1]
    if count:
        assert values[found].max() == largest[0]
    for stretch in np.array_split(places, 50):  # whichever part is looked at
        if len(stretch) > 2 * count / 2500:
            assert values[found[np.isin(found, stretch)]].max() >= np.median(values[stretch])


def test_marks_of_many_outputs_are_bounded(qtbot, theme, monkeypatch) -> None:
    drawn: list[np.ndarray] = []
    for name in ("line", "dots"):
        kept = getattr(Chart, name)

        def draw(chart, x, y, *rest, kept=kept, **more):
            drawn.append(np.asarray(x))
            return kept(chart, x, y, *rest, **more)

        monkeypatch.setattr(Chart, name, draw)
    plot = GrowthPlot(theme, 1e-12)
    qtbot.addWidget(plot)
    plot.resize(900, 300)
    plot.show()
    errors = np.random.default_rng(0).random(50_000) * 6
    errors[777] = 9.0
    plot.show_errors(errors, errors / 2, frozenset({400, 41_000}), "max abs")
    qtbot.waitUntil(lambda: plot.chart is not None)
    line, own, bad = drawn[-3:]
    assert max(map(len, drawn)) <= 2500
    assert 777 in line
    assert 777 in own
    assert bad.tolist() == [400, 41_000]
