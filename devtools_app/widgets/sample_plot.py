"""The runs of one row: a dot per run, a band from p10 to p90 and a line at p50."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF
from PySide6.QtGui import QColor, QFontMetrics
from typing_extensions import override

from devtools_app.appearance.theme import FontSize, Theme
from devtools_app.widgets.plot import NOTHING, Plot
from inspector.units import (
    Quantity,
    choose_unit,
    column_formatter,
    exact_text,
    format_time,
    plural,
)

if TYPE_CHECKING:
    from devtools_app.widgets.chart import Chart

Floats = NDArray[np.float64]
_MARGIN, _DOT, _MOST_DOTS = 10, 6.0, 2000  # more than the pixels of a plot
_NEAR, _FEW = 12.0, 40  # pixels around a dot; runs from which every column has one


class SamplePlot(Plot):
    """Shows the samples of one row; the tooltip of a dot shows its run and exact time."""

    def __init__(self, theme: Theme) -> None:
        self._samples: Floats = np.zeros(0)
        self._unit = "auto"
        super().__init__(theme, "Time of each run")
        self.set_hint(210, 120)
        self.setMinimumWidth(150)
        self.show_message("Choose a row to see\nthe time of each run")

    def show_samples(self, title: str, samples: Floats | None, unit: str = "auto") -> None:
        """Show the runs of a different row.

        Args:
            title: name of the row
            samples: time of each run in ns, or None
            unit: unit of the times shown
        """
        self._samples = np.zeros(0) if samples is None else samples[np.isfinite(samples)]
        self._unit = unit
        self.title.setText(title)
        self.note.setText(plural(len(self._samples), "run"))
        self.setAccessibleDescription(self._description(title))
        self.redraw()

    def _description(self, title: str) -> str:
        if not len(self._samples):
            return "no times"
        shown = ", ".join(format_time(float(one), self._unit) for one in self._samples[:20])
        more = "…" if len(self._samples) > 20 else ""
        return f"{title}, {len(self._samples)} runs: {shown}{more}"

    @override
    def is_empty(self) -> bool:
        return not len(self._samples)

    @override
    def draw(self, chart: Chart) -> None:
        palette, font = self.theme.palette, self.theme.mono(FontSize.SMALL)
        low, high = float(self._samples.min()), float(self._samples.max())
        p10, p50, p90 = (float(one) for one in np.percentile(self._samples, (10, 50, 90)))
        room = (high - low) or 1.0
        chart.set_margins(4, 0, _MARGIN, 4)
        chart.show_range((0.0, float(len(self._samples))), (low - 0.1 * room, high + 0.1 * room))
        marks = [(high, "max"), (low, "min"), (p50, "p50")] if high > low else [(p50, "p50")]
        unit = choose_unit(Quantity.TIME, high, self._unit)
        text = column_formatter(Quantity.TIME, unit, high)
        labels = [(value, f"{name} {text(value)} {unit.symbol}") for value, name in marks]
        wide = QFontMetrics(font).horizontalAdvance("max 000.00 ms") + 12
        chart.axis("left", labels, room=wide, font=font)
        chart.band(p10, p90, palette.hover)
        chart.mark(palette.accent, y=p50)
        numbers = np.arange(0, len(self._samples), max(1, len(self._samples) // _MOST_DOTS))
        fill = QColor(palette.accent)
        fill.setAlphaF(0.75 if len(self._samples) < 200 else 0.35)
        chart.dots(numbers + 0.5, self._samples[numbers], _DOT, fill)

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
        return f"run {number + 1}: {exact_text(value, Quantity.TIME)}"
