"""Colours of every box of a placed graph, gathered into groups that are drawn in one call."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from devtools_app.appearance.colours import NOT_DELEGATED, PLAIN
from devtools_app.appearance.paint_theme import CanvasColours, map_colours, mix, readable
from devtools_app.viewmodels.canvas_data import GraphOverlay
from devtools_app.viewmodels.layout.placed import Placed
from devtools_app.viewmodels.layout.rows import unique_rows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Style = tuple[str, str, float]  # fill, border, width of the border
STRIPE = 5.0  # width of what marks the owner of a box


@dataclass(frozen=True, slots=True, eq=False)
class BoxGroup:
    """Boxes with the same style.

    Attributes:
        fill: colour inside
        border: colour of the outline
        width: of the outline in pixels
        items: item of each box
        boxes: x, y, width, height

    Shapes: items int64[n]; boxes float64[n, 4]
    """

    fill: str
    border: str
    width: float
    items: Ints
    boxes: Floats


@dataclass(frozen=True, slots=True, eq=False)
class GraphLook:
    """All colours of one drawing.

    Attributes:
        boxes: nodes and closed clusters
        regions: open clusters from the outermost inwards, one group per style and depth
        fills: the colours behind the text of items
        fill: which of them each item has
        shares: share bar of each item, NaN without one
        stripes: by colour the backend of the boxes, at their left side, and their items

    Shapes: fill int16[items]; shares float64[items]; stripes float64[n, 4]
    """

    boxes: tuple[BoxGroup, ...]
    regions: tuple[BoxGroup, ...]
    fills: tuple[str, ...]
    fill: NDArray[np.int16]
    shares: Floats
    stripes: tuple[tuple[str, Floats, Ints], ...] = ()

    def fill_of(self, item: int) -> str:
        """Return the colour behind the text of an item."""
        return self.fills[self.fill[item]]


def graph_look(placed: Placed, overlay: GraphOverlay, colours: CanvasColours) -> GraphLook:
    """Return the groups to draw for a graph, an overlay and a palette."""
    styles = _Styles(placed, overlay, colours)
    node_items = placed.nodes
    closed = placed.clusters[placed.collapsed]
    opened = placed.clusters[~placed.collapsed]
    around: dict[int, str] = {}
    regions = _region_groups(placed, opened, styles, around)
    items = np.concatenate([node_items, closed])
    owners = styles.owners(node_items, closed)
    keys, which = styles.boxes(items, owners)
    boxes = _grouped(placed, items, keys, which)
    fills = tuple(dict.fromkeys((*(key[0] for key in keys), *around.values())))
    number = {colour: at for at, colour in enumerate(fills)}
    fill = np.zeros(len(placed.boxes), np.int16)
    fill[items] = np.array([number[key[0]] for key in keys], np.int16)[which]
    for item, colour in around.items():
        fill[item] = number[colour]
    stripes = _stripes(placed, items, owners, colours)
    return GraphLook(boxes, regions, fills, fill, item_shares(placed, overlay), stripes)


def _stripes(
    placed: Placed, items: Ints, owners: Ints, colours: CanvasColours
) -> tuple[tuple[str, Floats, Ints], ...]:
    found: list[tuple[str, Floats, Ints]] = []
    for owner in np.unique(owners[owners != PLAIN]).tolist():
        own = items[owners == owner]
        boxes = placed.boxes[own] + np.array([1.0, 1.0, 0.0, -2.0])
        boxes[:, 2] = STRIPE
        found.append((colours.reference(owner), np.ascontiguousarray(boxes), own))
    return tuple(found)


def _region_groups(
    placed: Placed, opened: Ints, styles: _Styles, fill_of: dict[int, str]
) -> tuple[BoxGroup, ...]:
    depth = placed.scene.tree.depth[opened - placed.node_count]
    found: list[BoxGroup] = []
    for level in np.unique(depth).tolist():
        items = opened[depth == level]
        keys = [styles.opened(item, fill_of) for item in items.tolist()]
        found.extend(_groups(placed, items, keys))
    return tuple(found)


def _groups(placed: Placed, items: Ints, keys: list[Style]) -> tuple[BoxGroup, ...]:
    number: dict[Style, int] = {}
    which = np.array([number.setdefault(key, len(number)) for key in keys], np.int64)
    return _grouped(placed, items, list(number), which)


def _grouped(placed: Placed, items: Ints, keys: list[Style], which: Ints) -> tuple[BoxGroup, ...]:
    """Return a group for each style; ``which`` is the style of each item."""
    found: list[BoxGroup] = []
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which, minlength=len(keys)))
    for key, own in zip(keys, np.split(order, ends[:-1]), strict=True):
        chosen = items[own]
        found.append(BoxGroup(*key, chosen, np.ascontiguousarray(placed.boxes[chosen])))
    return tuple(found)


class _Styles:
    """The style of single items."""

    def __init__(self, placed: Placed, overlay: GraphOverlay, colours: CanvasColours) -> None:
        self._placed, self._colours = placed, colours
        self._fills, self._fill = item_fills(placed, overlay, colours)

    def _owned(self, owner: int) -> Style:
        c = self._colours
        if owner == NOT_DELEGATED:
            return mix(c.raised, c.not_delegated, 0.13), c.not_delegated, 1.7
        if owner == PLAIN:
            return c.raised, mix(c.line, c.muted, 0.25), 1.0
        return c.raised, c.backend(owner), 1.3

    def owner(self, item: int) -> int:
        """Return the backend of a node or a closed cluster."""
        if item < self._placed.node_count:
            return int(self._placed.scene.owners[item])
        return self._placed.scene.cluster_info(self._placed.path_of(item)).owner

    def owners(self, nodes: Ints, closed: Ints) -> Ints:
        """Return the backends of nodes and closed clusters."""
        of_closed = np.array([self.owner(item) for item in closed.tolist()], np.int64)
        return np.concatenate([self._placed.scene.owners[nodes], of_closed])

    def boxes(self, items: Ints, owners: Ints) -> tuple[list[Style], Ints]:
        """Return the looks of nodes and closed clusters by backend, and which each has.

        The looks are in the order of their first box.
        """
        fills = self._fills
        closed = items >= self._placed.node_count
        columns = np.stack([closed.astype(np.int64), owners, self._fill[items]], axis=1)
        found, first, which = unique_rows(columns)
        place = np.argsort(first)
        rank = np.empty(len(place), np.int64)
        rank[place] = np.arange(len(place))
        keys: list[Style] = []
        for is_closed, owner, at in found[place].tolist():
            inside, border, width = self._look_of(owner, closed=bool(is_closed))
            keys.append((fills[at] if at >= 0 else inside, border, width))
        return keys, rank[which]

    def _look_of(self, owner: int, *, closed: bool) -> Style:
        if closed and owner >= 0:
            return self.tint(owner), self._colours.backend(owner), 1.7
        return self._owned(owner)

    def opened(self, item: int, fill_of: dict[int, str]) -> Style:
        """Return the style of an open cluster: tinted for a delegate, else as its parent."""
        c, tree = self._colours, self._placed.scene.tree
        nodes = self._placed.node_count
        owner = self.owner(item)
        around = fill_of.get(nodes + int(tree.parent[item - nodes]), c.surface)
        if owner >= 0:
            style = (self.tint(owner), c.backend(owner), 1.7)
        elif owner == NOT_DELEGATED:
            style = (around, c.not_delegated, 1.2)
        else:
            style = (around, mix(c.line, c.muted, 0.12), 1.0)
        fill_of[item] = style[0]
        return style

    def tint(self, owner: int) -> str:
        """Return the background of a delegated region."""
        c = self._colours
        return mix(c.surface, c.backend(owner), 0.16 if c.dark else 0.11)


def item_fills(
    placed: Placed, overlay: GraphOverlay, colours: CanvasColours
) -> tuple[list[str], Ints]:
    """Return the colours of an overlay, and which of them each item has; -1 for none.

    Shapes: result int64[items]
    """
    which = np.full(len(placed.boxes), -1, np.int64)
    if overlay.values is not None:
        most = _largest_inside(placed, overlay.values)
        known = np.flatnonzero(np.isfinite(most))
        chosen = colours.diverging if overlay.diverging else colours.sequential
        fills, which[known] = map_colours(chosen, most[known])
        return fills, which
    if overlay.categories is None:
        return [], which
    common = _common_inside(placed, overlay.categories, sparse=overlay.sparse)
    known = np.flatnonzero(common != PLAIN)
    share = 0.45 if colours.dark else 0.38
    found, which[known] = np.unique(common[known], return_inverse=True)
    references = (colours.reference(category) for category in found.tolist())
    return [mix(colours.raised, one, share) for one in references], which


def _largest_inside(placed: Placed, values: Floats) -> Floats:
    found = np.full(len(placed.boxes), -np.inf)
    np.fmax.at(found, placed.item_of_node, np.where(np.isfinite(values), values, -np.inf))
    return np.where(np.isfinite(found), found, np.nan)


def _common_inside(placed: Placed, categories: Ints, *, sparse: bool) -> Ints:
    found = np.full(len(placed.boxes), PLAIN, np.int64)
    known = categories != PLAIN if sparse else np.ones(len(categories), np.bool_)
    items, categories = placed.item_of_node[known], categories[known]
    found[items] = categories
    mixed = np.zeros(len(placed.boxes), np.bool_)
    np.logical_or.at(mixed, items, found[items] != categories)
    found[mixed] = PLAIN
    return found


def item_shares(placed: Placed, overlay: GraphOverlay) -> Floats:
    """Return the share bar of every visible item: its own, or that of all of a closed cluster."""
    shares = np.full(len(placed.boxes), np.nan)
    if overlay.shares is None:
        return shares
    known = np.isfinite(overlay.shares)
    items = placed.item_of_node[known]
    total = np.bincount(items, weights=overlay.shares[known], minlength=len(shares))
    shares[items] = np.clip(total[items], 0.0, 1.0)
    nodes, tree = placed.node_count, placed.scene.tree
    closed = np.zeros(tree.size, np.bool_)
    closed[placed.clusters[placed.collapsed] - nodes] = True
    for path, info in placed.scene.info.items():  # a delegate is more than its nodes
        cluster = tree.index.get(path)
        if cluster is not None and info.share is not None and closed[cluster]:
            shares[nodes + cluster] = min(info.share, 1.0)
    return shares


def title_colour(colours: CanvasColours, owner: int, background: str) -> str:
    """Return the colour of a cluster's title on its background."""
    if owner >= 0:
        return readable(colours.backend(owner), background, colours.text)
    return readable(colours.muted, background, colours.text)
