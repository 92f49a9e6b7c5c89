"""A label with text that wraps and can be copied, and its line breaks."""

from __future__ import annotations

import re

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from devtools_app.appearance.theme import FontSize, Theme

_JOINT = re.compile(r"_|\.(?=[A-Za-z])|[0-9a-f]{8}(?=[0-9a-f]{8})")  # a hash has none of its own


def text_label(
    theme: Theme, text: str, size: FontSize = FontSize.NORMAL, *, strong: bool = False
) -> QLabel:
    """Return a label with plain text in the font of the interface."""
    label = plain_label(text)
    label.setFont(theme.sans(size, strong=strong))
    return label


def plain_label(text: str = "") -> QLabel:
    """Return a label with plain text that wraps and can be selected."""
    label = QLabel(text)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label


def breakable(text: str) -> str:
    """Return a string with line breaks inside long names, and none before a percent sign."""
    return _JOINT.sub("\\g<0>\u200b", text.replace(" %", "\u00a0%"))
