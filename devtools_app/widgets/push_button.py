"""A button with words, a name for screen readers and a callback."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QPushButton


def push_button(text: str, name: str, pressed: Callable[[], object]) -> QPushButton:
    """Return a button.

    Args:
        text: on it
        name: what it does, as a tip and for screen readers
        pressed: called when it is pressed
    """
    button = QPushButton(text)
    button.setAccessibleName(name)
    button.setToolTip(name)
    button.clicked.connect(lambda: pressed())
    return button
