"""A line with the error of the input."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel

from devtools_app.appearance.theme import set_role


def problem_label() -> QLabel:
    """Return a label for an error that wraps."""
    label = QLabel()
    label.setWordWrap(True)
    set_role(label, "role", "bad")
    return label
