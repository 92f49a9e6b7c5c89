"""A splitter of parts that all stay visible."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSplitter, QWidget


def splitter(way: Qt.Orientation, *parts: QWidget, sizes: list[int]) -> QSplitter:
    """Return a splitter whose parts cannot be collapsed.

    Args:
        way: in which the parts follow one another
        parts: the widgets
        sizes: of the parts, in proportion
    """
    found = QSplitter(way)
    found.setChildrenCollapsible(False)
    for part in parts:
        found.addWidget(part)
    found.setSizes(sizes)
    return found
