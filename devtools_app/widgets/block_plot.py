"""Sessions that were measured together: a lane each, a dot for the fastest run of each block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF
from PySide6.QtGui import QColor, QFontMetrics
from typing_extensions import override

from devtools_app.appearance.theme import FontSize, Theme
from devtools_app.viewmodels.layout.axis import ticks
from devtools_app.viewmodels.session_list import session_tone
from devtools_app.widgets.plot import NOTHING, Plot
from devtools_app.widgets.run_strip import dot_heights
from inspector.units import Quantity, format_time
from schema.objects.plural import plural

if TYPE_CHECKING:
    from devtools_app.widgets.chart import Chart

_DOT, _NEAR, _LANE = 5.0, 8.0, 30  # pixels
_TITLE, _TICKS = 24, 4
_SPREAD = 0.5  # of a lane, over which its dots are spread


@dataclass(frozen=True, slots=True, eq=False)
class BlockLane:
    """One session.

    Units: ns

    Attributes:
        letter: of the session
        times: fastest run of each block, NaN for a block that failed
        typical: the time that is shown for the session, None if unknown
    """

    letter: str
    times: NDArray[np.float64]
    typical: float | None


class BlockPlot(Plot):
    """Shows the blocks of a comparison; the line of a lane is the time in the table."""

    as_table = "Compare, the list of measured blocks"
    ground = "surface"

    def __init__(self, theme: Theme) -> None:
        self._lanes: tuple[BlockLane, ...] = ()
        super().__init__(theme, "Measured blocks")
        self.hide()

    def show_lanes(self, lanes: tuple[BlockLane, ...]) -> None:
        """Replace the sessions; the plot is hidden without a measured one."""
        self._lanes = tuple(one for one in lanes if np.isfinite(one.times).any())
        self.setVisible(not self.is_empty())
        if self.is_empty():
            return
        blocks = max(len(one.times) for one in self._lanes)
        self.title.setText(f"{plural(blocks, 'block')}, fastest run of each")
        said = [f"{one.letter} {format_time(t)}" for one in self._lanes if (t := one.typical)]
        self.describe(", ".join([self.title.text(), *said]))
        axis = QFontMetrics(self.theme.mono(FontSize.SMALL)).height()
        self.setFixedHeight(_TITLE + axis + 8 + _LANE * len(self._lanes))
        self.redraw()

    @override
    def is_empty(self) -> bool:
        return not self._lanes

    @override
    def draw(self, chart: Chart) -> None:
        palette, count = self.theme.palette, len(self._lanes)
        known = np.concatenate([one.times[np.isfinite(one.times)] for one in self._lanes])
        low, high = float(known.min()), float(known.max())
        edge = 0.06 * ((high - low) or high)
        chart.set_margins(4, 0, 12, 2)
        chart.show_range((low - edge, high + edge), (0.5 - count, 0.5))
        mono = self.theme.mono(FontSize.SMALL)
        places = ticks(low - edge, high + edge, _TICKS, Quantity.TIME)
        chart.axis("bottom", [(tick.value, tick.label) for tick in places], font=mono)
        letters = [(-number, one.letter) for number, one in enumerate(self._lanes)]
        chart.axis("left", letters, room=22)
        for number, one in enumerate(self._lanes):
            colour = session_tone(one.letter, palette)
            chart.line((low - edge, high + edge), (-number, -number), palette.line, width=1.0)
            if one.typical is not None:
                ends = (-number - _SPREAD / 2, -number + _SPREAD / 2)
                chart.line((one.typical, one.typical), ends, colour, width=2.0)
            fill = QColor(colour)
            fill.setAlphaF(0.6)
            chart.dots(one.times, self._heights(number), _DOT, fill)

    def _heights(self, lane: int) -> NDArray[np.float64]:
        return _SPREAD * dot_heights(np.arange(len(self._lanes[lane].times))) - lane

    @override
    def pick(self, at: QPointF) -> int:
        best, found, before = _NEAR, NOTHING, 0
        for lane, one in enumerate(self._lanes):
            x, y = self.pixels_of(one.times, self._heights(lane))
            away = np.nan_to_num(np.hypot(x - at.x(), y - at.y()), nan=np.inf)
            nearest = int(away.argmin())
            if away[nearest] <= best:
                best, found = float(away[nearest]), before + nearest
            before += len(one.times)
        return found

    @override
    def hover_text(self, number: int) -> str:
        for one in self._lanes:
            if number < len(one.times):
                return f"{one.letter}, block {number + 1}: {format_time(float(one.times[number]))}"
            number -= len(one.times)
        return ""
