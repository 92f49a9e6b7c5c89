"""Colours by role, light and dark, and the maps from values to colours. Qt-free.

Colour never carries a meaning alone: every use is repeated by text or shape, with a legend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from schema.backends import backend_of

if TYPE_CHECKING:
    from devtools_app.appearance.colour_maps import Colormap

# references to a colour beside the backends, which count from 0
PLAIN = -1  # inputs, outputs, modules: no backend owns them
NOT_DELEGATED = -2

CONTRAST_TEXT = 4.5  # WCAG AA for text
CONTRAST_SHAPE = 3.0  # WCAG AA for lines and marks that carry meaning


@dataclass(frozen=True, slots=True)
class Palette:
    """One colour scheme of the window; every colour is ``#rrggbb``.

    Attributes:
        dark: whether it is the dark one
        surface: the canvas behind everything drawn
        raised: panels, tables, cards, menus
        sunken: headings of tables, tab rows, status line
        hover: below the pointer
        line: thin lines between things
        edge: outline of fields and buttons
        text: primary text
        muted: secondary text
        accent: the only highlight colour
        on_accent: text on accent
        accent_soft: bars and marks of lesser weight
        selection: background of the selection
        good: success
        warn: warning
        bad: error
        plain: background of non-delegated parts, a warm grey
        plain_edge: its bold outline
        backends: fills of backends, in the order of ``backend_index``; hues of
            Okabe and Ito's set, in lightness that differs with any kind of colour vision
    """

    dark: bool
    surface: str
    raised: str
    sunken: str
    hover: str
    line: str
    edge: str
    text: str
    muted: str
    accent: str
    on_accent: str
    accent_soft: str
    selection: str
    good: str
    warn: str
    bad: str
    plain: str
    plain_edge: str
    backends: tuple[str, ...]

    @property
    def sequential(self) -> Colormap:
        """Return the map for magnitudes: large values contrast with the surface.

        Shapes: uint8[256, 3]
        """
        from devtools_app.appearance.colour_maps import sequential_map

        return sequential_map(self.dark)

    @property
    def diverging(self) -> Colormap:
        """Return the map for signed differences: blue, neutral, orange.

        Shapes: uint8[256, 3]
        """
        from devtools_app.appearance.colour_maps import diverging_map

        return diverging_map(self.dark)

    def tone(self, name: str) -> str:
        """Return the colour of a tone as columns name it; text when it has none."""
        if name.startswith("backend:"):
            return self.backend_ink(name.removeprefix("backend:"))
        named = {
            "good": self.good,
            "warn": self.warn,
            "bad": self.bad,
            "accent": self.accent,
            "muted": self.muted,
            "busy": self.accent,  # of states: a job that runs
            "off": self.muted,  # one that was cancelled
        }
        return named.get(name, self.text)

    def backend(self, backend_id: str) -> str:
        """Return the colour of a backend for outlines and marks; warm grey without one."""
        if not backend_id:
            return self.plain_edge
        return self.backends[backend_index(backend_id)]

    def backend_fill(self, backend_id: str) -> str:
        """Return the muted background of a region of a backend."""
        if not backend_id:
            return self.plain
        return mix(self.backend(backend_id), self.raised, 0.14 if self.dark else 0.12)

    def backend_ink(self, backend_id: str) -> str:
        """Return the colour of a backend as text on any of our backgrounds."""
        grounds = (self.raised, self.surface, self.sunken, self.backend_fill(backend_id))
        return readable(self.backend(backend_id), grounds, self.text)


LIGHT = Palette(
    dark=False,
    surface="#f7f7f5",
    raised="#ffffff",
    sunken="#f1f1ee",
    hover="#ecece8",
    line="#e1e1dc",
    edge="#cfcfc9",
    text="#1b1d1f",
    muted="#5f6468",
    accent="#1f5fa8",
    on_accent="#ffffff",
    accent_soft="#c9ddef",
    selection="#e0ebf7",
    good="#155e40",
    warn="#925805",
    bad="#9d1418",
    plain="#f1eee8",
    plain_edge="#7a6c56",
    backends=("#0f71b2", "#529160", "#975d00", "#d66105", "#b3558b", "#1592ca", "#595500"),
)
DARK = Palette(
    dark=True,
    surface="#17191b",
    raised="#1f2225",
    sunken="#1b1e20",
    hover="#292c30",
    line="#33373b",
    edge="#454a4f",
    text="#e6e8ea",
    muted="#9ba2a9",
    accent="#6ca8e8",
    on_accent="#0d1a28",
    accent_soft="#2d4a66",
    selection="#24364a",
    good="#34d0a6",
    warn="#e0a33e",
    bad="#f08277",
    plain="#2a2825",
    plain_edge="#b3a68c",
    backends=("#4e9fda", "#23d9ac", "#eaa000", "#eb7e35", "#cb79a8", "#51bade", "#f0e442"),
)


def backend_index(backend_id: str) -> int:
    """Return the place of a backend in the colour set; an unknown one has a stable place too."""
    known = backend_of(backend_id).colour
    if known is not None:
        return known
    return sum(backend_id.encode()) % len(LIGHT.backends)


def rgb(colour: str) -> tuple[int, int, int]:
    """Return red, green and blue of ``#rrggbb``, 0 to 255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def hexadecimal(parts: Sequence[float]) -> str:
    """Return ``#rrggbb`` of red, green and blue, 0 to 255."""
    return "#" + "".join(f"{min(255, max(0, round(part))):02x}" for part in parts)


def mix(colour: str, ground: str, share: float) -> str:
    """Return a colour laid over a ground with that opacity."""
    pairs = zip(rgb(colour), rgb(ground), strict=True)
    return hexadecimal([share * above + (1.0 - share) * below for above, below in pairs])


@lru_cache(maxsize=4096)
def luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2, 0 for black to 1 for white."""
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (value / 255.0 for value in rgb(colour))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of WCAG 2, 1 to 21."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def ink_on(ground: str) -> str:
    """Return black or white, whichever reads better on a ground."""
    black, white = "#111315", "#ffffff"
    return black if contrast(black, ground) >= contrast(white, ground) else white


@lru_cache(maxsize=256)
def readable(colour: str, grounds: tuple[str, ...], ink: str) -> str:
    """Return the colour moved towards ``ink`` just far enough to be readable on all backgrounds."""
    for step in range(21):
        found = mix(ink, colour, step / 20)
        if all(contrast(found, ground) >= CONTRAST_TEXT for ground in grounds):
            return found
    return ink
