"""The opened boxes of a drawing of graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from devtools_app.state.state import State
from devtools_app.state.store import Store
from devtools_app.viewmodels.layout.cluster_tree import (
    ROOT,
    ClusterPath,
    collapse,
    expand_all,
    reveal,
    toggle,
)
from devtools_app.viewmodels.layout.placed import Placed
from devtools_app.viewmodels.opened_boxes import opened_boxes, with_opened_boxes
from devtools_app.widgets.graph_canvas_pick import NOTHING


class Boxes(NamedTuple):
    """The drawing: its layout and the item that is selected in it."""

    placed: Placed
    selected: int

    @property
    def cluster(self) -> ClusterPath:
        """The selected box, or the root."""
        inside = self.selected < self.placed.node_count
        return ROOT if inside else self.placed.path_of(self.selected)


class GraphBoxes:
    """Opens and closes boxes by what the store keeps for a scope.

    Args:
        store: keeps the opened boxes
        drawn: returns what is drawn, None while nothing is
        scope: returns the scope in a state: of one program, graph and manner of drawing
    """

    def __init__(
        self, store: Store, drawn: Callable[[], Boxes | None], scope: Callable[[State], str]
    ) -> None:
        self._store = store
        self._drawn = drawn
        self._scope = scope
        self._anchor: ClusterPath | None = None

    def of(self, state: State) -> frozenset[ClusterPath] | None:
        """Return the opened boxes in a state, None where the user has opened and closed none."""
        return opened_boxes(state.expanded, self._scope(state))

    def take_anchor(self) -> ClusterPath | None:
        """Return the box to hold in its place while drawing, once."""
        anchor, self._anchor = self._anchor, None
        return anchor

    def toggle(self, path: object) -> None:
        """Open or close a box."""
        if isinstance(path, tuple):
            self.put(toggle(self._opened(), path), path)

    def open_all(self) -> None:
        """Open all boxes, or those inside the selected one."""
        drawn = self._drawn()
        if drawn is not None:
            path = drawn.cluster
            self.put(self._opened() | expand_all(drawn.placed.scene.tree, path), path or None)

    def close_all(self) -> None:
        """Close all boxes, or those inside the selected one."""
        drawn = self._drawn()
        if drawn is not None:
            path = drawn.cluster
            closed = collapse(self._opened(), path, deep=True) if path else frozenset()
            self.put(frozenset(closed), path or None)

    def reveal(self, node: int) -> None:
        """Open the boxes around a node."""
        drawn = self._drawn()
        if drawn is not None and node != NOTHING:
            self.put(reveal(drawn.placed.scene.tree, self._opened(), node))

    def hide(self, node: int) -> bool:
        """Return whether a closed box hides a node."""
        drawn = self._drawn()
        if drawn is None or node == NOTHING:
            return False
        return int(drawn.placed.item_of_node[node]) != node

    def forget(self) -> None:
        """Open again what fits, as if nothing had been opened."""
        scope, expanded = self._scope(self._store.state), self._store.state.expanded
        self._store.update(expanded=frozenset(one for one in expanded if not one.startswith(scope)))

    def _opened(self) -> frozenset[ClusterPath]:
        drawn = self._drawn()
        return frozenset() if drawn is None else drawn.placed.expanded

    def put(self, opened: frozenset[ClusterPath], anchor: ClusterPath | None = None) -> None:
        """Open these boxes and close all others; one stays in its place while drawing."""
        self._anchor = anchor
        state = self._store.state
        expanded = with_opened_boxes(state.expanded, self._scope(state), opened)
        self._store.update(expanded=expanded)
