"""Plots of a numeric comparison: errors along the program, and one tensor's differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics
from PySide6.QtWidgets import QVBoxLayout, QWidget
from typing_extensions import override

from devtools_app.appearance.theme import FontSize, Theme
from devtools_app.widgets.plot import NOTHING, Plot
from inspector.units import plain_text

if TYPE_CHECKING:
    from devtools_app.widgets.chart import Chart

Floats = NDArray[np.float64]
_LEFT, _EDGE = 48, 10
_LINE, _OWN, _BAD = "largest error", "error added by the node", "above the tolerance"
_COUNTED = "run − reference, elements (log)"
_WHERE = "where: redder is a larger difference"
_DECADES = 3  # between two lines of the grid
_MOST_DRAWN = 2500  # marks of a kind: each takes about 10 us, and no screen has more columns


class GrowthPlot(Plot):
    """Errors along the program on a scale of decades: total errors as a line, own errors as dots.

    Signals:
        chosen(place): a row was clicked
    """

    as_table = "the outputs, beside or below it"
    as_rows = True
    chosen = Signal(int)
    zoom_axes = "x"

    def __init__(self, theme: Theme, floor: float) -> None:
        self._floor = floor
        self._total: Floats = np.zeros(0)
        self._own: Floats = np.zeros(0)
        self._bad: frozenset[int] = frozenset()
        self._current = NOTHING
        self._line = _LINE
        super().__init__(theme, "Error along the program")
        self.set_hint(600, 150)
        self.setMinimumHeight(130)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.head.setContentsMargins(_LEFT, 4, _EDGE, 0)
        self.head.addStretch(1)

    def show_errors(
        self, total: Floats, own: Floats, bad: frozenset[int], line: str = _LINE
    ) -> None:
        """Replace the errors.

        Args:
            total: decades above the floor, one per row; NaN if missing
            own: own error in the same unit
            bad: rows that exceed the tolerance by their own error
            line: name of what is measured
        """
        self._line = line
        self._total, self._own, self._bad = total, own, bad
        known = np.isfinite(total)
        worst = int(np.nanargmax(total)) if known.any() else NOTHING
        self.describe(
            f"{int(known.sum())} outputs, the largest error at row {worst + 1},"
            f" {len(bad)} exceed the tolerance by their own error"
        )
        self.redraw(whole=True)

    def show_current(self, place: int) -> None:
        """Mark a row."""
        self._current = place
        self.redraw()

    # ---- the user
    @override
    def is_empty(self) -> bool:
        return not len(self._total)

    @override
    def pick(self, at: QPointF) -> int:
        return max(0, min(len(self._total) - 1, round(self.value_at(at)[0])))

    @override
    def hover_text(self, number: int) -> str:
        total, own = (self._shown(values[number]) for values in (self._total, self._own))
        return f"output {number + 1}\n{self._line} {total}\n{_OWN} {own}"

    def _shown(self, decades: float) -> str:
        if not np.isfinite(decades):
            return "missing"
        return plain_text(self._floor * 10**decades) if decades else "0"

    @override
    def choose(self, number: int) -> None:
        self.chosen.emit(number)
        self.read_out(number)

    @override
    def step(self, by: int) -> bool:
        to = self._current + by
        if not 0 <= to < len(self._total):
            return False
        self.choose(to)
        return True

    # ---- drawing
    @override
    def redraw(self, *, whole: bool = False) -> None:
        palette = self.theme.palette
        parts = [("—", palette.muted, self._line), ("•", palette.accent, _OWN)]
        parts += [("●", palette.bad, _BAD)] if self._bad else []  # red only where there is some
        texts = [
            f"<span style='color:{colour}'>{mark}</span> {text}" for mark, colour, text in parts
        ]
        self.note.setText("&nbsp;&nbsp; ".join(texts))
        super().redraw(whole=whole)

    @override
    def draw(self, chart: Chart) -> None:
        palette = self.theme.palette
        known = self._total[np.isfinite(self._total)]
        top = max(2.0, float(np.ceil(known.max(initial=2.0))))
        last = max(1, len(self._total) - 1)
        room = last * 0.01
        chart.set_margins(0, 6, _EDGE, 8)
        chart.show_range((-room, last + room), (-0.04 * top, top * 1.04))
        decades = range(0, int(top) + 1, _DECADES)
        power = int(np.log10(self._floor))
        labels = [(float(one), f"1e{one + power}" if one else "0") for one in decades]
        chart.axis("left", labels, grid=True, room=_LEFT)
        if 0 <= self._current < len(self._total):
            chart.mark(palette.accent, x=self._current)
        places = outline(self._total, np.flatnonzero(np.isfinite(self._total)))
        chart.line(places, np.minimum(self._total[places], top), palette.muted)
        bad = np.isin(np.arange(len(self._own)), sorted(self._bad))
        for which, size, colour in ((~bad, 4.0, palette.accent), (bad, 8.0, palette.bad)):
            places = outline(self._own, np.flatnonzero(np.isfinite(self._own) & which))
            chart.dots(places, np.minimum(self._own[places], top), size, colour)


def outline(values: Floats, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places to draw: of more than a screen has columns, the largest of each stretch.

    Args:
        values: one per row
        places: rows that are drawn, ascending
    """
    count = len(places)
    if count <= _MOST_DRAWN:
        return places
    stretch = np.arange(count) * _MOST_DRAWN // count
    order = np.lexsort((values[places], stretch))
    return places[order[np.flatnonzero(np.diff(stretch, append=_MOST_DRAWN))]]


