"""Which boxes are open when a graph is first drawn."""

from __future__ import annotations

from devtools_app.viewmodels.layout.cluster_tree import ClusterPath
from devtools_app.viewmodels.layout.engine import LayoutCache, lay_out
from devtools_app.viewmodels.layout.placed import Placed
from devtools_app.viewmodels.layout.scene_graph import SceneGraph
from devtools_app.viewmodels.scene import MOST_VISIBLE, opening_set

_ROOM = (1000.0, 560.0)  # of the drawing in a window of usual size
_READABLE = 0.52  # scale from which titles are drawn
_FEWEST = 8  # boxes that are still worth opening a module for


def opened_or_readable(
    scene: SceneGraph,
    expanded: frozenset[ClusterPath] | None,
    cache: LayoutCache,
    text: float = 1.0,
) -> Placed:
    """Return the layout with these boxes open, or with those to begin with for None.

    Args:
        scene: the graph
        expanded: opened boxes, or None
        cache: of layouts
        text: size of text beside the usual one, which enlarges the drawing
    """
    if expanded is not None:
        return lay_out(scene, expanded, cache)
    return _opened_readably(scene, cache, (_ROOM[0] / text, _ROOM[1] / text))


def _opened_readably(scene: SceneGraph, cache: LayoutCache, room: tuple[float, float]) -> Placed:
    """Return the layout with the most boxes open of which all can be seen and read at once.

    Where no set can be read, that which is nearest to it.
    """
    found: list[tuple[float, Placed]] = []
    before: frozenset[ClusterPath] | None = None
    most = MOST_VISIBLE
    while most >= _FEWEST:
        opened = opening_set(scene.tree, most)
        if opened != before:
            placed = lay_out(scene, opened, cache)
            scale = min(room[0] / max(placed.width, 1), room[1] / max(placed.height, 1))
            if scale >= _READABLE:
                return placed
            found.append((scale, placed))
            before = opened
        most //= 2
    return max(found, key=lambda one: one[0])[1]
