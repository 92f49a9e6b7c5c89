"""A Qt-free tree over flat arrays: a node is an integer, its parent comes before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.tables.filter import Filter
from inspector.tables.row_order import RowOrder, SortKey
from inspector.tables.table import Column, Table

Nodes = NDArray[np.int64]
Mask = NDArray[np.bool_]
TOP = -1
MOST_BELOW = 20_000  # nodes below one; to lay out more would stop the window for seconds


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Rows of a table that have parents.

    Attributes:
        rows: the values; row n belongs to node n, the first column is indented
        parents: parent of each node, -1 at the top; smaller than the node itself

    Shapes: parents int64[nodes]
    Raises: ValueError if a parent does not come before its child
    """

    rows: Table
    parents: Nodes

    def __post_init__(self) -> None:
        if len(self.parents) != self.rows.length:
            raise ValueError(f"{len(self.parents)} parents for {self.rows.length} nodes")
        late = self.parents >= np.arange(len(self.parents))
        if late.any() or (self.parents < TOP).any():
            raise ValueError("a parent must come before its children")

    @property
    def columns(self) -> tuple[Column, ...]:
        """Return the columns of the rows."""
        return self.rows.columns


def empty_tree() -> Tree:
    """Return a tree without columns and nodes."""
    return Tree(Table(), np.zeros(0, np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class Arrangement:
    """Which nodes are shown below which, in which order.

    Attributes:
        first: where the children of node n start in children, at n + 1; place 0 is for the top
        children: shown nodes, grouped by parent
        place: row of each node below its parent, -1 when it is not shown
    """

    first: Nodes
    children: Nodes
    place: Nodes

    def count(self, node: int) -> int:
        """Return how many children of a node (-1 for the top) are shown."""
        return int(self.first[node + 2] - self.first[node + 1])

    def child(self, node: int, row: int) -> int:
        """Return the child of a node (-1 for the top) in a row."""
        return int(self.children[self.first[node + 1] + row])

    def downwards(self) -> list[int]:
        """Return the shown nodes from top to bottom, each before its children."""
        first: list[int] = self.first.tolist()
        children: list[int] = self.children.tolist()
        found: list[int] = []
        waiting = children[first[0] : first[1]][::-1]
        while waiting:
            node = waiting.pop()
            found.append(node)
            waiting += children[first[node + 1] : first[node + 2]][::-1]
        return found


class TreeOrder:
    """Sorts and filters a tree: siblings among themselves, a match keeps all above and below it.

    Attributes:
        tree: to arrange
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._rows = RowOrder(tree.rows)

    def prepare(self) -> TreeOrder:
        """Precompute data for the first sort, filter and widths, in worker threads."""
        self._rows.prepare()
        return self

    def sample(self, column: int) -> frozenset[str]:
        """Return the strings of a column in some rows, to fit its width."""
        return self._rows.sample(column)

    def arrange(self, sort: Sequence[SortKey] = (), requested: Filter | None = None) -> Arrangement:
        """Return the arrangement for a sort order and a filter.

        Raises:
            TooSlowError: a regular expression took too long over the strings of the tree
        """
        parents = self.tree.parents
        order = self._rows.rows(sort)
        if requested is not None and requested:
            order = order[self._around(self._rows.mask(requested))[order]]
        children = order[np.argsort(parents[order], kind="stable")]
        counts = np.bincount(parents[children] + 1, minlength=len(parents) + 1)
        first = np.zeros(len(parents) + 2, np.int64)
        np.cumsum(counts, out=first[1:])
        place = np.full(len(parents), -1, np.int64)
        place[children] = np.arange(len(children)) - first[parents[children] + 1]
        return Arrangement(first, children, place)

    def matching(self, requested: Filter) -> Nodes:
        """Return the nodes that themselves match a filter, to open the way to them."""
        return np.flatnonzero(self._rows.mask(requested))

    def _around(self, hit: Mask) -> Mask:
        parents: list[int] = self.tree.parents.tolist()
        below: list[bool] = hit.tolist()
        above = list(below)
        for node, parent in enumerate(parents):  # parents come first: one pass reaches all below
            if parent != TOP and below[parent]:
                below[node] = True
        for node in range(len(parents) - 1, -1, -1):
            if above[node] and parents[node] != TOP:
                above[parents[node]] = True
        return np.array(below, np.bool_) | np.array(above, np.bool_)


def ancestors(tree: Tree, node: int) -> tuple[int, ...]:
    """Return the nodes above a node, nearest first."""
    found: list[int] = []
    while (node := int(tree.parents[node])) != TOP:
        found.append(node)
    return tuple(found)


def leaves(tree: Tree) -> Mask:
    """Return which nodes have no children."""
    found = np.ones(len(tree.parents), np.bool_)
    found[tree.parents[tree.parents != TOP]] = False
    return found


def tree_from_paths(paths: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], Nodes, Nodes]:
    """Return the nodes of the tree that some paths span.

    Returns:
        names: name of each node
        parents: parent of each node
        leaf: node of each given path; two equal paths share one
    """
    names: list[str] = []
    parents: list[int] = []
    known: dict[tuple[int, str], int] = {}
    leaf = np.full(len(paths), TOP, np.int64)
    for index, path in enumerate(paths):
        at = TOP
        for name in path:
            found = known.get((at, name))
            if found is None:
                found = known[at, name] = len(names)
                names.append(name)
                parents.append(at)
            at = found
        leaf[index] = at
    return tuple(names), np.array(parents, np.int64), leaf
