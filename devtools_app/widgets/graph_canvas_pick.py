"""Find boxes of a placed graph: under a point, along edges, beside each other, by order."""

from __future__ import annotations

from enum import Enum

import numpy as np
from numpy.typing import NDArray

from devtools_app.viewmodels.layout.placed import Placed

NOTHING = -1
Ints = NDArray[np.int64]


class Way(Enum):
    """Directions from a box."""

    READERS = "down"
    SOURCES = "up"
    LEFT = "left"
    RIGHT = "right"


def boxed_items(placed: Placed) -> Ints:
    """Return the visible nodes and closed clusters."""
    return np.concatenate([placed.nodes, placed.clusters[placed.collapsed]])


def item_at(placed: Placed, x: float, y: float) -> int:
    """Return the item at a point of the world: a box, else the innermost region, else NOTHING."""
    items = boxed_items(placed)
    hit = items[_holding(placed.boxes[items], x, y)]
    if not len(hit):
        regions = placed.clusters[~placed.collapsed]  # outer ones first
        hit = regions[_holding(placed.boxes[regions], x, y)]
    return int(hit[-1]) if len(hit) else NOTHING


def stub_at(placed: Placed, x: float, y: float) -> int:
    """Return the number of the stub at a point of the world, or NOTHING."""
    hit = np.flatnonzero(_holding(placed.stubs.boxes, x, y))
    return int(hit[0]) if len(hit) else NOTHING


def edge_at(placed: Placed, x: float, y: float, reach: float) -> int:
    """Return the visible edge nearest to a point of the world within a distance, or NOTHING."""
    points = placed.points
    if len(points) < 2:
        return NOTHING
    low, high = np.minimum(points[:-1], points[1:]), np.maximum(points[:-1], points[1:])
    near = (low[:, 0] <= x + reach) & (high[:, 0] >= x - reach)
    near &= (low[:, 1] <= y + reach) & (high[:, 1] >= y - reach)
    near[placed.offsets[1:-1][placed.offsets[1:-1] < len(points)] - 1] = False  # between two edges
    at = np.flatnonzero(near)
    if not len(at):
        return NOTHING
    way = points[at + 1] - points[at]
    beside = np.array([x, y]) - points[at]
    length = np.maximum((way * way).sum(axis=1), 1e-9)
    along = np.clip((way * beside).sum(axis=1) / length, 0.0, 1.0)
    off = np.hypot(*(beside - way * along[:, None]).T)
    best = int(np.argmin(off))
    if off[best] > reach:
        return NOTHING
    return int(np.searchsorted(placed.offsets, at[best], side="right")) - 1


def _holding(boxes: NDArray[np.float64], x: float, y: float) -> NDArray[np.bool_]:
    inside = (boxes[:, 0] <= x) & (x <= boxes[:, 0] + boxes[:, 2])
    return inside & (boxes[:, 1] <= y) & (y <= boxes[:, 1] + boxes[:, 3])


def nearest_item(placed: Placed, x: float, y: float) -> int:
    """Return the box whose centre is nearest to a point of the world, or NOTHING."""
    items = boxed_items(placed)
    if not len(items):
        return NOTHING
    middle = _middles(placed, items)
    return int(items[np.argmin(np.hypot(middle[:, 0] - x, middle[:, 1] - y))])


def _middles(placed: Placed, items: Ints) -> NDArray[np.float64]:
    boxes = placed.boxes[items]
    return boxes[:, :2] + boxes[:, 2:] / 2


def neighbour(placed: Placed, item: int, way: Way) -> int:
    """Return the box to go to from an item, or NOTHING."""
    if way is Way.READERS:
        return _closest(placed, item, placed.edges[placed.edges[:, 0] == item, 1])
    if way is Way.SOURCES:
        return _closest(placed, item, placed.edges[placed.edges[:, 1] == item, 0])
    return _beside(placed, item, right=way is Way.RIGHT)


def _closest(placed: Placed, item: int, found: Ints) -> int:
    found = found[found != item]
    if not len(found):
        return NOTHING
    here = _middles(placed, np.array([item]))[0]
    away = np.abs(_middles(placed, found) - here)
    return int(found[np.lexsort((found, away[:, 1], away[:, 0].round()))[0]])


def _beside(placed: Placed, item: int, *, right: bool) -> int:
    items = boxed_items(placed)
    x, y, width, height = placed.boxes[item].tolist()
    boxes = placed.boxes[items]
    level = (boxes[:, 1] < y + height) & (boxes[:, 1] + boxes[:, 3] > y) & (items != item)
    gap = boxes[:, 0] - (x + width) if right else x - (boxes[:, 0] + boxes[:, 2])
    level &= gap >= 0
    if not level.any():
        return NOTHING
    return int(items[level][np.argmin(gap[level])])


def in_order(placed: Placed, item: int, step: int) -> int:
    """Return the box some steps later (or earlier) in execution order, or NOTHING at the end."""
    items = boxed_items(placed)
    nodes, tree = placed.node_count, placed.scene.tree
    first = np.where(items < nodes, items, 0)
    closed = items >= nodes
    first[closed] = tree.first[items[closed] - nodes]
    ordered = items[np.argsort(first, kind="stable")]
    at = np.flatnonzero(ordered == item)
    if not len(at):
        return int(ordered[0 if step > 0 else -1]) if len(ordered) else NOTHING
    to = int(at[0]) + step
    return int(ordered[to]) if 0 <= to < len(ordered) else NOTHING


def holder_of(placed: Placed, item: int) -> int:
    """Return the cluster around an item, or NOTHING for items of the root."""
    nodes, tree = placed.node_count, placed.scene.tree
    around = int(tree.node_cluster[item] if item < nodes else tree.parent[item - nodes])
    return nodes + around if around > 0 else NOTHING
