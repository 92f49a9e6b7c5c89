"""A line that says what is wrong with what was entered."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel

from devtools_app.shell.theme import set_role


def problem_label() -> QLabel:
    """Return a label whose words are those of something wrong, on as many lines as they need."""
    label = QLabel()
    label.setWordWrap(True)
    set_role(label, "role", "bad")
    return label
