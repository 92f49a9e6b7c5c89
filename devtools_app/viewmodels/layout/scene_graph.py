"""The content of the graph view before layout: nodes, edges and nested clusters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from devtools_app.appearance.colours import PLAIN
from devtools_app.viewmodels.layout.cluster_tree import ClusterPath, ClusterTree, cluster_tree

UNKNOWN_BYTES = -1

NODE_HEIGHT = 40.0
_NARROWEST = 144.0
_WIDEST = 288.0
_WIDTH_STEP = 24.0
_CHARACTER = 7.6  # pixels a title character takes at 13 px, generous
_SMALL = 6.2  # and one of the second line
_MARGINS = 24.0

_MOST = np.iinfo(np.int64).max  # damaged shapes tell of more bytes than there can be


@dataclass(frozen=True, slots=True)
class SceneNode:
    """One box to be drawn.

    Attributes:
        name: unique within the scene
        label: title line
        sublabel: second line
        cluster: path of the innermost cluster around it
        owner: PLAIN, NOT_DELEGATED or the number of a backend colour
        size: width and height in pixels at scale 1, None to follow from the label
    """

    name: str
    label: str
    sublabel: str = ""
    cluster: ClusterPath = ()
    owner: int = PLAIN
    size: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class SceneEdge:
    """One use of a value.

    Attributes:
        source: name of the node that computes it
        target: name of the node that reads it
        label: text shown beside the line
        nbytes: size of the value, UNKNOWN_BYTES when unknown
        value: name of the value, so that two uses of one tensor are counted once; empty: the label
        emphasised: drawn in the warning colour (a copy, a costly boundary)
    """

    source: str
    target: str
    label: str = ""
    nbytes: int = UNKNOWN_BYTES
    value: str = ""
    emphasised: bool = False


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """Presentation of a cluster; by default its last key is the title.

    Attributes:
        title: text at the left of the title bar
        detail: text at the right of it, as in ``5 nodes · 0.349 ms · 23 %``
        owner: PLAIN, NOT_DELEGATED or the number of a backend colour that tints the region
        share: part of the whole that it stands for, 0..1, None when unknown
        inward: tensors that enter it, and their bytes; empty where that is of no interest
        outward: tensors that leave it
        module: path of the module that it stands for, empty for others
    """

    title: str
    detail: str = ""
    owner: int = PLAIN
    share: float | None = None
    inward: str = ""
    outward: str = ""
    module: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class SceneGraph:
    """Nodes and edges as columns; create one with scene_graph().

    Attributes:
        names: unique name of each node
        labels: title lines
        sublabels: second lines; may be made when they are seen
        owners: PLAIN, NOT_DELEGATED or the number of a backend colour
        sizes: width and height of each node at scale 1
        edges: source and target node numbers
        edge_labels: text of each edge
        edge_bytes: bytes of the value, UNKNOWN_BYTES when unknown
        edge_values: number of the value, equal for uses of one tensor
        emphasised: edges drawn in the warning colour
        tree: clusters around the nodes
        info: titles and colours of clusters
        index: node number by name

    Shapes: owners int64[nodes]; sizes float64[nodes, 2]; edges int64[edges, 2];
        edge_bytes, edge_values int64[edges]; emphasised bool[edges]
    """

    names: tuple[str, ...]
    labels: tuple[str, ...]
    sublabels: Sequence[str]
    owners: NDArray[np.int64]
    sizes: NDArray[np.float64]
    edges: NDArray[np.int64]
    edge_labels: tuple[str, ...]
    edge_bytes: NDArray[np.int64]
    edge_values: NDArray[np.int64]
    emphasised: NDArray[np.bool_]
    tree: ClusterTree
    info: Mapping[ClusterPath, ClusterInfo] = field(default_factory=dict[ClusterPath, ClusterInfo])
    index: Mapping[str, int] = field(default_factory=dict[str, int])

    def cluster_info(self, path: ClusterPath) -> ClusterInfo:
        """Return the presentation of a cluster."""
        found = self.info.get(path)
        return found if found is not None else ClusterInfo(path[-1] if path else "")

    def is_laid_out_like(self, other: SceneGraph) -> bool:
        """Return whether a layout of the other is one of this: they differ in second lines only."""
        same = self.tree is other.tree and self.edges is other.edges and self.sizes is other.sizes
        labels = self.edge_labels is other.edge_labels or self.edge_labels == other.edge_labels
        return same and labels and self.info == other.info


@lru_cache(maxsize=4096)  # most nodes of a large graph are of few operators
def default_size(label: str, sublabel: str = "") -> tuple[float, float]:
    """Return width and height of a node for its text, in steps so that equal blocks stay equal."""
    text = max(_CHARACTER * len(label), _SMALL * len(sublabel))
    requested = math.ceil((text + _MARGINS) / _WIDTH_STEP) * _WIDTH_STEP
    return min(max(requested, _NARROWEST), _WIDEST), NODE_HEIGHT


def scene_graph(
    nodes: Sequence[SceneNode],
    edges: Sequence[SceneEdge] = (),
    info: Mapping[ClusterPath, ClusterInfo] | None = None,
) -> SceneGraph:
    """Return the columns of a scene.

    Raises: ValueError when a name occurs twice, KeyError when an edge names no node
    """
    index = {node.name: number for number, node in enumerate(nodes)}
    if len(index) != len(nodes):
        raise ValueError(f"{len(nodes) - len(index)} node names occur more than once")
    values: dict[tuple[str, str], int] = {}
    sizes = [node.size or default_size(node.label, node.sublabel) for node in nodes]
    ends = [(index[edge.source], index[edge.target]) for edge in edges]
    keys = [(edge.source, edge.value or edge.label) for edge in edges]
    return SceneGraph(
        names=tuple(node.name for node in nodes),
        labels=tuple(node.label for node in nodes),
        sublabels=tuple(node.sublabel for node in nodes),
        owners=np.array([node.owner for node in nodes], np.int64),
        sizes=np.reshape(np.array(sizes, np.float64), (-1, 2)),
        edges=np.reshape(np.array(ends, np.int64), (-1, 2)),
        edge_labels=tuple(edge.label for edge in edges),
        edge_bytes=np.array([min(edge.nbytes, _MOST) for edge in edges], np.int64),
        edge_values=np.array([values.setdefault(key, len(values)) for key in keys], np.int64),
        emphasised=np.array([edge.emphasised for edge in edges], np.bool_),
        tree=cluster_tree([node.cluster for node in nodes]),
        info=MappingProxyType(dict(info or {})),
        index=index,
    )
