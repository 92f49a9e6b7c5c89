"""The visible items for a set of expanded clusters, and the edges gathered between them.

An item is a node or a cluster; items are numbered 0..nodes-1 for nodes and nodes + cluster for
clusters, so one array holds both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from devtools_app.viewmodels.layout.cluster_tree import ClusterPath, ClusterTree
from devtools_app.viewmodels.layout.scene_graph import UNKNOWN_BYTES, SceneGraph

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Visible:
    """Visible items and the edges between them.

    Attributes:
        opened: clusters whose inside is drawn; the root always
        shown: clusters drawn at all, open or closed; the root never
        item_of_node: the item that stands for each node: itself or the closed cluster around it
        holder: open cluster that holds each item, -1 for items not visible
        edges: source and target item, each pair once
        uses: edges of the scene gathered in each
        nbytes: bytes of the distinct values gathered, UNKNOWN_BYTES when one is unknown
        label_of: an edge of the scene with the same label as all gathered, -1 when they differ
        emphasised: one of the gathered edges is
        edge_of: visible edge that each edge of the scene became, -1 inside a closed cluster

    Shapes: opened, shown bool[clusters]; item_of_node int64[nodes]; holder int64[items];
        edges int64[visible edges, 2]; uses, nbytes, label_of int64[visible edges]
    """

    opened: NDArray[np.bool_]
    shown: NDArray[np.bool_]
    item_of_node: Ints
    holder: Ints
    edges: Ints
    uses: Ints
    nbytes: Ints
    label_of: Ints
    emphasised: NDArray[np.bool_]
    edge_of: Ints


def visible_items(scene: SceneGraph, expanded: frozenset[ClusterPath]) -> Visible:
    """Return the items and gathered edges for a set of expanded clusters."""
    tree = scene.tree
    opened, shown, closed = _open_clusters(tree, expanded)
    nodes = len(scene.names)
    closed_of_node = closed[tree.node_cluster]
    own = np.arange(nodes, dtype=np.int64)
    item_of_node = np.where(closed_of_node < 0, own, nodes + closed_of_node)
    holder = np.full(nodes + tree.size, -1, np.int64)
    holder[:nodes] = np.where(closed_of_node < 0, tree.node_cluster, -1)
    holder[nodes:] = np.where(shown, tree.parent, -1)
    gathered = _gather(scene, item_of_node, nodes)
    return Visible(opened, shown, item_of_node, holder, *gathered)


def _open_clusters(
    tree: ClusterTree, expanded: frozenset[ClusterPath]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], Ints]:
    """Return opened, shown, and for each cluster the outermost closed one around it or -1."""
    index = tree.index
    requested = np.zeros(tree.size, np.bool_)
    requested[[index[path] for path in expanded if path in index]] = True
    opened, shown = np.zeros((2, tree.size), np.bool_)
    closed = np.full(tree.size, -1, np.int64)
    opened[0] = True
    order = np.argsort(tree.depth, kind="stable")
    ends = np.searchsorted(tree.depth[order], np.arange(1, int(tree.depth.max(initial=0)) + 2))
    for low, high in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        level = order[low:high]
        above = tree.parent[level]
        shown[level] = opened[above]
        opened[level] = opened[above] & requested[level]
        own = np.where(requested[level], -1, level)
        closed[level] = np.where(opened[above], own, closed[above])
    return opened, shown, closed


def _gather(
    scene: SceneGraph, item_of_node: Ints, nodes: int
) -> tuple[Ints, Ints, Ints, Ints, NDArray[np.bool_], Ints]:
    source = item_of_node[scene.edges[:, 0]]
    target = item_of_node[scene.edges[:, 1]]
    kept = np.flatnonzero((source != target) | (source < nodes))
    total = nodes + scene.tree.size
    keys, which = np.unique(source[kept] * total + target[kept], return_inverse=True)
    which = np.ravel(which).astype(np.int64)
    edge_of = np.full(len(source), -1, np.int64)
    edge_of[kept] = which
    uses = np.bincount(which, minlength=len(keys)).astype(np.int64)
    nbytes, label_of = _values(scene, kept, which, len(keys))
    emphasised = np.zeros(len(keys), np.bool_)
    np.logical_or.at(emphasised, which, scene.emphasised[kept])
    edges = np.stack([keys // total, keys % total], axis=1)
    return edges, uses, nbytes, label_of, emphasised, edge_of


def _values(scene: SceneGraph, kept: Ints, which: Ints, groups: int) -> tuple[Ints, Ints]:
    """Return bytes of the distinct values of each group, and an edge whose label all share."""
    order = np.lexsort((scene.edge_values[kept], which))
    group, value = which[order], scene.edge_values[kept][order]
    edge = kept[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (group[1:] != group[:-1]) | (value[1:] != value[:-1])
    group, edge = group[fresh], edge[fresh]
    size = scene.edge_bytes[edge]
    unknown = np.zeros(groups, np.bool_)
    unknown[group[size < 0]] = True
    total = np.bincount(group, weights=np.maximum(size, 0), minlength=groups).astype(np.int64)
    distinct = np.bincount(group, minlength=groups)
    label_of = np.full(groups, -1, np.int64)
    label_of[group] = edge
    label_of[distinct > 1] = -1
    return np.where(unknown, UNKNOWN_BYTES, total), label_of
