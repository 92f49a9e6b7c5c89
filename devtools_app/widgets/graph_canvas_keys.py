"""Keys of the graph canvas, as a table."""

from __future__ import annotations

from typing import Protocol

from PySide6.QtCore import QSize, Qt

from devtools_app.viewmodels.layout.camera import Camera
from devtools_app.viewmodels.layout.placed import Placed
from devtools_app.widgets.canvas import KeyTable
from devtools_app.widgets.graph_canvas_pick import (
    NOTHING,
    Way,
    holder_of,
    in_order,
    nearest_item,
    neighbour,
)


class KeyedGraph(Protocol):
    """What the keys move about: the graph canvas."""

    @property
    def placed(self) -> Placed | None:
        """Return the graph, None without one."""
        ...

    @property
    def selected_item(self) -> int:
        """Return the selected item, NOTHING without one."""
        ...

    @property
    def camera(self) -> Camera:
        """Return what is seen of the graph."""
        ...

    def room(self) -> QSize:
        """Return the size of the drawing."""
        ...

    def activate(self, item: int) -> None:
        """Open or close a cluster, or show a node."""
        ...

    def close_around(self, item: int) -> None:
        """Close the cluster around an item."""
        ...

    def select_item(self, item: int, *, show: bool = True) -> None:
        """Select an item."""
        ...


class GraphKeys:
    """The keys of the canvas besides those of the camera."""

    def __init__(self, canvas: KeyedGraph) -> None:
        self._canvas = canvas

    def table(self) -> KeyTable:
        """Return the action of each key."""
        key, canvas = Qt.Key, self._canvas
        return {
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

    def _go(self, way: Way) -> None:
        canvas = self._canvas
        placed = canvas.placed
        if placed is None:
            return
        here = canvas.selected_item
        if here == NOTHING:
            middle = canvas.camera.to_world(canvas.room().width() / 2, canvas.room().height() / 2)
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
