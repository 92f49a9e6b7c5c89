"""The runs of one row: a dot per run, a line at the mean of the steady ones, a band p10 to p90."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF
from PySide6.QtGui import QColor, QFontMetrics
from typing_extensions import override

from devtools_app.appearance.theme import FontSize, Theme
from devtools_app.widgets.plot import NOTHING, Plot
from inspector.profile.attribution import mean, spread
from inspector.units import (
    Quantity,
    below,
    choose_unit,
    column_formatter,
    exact_text,
    format_duration,
)
from schema.objects.plural import plural

if TYPE_CHECKING:
    from devtools_app.widgets.chart import Chart

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
_MARGIN, _DOT, _MOST_DOTS = 10, 6.0, 2000  # more than the pixels of a plot
_NEAR, _FEW = 12.0, 40  # pixels around a dot; runs from which every column has one


class SamplePlot(Plot):
    """Shows the samples of one row; the tooltip of a dot shows its run and exact time."""

    as_table = "Operators, every event of the trace"

    def __init__(self, theme: Theme) -> None:
        self._samples: Floats = np.zeros(0)
        self._steady: Mask = np.zeros(0, np.bool_)
        self._unit = "auto"
        self._tick_ns = 0.0
        super().__init__(theme, "Time of each run")
        self.set_hint(210, 120)
        self.setMinimumWidth(150)
        self.show_message("Choose a row to see\nthe time of each run")

    def show_samples(
        self,
        title: str,
        samples: Floats | None,
        unit: str = "auto",
        steady: Mask | None = None,
        tick_ns: float = 0.0,
    ) -> None:
        """Show the runs of another row.

        Args:
            title: what the row is
            samples: time of each run in ns, None when there is none
            unit: how times are shown
            steady: which of them figures are made of; None for all
            tick_ns: step of the clock, 0 for differences of times
        """
        times = np.zeros(0) if samples is None else samples
        kept = np.isfinite(times)
        self._samples = times[kept]
        self._steady = (np.ones(len(times), np.bool_) if steady is None else steady)[kept]
        self._unit, self._tick_ns = unit, tick_ns
        self.title.setText(title)
        out = len(self._samples) - int(self._steady.sum())
        runs = plural(len(self._samples), "run")
        self.note.setText(f"{runs}, {out} left out" if out else runs)
        self.describe(self._description(title))
        self.redraw()

    def _description(self, title: str) -> str:
        if not len(self._samples):
            return "no times"
        shown = ", ".join(
            format_duration(float(one), self._tick_ns, self._unit) for one in self._samples[:20]
        )
        more = "…" if len(self._samples) > 20 else ""
        return f"{title}, {plural(len(self._samples), 'run')}: {shown}{more}"

    @override
    def is_empty(self) -> bool:
        return not len(self._samples)

    @override
    def draw(self, chart: Chart) -> None:
        palette, font = self.theme.palette, self.theme.mono(FontSize.SMALL)
        low, high = float(self._samples.min()), float(self._samples.max())
        steady = self._samples[self._steady]
        typical = float(mean(steady)) if len(steady) else low
        _, p10, p90, *_ = (float(one) for one in spread(steady)) if len(steady) else (np.nan,) * 5
        room = (high - low) or 1.0
        chart.set_margins(4, 0, _MARGIN, 4)
        chart.show_range((0.0, float(len(self._samples))), (low - 0.1 * room, high + 0.1 * room))
        ends = [(high, "max"), (low, "min")] if high > low else []
        marks = [*ends, (typical, "mean")]
        top = max(high, self._tick_ns)
        unit = choose_unit(Quantity.TIME, top, self._unit)
        text = column_formatter(Quantity.TIME, unit, top)
        least = below(self._tick_ns, Quantity.TIME)
        labels = [
            (value, f"{name} {least if value < self._tick_ns else f'{text(value)} {unit.symbol}'}")
            for value, name in marks
        ]
        wide = QFontMetrics(font).horizontalAdvance("max 000.00 ms") + 12
        chart.axis("left", labels, room=wide, font=font)
        if np.isfinite(p10):
            chart.band(p10, p90, palette.hover)
        chart.mark(palette.accent, y=typical)
        numbers = np.arange(0, len(self._samples), max(1, len(self._samples) // _MOST_DOTS))
        fill = QColor(palette.accent)
        fill.setAlphaF(0.75 if len(self._samples) < 200 else 0.35)
        kept = numbers[self._steady[numbers]]
        chart.dots(kept + 0.5, self._samples[kept], _DOT, fill)
        out = numbers[~self._steady[numbers]]
        chart.dots(out + 0.5, self._samples[out], _DOT, "", ring=palette.muted)

    @override
    def pick(self, at: QPointF) -> int:
        number, count = int(np.floor(self.value_at(at)[0])), len(self._samples)
        if not 0 <= number < count:
            return NOTHING
        away = self.pixel_of(number + 0.5, float(self._samples[number])).y() - at.y()
        return NOTHING if abs(away) > _NEAR and count < _FEW else number

    @override
    def hover_text(self, number: int) -> str:
        value = float(self._samples[number])
        out = "" if self._steady[number] else ", left out: cold or an outlier"
        return f"run {number + 1}: {exact_text(value, Quantity.TIME)}{out}"
