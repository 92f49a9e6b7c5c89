"""Keys of the graph canvas, as a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent

from devtools_app.widgets.graph_canvas_pick import (
    NOTHING,
    Way,
    holder_of,
    in_order,
    nearest_item,
    neighbour,
)

if TYPE_CHECKING:
    from devtools_app.widgets.graph_canvas import GraphCanvas

_STEP = 60.0  # pixels a press of W, A, S or D moves the drawing
_ZOOM = 1.25
KEYS = (
    ("W A S D", "move the view"),
    ("+ -", "nearer, farther"),
    ("F", "show the selection; again: the whole graph"),
    ("Space", "show the whole graph"),
    ("Up Down", "to the source, to the reader"),
    ("Left Right", "to the box beside"),
    (", .", "to the operator before, after"),
    ("Enter", "open or close the cluster"),
    ("Backspace", "to the cluster around"),
    ("C", "close the cluster around"),
    ("Esc", "select nothing"),
)


class GraphKeys:
    """Turns key presses into what the canvas can do."""

    def __init__(self, canvas: GraphCanvas) -> None:
        self._canvas = canvas
        key = Qt.Key
        self._actions: dict[int, Callable[[], None]] = {
            key.Key_W: lambda: canvas.pan(0, _STEP),
            key.Key_S: lambda: canvas.pan(0, -_STEP),
            key.Key_A: lambda: canvas.pan(_STEP, 0),
            key.Key_D: lambda: canvas.pan(-_STEP, 0),
            key.Key_Plus: lambda: canvas.zoom(_ZOOM),
            key.Key_Equal: lambda: canvas.zoom(_ZOOM),
            key.Key_Minus: lambda: canvas.zoom(1 / _ZOOM),
            key.Key_F: canvas.focus_selection,
            key.Key_Space: canvas.fit,
            key.Key_Up: lambda: self._go(Way.SOURCES),
            key.Key_Down: lambda: self._go(Way.READERS),
            key.Key_Left: lambda: self._go(Way.LEFT),
            key.Key_Right: lambda: self._go(Way.RIGHT),
            key.Key_Comma: lambda: self._step(-1),
            key.Key_Period: lambda: self._step(1),
            key.Key_Return: lambda: canvas.activate(canvas.selected_item),
            key.Key_Enter: lambda: canvas.activate(canvas.selected_item),
            key.Key_Backspace: self._outward,
            key.Key_C: lambda: canvas.close_around(canvas.selected_item),
        }

    def press(self, event: QKeyEvent) -> bool:
        """Do what a key means; return whether it means something here."""
        plain = Qt.KeyboardModifier.KeypadModifier | Qt.KeyboardModifier.ShiftModifier
        if event.modifiers() & ~plain:
            return False
        if event.key() == Qt.Key.Key_Escape:
            return self._clear()
        action = self._actions.get(event.key())
        if action is None:
            return False
        action()
        event.accept()
        return True

    def _clear(self) -> bool:
        """Select nothing; a second Esc is left to the window."""
        if self._canvas.selected_item == NOTHING:
            return False
        self._canvas.select_item(NOTHING)
        return True

    def _go(self, way: Way) -> None:
        canvas = self._canvas
        placed = canvas.placed
        if placed is None:
            return
        here = canvas.selected_item
        if here == NOTHING:
            middle = canvas.camera.to_world(canvas.width() / 2, canvas.height() / 2)
            self._select(nearest_item(placed, *middle))
            return
        if here >= placed.node_count and placed.path_of(here) in placed.expanded:
            first = int(placed.scene.tree.first[here - placed.node_count])
            self._select(int(placed.item_of_node[first]))
            return
        self._select(neighbour(placed, here, way))

    def _step(self, step: int) -> None:
        placed = self._canvas.placed
        if placed is not None:
            self._select(in_order(placed, self._canvas.selected_item, step))

    def _outward(self) -> None:
        placed, here = self._canvas.placed, self._canvas.selected_item
        if placed is not None and here != NOTHING:
            self._select(holder_of(placed, here))

    def _select(self, item: int) -> None:
        if item != NOTHING:
            self._canvas.select_item(item)
