"""The size of a window when it is first shown: no part of it is beyond the screen."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize
from PySide6.QtWidgets import QWidget

_FRAME = QSize(2, 34)  # of the title bar and borders, which are not known before it is shown


def fit_to_screen(window: QWidget, available: QRect | None = None) -> None:
    """Make a window that is not shown yet as large as its screen has room for, at most as it is.

    Args:
        window: whose size is set
        available: of the screen without bars of the system, by default that of the window's screen
    """
    room = (window.screen().availableGeometry() if available is None else available).size()
    wanted = window.size().boundedTo(room - _FRAME)
    if wanted != window.size():
        window.resize(wanted.expandedTo(window.minimumSizeHint()))
