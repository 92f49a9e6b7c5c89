"""Text on canvases: shortened once, never drawn over other text."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QFont, QFontMetricsF, QPainter

from devtools_app.appearance.paint_theme import CanvasColours, qcolor
from devtools_app.widgets.elision import elided

_MOST = 30000  # cached strings; bounds the memory of long sessions
_SHORTEST = 2  # a text shortened to fewer characters is meaningless
_BETWEEN, _ENDLESS = " · ", 10_000  # pixels, for which no text is cut


class TextCache:
    """Fonts, metrics and elided strings, cached between frames."""

    def __init__(self) -> None:
        self._fonts: dict[tuple[int, bool, bool], tuple[QFont, QFontMetricsF]] = {}
        self._short: dict[tuple[str, int, bool, bool, int], tuple[str, float]] = {}

    def clear(self) -> None:
        """Clear the cache, after the fonts changed."""
        self._fonts.clear()
        self._short.clear()

    def font(
        self, colours: CanvasColours, pixels: int, *, bold: bool = False, mono: bool = False
    ) -> tuple[QFont, QFontMetricsF]:
        """Return a font and its metrics."""
        key = (pixels, bold, mono)
        found = self._fonts.get(key)
        if found is None:
            font = colours.sized(pixels, bold=bold, mono=mono)
            found = self._fonts[key] = (font, QFontMetricsF(font))
        return found

    def fitted(
        self,
        colours: CanvasColours,
        text: str,
        width: float,
        pixels: int,
        *,
        bold: bool = False,
        mono: bool = False,
    ) -> tuple[str, float]:
        """Return a string elided to a width, and the resulting width; empty if none fits."""
        key = (text, pixels, bold, mono, int(width))
        found = self._short.get(key)
        if found is None:
            if len(self._short) > _MOST:
                self._short.clear()
            metrics = self.font(colours, pixels, bold=bold, mono=mono)[1]
            found = self._short[key] = _shortened(metrics, text, int(width))
        return found

    def fitted_detail(
        self, colours: CanvasColours, detail: str, room: float, pixels: int
    ) -> tuple[str, float]:
        """Return as much of ``nodes · time · share`` as has room, and its width.

        The time matters most; without room for any of it both are empty.
        """
        parts = detail.split(_BETWEEN)
        for shown in (parts, parts[1:], parts[1:2]):
            text, wide = self.fitted(colours, _BETWEEN.join(shown), _ENDLESS, pixels)
            if text and wide <= room:
                return text, wide
        return "", 0.0


def _shortened(metrics: QFontMetricsF, text: str, width: int) -> tuple[str, float]:
    line = text.replace("\n", " ")
    full = metrics.horizontalAdvance(line)
    if full <= width:
        return line, full
    short = elided(line, metrics, width)
    if len(short) <= _SHORTEST:
        return "", 0.0
    return short, metrics.horizontalAdvance(short)


class Occupied:
    """Rectangles of text already drawn, which later text does not overlap."""

    def __init__(self) -> None:
        self._taken: dict[tuple[int, int], list[tuple[float, float, float, float]]] = {}

    def claim(self, x: float, y: float, width: float, height: float) -> bool:
        """Reserve a rectangle if it is free; return whether it was free."""
        right, bottom = x + width, y + height
        cells = [
            (column, row)
            for column in range(int(x // 128), int(right // 128) + 1)
            for row in range(int(y // 64), int(bottom // 64) + 1)
        ]
        for cell in cells:
            for left, top, end, foot in self._taken.get(cell, ()):
                if x < end and right > left and y < foot and bottom > top:
                    return False
        for cell in cells:
            self._taken.setdefault(cell, []).append((x, y, right, bottom))
        return True


def chip(
    painter: QPainter, colours: CanvasColours, text: str, at: QPointF, metrics: QFontMetricsF
) -> QRectF:
    """Draw a string on a small card at its upper left corner; the font is set already."""
    box = QRectF(at.x(), at.y(), metrics.horizontalAdvance(text) + 12, metrics.height() + 6)
    painter.setPen(qcolor(colours.line))
    painter.setBrush(qcolor(colours.raised, 0.93))
    painter.drawRoundedRect(box, 3, 3)
    painter.setPen(qcolor(colours.text))
    painter.drawText(QPointF(box.x() + 6, box.y() + 3 + metrics.ascent()), text)
    return box
