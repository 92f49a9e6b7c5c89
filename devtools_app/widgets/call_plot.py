"""The time of each call of a generation or a sequence by its position."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, Qt, Signal
from PySide6.QtGui import QFontMetrics, QKeyEvent
from typing_extensions import override

from devtools_app.appearance.theme import FontSize, Theme
from devtools_app.widgets.plot import NOTHING, Plot
from inspector.units import Quantity, choose_unit, column_formatter, exact_text
from schema.objects.plural import plural

if TYPE_CHECKING:
    from devtools_app.widgets.chart import Chart

_MARGIN, _DOT, _NEAR = 10, 6.0, 12.0


class CallDots(Plot):
    """A dot for each call; a click or an arrow key chooses one, a double click or Return opens it.

    Only a plot with a focus policy is walked by keys.

    Signals:
        chosen(place): the user chose a dot, by its place in the plot
        activated(place): request to open it
    """

    as_table = "the calls, below it"
    as_rows = True
    chosen = Signal(int)
    activated = Signal(int)

    def __init__(self, theme: Theme, name: str) -> None:
        self._current = NOTHING
        super().__init__(theme, name)

    @property
    def current(self) -> int:
        """Return the place of the marked dot, or NOTHING."""
        return self._current

    def show_current(self, place: int) -> None:
        """Mark a dot, none for NOTHING."""
        if place != self._current:
            self._current = place
            self.redraw()

    def places(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return x and y of the dots; a subclass has them."""
        raise NotImplementedError

    def mark_current(self, chart: Chart) -> None:
        """Draw a ring around the marked dot."""
        x, y = self.places()
        if 0 <= self._current < len(x):
            wide = 2.0 if self.hasFocus() else 1.2
            at = slice(self._current, self._current + 1)
            chart.dots(x[at], y[at], _DOT + 8, "", ring=self.theme.palette.text, ring_width=wide)

    @override
    def is_empty(self) -> bool:
        return not len(self.places()[0])

    @override
    def pick(self, at: QPointF) -> int:
        x, y = self.places()
        number = int(np.abs(x - self.value_at(at)[0]).argmin())
        place = self.pixel_of(float(x[number]), float(y[number]))
        return number if (place - at).manhattanLength() <= _NEAR else NOTHING

    @override
    def choose(self, number: int) -> None:
        self.show_current(number)
        self.chosen.emit(number)
        self.read_out(number)

    @override
    def activate(self, number: int) -> None:
        self.activated.emit(number)

    @override
    def step(self, by: int) -> bool:
        place = self._current + by if self._current != NOTHING else 0
        if not 0 <= place < len(self.places()[0]):
            return False
        self.choose(place)
        return True

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        opens = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if opens and self._current != NOTHING:
            self.activated.emit(self._current)
        else:
            super().keyPressEvent(event)


class CallPlot(CallDots):
    """A dot for each later call, at the position of its token; a line shows their growth."""

    def __init__(self, theme: Theme) -> None:
        self._positions: NDArray[np.float64] = np.zeros(0)
        self._times: NDArray[np.float64] = np.zeros(0)
        self._unit = "auto"
        self._line: tuple[float, float] | None = None
        super().__init__(theme, "Time of each call by position")
        self.title.setText("time of later tokens by position")
        self.set_hint(320, 130)
        self.setMinimumSize(150, 90)
        self.show_message("One dot for each token behind the first")

    def show_calls(
        self,
        positions: NDArray[np.int64],
        times: NDArray[np.float64],
        unit: str = "auto",
        line: tuple[float, float] | None = None,
    ) -> None:
        """Show other calls.

        Args:
            positions: of their tokens
            times: in ns
            unit: how times are shown
            line: to draw: ns at position 0, and by which a call takes longer with each position

        Shapes: both [calls]
        """
        self._positions, self._times = positions.astype(np.float64), times
        self._unit, self._line, self._current = unit, line, NOTHING
        self.note.setText(plural(len(times), "call") if len(times) else "")
        self.describe(self._description())
        self.redraw()

    def _description(self) -> str:
        if self.is_empty():
            return "no calls behind the first token"
        ends = ", ".join(self.hover_text(number) for number in (0, len(self._times) - 1))
        return f"{plural(len(self._times), 'call')}: {ends}"

    @override
    def places(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self._positions, self._times

    @override
    def draw(self, chart: Chart) -> None:
        font = self.theme.mono(FontSize.SMALL)
        first, last = int(self._positions.min()), int(self._positions.max())
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
        if self._line is not None:
            ends = np.array([first, last], np.float64)
            chart.line(
                ends, self._line[0] + self._line[1] * ends, self.theme.palette.muted, dashed=True
            )
        chart.dots(self._positions, self._times, _DOT, self.theme.palette.accent)
        self.mark_current(chart)

    @override
    def hover_text(self, number: int) -> str:
        time = exact_text(float(self._times[number]), Quantity.TIME)
        return f"position {int(self._positions[number]):,}: {time}"
