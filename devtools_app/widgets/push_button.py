"""A button with words, a name for screen readers and a callback."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QPushButton

from devtools_app.widgets.fields import PushButton


def push_button(text: str, name: str, pressed: Callable[[], object]) -> QPushButton:
    """Return a button.

    Args:
        text: label
        name: action, as a tip and for screen readers
        pressed: called when the button is pressed
    """
    button = PushButton(text)
    button.setAccessibleName(name)
    button.setToolTip(name)
    button.clicked.connect(lambda: pressed())
    return button
