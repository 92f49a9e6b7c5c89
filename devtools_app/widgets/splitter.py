"""Splitters of parts that all stay visible."""

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
    fill_splitter(found, *parts, sizes=sizes)
    return found


def fill_splitter(into: QSplitter, *parts: QWidget, sizes: list[int]) -> None:
    """Add parts that cannot be collapsed to a splitter.

    One that is in its place already: with a style sheet each change of its parent costs a table
    1 ms, so views are put together from the outside to the inside.
    """
    into.setChildrenCollapsible(False)
    for part in parts:
        into.addWidget(part)
    into.setSizes(sizes)