class _Counts(Plot):
    """Histogram of the differences of elements."""

    as_table = "Tensor, the values"
    counts: NDArray[np.int64] = np.zeros(0, np.int64)
    reach = 0.0

    @override
    def is_empty(self) -> bool:
        return not len(self.counts)

    @override
    def draw(self, chart: Chart) -> None:
        heights = np.log1p(self.counts.astype(np.float64))
        count = len(heights)
        text = plain_text(-self.reach)
        half = QFontMetrics(self.theme.sans(FontSize.SMALL)).horizontalAdvance(text) / 2 + 4
        chart.set_margins(half, 2, half, 0)
        chart.show_range((0.0, float(count)), (0.0, float(heights.max()) or 1.0))
        ends = [(0.0, text), (count / 2, "0"), (float(count), text[1:])]
        chart.axis("bottom", ends)
        left = np.arange(count, dtype=np.float64)
        width = {"x0": left, "x1": left + 0.9}
        chart.bars([self.theme.palette.accent] * count, **width, y0=np.zeros(count), y1=heights)

    @override
    def pick(self, at: QPointF) -> int:
        place = int(self.value_at(at)[0])
        return place if 0 <= place < len(self.counts) else NOTHING

    @override
    def hover_text(self, number: int) -> str:
        bins = len(self.counts)
        low, high = ((2 * one / bins - 1) * self.reach for one in (number, number + 1))
        return f"{self.counts[number]:,} elements from {plain_text(low)} to {plain_text(high)}"


class _Heat(Plot):
    """Heat map of the differences inside the tensor."""

    as_table = "Tensor, the values"
    sizes: Floats = np.zeros((0, 0))

    @override
    def is_empty(self) -> bool:
        return not self.sizes.size

    @override
    def draw(self, chart: Chart) -> None:
        palette = self.theme.palette
        low, high = (_rgb(one) for one in (palette.surface, palette.bad))
        pixels = (low + (high - low) * np.sqrt(self.sizes)[..., None]).astype(np.uint8)
        chart.set_margins(_EDGE, 2, _EDGE, 8)
        chart.show_range((0.0, 1.0), (0.0, 1.0))
        chart.image(pixels, QRectF(0, 0, 1, 1))


class DifferencePlot(QWidget):
    """The differences of one tensor: their histogram and their positions."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.counts, self.heat = _Counts(theme, "Differences by size"), _Heat(theme, "By place")
        self.counts.title.setText(_COUNTED)
        self.heat.title.setText(_WHERE)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        for plot in (self.counts, self.heat):
            plot.set_hint(320, 130)
            layout.addWidget(plot, 1)
        self.setMinimumSize(220, 150)
        self.setAccessibleName("Differences of the tensor")
        self.show_text("Choose a row to see its differences")

    def show_text(self, text: str) -> None:
        """Show a message instead of the plots."""
        self.setAccessibleDescription(text)
        self._show(np.zeros(0, np.int64), 0.0, np.zeros((0, 0)))
        self.counts.show_message(text)

    def show_differences(self, counts: NDArray[np.int64], reach: float, heat: Floats) -> None:
        """Show a different tensor.

        Args:
            counts: elements per bin, from -reach to reach
            reach: largest difference
            heat: size of the difference by position, 0 to 1
        """
        self._show(counts, reach, heat)
        words = f"{int(counts.sum()):,} elements, differ by up to {plain_text(reach)}"
        self.setAccessibleDescription(f"{words}. As a table: {self.counts.as_table}")
        self.counts.describe(words)
        self.heat.describe(f"{words}, the largest by place" if heat.size else "")

    def _show(self, counts: NDArray[np.int64], reach: float, heat: Floats) -> None:
        self.counts.counts, self.counts.reach, self.heat.sizes = counts, reach, heat
        self.heat.setVisible(bool(heat.size))
        for plot in (self.counts, self.heat):
            plot.redraw()


def _rgb(colour: str) -> Floats:
    found = QColor(colour)
    return np.array([found.red(), found.green(), found.blue()], np.float64)
