"""A strip below the memory plan: live bytes at each instruction, on the same axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QSize, Signal
from PySide6.QtWidgets import QSizePolicy
from typing_extensions import override

from devtools_app.appearance.colours import mix
from devtools_app.appearance.paint_theme import qcolor
from devtools_app.appearance.theme import Theme
from devtools_app.viewmodels.layout.camera import Camera
from devtools_app.viewmodels.layout.step_bins import step_bins
from devtools_app.widgets.memory_canvas_paint import LEFT, RIGHT
from devtools_app.widgets.plot import NOTHING, Plot
from inspector.units import format_bytes

if TYPE_CHECKING:
    from devtools_app.widgets.chart import Chart

_HEIGHT = 76  # with text of the usual size
_BINS = 2048  # more steps than there are pixels: 50,000 took 28 ms to paint


class LiveCurve(Plot):
    """Draws the curve of live bytes; follows the camera of the plan above it.

    Attributes:
        step_selected: step that the user clicked on
    """

    as_table = "the values of the plan, beside or below it"
    step_selected = Signal(int)
    ground = "surface"

    def __init__(self, theme: Theme) -> None:
        self._live: NDArray[np.int64] = np.zeros(0, np.int64)
        self._peak: int | None = None
        self._step: int | None = None
        self._camera = Camera()
        super().__init__(theme, "Bytes in use")
        self.title.setText("bytes in use")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    @override
    def _restyle(self) -> None:
        self.head.setContentsMargins(int(LEFT * self.theme.scale), 2, 0, 0)
        self.setFixedHeight(round(_HEIGHT * self.theme.scale))
        super()._restyle()

    def show_live(self, live: NDArray[np.int64], peak: int | None) -> None:
        """Show a different planned buffer.

        Shapes: live int64[steps]
        """
        self._live, self._peak, self._step = live, peak, None
        self.describe(self._description())
        self.redraw()

    def _description(self) -> str:
        if self._peak is None:
            return "no bytes in use"
        most = format_bytes(int(self._live.max(initial=0)))
        return f"bytes in use over {len(self._live):,} steps, at most {most} at step {self._peak}"

    def set_step(self, step: int | None) -> None:
        """Mark a step; `step_selected` is not emitted."""
        if step != self._step:
            self._step = step
            self.redraw()

    def follow(self, camera: Camera) -> None:
        """Show the steps that the plan above shows."""
        self._camera = camera
        if self.chart is not None and not self.is_empty():
            x, y = self._ranges()
            self.chart.show_range(x, y)
            self.chart.move_steps(*step_bins(self._live, *x, _BINS))

    def _ranges(self) -> tuple[tuple[float, float], tuple[float, float]]:
        scale = self.theme.scale  # as of the plan above
        shown = max(self.width() / scale - LEFT - RIGHT, 1.0) / self._camera.sx
        top = float(self._live.max(initial=0)) or 1.0
        return (self._camera.x, self._camera.x + shown), (0.0, top)

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(200, round(_HEIGHT * self.theme.scale))

    @override
    def is_empty(self) -> bool:
        return not len(self._live)

    @override
    def draw(self, chart: Chart) -> None:
        palette, scale = self.theme.palette, self.theme.scale
        x, y = self._ranges()
        chart.set_margins(0, 6 * scale, RIGHT * scale, 6)
        chart.show_range(x, y)
        chart.axis("left", [(y[1], format_bytes(int(y[1])))], room=LEFT * scale)
        fill = mix(palette.surface, palette.accent, 0.22)
        chart.steps(*step_bins(self._live, *x, _BINS), palette.accent, fill)
        for step, colour in ((self._peak, palette.bad), (self._step, palette.accent)):
            if step is not None:
                chart.column(step, step + 1, qcolor(colour, 0.35))

    @override
    def pick(self, at: QPointF) -> int:
        step = int(np.floor(self.value_at(at)[0]))
        inside = at.x() >= LEFT * self.theme.scale and 0 <= step < len(self._live)
        return step if inside else NOTHING

    @override
    def hover_text(self, number: int) -> str:
        live = int(self._live[number])
        return f"step {number}: {format_bytes(live)} ({live:,} B)"

    @override
    def choose(self, number: int) -> None:
        self.step_selected.emit(number)
