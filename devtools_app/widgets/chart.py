"""The drawing surface of all plots: pyqtgraph in our colours and fonts.

Importing pyqtgraph takes 0.3 s; `plot` does it in a thread; no other module imports this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyqtgraph as pg
from numpy.typing import ArrayLike, NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPen
from PySide6.QtWidgets import QFrame, QWidget

from devtools_app.appearance.colours import Palette

Ticks = Sequence[tuple[float, str]]
Range = tuple[float, float]
_SIDES = ("left", "bottom", "right")
_NEAREST = 1e6  # of the whole to the smallest part that zooming shows; doubles hold it
_GAP = 6  # pixels between a label and its axis, and between two labels


class Chart(pg.PlotWidget):
    """Draws items in data coordinates; the enclosing plot handles mouse and keyboard."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, enableMenu=False)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        for part in (self, self.viewport()):
            part.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setMinimumSize(0, 0)
        self._item: Any = self.getPlotItem()
        self._item.hideButtons()
        self._item.setMouseEnabled(False, False)
        self._box: Any = self._item.getViewBox()
        self._palette: Palette | None = None
        self._font = QFont()
        self._bottom = 0.0  # pixels of the bottom axis
        self._dots: list[pg.ScatterPlotItem] = []
        self._steps: Any = None

    def begin(self, palette: Palette, font: QFont, background: str) -> None:
        """Remove all items; items drawn next use these colours and this font."""
        self._palette, self._font, self._bottom = palette, font, 0.0
        self._item.clear()
        self._dots.clear()
        self.setBackground(QColor(background))
        self.set_margins(0, 0, 0, 0)
        for side in _SIDES:
            self._item.hideAxis(side)

    def set_margins(self, left: float, top: float, right: float, bottom: float) -> None:
        """Reserve pixels around the axes."""
        self._item.layout.setContentsMargins(left, top, right, bottom)

    # ---- range
    def show_range(self, x: Range, y: Range) -> None:
        """Show a range of the plane, which also limits zooming."""
        limits = {"xMin": x[0], "xMax": x[1], "yMin": y[0], "yMax": y[1]}
        self._box.setLimits(xMin=None, xMax=None, yMin=None, yMax=None)  # the former ones
        self._box.setLimits(**limits)
        nearest = {"minXRange": (x[1] - x[0]) / _NEAREST, "minYRange": (y[1] - y[0]) / _NEAREST}
        self._box.setLimits(**nearest)
        self._box.setRange(xRange=x, yRange=y, padding=0, disableAutoRange=True)

    @property
    def ranges(self) -> tuple[Range, Range]:
        """Return the visible range: minimum and maximum of x, minimum and maximum of y."""
        x, y = self._box.viewRange()
        return (x[0], x[1]), (y[0], y[1])

    def set_ranges(self, x: Range, y: Range) -> None:
        """Change the visible range inside the limits."""
        self._box.setRange(xRange=x, yRange=y, padding=0)

    def zoom(self, factor: float, at: QPointF, axes: str) -> None:
        """Scale by a factor (above 1 zooms in) around a pixel, on the axes x, y or xy."""
        x, y = (1 / factor if axis in axes else 1.0 for axis in "xy")
        self._box.scaleBy((x, y), center=self.value_at(at))

    def pan(self, dx: float, dy: float, axes: str) -> None:
        """Pan by pixels."""
        zero, moved = self.value_at(QPointF(0, 0)), self.value_at(QPointF(dx, dy))
        by = moved - zero
        x, y = (-one if axis in axes else 0.0 for axis, one in zip("xy", by.toTuple(), strict=True))
        self._box.translateBy((x, y))

    def place_of(self, x: float, y: float) -> QPointF:
        """Return the pixel of a point."""
        self._item.layout.activate()
        return self._box.mapViewToScene(QPointF(x, y))

    def value_at(self, at: QPointF) -> QPointF:
        """Return the point at a pixel."""
        self._item.layout.activate()
        return self._box.mapSceneToView(at)

    # ---- axes
    def axis(
        self,
        side: str,
        ticks: Ticks,
        *,
        title: str = "",
        grid: bool = False,
        room: float | None = None,
        font: QFont | None = None,
    ) -> None:
        """Show an axis.

        Args:
            side: left, bottom or right
            ticks: values with their labels; where two overlap, the later one is skipped
            title: written along the axis
            grid: whether to draw grid lines
            room: width (height of the bottom axis) in pixels; by default that of the labels
            font: of the labels
        """
        palette, axis = self._palette, self._item.getAxis(side)
        assert palette is not None
        font = font or self._font
        metrics = QFontMetrics(font)
        upright = side != "bottom"
        if room is None:
            widest = max((metrics.horizontalAdvance(text) for _, text in ticks), default=0)
            room = (widest if upright else metrics.height()) + 2 * _GAP
            room += QFontMetrics(self._font).height() + _GAP if title else 0
        (axis.setWidth if upright else axis.setHeight)(room)
        self._bottom = self._bottom if upright else room
        axis.setStyle(tickFont=font, tickLength=0, tickTextOffset=_GAP, hideOverlappingLabels=99)
        axis.setPen(QPen(Qt.PenStyle.NoPen))
        axis.setTickPen(pg.mkPen(palette.line))
        axis.setTextPen(pg.mkPen(palette.muted))
        axis.setGrid(255 if grid else False)
        axis.setZValue(self._box.zValue() - 1)  # the grid lies behind what is drawn
        axis.setTicks([self._without_touching(ticks, metrics, upright=upright)])
        axis.enableAutoSIPrefix(False)  # the labels have their unit; a factor would be a second one
        if title:
            axis.setLabel(title, color=palette.text, **{"font-size": f"{self._font.pixelSize()}px"})
        self._item.showAxis(side)
        axis.showLabel(bool(title))

    def _without_touching(self, ticks: Ticks, metrics: QFontMetrics, *, upright: bool) -> Ticks:
        low, high = self.ranges[upright]
        # at a left axis: without the room of the bottom one
        room = self.height() - self._bottom if upright else self.width()
        scale = room / ((high - low) or 1.0)
        taken: list[tuple[float, float]] = []
        found: list[tuple[float, str]] = []
        for value, text in ticks:
            half = (metrics.height() if upright else metrics.horizontalAdvance(text) + _GAP) / 2
            free = all(abs(value - one) * scale >= half + size for one, size in taken)
            found.append((value, text if free else ""))
            taken += [(value, half)] if free else []
        return found

    # ---- items
    def line(
        self, x: ArrayLike, y: ArrayLike, colour: str, *, width: float = 1.2, dashed: bool = False
    ) -> None:
        """Draw a line through points."""
        style = Qt.PenStyle.DashLine if dashed else Qt.PenStyle.SolidLine
        pen = pg.mkPen(colour, width=width, style=style)
        self._item.addItem(pg.PlotCurveItem(np.asarray(x), np.asarray(y), pen=pen, antialias=True))

    def steps(self, edges: ArrayLike, y: ArrayLike, colour: str, fill: str) -> None:
        """Draw one step per value from edge to edge, filled down to zero."""
        pen, brush = pg.mkPen(colour, width=1.0), pg.mkBrush(fill)
        places = np.asarray(edges), np.asarray(y)
        self._steps = pg.PlotCurveItem(
            *places, stepMode="center", pen=pen, brush=brush, fillLevel=0
        )
        self._item.addItem(self._steps)

    def move_steps(self, edges: ArrayLike, y: ArrayLike) -> None:
        """Replace edges and values of the steps that were drawn."""
        self._steps.setData(np.asarray(edges), np.asarray(y))

    def dots(
        self,
        x: ArrayLike,
        y: ArrayLike,
        size: float,
        colour: QColor | str,
        *,
        ring: str = "",
        ring_width: float = 1.0,
    ) -> None:
        """Draw dots; size is their diameter in pixels; an empty colour leaves only the ring."""
        pen = pg.mkPen(ring, width=ring_width) if ring else pg.mkPen(None)
        brush = pg.mkBrush(colour) if colour else pg.mkBrush(None)
        places = np.asarray(x, np.float64), np.asarray(y, np.float64)
        # a brush that is set afterwards would style each dot a second time
        item = pg.ScatterPlotItem(*places, size=size, pen=pen, brush=brush, antialias=True)
        self._item.addItem(item)
        self._dots.append(item)

    def remove_dots(self) -> None:
        """Remove the dots that were drawn."""
        for item in self._dots:
            self._item.removeItem(item)
        self._dots.clear()

    def bars(self, colours: Sequence[str], **places: ArrayLike) -> None:
        """Draw rectangles: x0, x1, y0, y1 of each."""
        brushes = [pg.mkBrush(colour) for colour in colours]
        self._item.addItem(pg.BarGraphItem(brushes=brushes, pen=pg.mkPen(None), **places))

    def image(self, pixels: NDArray[np.uint8], box: QRectF) -> None:
        """Draw an image; its first row is at the largest y.

        Shapes: pixels uint8[rows, columns, 3]
        """
        item = pg.ImageItem(pixels[::-1], axisOrder="row-major", levels=(0, 255))
        item.setRect(box)
        self._item.addItem(item)

    def band(self, low: float, high: float, colour: str) -> None:
        """Fill the area between two values of y."""
        brush, pen = pg.mkBrush(colour), pg.mkPen(None)
        item = pg.LinearRegionItem(
            (low, high), orientation="horizontal", movable=False, brush=brush, pen=pen
        )
        self._item.addItem(item)

    def column(self, left: float, right: float, colour: QColor) -> None:
        """Fill the area between two values of x, at least a pixel wide."""
        brush, pen = pg.mkBrush(colour), pg.mkPen(colour, width=1)
        item = pg.LinearRegionItem((left, right), movable=False, brush=brush, pen=pen)
        self._item.addItem(item)

    def text(self, x: float, y: float, label: str, *, anchor: tuple[float, float]) -> None:
        """Write a label at a point.

        Args:
            x: of the point
            y: of the point
            label: a line of text
            anchor: the part of the label that is at the point, from (0, 0), its top left
        """
        assert self._palette is not None
        item = pg.TextItem(label, color=self._palette.text, anchor=anchor)
        item.setFont(self._font)
        item.setPos(x, y)
        self._item.addItem(item, ignoreBounds=True)

    def mark(self, colour: QColor | str, *, x: float | None = None, y: float = 0.0) -> None:
        """Draw a line through the whole plot: vertical at x, else horizontal at y."""
        pen = pg.mkPen(colour, width=1.2)
        place, angle = (y, 0) if x is None else (x, 90)
        self._item.addItem(pg.InfiniteLine(place, angle=angle, movable=False, pen=pen))
