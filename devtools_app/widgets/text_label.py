"""A label with text that wraps and can be copied."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from devtools_app.appearance.theme import FontSize, Theme


def text_label(
    theme: Theme, text: str, size: FontSize = FontSize.NORMAL, *, strong: bool = False
) -> QLabel:
    """Return a label with plain text in the font of the interface."""
    label = QLabel(text)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    label.setFont(theme.sans(size, strong=strong))
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label
