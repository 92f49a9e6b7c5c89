"""What is remembered of the look of the window."""

from __future__ import annotations

from enum import Enum

BASE_SIZE = 13  # logical pixels; small is 11 and large 16 at this size
SMALLEST, LARGEST = 9, 28


class ThemeMode(str, Enum):
    """What decides between light and dark."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"
