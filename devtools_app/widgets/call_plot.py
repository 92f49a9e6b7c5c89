"""The time of each call of a generation by its position."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF
from PySide6.QtGui import QFontMetrics
from typing_extensions import override

from devtools_app.appearance.theme import FontSize, Theme
from devtools_app.widgets.plot import NOTHING, Plot
from inspector.units import Quantity, choose_unit, column_formatter, exact_text, plural

if TYPE_CHECKING:
    from devtools_app.widgets.chart import Chart

_MARGIN, _DOT, _NEAR = 10, 6.0, 12.0


class CallPlot(Plot):
    """A dot for each call, at the position of its token; the tooltip of a dot has its time."""

    as_table = "the calls, below it"

    def __init__(self, theme: Theme) -> None:
        self._positions: NDArray[np.int64] = np.zeros(0, np.int64)
        self._times: NDArray[np.float64] = np.zeros(0)
        self._unit = "auto"
        super().__init__(theme, "Time of each call by position")
        self.title.setText("time of later tokens by position")
        self.set_hint(320, 130)
        self.setMinimumSize(150, 90)
        self.show_message("One dot for each token behind the first")

    def show_calls(
        self, positions: NDArray[np.int64], times: NDArray[np.float64], unit: str = "auto"
    ) -> None:
        """Show other calls.

        Args:
            positions: of their tokens
            times: in ns
            unit: how times are shown

        Shapes: both [calls]
        """
        self._positions, self._times, self._unit = positions, times, unit
        self.note.setText(plural(len(times), "call") if len(times) else "")
        self.describe(self._description())
        self.redraw()

    def _description(self) -> str:
        if self.is_empty():
            return "no calls behind the first token"
        ends = ", ".join(self.hover_text(number) for number in (0, len(self._times) - 1))
        return f"{plural(len(self._times), 'call')}: {ends}"

    @override
    def is_empty(self) -> bool:
        return not len(self._times)

    @override
    def draw(self, chart: Chart) -> None:
        font = self.theme.mono(FontSize.SMALL)
        first, last = int(self._positions[0]), int(self._positions[-1])
        low, high = float(self._times.min()), float(self._times.max())
        chart.set_margins(4, 4, _MARGIN, 0)
        chart.show_range((first - 0.5, last + 0.5), (0.0, 1.1 * high or 1.0))
        unit = choose_unit(Quantity.TIME, high, self._unit)
        text = column_formatter(Quantity.TIME, unit, high)
        marks = [
            (value, f"{name} {text(value)} {unit.symbol}")
            for value, name in ((high, "max"), (low, "min"))
        ]
        wide = QFontMetrics(font).horizontalAdvance("max 000.00 ms") + 12
        chart.axis("left", marks, room=wide, font=font)
        chart.axis("bottom", [(first, f"{first:,}"), (last, f"{last:,}")], font=font)
        chart.dots(self._positions, self._times, _DOT, self.theme.palette.accent)

    @override
    def pick(self, at: QPointF) -> int:
        number = int(np.abs(self._positions - self.value_at(at)[0]).argmin())
        place = self.pixel_of(float(self._positions[number]), float(self._times[number]))
        return number if (place - at).manhattanLength() <= _NEAR else NOTHING

    @override
    def hover_text(self, number: int) -> str:
        time = exact_text(float(self._times[number]), Quantity.TIME)
        return f"position {int(self._positions[number]):,}: {time}"
