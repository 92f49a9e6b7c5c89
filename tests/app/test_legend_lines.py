"""Lines of legends in little room: words give way to swatches, and come back on a click."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from devtools_app.viewmodels.canvas_data import LegendEntry, Swatch
from devtools_app.widgets.beside import with_legend
from devtools_app.widgets.legend import Legend, line_places, shortened
from tests.app.canvas_colours import colours

pytestmark = pytest.mark.gui
FILL = LegendEntry("Fill: time of a node", Swatch.HEADING)
RAMP = LegendEntry("", Swatch.RAMP, low="0", high="271.4 µs")
CLOSED = LegendEntry("a closed box: its largest", Swatch.NOTE)
STRIPE = LegendEntry("Stripe, outline: runs on", Swatch.HEADING)
SWATCHES = [
    LegendEntry("XNNPACK", Swatch.STRIPE, 0),
    LegendEntry("not delegated", Swatch.STRIPE_OUTSIDE),
    LegendEntry("input, output", Swatch.PLAIN),
    LegendEntry("bar: share of the method", Swatch.BAR),
]
ENTRIES = [FILL, RAMP, CLOSED, STRIPE, *SWATCHES]


def lines_of(entries: list[LegendEntry], width: float) -> int:
    return len({y for _, y in line_places(entries, colours(), width)})


@pytest.mark.parametrize("width", [300, 530, 700, 900])
@pytest.mark.parametrize("lines", [1, 2, 3, 9])
def test_words_give_way_to_swatches(qtbot: QtBot, width: int, lines: int) -> None:
    found = list(shortened(ENTRIES, colours(), width, lines))
    assert [one for one in found if one in (RAMP, *SWATCHES)] == [RAMP, *SWATCHES]
    if len(found) == len(ENTRIES):
        assert lines_of(ENTRIES, width) <= lines
        return
    assert found[-1].label == "…"
    assert CLOSED not in found
    if lines_of(found, width) > lines:
        assert FILL not in found
        assert STRIPE not in found


def test_a_heading_goes_with_the_last_of_its_remarks(qtbot: QtBot) -> None:
    only = LegendEntry("In the table only", Swatch.HEADING)
    remarks = [LegendEntry(f"{n} that compute nothing", Swatch.NOTE) for n in (98, 16)]
    found = shortened([SWATCHES[0], only, *remarks], colours(), 300, 1)
    assert [one.label for one in found] == ["XNNPACK", "…"]


def shown(qtbot: QtBot, height: int) -> tuple[QWidget, Legend]:
    legend = Legend(colours(text=26), line=True)
    both = with_legend(QWidget(), legend)
    qtbot.addWidget(both)
    both.resize(1060, height)
    legend.set_entries(ENTRIES)
    both.show()
    qtbot.waitExposed(both)
    return both, legend


@pytest.mark.parametrize("key", [None, Qt.Key.Key_Space, Qt.Key.Key_Return])
def test_a_click_or_key_shows_all_words_and_the_next_one_fewer(
    qtbot: QtBot, key: Qt.Key | None
) -> None:
    both, legend = shown(qtbot, 430)

    def press() -> None:
        if key is None:
            qtbot.mouseClick(legend, Qt.MouseButton.LeftButton)
        else:
            legend.setFocus()
            qtbot.keyClick(legend, key)

    few = legend.height()
    assert few <= 0.25 * both.height()
    assert legend.focusPolicy() == Qt.FocusPolicy.StrongFocus
    assert all(one.label in legend.toolTip() for one in ENTRIES)
    assert "0 to 271.4 µs" in legend.accessibleDescription()
    with qtbot.waitSignal(legend.turned):
        press()
    assert legend.height() > few
    press()
    assert legend.height() == few


def test_a_legend_with_room_has_all_words_and_lets_clicks_through(qtbot: QtBot) -> None:
    both, legend = shown(qtbot, 430)
    few = legend.height()
    both.resize(1060, 1200)
    qtbot.waitUntil(lambda: legend.height() > few)
    assert legend.testAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
    assert legend.focusPolicy() == Qt.FocusPolicy.NoFocus
    assert not legend.toolTip()
    both.resize(1060, 430)
    qtbot.waitUntil(lambda: legend.height() == few)
