"""The contents of the graph canvas: boxes, lines and stubs with positions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from devtools_app.viewmodels.layout.cluster_tree import ClusterPath
from devtools_app.viewmodels.layout.scene_graph import SceneGraph
from devtools_app.viewmodels.layout.segments import PlacedLines
from devtools_app.viewmodels.layout.stubs import Stubs
from devtools_app.viewmodels.layout.visible import Ints


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A scene laid out for one set of expanded clusters.

    Items are nodes 0..n-1 and clusters n..; invisible items have a box of NaN.

    Attributes:
        scene: the scene that was laid out
        expanded: which clusters were open
        boxes: x, y, width, height of every item, at scale 1
        nodes: nodes visible
        clusters: clusters visible, outer ones before inner ones
        collapsed: for each of them, whether it is closed
        item_of_node: the visible item that stands for each node of the scene
        edges: source and target item of each visible edge
        edge_uses: edges of the scene that it stands for
        edge_bytes: bytes of its distinct values, -1 when unknown
        edge_label_of: an edge of the scene that has the label of all of them, -1 when they differ
        edge_emphasised: drawn in the warning colour
        edge_upward: drawn against the flow
        edge_stubbed: drawn as stubs; has no points
        points: ways of the edges, smooth
        knots: points that a coarse drawing needs
        offsets: first point of each edge
        label_at: position of the text of each edge, NaN for stubs and loops
        stubs: stubs beside boxes
        width: of everything
        height: likewise
        lines: what is drawn of the edges, once it is known

    Shapes: boxes float64[items, 4]; edges int64[edges, 2]; edge_* [edges];
        points float64[points, 2]; knots bool[points]; offsets int64[edges + 1];
        label_at float64[edges, 2]
    """

    scene: SceneGraph
    expanded: frozenset[ClusterPath]
    boxes: NDArray[np.float64]
    nodes: Ints
    clusters: Ints
    collapsed: NDArray[np.bool_]
    item_of_node: Ints
    edges: Ints
    edge_uses: Ints
    edge_bytes: Ints
    edge_label_of: Ints
    edge_emphasised: NDArray[np.bool_]
    edge_upward: NDArray[np.bool_]
    edge_stubbed: NDArray[np.bool_]
    points: NDArray[np.float64]
    knots: NDArray[np.bool_]
    offsets: Ints
    label_at: NDArray[np.float64]
    stubs: Stubs
    width: float
    height: float
    lines: list[PlacedLines] = field(default_factory=list[PlacedLines], init=False, repr=False)

    @property
    def node_count(self) -> int:
        """Return the number of nodes of the scene; items from that index on are clusters."""
        return len(self.scene.names)

    def of_scene(self, scene: SceneGraph) -> Placed:
        """Return the same places for a scene that is laid out like that of these."""
        found = replace(self, scene=scene)
        found.lines.extend(self.lines)
        return found

    def path_of(self, item: int) -> ClusterPath:
        """Return the path of an item that is a cluster.

        Raises: IndexError when it is a node
        """
        if item < self.node_count:
            raise IndexError(f"item {item} is a node, not a cluster")
        return self.scene.tree.paths[item - self.node_count]

    def title_of(self, item: int) -> str:
        """Return the short name of an item: the node's name or the cluster's title."""
        if item < self.node_count:
            return self.scene.names[item]
        return self.scene.cluster_info(self.path_of(item)).title

    def polyline(self, edge: int) -> NDArray[np.float64]:
        """Return the points of one visible edge from source to target; none for stubs.

        Shapes: float64[points, 2]
        """
        return self.points[int(self.offsets[edge]) : int(self.offsets[edge + 1])]
