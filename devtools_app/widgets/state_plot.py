"""Bytes of the state of a program, such as a KV cache, over the calls of a sequence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QFontMetrics
from typing_extensions import override

from devtools_app.appearance.theme import FontSize, Theme
from devtools_app.viewmodels.call_series import StateSeries
from devtools_app.widgets.call_plot import CallDots
from devtools_app.widgets.plot import NOTHING
from inspector.units import Quantity, choose_unit, column_formatter, exact_text, format_bytes

if TYPE_CHECKING:
    from devtools_app.widgets.chart import Chart

_MARGIN, _DOT = 10, 6.0


class StatePlot(CallDots):
    """Bytes in use after each call as dots on a line, those that it changed as a thin line."""

    as_table = "the changes of state, below it"

    def __init__(self, theme: Theme) -> None:
        self._series: StateSeries | None = None
        self._unit = "auto"
        super().__init__(theme, "Bytes of the state after each call")
        self.set_hint(320, 130)
        self.setMinimumSize(150, 90)
        self.show_message("No state was observed between the calls")

    def show_series(self, series: StateSeries | None, title: str, unit: str = "auto") -> None:
        """Show another state tensor, or all of them."""
        self._series, self._unit, self._current = series, unit, NOTHING
        self.title.setText(f"bytes of {title} in use, and changed by the call (thin)")
        if series is None or not len(series.numbers):
            self.note.setText("")
            self.redraw()
            return
        used = format_bytes(int(series.used[-1]))
        self.note.setText(f"{used} of {format_bytes(series.capacity)} in the end")
        self.describe(f"{title}: {self.note.text()}")
        self.redraw()

    @override
    def places(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if self._series is None:
            return np.zeros(0), np.zeros(0)
        return self._series.numbers.astype(np.float64), self._series.used

    @override
    def draw(self, chart: Chart) -> None:
        series, palette = self._series, self.theme.palette
        assert series is not None
        font = self.theme.mono(FontSize.SMALL)
        numbers, used = self.places()
        first, last = int(numbers.min()), int(numbers.max())
        high = float(max(used.max(), series.changed.max()))
        chart.set_margins(4, 4, _MARGIN, 0)
        chart.show_range((first - 0.5, last + 0.5), (0.0, 1.1 * high or 1.0))
        unit = choose_unit(Quantity.SIZE, high, self._unit)
        text = column_formatter(Quantity.SIZE, unit, high)
        wide = QFontMetrics(font).horizontalAdvance("0000.0 MiB") + 12
        marks = [(value, f"{text(value)} {unit.symbol}") for value in (high, 0.0)]
        chart.axis("left", marks, room=wide, font=font)
        chart.axis("bottom", [(first, f"{first:,}"), (last, f"{last:,}")], font=font)
        chart.line(numbers, series.changed, palette.muted)
        chart.line(numbers, used, palette.accent)
        chart.dots(numbers, used, _DOT, palette.accent)
        self.mark_current(chart)

    @override
    def hover_text(self, number: int) -> str:
        series = self._series
        if series is None:
            return ""
        used, changed = (
            exact_text(float(values[number]), Quantity.SIZE)
            for values in (series.used, series.changed)
        )
        return f"call {int(series.numbers[number]):,}: {used} in use, {changed} changed"
