"""Maps from magnitudes to colours, computed in a space where equal steps look equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Colormap = NDArray[np.uint8]
_Floats = NDArray[np.float64]
_KNOTS = 41  # colours computed of a map; between them straight lines cannot be distinguished


@dataclass(frozen=True, slots=True)
class ColourScale:
    """The range of values that a map spans.

    Attributes:
        low: value of its first colour
        high: of its last
        signed: whether it lies around 0, as for a diverging map
    """

    low: float
    high: float
    signed: bool

    def places(self, values: _Floats) -> _Floats:
        """Return the place of each value on the map, from 0 to 1; NaN where it is not finite."""
        finite = np.where(np.isfinite(values), values, np.nan)
        span = (self.high / 2 - self.low / 2) or 1.0  # halves: float64 near its end
        return (finite / 2 - self.low / 2) / span


def colour_scale(values: _Floats) -> ColourScale:
    """Return the scale of the finite values: from low to high, of both signs around 0."""
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    if low < 0 < high:
        return ColourScale(-max(-low, high), max(-low, high), signed=True)
    return ColourScale(low, high, signed=False)


@lru_cache(maxsize=2)
def sequential_map(dark: bool) -> Colormap:
    """Return 256 colours whose lightness changes evenly; the last stands out from the surface.

    Shapes: uint8[256, 3]
    """
    if dark:
        # violet, blue, teal, green, yellow with lightness rising evenly, in OKLCH
        stops = ((0.30, 0.13, 305), (0.47, 0.12, 262), (0.62, 0.11, 205), (0.78, 0.15, 150))
        return _frozen(_from_oklch((*stops, (0.93, 0.17, 105))))
    # on a light ground little is pale, next to white: most operators take little time
    stops = ((0.965, 0.02, 150), (0.80, 0.08, 175), (0.63, 0.10, 215), (0.46, 0.13, 258))
    return _frozen(_from_oklch((*stops, (0.29, 0.14, 295))))


@lru_cache(maxsize=2)
def diverging_map(dark: bool) -> Colormap:
    """Return 256 colours from blue over a neutral middle to orange.

    Shapes: uint8[256, 3]
    """
    middle, end, chroma = (0.30, 0.72, 0.13) if dark else (0.95, 0.52, 0.14)
    near = middle + (end - middle) * 0.5
    stops = (
        (end, chroma, 250),
        (near, chroma * 0.6, 245),
        (middle, 0.0, 245),
        (middle, 0.0, 55),
        (near, chroma * 0.6, 55),
        (end, chroma, 45),
    )
    places = (0.0, 0.25, 0.5, 0.5, 0.75, 1.0)
    return _frozen(_from_oklch(stops, places))


def _frozen(table: _Floats) -> Colormap:
    result = np.ascontiguousarray(np.rint(table * 255.0)).astype(np.uint8)
    result.flags.writeable = False
    return result


def _from_oklch(
    stops: Sequence[tuple[float, float, float]], places: Sequence[float] | None = None
) -> _Floats:
    knots = np.linspace(0.0, 1.0, _KNOTS)
    where = np.linspace(0.0, 1.0, len(stops)) if places is None else np.array(places)
    table = np.empty((_KNOTS, 3))
    for part in range(3):
        table[:, part] = np.interp(knots, where, [stop[part] for stop in stops])
    coarse = _in_gamut(*table.T)
    at = np.linspace(0.0, 1.0, 256)
    return np.stack([np.interp(at, knots, coarse[:, part]) for part in range(3)], axis=1)


def _in_gamut(light: _Floats, chroma: _Floats, hue: _Floats) -> _Floats:
    """Return sRGB for OKLCH, with as much chroma as a screen can show.

    Shapes: float64[colours] -> float64[colours, 3]
    """
    low, high = np.where(_fits(light, chroma, hue), chroma, 0.0), chroma
    for _ in range(12):
        middle = (low + high) / 2
        fits = _fits(light, middle, hue)
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    linear = np.minimum(np.maximum(_oklch_to_linear(light, low, hue), 0.0), 1.0)
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * np.power(linear, 1 / 2.4) - 0.055)


def _fits(light: _Floats, chroma: _Floats, hue: _Floats) -> NDArray[np.bool_]:
    found = _oklch_to_linear(light, chroma, hue)
    return (found.min(axis=1) >= -1e-4) & (found.max(axis=1) <= 1.0001)


def _oklch_to_linear(light: _Floats, chroma: _Floats, hue: _Floats) -> _Floats:
    # Source: Björn Ottosson, "A perceptual color space for image processing" (2020)
    a = chroma * np.cos(np.radians(hue))
    b = chroma * np.sin(np.radians(hue))
    long = (light + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (light - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (light - 0.0894841775 * a - 1.2914855480 * b) ** 3
    parts = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    return np.stack(parts, axis=1)
