"""The tree of clusters that nodes sit in, and which of them are drawn open.

A cluster is named by its path, a tuple of keys from the outermost inwards; the empty path is the
whole graph. The set of expanded clusters is a plain frozenset of paths, so that it survives a
reload of the graph and can be stored in a workspace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ClusterPath = tuple[str, ...]
ROOT: ClusterPath = ()


@dataclass(frozen=True, slots=True, eq=False)
class ClusterTree:
    """Clusters as numbers: parents before their children, 0 is the whole graph.

    Attributes:
        paths: path of each cluster
        parent: number of the enclosing cluster, -1 for the root
        depth: levels below the root
        first: smallest node number inside, at any depth
        count: nodes inside, at any depth
        node_cluster: innermost cluster of each node
        index: cluster number by path

    Shapes: parent, depth, first, count int64[clusters]; node_cluster int64[nodes]
    """

    paths: tuple[ClusterPath, ...]
    parent: NDArray[np.int64]
    depth: NDArray[np.int64]
    first: NDArray[np.int64]
    count: NDArray[np.int64]
    node_cluster: NDArray[np.int64]
    index: Mapping[ClusterPath, int]

    @property
    def size(self) -> int:
        """Return the number of clusters, the root included."""
        return len(self.paths)


def cluster_tree(node_paths: Sequence[ClusterPath]) -> ClusterTree:
    """Return the tree of all clusters named by the paths of nodes, in order of first use."""
    index: dict[ClusterPath, int] = {ROOT: 0}
    paths: list[ClusterPath] = [ROOT]
    parent = [-1]
    node_cluster = np.zeros(len(node_paths), np.int64)
    for node, path in enumerate(node_paths):
        found = index.get(path)
        node_cluster[node] = found if found is not None else _add_path(path, index, paths, parent)
    return _finished(paths, parent, node_cluster, index)


def _add_path(
    path: ClusterPath, index: dict[ClusterPath, int], paths: list[ClusterPath], parent: list[int]
) -> int:
    here = 0
    for length in range(1, len(path) + 1):
        prefix = path[:length]
        found = index.get(prefix)
        if found is None:
            found = len(paths)
            index[prefix] = found
            paths.append(prefix)
            parent.append(here)
        here = found
    return here


def _finished(
    paths: list[ClusterPath],
    parent: list[int],
    node_cluster: NDArray[np.int64],
    index: dict[ClusterPath, int],
) -> ClusterTree:
    nodes = len(node_cluster)
    count = np.bincount(node_cluster, minlength=len(paths)).astype(np.int64)
    first = np.full(len(paths), nodes, np.int64)
    np.minimum.at(first, node_cluster, np.arange(nodes, dtype=np.int64))
    counts, firsts = count.tolist(), first.tolist()
    for cluster in range(len(paths) - 1, 0, -1):  # children come after their parents
        above = parent[cluster]
        counts[above] += counts[cluster]
        firsts[above] = min(firsts[above], firsts[cluster])
    return ClusterTree(
        paths=tuple(paths),
        parent=np.array(parent, np.int64),
        depth=np.array([len(path) for path in paths], np.int64),
        first=np.array(firsts, np.int64),
        count=np.array(counts, np.int64),
        node_cluster=node_cluster,
        index=index,
    )


def expand(expanded: Iterable[ClusterPath], path: ClusterPath) -> frozenset[ClusterPath]:
    """Return the expanded set with one cluster opened, and all enclosing ones."""
    above = (path[:length] for length in range(1, len(path) + 1))
    return frozenset(expanded) | frozenset(above)


def collapse(
    expanded: Iterable[ClusterPath], path: ClusterPath, *, deep: bool = False
) -> frozenset[ClusterPath]:
    """Return the expanded set with one cluster closed.

    Clusters opened inside it are kept for the next time, unless ``deep`` is set.
    """
    if not deep:
        return frozenset(expanded) - {path}
    depth = len(path)
    return frozenset(kept for kept in expanded if kept[:depth] != path)


def collapse_others(
    expanded: Iterable[ClusterPath], path: ClusterPath, *, inside: bool
) -> frozenset[ClusterPath]:
    """Return the expanded set with only those open that are around a path, or at it.

    Those ``inside`` of it stay as they are, or close too.
    """
    depth = len(path)
    return frozenset(
        kept for kept in expanded if kept == path[: len(kept)] or (inside and kept[:depth] == path)
    )


def toggle(expanded: frozenset[ClusterPath], path: ClusterPath) -> frozenset[ClusterPath]:
    """Return the expanded set with one cluster opened if it was closed, else closed."""
    return collapse(expanded, path) if path in expanded else expand(expanded, path)


def expand_all(tree: ClusterTree, below: ClusterPath = ROOT) -> frozenset[ClusterPath]:
    """Return the set with every cluster at or below a path open, and those around it."""
    depth = len(below)
    inside = (path for path in tree.paths if path and path[:depth] == below)
    return expand(inside, below)


def reveal(tree: ClusterTree, expanded: Iterable[ClusterPath], node: int) -> frozenset[ClusterPath]:
    """Return the expanded set with every cluster around a node open."""
    return expand(expanded, tree.paths[int(tree.node_cluster[node])])
