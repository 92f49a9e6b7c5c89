"""Colours as people with other colour vision see them, and how far apart they look."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from devtools_app.appearance.colours import rgb

# Source: Machado, Oliveira, Fernandes, "A Physiologically-based Model for Simulation of Color
# Vision Deficiency" (2009), severity 1.0, in linear sRGB
VISIONS = {
    "usual": np.eye(3),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
# Source: Björn Ottosson, "A perceptual color space for image processing" (2020)
_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def seen(colour: str, vision: str) -> NDArray[np.float64]:
    """Return a colour in OKLab as it is seen."""
    part = np.array(rgb(colour)) / 255.0
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    return _LAB @ np.cbrt(_CONES @ np.clip(VISIONS[vision] @ linear, 0.0, 1.0))


def distance(one: str, other: str, vision: str) -> float:
    """Return how far apart two colours look; 2 can just be told apart side by side."""
    return 100.0 * float(np.linalg.norm(seen(one, vision) - seen(other, vision)))
