"""Operators by intensity and rate below the limits of the machine, both axes logarithmic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, Qt, Signal
from typing_extensions import override

from devtools_app.appearance.theme import Theme
from devtools_app.viewmodels.roofline_points import (
    RooflinePoint,
    RooflineScene,
    decades,
    seen_points,
)
from devtools_app.widgets.plot import NOTHING, Plot

if TYPE_CHECKING:
    from devtools_app.widgets.chart import Chart

_NEAR = 6.0  # pixels around a point that belong to it
_RIGHT, _TOP = 18, 14
_EMPTY = "No operator has FLOPs, bytes and a time"
_CELL = 2.0  # pixels; of equal points nearer than that one is drawn


class RooflinePlot(Plot):
    """Draws operators and ceilings; a click or an arrow key chooses an operator.

    The wheel, plus and minus zoom, dragging pans, Space resets the zoom.

    Signals:
        chosen(row): the user chose a row of the table
    """

    as_table = "the points are rows of the table below"
    zoom_axes = "xy"
    chosen = Signal(int)

    def __init__(self, theme: Theme) -> None:
        self._scene: RooflineScene | None = None
        self._current: frozenset[int] = frozenset()
        self._cells = 0.0, 0.0  # that the seen points are of
        self._seen: list[tuple[str, float, NDArray[np.int64]]] = []
        super().__init__(theme, "Roofline")
        self.set_hint(640, 420)
        self.setMinimumSize(280, 120)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.show_message(_EMPTY)

    def show_scene(self, scene: RooflineScene | None) -> None:
        """Replace the operators, or show the empty message."""
        self._scene, self._cells = scene, (0.0, 0.0)
        if self.is_empty():
            self.show_message(_EMPTY)
            return
        self.describe("" if scene is None else scene.words)
        self.redraw(whole=True)

    def show_rows(self, rows: frozenset[int]) -> None:
        """Mark the points of some rows."""
        if rows != self._current:
            self._current = rows
            self.redraw()

    @property
    def points(self) -> Sequence[RooflinePoint]:
        """Return the points."""
        return self._scene.points if self._scene is not None else ()

    @property
    def marked(self) -> frozenset[int]:
        """Return the marked rows."""
        return self._current

    # ---- the user
    @override
    def is_empty(self) -> bool:
        return not self.points

    @override
    def pick(self, at: QPointF) -> int:
        scene = self._scene
        assert scene is not None
        x, y, diameter = scene.places.T
        across, up = self.pixels_of(x, y)
        far = np.hypot(across - at.x(), up - at.y()) / (diameter / 2 + _NEAR)
        nearest = len(far) - 1 - int(np.argmin(far[::-1]))  # what is drawn last is on top
        return nearest if far[nearest] <= 1.0 else NOTHING

    @override
    def hover_text(self, number: int) -> str:
        return self.points[number].words

    @override
    def choose(self, number: int) -> None:
        row = self.points[number].row
        self.show_rows(frozenset((row,)))
        self.chosen.emit(row)
        self.read_out(number)

    @override
    def step(self, by: int) -> bool:
        scene = self._scene
        assert scene is not None
        order = np.argsort(scene.places[:, 0], kind="stable")
        marked = np.flatnonzero(np.isin(scene.rows[order], list(self._current)))
        place = int(marked[0]) + by if len(marked) else 0
        if not 0 <= place < len(order):
            return False
        self.choose(int(order[place]))
        return True

    # ---- drawing
    @override
    def draw(self, chart: Chart) -> None:
        scene, palette = self._scene, self.theme.palette
        assert scene is not None
        chart.set_margins(4, _TOP, _RIGHT, 4)
        chart.show_range(scene.across, scene.up)
        for one in scene.ceilings:
            chart.line(one.x, one.y, palette.text, width=1.4)
            if one.slanted:
                x = (max(one.x[0], scene.up[0] - one.y[0] + one.x[0]) + one.x[1]) / 2
                chart.text(x, one.y[0] + x - one.x[0], one.label, anchor=(1.0, 1.0))
            else:
                chart.text(one.x[1], one.y[1], one.label, anchor=(1.0, 1.0))

    def _draw_points(self, chart: Chart) -> None:
        """Draw what can be distinguished in the visible range."""
        scene, palette = self._scene, self.theme.palette
        assert scene is not None
        chart.remove_dots()
        (left, right), (low, high) = chart.ranges
        cell = (right - left) * _CELL / max(self.width(), 1)
        cells = cell, (high - low) * _CELL / max(self.height(), 1)
        if cells != self._cells:
            self._cells, self._seen = cells, list(seen_points(scene, cells))
        for backend, diameter, seen in self._seen:
            x, y, _ = scene.places[seen].T
            chart.dots(x, y, diameter, palette.backend(backend), ring=palette.raised)
        marked = np.flatnonzero(np.isin(scene.rows, list(self._current)))
        wide = 2.4 if self.hasFocus() else 1.6
        for diameter in np.unique(scene.places[marked, 2]).tolist():
            x, y, _ = scene.places[marked[scene.places[marked, 2] == diameter]].T
            chart.dots(x, y, diameter + 7, "", ring=palette.text, ring_width=wide)

    @override
    def draw_axes(self, chart: Chart) -> None:
        self._draw_points(chart)
        across, up = chart.ranges
        chart.axis("bottom", decades(*across), title="FLOPs a byte", grid=True)
        chart.axis("left", decades(*up), title="FLOP/s", grid=True)
