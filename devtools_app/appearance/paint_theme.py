"""Colours and fonts of the canvases, and colours that stay readable."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QColor, QFont

from devtools_app.appearance.colours import NOT_DELEGATED, contrast, luminance
from devtools_app.appearance.look import BASE_SIZE

ColourMap = NDArray[np.uint8]
READABLE = 4.5  # contrast of text, WCAG 2 AA


@dataclass(frozen=True, slots=True, eq=False)
class CanvasColours:
    """Roles of one palette (light or dark) and the fonts of the application.

    Attributes:
        surface: background of a canvas
        raised: boxes and cards on it
        line: borders and grids
        text: main text
        muted: secondary text
        accent: selection, share bars
        good: better than expected, bounds
        warn: notable costs
        bad: peaks, errors
        not_delegated: bold outline of non-delegated parts
        backends: qualitative colours, safe for the colour-blind
        sequential: colour map for magnitudes, low to high
        diverging: colour map for signed differences, neutral in the middle
        font: of the interface
        mono: for numbers, names and code

    Shapes: sequential, diverging uint8[256, 3]
    """

    surface: str
    raised: str
    line: str
    text: str
    muted: str
    accent: str
    good: str
    warn: str
    bad: str
    not_delegated: str
    backends: tuple[str, ...]
    sequential: ColourMap
    diverging: ColourMap
    font: QFont
    mono: QFont

    @property
    def dark(self) -> bool:
        """Return whether the background is dark."""
        return luminance(self.surface) < 0.2

    @property
    def scale(self) -> float:
        """Return the size of text beside that of the design."""
        return self.font.pixelSize() / BASE_SIZE

    def backend(self, index: int) -> str:
        """Return the colour of a backend or category; they repeat after the last."""
        return self.backends[index % len(self.backends)]

    def reference(self, colour: int) -> str:
        """Return the colour of a category, of NOT_DELEGATED, or of PLAIN (a quiet grey)."""
        if colour >= 0:
            return self.backend(colour)
        return self.not_delegated if colour == NOT_DELEGATED else mix(self.line, self.muted, 0.5)

    def sized(self, pixels: int, *, bold: bool = False, mono: bool = False) -> QFont:
        """Return the application or mono font in a size."""
        font = QFont(self.mono if mono else self.font)
        font.setPixelSize(max(pixels, 1))
        if bold:
            font.setWeight(QFont.Weight.DemiBold)
        return font


def _channels(colour: str) -> tuple[float, float, float]:
    value = int(colour[1:7], 16)
    return (value >> 16) / 255.0, (value >> 8 & 255) / 255.0, (value & 255) / 255.0


@lru_cache(maxsize=4096)
def mix(a: str, b: str, share: float) -> str:
    """Return a colour between two; share 0 is the first, 1 the second."""
    pairs = zip(_channels(a), _channels(b), strict=True)
    mixed = (round((x + (y - x) * share) * 255) for x, y in pairs)
    return "#{:02x}{:02x}{:02x}".format(*mixed)


@lru_cache(maxsize=4096)
def ink_on(fill: str) -> str:
    """Return a nearly black, white or black that is readable on a fill; one of them always is."""
    soft, light, dark = "#14171a", "#ffffff", "#000000"
    best = soft if contrast(soft, fill) >= contrast(light, fill) else light
    return best if contrast(best, fill) >= READABLE else dark


@lru_cache(maxsize=4096)
def readable(colour: str, background: str, text: str) -> str:
    """Return the colour nearest to a given one that is readable on a background.

    Args:
        colour: the desired hue
        background: behind the text
        text: the colour of plain text there, towards which it is moved
    """
    for step in range(11):
        found = mix(colour, text, step / 10)
        if contrast(found, background) >= READABLE:
            return found
    return text


def map_colours(
    colour_map: ColourMap, values: NDArray[np.float64]
) -> tuple[list[str], NDArray[np.int64]]:
    """Return the colours ``#rrggbb`` of a map, and which of them each value has.

    Args:
        colour_map: the colours of 0 to 1
        values: finite ones; those outside have the colour of the nearer end

    Shapes: values float64[n]; result int64[n]
    """
    names = ["#{:02x}{:02x}{:02x}".format(*row) for row in colour_map.tolist()]
    return names, np.clip(np.rint(values * 255), 0, 255).astype(np.int64)


def qcolor(colour: str, alpha: float = 1.0) -> QColor:
    """Return a Qt colour with an opacity."""
    found = QColor(colour)
    found.setAlphaF(alpha)
    return found
