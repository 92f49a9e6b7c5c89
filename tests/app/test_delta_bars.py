"""Names beside the bars of time differences."""

from __future__ import annotations

from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from devtools_app.appearance.theme import Theme
from devtools_app.widgets.delta_bars import DeltaBar, DeltaBars

pytestmark = pytest.mark.gui
LONG = "XNNPACK delegate, between operators"


@pytest.mark.parametrize(
    ("names", "width"),
    [(("aten::mul", "cost of tracing"), 320), ((LONG, "aten::mul"), 900), (("a", "b"), 240)],
)
def test_names_have_the_room_that_they_need(
    theme: Theme, qtbot: QtBot, names: tuple[str, ...], width: int
) -> None:
    bars = DeltaBars(theme, "Time")
    qtbot.addWidget(bars)
    bars.resize(width, 200)
    bars.show()
    bars.show_rows("Time", tuple(DeltaBar(one, 2.0, "+2 us", "bad") for one in names))
    qtbot.waitUntil(lambda: bars.chart is not None)
    assert bars.chart is not None
    item: Any = bars.chart.getPlotItem()
    axis = item.getAxis("left")
    assert [text for _, text in axis._tickLevels[0]] == list(names)
    assert axis.maximumWidth() <= width / 2


def test_long_names_leave_half_of_the_width_to_bars_and_values(theme: Theme, qtbot: QtBot) -> None:
    bars = DeltaBars(theme, "Time")
    qtbot.addWidget(bars)
    bars.resize(300, 200)
    bars.show()
    bars.show_rows("Time", (DeltaBar(LONG, 2.0, "+2 us", "bad"),))
    qtbot.waitUntil(lambda: bars.chart is not None)
    assert bars.chart is not None
    item: Any = bars.chart.getPlotItem()
    axis = item.getAxis("left")
    assert axis.maximumWidth() == 150
    (label,) = (text for _, text in axis._tickLevels[0])
    assert label != LONG
    assert label.endswith("…")
