"""Persistent settings of the appearance of the window."""

from __future__ import annotations

from enum import Enum

BASE_SIZE = 13  # logical pixels; small is 11 and large 16 at this size
FORM_WIDTH = 860  # logical pixels at this size: a wider form parts fields from their names
SMALLEST, LARGEST = 9, 28


class ThemeMode(str, Enum):
    """How light or dark is chosen."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"
