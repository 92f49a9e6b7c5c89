"""How many samples of a data set have an error of which size, for one or several variants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF
from typing_extensions import override

from devtools_app.appearance.theme import Theme
from devtools_app.widgets.plot import NOTHING, Plot
from schema.objects.plural import plural

if TYPE_CHECKING:
    from devtools_app.widgets.chart import Chart

_BINS = 24
_TICKS = 4
_GAP = 0.1  # of a bin between bars


@dataclass(frozen=True, slots=True, eq=False)
class ErrorCounts:
    """A histogram over the decimal logarithm of errors.

    Attributes:
        low: logarithm at its beginning
        high: logarithm at its end
        counts: samples by bin
        exact: samples without any error, which have no logarithm
    """

    low: float
    high: float
    counts: NDArray[np.int64]
    exact: int


def error_counts(errors: Sequence[float]) -> ErrorCounts | None:
    """Return the histogram of errors, None if all are zero or none is known."""
    found = np.asarray(errors, np.float64)
    some = np.log10(found[(found > 0) & np.isfinite(found)])
    if not len(some):
        return None
    low, high = float(np.floor(some.min())), float(np.ceil(some.max()))
    high = high if high > low else low + 1.0
    counts = np.histogram(some, _BINS, (low, high))[0].astype(np.int64)
    return ErrorCounts(low, high, counts, int((found == 0).sum()))


class ErrorHistogram(Plot):
    """Draws the histogram; the hover text counts the samples of a bar."""

    as_table = "the samples, beside or below it"

    def __init__(self, theme: Theme) -> None:
        self.content: ErrorCounts | None = None
        super().__init__(theme, "Samples by error")
        self.set_hint(320, 200)
        self.setMinimumSize(200, 120)
        self.show_message("No errors")

    def show_counts(self, title: str, content: ErrorCounts | None) -> None:
        """Show a histogram, or a message without one.

        Args:
            title: above it
            content: the histogram
        """
        self.content = content
        self.title.setText(title)
        total = int(content.counts.sum()) if content is not None else 0
        exact = content.exact if content is not None else 0
        self.note.setText(f"{plural(exact, 'sample')} without error" if exact else "")
        self.describe(f"{title}: {plural(total, 'sample')} with an error")
        if content is None:
            self.show_message("No sample has an error")
            return
        self.redraw(whole=True)

    @override
    def is_empty(self) -> bool:
        return self.content is None

    @override
    def draw(self, chart: Chart) -> None:
        content = self.content
        assert content is not None
        heights = content.counts.astype(np.float64)
        chart.set_margins(24, 2, 24, 0)
        chart.show_range((0.0, float(_BINS)), (0.0, float(heights.max()) or 1.0))
        span = content.high - content.low
        step = max(1.0, np.ceil(span / _TICKS))
        marks = np.arange(content.low, content.high + 0.5, step)
        ticks = [((at - content.low) / span * _BINS, f"{10.0**at:.0e}") for at in marks.tolist()]
        chart.axis("bottom", ticks)
        left = np.arange(_BINS, dtype=np.float64)
        colours = [self.theme.palette.accent] * _BINS
        chart.bars(colours, x0=left, x1=left + 1 - _GAP, y0=np.zeros(_BINS), y1=heights)

    @override
    def pick(self, at: QPointF) -> int:
        place = int(self.value_at(at)[0])
        return place if 0 <= place < _BINS else NOTHING

    @override
    def hover_text(self, number: int) -> str:
        content = self.content
        assert content is not None
        width = (content.high - content.low) / _BINS
        low, high = (10.0 ** (content.low + one * width) for one in (number, number + 1))
        count = int(content.counts[number])
        return f"{plural(count, 'sample')} with a largest error of {low:.3g} to {high:.3g}"
