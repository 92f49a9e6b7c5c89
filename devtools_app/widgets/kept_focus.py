"""The keyboard stays where buttons take turns: *Run* while idle, *Cancel* while it runs."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton


@contextmanager
def kept_focus(*buttons: QAbstractButton) -> Generator[None, None, None]:
    """Give the keyboard to the first of these buttons that is left, if one of them had it.

    A button that is hidden or disabled with the keyboard on it leaves it nowhere.
    """
    focused = any(button.hasFocus() for button in buttons)
    yield
    left = (button for button in buttons if button.isVisible() and button.isEnabled())
    if focused and (first := next(left, None)) is not None:
        first.setFocus(Qt.FocusReason.OtherFocusReason)
