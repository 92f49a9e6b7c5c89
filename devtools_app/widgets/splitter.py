"""Splitters of parts that all stay visible."""

from __future__ import annotations

from PySide6.QtWidgets import QSplitter, QWidget


def fill_splitter(into: QSplitter, *parts: QWidget, sizes: list[int]) -> None:
    """Add parts that cannot be collapsed to a splitter.

    One that is in its place already: with a style sheet each change of its parent costs a table
    1 ms, so views are put together from the outside to the inside.

    Args:
        into: the splitter
        parts: the widgets, in the order of the splitter
        sizes: of the parts, in proportion
    """
    into.setChildrenCollapsible(False)
    for part in parts:
        into.addWidget(part)
    into.setSizes(sizes)
