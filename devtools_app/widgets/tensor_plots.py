"""Plots of one tensor: the histogram of its values, and an image of a slice."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QResizeEvent
from typing_extensions import override

from devtools_app.appearance.colour_maps import colour_scale
from devtools_app.appearance.theme import FontSize, Theme
from devtools_app.widgets.plot import NOTHING, Plot
from inspector.tensors.images import TensorImage
from inspector.tensors.summary import TensorSummary
from inspector.units import plain_text
from schema.objects.plural import plural

if TYPE_CHECKING:
    from devtools_app.widgets.chart import Chart

_SPACE = 4  # pixels around an image
_FLAT = 24.0  # share of width and height from which cells are no squares: they would be a thread
_ONE_LINE = 0.7  # of the width for a legend beside the title; Qt would wrap it earlier
Describe = Callable[[tuple[int, ...]], str]


class ValueHistogram(Plot):
    """Elements by value, on a logarithmic scale of counts; what a quantized type clips is marked.

    The first and last bin of a tensor with values at its limits are in the colour of a warning.
    """

    as_table = "the values, beside or below it"
    zoom_axes = "x"

    def __init__(self, theme: Theme) -> None:
        self._found: TensorSummary | None = None
        super().__init__(theme, "Histogram of the values")
        self.set_hint(360, 150)
        self.setMinimumSize(200, 100)
        self.title.setText("values, elements (log)")

    def show_summary(self, found: TensorSummary | None, message: str = "") -> None:
        """Show another tensor, or a message without one."""
        self._found = found
        if found is None or not len(found.counts):
            ordered = found is None or found.facts is not None
            self.show_message(message or ("No finite values" if ordered else "Complex values"))
            self.redraw(whole=True)
            return
        low, high = float(found.edges[0]), float(found.edges[-1])
        total = int(found.counts.sum())
        self.describe(f"{total:,} elements from {plain_text(low)} to {plain_text(high)}")
        clipped = found.clipped
        marked = clipped is not None and clipped.share > 0
        self.note.setText(
            f"<span style='color:{self.theme.palette.warn}'>▮</span> at the limits"
            if marked
            else ""
        )
        self.redraw(whole=True)

    @override
    def is_empty(self) -> bool:
        return self._found is None or not len(self._found.counts)

    @override
    def draw(self, chart: Chart) -> None:
        found = self._found
        assert found is not None
        heights = np.log1p(found.counts.astype(np.float64))
        bins = len(heights)
        edges = found.edges
        ends = [(float(at), plain_text(edges[at])) for at in (0, bins // 2, bins)]
        metrics = QFontMetrics(self.theme.sans(FontSize.SMALL))
        side = max(metrics.horizontalAdvance(text) for _, text in ends) / 2 + 4
        chart.set_margins(side, 2, side, 0)
        chart.show_range((0.0, float(bins)), (0.0, float(heights.max()) or 1.0))
        chart.axis("bottom", ends)
        palette = self.theme.palette
        colours = [palette.accent] * bins
        if found.clipped is not None and found.facts is not None:
            if found.clipped.at_low:
                colours[0] = palette.warn
            if found.clipped.at_high:
                colours[-1] = palette.warn
        left = np.arange(bins, dtype=np.float64)
        chart.bars(colours, x0=left, x1=left + 0.92, y0=np.zeros(bins), y1=heights)

    @override
    def pick(self, at: QPointF) -> int:
        found = self._found
        place = int(np.floor(self.value_at(at)[0]))
        return place if found is not None and 0 <= place < len(found.counts) else NOTHING

    @override
    def hover_text(self, number: int) -> str:
        found = self._found
        assert found is not None
        low, high = float(found.edges[number]), float(found.edges[number + 1])
        count = plural(int(found.counts[number]), "element")
        return f"{count} from {plain_text(low)} to {plain_text(high)}"


class TensorHeat(Plot):
    """An image of a slice; blue is negative and orange positive, else darker is larger."""

    as_table = "the values, beside or below it"
    zoom_axes = "xy"

    def __init__(self, theme: Theme) -> None:
        self._image: TensorImage | None = None
        self._describe: Describe = str
        super().__init__(theme, "Image of the tensor")
        self.set_hint(360, 300)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # plus, minus and Space zoom
        self.setMinimumSize(200, 120)

    @property
    def image(self) -> TensorImage | None:
        """Return the image."""
        return self._image

    def show_image(self, image: TensorImage | None, describe: Describe, message: str = "") -> None:
        """Show another slice, or a message without one.

        Args:
            image: the slice
            describe: returns the hover text of the element at a place
            message: of the empty plot
        """
        self._image, self._describe = image, describe
        if self.is_empty() or image is None:
            self.show_message(message or "No elements")
            self.redraw(whole=True)
            return
        known = image.values[np.isfinite(image.values)]
        ends = [float(known.min()), float(known.max())] if len(known) else []
        rows, columns = image.grid
        meaning = ", magnitudes" if image.magnitude else ""
        self.title.setText(f"{rows:,} × {columns:,}{meaning}")
        self.note.setText(self._legend(ends))
        self._wrap_note()
        size = f"{plural(rows, 'row')} and {plural(columns, 'column')}"
        values = " to ".join(map(plain_text, ends))
        self.describe(f"{size}, {f'values from {values}' if ends else 'no finite values'}")
        self.redraw(whole=True)

    def _legend(self, ends: list[float]) -> str:
        image, palette = self._image, self.theme.palette
        assert image is not None
        if ends and ends[0] < 0 < ends[1]:
            ends = [ends[0], 0.0, ends[1]]
        ends = list(dict.fromkeys(ends))  # all elements alike have one colour
        colours = self._coloured(np.array(ends))
        marks = [
            f"<span style='color:{QColor(*(int(one) for one in colour)).name()}'>■</span>"
            f"&nbsp;{plain_text(end)}"
            for end, colour in zip(ends, colours, strict=True)
        ]
        if np.isinf(image.values).any():
            marks.append(f"<span style='color:{palette.bad}'>■</span> NaN or infinite")
        if image.values.shape != image.grid:
            marks.append("largest of each patch" + (", sampled" if image.sampled else ""))
        return " &nbsp; ".join(marks)

    def _wrap_note(self) -> None:
        self.note.setWordWrap(False)
        self.note.setWordWrap(self.note.sizeHint().width() > _ONE_LINE * self.width())

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._wrap_note()

    @override
    def is_empty(self) -> bool:
        return self._image is None or not self._image.values.size

    @override
    def draw(self, chart: Chart) -> None:
        image = self._image
        assert image is not None
        rows, columns = image.grid
        chart.set_margins(_SPACE, _SPACE, _SPACE, _SPACE)
        width = max(chart.width() - 2 * _SPACE, 1)
        height = max(chart.height() - 2 * _SPACE, 1)
        wide, high = float(columns), float(rows)
        ratio = (width / wide) / (height / high)
        if 1 / _FLAT < ratio < _FLAT:  # square cells, in the middle of what is left
            wide, high = (wide * ratio, high) if ratio > 1 else (wide, high / ratio)
        left, low = (columns - wide) / 2, (rows - high) / 2
        chart.show_range((left, left + wide), (low, low + high))
        chart.image(self._pixels(image), QRectF(0, 0, columns, rows))

    def _pixels(self, image: TensorImage) -> NDArray[np.uint8]:
        palette = self.theme.palette
        pixels = self._coloured(image.values)
        for where, colour in (
            (np.isnan(image.values), palette.raised),
            (np.isinf(image.values), palette.bad),
        ):
            found = QColor(colour)
            pixels[where] = (found.red(), found.green(), found.blue())
        return pixels

    def _coloured(self, values: NDArray[np.float64]) -> NDArray[np.uint8]:
        image = self._image
        assert image is not None
        scale, palette = colour_scale(image.values), self.theme.palette
        colours = palette.diverging if scale.signed else palette.sequential
        places = np.nan_to_num(scale.places(values))
        return colours[np.clip(np.rint(places * 255), 0, 255).astype(np.int64)].copy()

    @override
    def pick(self, at: QPointF) -> int:
        image = self._image
        assert image is not None
        x, y = self.value_at(at)
        row, column = int(np.floor(image.grid[0] - y)), int(np.floor(x))
        inside = 0 <= row < image.grid[0] and 0 <= column < image.grid[1]
        return row * image.grid[1] + column if inside else NOTHING

    @override
    def hover_text(self, number: int) -> str:
        image = self._image
        assert image is not None
        row, column = divmod(number, image.grid[1])
        place = image.cell(row, column)
        return "" if place is None else self._describe(place)
