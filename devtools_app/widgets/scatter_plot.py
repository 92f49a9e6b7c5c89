"""Points by two metrics, with the Pareto front as a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, Qt, Signal
from PySide6.QtGui import QKeyEvent
from typing_extensions import override

from devtools_app.appearance.theme import Theme
from devtools_app.widgets.plot import NOTHING, Plot
from inspector.tables.sweep import Dot, Scatter
from schema.objects.plural import plural

if TYPE_CHECKING:
    from devtools_app.widgets.chart import Chart

_DOT, _NEAR = 8.0, 14.0
_RIGHT, _TOP = 18, 14
_EMPTY = "No point has both metrics yet"


class ScatterPlot(Plot):
    """Draws points; a click or an arrow key chooses one, a double click or Return opens it.

    The wheel, plus and minus zoom, dragging pans, Space resets the zoom.

    Signals:
        chosen(key): the user chose a point
        activated(key): request to open it
    """

    as_table = "the points are rows of the table of the sweep"
    zoom_axes = "xy"
    chosen = Signal(str)
    activated = Signal(str)

    def __init__(self, theme: Theme, name: str) -> None:
        self._scatter: Scatter | None = None
        self._current = ""
        super().__init__(theme, name)
        self.set_hint(520, 380)
        self.setMinimumSize(240, 180)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.show_message(_EMPTY)

    def show_scatter(self, scatter: Scatter | None) -> None:
        """Replace the points, or show the empty message."""
        self._scatter = scatter
        if scatter is None:
            self.show_message(_EMPTY)
            return
        self.describe(
            f"{plural(len(scatter.dots), 'point')} by {scatter.across.title} and"
            f" {scatter.up.title}, {len(scatter.front())} of them Pareto-optimal"
        )
        self.redraw(whole=True)

    def show_current(self, key: str) -> None:
        """Mark a point."""
        self._current = key
        self.redraw()

    @property
    def current(self) -> str:
        """Return the key of the selected point, or empty."""
        return self._current

    def place_of(self, key: str) -> QPointF | None:
        """Return the position of a point, or None if it is not drawn."""
        dot = next((one for one in self._dots if one.key == key), None)
        return None if dot is None else self.pixel_of(dot.x, dot.y)

    @property
    def _dots(self) -> tuple[Dot, ...]:
        return self._scatter.dots if self._scatter is not None else ()

    # ---- the user
    @override
    def is_empty(self) -> bool:
        return self._scatter is None

    @override
    def pick(self, at: QPointF) -> int:
        away = [(self.pixel_of(dot.x, dot.y) - at) for dot in self._dots]
        far = [QPointF.dotProduct(one, one) for one in away]
        nearest = min(range(len(far)), key=far.__getitem__, default=NOTHING)
        return nearest if far and far[nearest] <= _NEAR**2 else NOTHING

    @override
    def hover_text(self, number: int) -> str:
        return self._dots[number].words

    @override
    def choose(self, number: int) -> None:
        self.show_current(self._dots[number].key)
        self.chosen.emit(self._current)
        self.read_out(number)

    @override
    def activate(self, number: int) -> None:
        self.activated.emit(self._dots[number].key)

    @override
    def step(self, by: int) -> bool:
        dots = self._dots
        order = sorted(range(len(dots)), key=lambda number: (dots[number].x, dots[number].y))
        keys = [dots[number].key for number in order]
        place = keys.index(self._current) + by if self._current in keys else 0
        if not 0 <= place < len(order):
            return False
        self.choose(order[place])
        return True

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._current:
            self.activated.emit(self._current)
        else:
            super().keyPressEvent(event)

    # ---- drawing
    @override
    def draw(self, chart: Chart) -> None:
        scatter, palette = self._scatter, self.theme.palette
        assert scatter is not None
        across, up = scatter.across, scatter.up
        chart.set_margins(4, _TOP, _RIGHT, 4)
        chart.show_range((across.low, across.high), (up.low, up.high))
        front = scatter.front()
        x, y = [dot.x for dot in front], [dot.y for dot in front]
        chart.line(x, y, palette.accent, dashed=True)
        rest = [dot for dot in scatter.dots if not dot.best]
        fill = palette.muted, palette.raised
        chart.dots([dot.x for dot in rest], [dot.y for dot in rest], _DOT, fill[0], ring=fill[1])
        chart.dots(x, y, _DOT + 2, palette.accent, ring=palette.raised)
        current = [dot for dot in scatter.dots if dot.key == self._current]
        wide = 2.0 if self.hasFocus() else 1.2
        place = [dot.x for dot in current], [dot.y for dot in current]
        chart.dots(*place, _DOT + 9, "", ring=palette.text, ring_width=wide)

    @override
    def draw_axes(self, chart: Chart) -> None:
        if self._scatter is None:
            return
        for side, axis, shown in zip(
            ("bottom", "left"), (self._scatter.across, self._scatter.up), chart.ranges, strict=True
        ):
            chart.axis(side, axis.ticks_between(*shown), title=axis.title, grid=True)
