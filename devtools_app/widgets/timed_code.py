"""Code with the time of each line at its left, and its number of nodes (×6)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from PySide6.QtCore import QRect, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QTextCursor
from typing_extensions import override

from devtools_app.appearance.theme import Theme
from devtools_app.widgets.code_view import CodeView
from devtools_app.widgets.share_bar import paint_share
from inspector.tables.source_lines import SourceLine
from inspector.units import format_duration

_BAR, _GAP = 46, 8
_TIME_SAMPLE, _COUNT_SAMPLE = "000.0 µs", "×000"


class TimedCode(CodeView):
    """A CodeView whose margin shows the time of each line.

    Signals:
        line_chosen(line): the user clicked a line or pressed Return on it
    """

    line_chosen = Signal(int)

    def __init__(self, theme: Theme, name: str = "Source") -> None:
        self._lines: Mapping[int, SourceLine] = {}
        self._largest = 0.0
        self._unit = "auto"
        super().__init__(theme, name)

    def show_costs(self, lines: Mapping[int, SourceLine], unit: str) -> None:
        """Show the time of lines beside them.

        Args:
            lines: by line number
            unit: unit of the times shown
        """
        self._lines, self._unit = lines, unit
        known = [line.nanoseconds for line in lines.values() if not np.isnan(line.nanoseconds)]
        self._largest = max(known, default=0.0)
        self._fit_line_numbers()
        self.viewport().update()

    def reveal_slowest(self) -> None:
        """Scroll to the line that takes the most time; without times, to the first with nodes."""
        lines = self._lines
        slowest = max(
            sorted(lines), key=lambda one: np.nan_to_num(lines[one].nanoseconds), default=0
        )
        if slowest:
            self.setTextCursor(QTextCursor(self._block(slowest)))
            self.centerCursor()

    @override
    def line_number_width(self) -> int:
        extra = 0
        if self._lines:
            metrics = QFontMetrics(self.font())
            extra = metrics.horizontalAdvance(_COUNT_SAMPLE) + _GAP
            if self._largest:
                extra += metrics.horizontalAdvance(_TIME_SAMPLE) + _BAR + 2 * _GAP
        return super().line_number_width() + extra

    @override
    def paint_line_numbers(self, painter: QPainter) -> None:
        super().paint_line_numbers(painter)
        block = self.firstVisibleBlock()
        bottom = self.viewport().height()
        while block.isValid():
            box = self.blockBoundingGeometry(block).translated(self.contentOffset())
            if box.top() > bottom:
                return
            line = self._lines.get(block.blockNumber() + 1)
            if line is not None:
                self._paint_cost(painter, line, box)
            block = block.next()

    def _paint_cost(self, painter: QPainter, line: SourceLine, box: QRectF) -> None:
        palette, metrics = self._theme.palette, QFontMetrics(self.font())
        right = int(Qt.AlignmentFlag.AlignRight)
        at, top, height = _GAP, int(box.top()), int(box.height())
        painter.setFont(self.font())
        if self._largest:
            width = metrics.horizontalAdvance(_TIME_SAMPLE)
            if not np.isnan(line.nanoseconds):
                bar = QRectF(at, top + height / 2 - 4, _BAR, 8)
                share = line.nanoseconds / self._largest
                paint_share(painter, bar, share, self._theme, strong=share > 0.999)
                painter.setPen(QColor(palette.text))
                text = format_duration(line.nanoseconds, line.bound_ns, self._unit)
                painter.drawText(QRect(at + _BAR + _GAP, top, width, height), right, text)
            at += _BAR + _GAP + width + _GAP
        painter.setPen(QColor(palette.muted))
        width = metrics.horizontalAdvance(_COUNT_SAMPLE)
        painter.drawText(QRect(at, top, width, height), right, f"×{len(line.nodes)}")

    @override
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        if not self.textCursor().hasSelection():
            self.line_chosen.emit(self.textCursor().blockNumber() + 1)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.line_chosen.emit(self.textCursor().blockNumber() + 1)
            return
        super().keyPressEvent(event)
