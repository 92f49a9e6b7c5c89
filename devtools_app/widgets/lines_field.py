"""A field of several lines."""

from __future__ import annotations

from PySide6.QtWidgets import QPlainTextEdit


def lines_field(name: str, example: str) -> QPlainTextEdit:
    """Return a field for one value a line; Tab leaves it.

    Args:
        name: that screen readers read
        example: shown while it is empty
    """
    field = QPlainTextEdit()
    field.setAccessibleName(name)
    field.setPlaceholderText(example)
    field.setTabChangesFocus(True)
    return field
