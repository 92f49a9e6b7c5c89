"""What canvases share that select one item by its number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from devtools_app.widgets.canvas import NOTHING

if TYPE_CHECKING:
    from PySide6.QtCore import QPointF

    from devtools_app.widgets.canvas import Canvas

    _Base = Canvas
else:
    _Base = object  # a widget has one base of Qt


class OneSelected(_Base):
    """A part of a canvas: one item is selected, and one is under the pointer."""

    _marks: Any  # with the numbers of the items selected and hovered
    hovered: Any  # a signal

    def select(self, item: int, /) -> None:
        """Select an item and emit it."""
        raise NotImplementedError

    @override
    def selected_summary(self) -> str:
        """Return the selected item in one line, empty without one."""
        chosen = self._marks.selected
        return self.hover_text(chosen).replace("\n", ", ") if chosen >= 0 else ""

    @override
    def clear_selection(self) -> bool:
        """Deselect; return whether an item was selected."""
        found = self._marks.selected >= 0
        if found:
            self.select(NOTHING)
        return found

    @override
    def choose_for_menu(self, at: QPointF) -> bool:
        """Select the item at a point of the drawing; return whether there is one."""
        item = self.hit(at)
        if item >= 0:
            self.select(item)
        return item >= 0

    @override
    def mark_hovered(self, item: int) -> None:
        """Mark the item under the pointer and emit it."""
        self._marks.hovered = item
        self.hovered.emit(item)
