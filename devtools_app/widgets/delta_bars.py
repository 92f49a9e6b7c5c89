"""Time differences: one signed bar per row around a middle line, the largest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QPointF, QSize
from PySide6.QtGui import QFontMetrics
from typing_extensions import override

from devtools_app.appearance.theme import FontSize, Theme
from devtools_app.widgets.elision import elided
from devtools_app.widgets.plot import NOTHING, Plot

if TYPE_CHECKING:
    from devtools_app.widgets.chart import Chart

_ROW, _BAR, _HEAD = 22, 12, 26  # pixels
_NAMES, _VALUES = 0.5, 88  # most of the width that names may have; pixels for values
_GAP = 20  # pixels between names and bars


@dataclass(frozen=True, slots=True)
class DeltaBar:
    """One bar.

    Attributes:
        name: of the row
        value: signed; negative is to the left
        text: the value as shown
        tone: good, bad or muted
    """

    name: str
    value: float
    text: str
    tone: str


class DeltaBars(Plot):
    """Bars with names at the left and values at the right; as many as fit."""

    as_table = "the lists of Compare"
    ground = "surface"

    def __init__(self, theme: Theme, name: str) -> None:
        self._rows: tuple[DeltaBar, ...] = ()
        super().__init__(theme, name)
        self.setMinimumSize(200, _HEAD + 3 * _ROW)

    @property
    def rows(self) -> tuple[DeltaBar, ...]:
        """Return the bars, the largest first."""
        return self._rows

    def show_rows(self, title: str, rows: tuple[DeltaBar, ...]) -> None:
        """Replace the bars."""
        self._rows = rows
        self.title.setText(title)
        shown = ", ".join(f"{one.name} {one.text}" for one in rows[:20])
        self.describe(f"{title}: {shown or 'no difference'}")
        self.redraw()

    @override
    def sizeHint(self) -> QSize:
        return QSize(380, _HEAD + _ROW * min(8, max(3, len(self._rows))))

    @override
    def is_empty(self) -> bool:
        return not self._rows

    @override
    def draw(self, chart: Chart) -> None:
        palette, height = self.theme.palette, chart.height()
        rows = self._rows[: max(1, height // _ROW)]
        largest = max(abs(one.value) for one in rows) or 1.0
        chart.show_range((-1.04 * largest, 1.04 * largest), (-height / _ROW, 0.0))
        metrics = QFontMetrics(self.theme.sans(FontSize.SMALL))
        widest = max(metrics.horizontalAdvance(one.name) for one in rows)
        names = min(widest + 1 + _GAP, int(self.width() * _NAMES))
        labels = [elided(one.name, metrics, names - _GAP) for one in rows]
        at = -(np.arange(len(rows)) + 0.5)
        chart.axis("left", list(zip(at.tolist(), labels, strict=True)), room=names)
        texts = [one.text for one in rows]
        mono = self.theme.mono(FontSize.SMALL)
        chart.axis("right", list(zip(at.tolist(), texts, strict=True)), room=_VALUES, font=mono)
        chart.mark(palette.line, x=0.0)
        values, half = np.array([one.value for one in rows]), _BAR / _ROW / 2
        ends = {"x0": np.zeros(len(rows)), "x1": values, "y0": at - half, "y1": at + half}
        chart.bars([palette.tone(one.tone) for one in rows], **ends)

    @override
    def pick(self, at: QPointF) -> int:
        row = int(np.floor(-self.value_at(at)[1]))
        return row if 0 <= row < len(self._rows) else NOTHING

    @override
    def hover_text(self, number: int) -> str:
        return f"{self._rows[number].name}: {self._rows[number].text}"
