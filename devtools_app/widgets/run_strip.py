"""The runs that a headline is the mean of: one dot each along an axis of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF
from PySide6.QtGui import QColor, QFontMetrics
from typing_extensions import override

from devtools_app.appearance.theme import FontSize, Theme
from devtools_app.viewmodels.layout.axis import ticks
from devtools_app.widgets.plot import NOTHING, Plot
from inspector.trace.run_times import RunTimes
from inspector.units import Quantity, exact_text, format_time
from schema.objects.plural import plural

if TYPE_CHECKING:
    from devtools_app.widgets.chart import Chart

_NS = 1e6  # a millisecond in nanoseconds
_DOT, _NEAR = 5.0, 8.0  # pixels
_DOTS = 34  # pixels of height
_SIDE = 12  # pixels left and right, for half of a label
_ROOM = 1.0  # widths of the steady set that are shown on each side of it
_GOLDEN = 0.618034  # steps by it spread dots evenly: those of neighbouring runs do not touch
_TICKS = 5


def dot_heights(numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return heights of -0.5 to 0.5 for dots by their numbers, so that they do not cover others."""
    return np.asarray(numbers * _GOLDEN % 1.0 - 0.5, np.float64)


class RunStrip(Plot):
    """Shows each run; those left out are rings, the tooltip of a dot shows its exact time."""

    as_table = "Run, its times"

    def __init__(self, theme: Theme) -> None:
        self._times: NDArray[np.float64] = np.zeros(0)
        self._steady: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._mean = 0.0
        self._unit = "auto"
        super().__init__(theme, "Time of each run")
        self.setMinimumWidth(160)
        self._set_height()
        theme.follow(self._set_height)

    def _set_height(self) -> None:
        self.setFixedHeight(_DOTS + QFontMetrics(self.theme.mono(FontSize.SMALL)).height())

    def show_runs(self, runs: RunTimes, unit: str) -> None:
        """Show the runs of a headline.

        Args:
            runs: in ms
            unit: of the headline
        """
        self._times, self._steady = np.asarray(runs.times) * _NS, np.asarray(runs.mask)
        self._mean, self._unit = runs.mean * _NS, unit
        parts = [f"{len(runs.steady):,} steady runs, mean {format_time(self._mean, unit)}"]
        if left := runs.left_out():
            parts.append(f"without {left}")
        if beyond := len(self._times) - len(self.visible_runs):
            parts.append(f"{plural(beyond, 'run')} outside of the axis")
        self.describe(", ".join(parts))
        self.redraw()

    @property
    def visible_runs(self) -> NDArray[np.int64]:
        """Return the runs that are drawn; those far from the steady ones are only counted."""
        low, high = self._range()
        return np.flatnonzero((self._times >= low) & (self._times <= high))

    def _range(self) -> tuple[float, float]:
        steady = self._times[self._steady]
        low, high = float(steady.min()), float(steady.max())
        room = _ROOM * ((high - low) or 0.05 * high or 1.0)
        near = self._times[(self._times >= low - room) & (self._times <= high + room)]
        low, high = float(near.min()), float(near.max())
        edge = 0.04 * ((high - low) or 0.1 * high or 1.0)
        return low - edge, high + edge

    @override
    def is_empty(self) -> bool:
        return not len(self._times)

    @override
    def draw(self, chart: Chart) -> None:
        palette, font = self.theme.palette, self.theme.mono(FontSize.SMALL)
        low, high = self._range()
        places = ticks(low, high, _TICKS, Quantity.TIME, self._unit)
        metrics = QFontMetrics(font)
        widest = max((metrics.horizontalAdvance(tick.label) for tick in places), default=0)
        side = max(_SIDE, widest // 2)  # a tick may be at the very edge
        chart.set_margins(side, 2, side, 0)
        chart.show_range((low, high), (-0.8, 0.8))
        chart.axis("bottom", [(tick.value, tick.label) for tick in places], font=font)
        chart.line((low, high), (0.0, 0.0), palette.line, width=1.0)
        chart.mark(palette.accent, x=self._mean)
        numbers = self.visible_runs
        x, y = self._times[numbers], dot_heights(numbers)
        steady = self._steady[numbers]
        fill = QColor(palette.accent)
        fill.setAlphaF(0.6)
        chart.dots(x[steady], y[steady], _DOT, fill)
        chart.dots(x[~steady], y[~steady], _DOT, "", ring=palette.muted)

    @override
    def pick(self, at: QPointF) -> int:
        numbers = self.visible_runs
        x, y = self.pixels_of(self._times[numbers], dot_heights(numbers))
        away = np.hypot(x - at.x(), y - at.y())
        best = int(away.argmin()) if len(away) else NOTHING
        return int(numbers[best]) if best != NOTHING and away[best] <= _NEAR else NOTHING

    @override
    def hover_text(self, number: int) -> str:
        out = "" if self._steady[number] else ", left out: cold or an outlier"
        return f"run {number + 1}: {exact_text(round(self._times[number]), Quantity.TIME)}{out}"
