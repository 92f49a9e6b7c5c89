"""A light and a dark palette for canvas tests, independent of the application's theme."""

from __future__ import annotations

import numpy as np
from PySide6.QtGui import QFont, QFontDatabase

from devtools_app.appearance.look import BASE_SIZE
from devtools_app.appearance.paint_theme import CanvasColours, ColourMap

OKABE_ITO = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442")


def ramp(*anchors: tuple[int, int, int]) -> ColourMap:
    at = np.linspace(0, len(anchors) - 1, 256)
    table = np.array(anchors, float)
    columns = [np.interp(at, np.arange(len(anchors)), table[:, c]) for c in range(3)]
    return np.stack(columns, axis=1).round().astype(np.uint8)


def colours(*, dark: bool = False, text: int = BASE_SIZE) -> CanvasColours:
    """Return a palette with text of a size; needs a running QGuiApplication for its fonts."""
    mono, font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont), QFont()
    font.setPixelSize(text)
    sequential = ramp((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))
    middle = (60, 60, 62) if dark else (240, 240, 238)
    return CanvasColours(
        surface="#17181a" if dark else "#f7f7f5",
        raised="#1f2226" if dark else "#ffffff",
        line="#33373c" if dark else "#dddcd8",
        text="#e6e6e4" if dark else "#1c1e21",
        muted="#9b9fa4" if dark else "#6b6e73",
        accent="#68a6f0" if dark else "#1f5fad",
        good="#4fbf87" if dark else "#187f4b",
        warn="#e0a33f" if dark else "#a76a00",
        bad="#f1776b" if dark else "#b3261e",
        not_delegated="#bdb09c" if dark else "#6f6558",
        backends=OKABE_ITO,
        sequential=sequential,
        diverging=ramp((33, 102, 172), (140, 185, 220), middle, (235, 150, 120), (178, 24, 43)),
        font=font,
        mono=mono,
    )
