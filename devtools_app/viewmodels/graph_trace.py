"""Highlighted parts of a graph: what leads to a node, what follows, the ways between two."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from devtools_app.viewmodels.layout.placed import Placed
from devtools_app.viewmodels.scene import GraphScene
from inspector.graph.reach import ancestors, descendants, ways_between
from schema.objects.plural import plural


@dataclass(frozen=True, slots=True)
class Highlight:
    """Highlighted nodes.

    Attributes:
        nodes: numbers in the drawing
        words: what they are
    """

    nodes: frozenset[int]
    words: str


def nodes_of(placed: Placed, item: int) -> tuple[int, ...]:
    """Return the nodes that a box stands for: a node itself, or all inside of a cluster."""
    if item < placed.node_count:
        return (item,) if item >= 0 else ()
    depth = len(placed.path_of(item))
    tree = placed.scene.tree
    inside = [path[:depth] == placed.path_of(item) for path in tree.paths]
    found: list[int] = np.flatnonzero(np.array(inside)[tree.node_cluster]).tolist()
    return tuple(found)


def upstream(graph: GraphScene, nodes: Collection[int], title: str) -> Highlight:
    """Return what some nodes depend on."""
    found = ancestors(graph.graph, nodes)
    return Highlight(found, f"{_count(found, nodes)} before {title}")


def downstream(graph: GraphScene, nodes: Collection[int], title: str) -> Highlight:
    """Return what depends on some nodes."""
    found = descendants(graph.graph, nodes)
    return Highlight(found, f"{_count(found, nodes)} after {title}")


def _count(found: Collection[int], nodes: Collection[int]) -> str:
    return plural(len(found) - len(nodes), "node")


def path(
    graph: GraphScene, one: Collection[int], two: Collection[int], titles: tuple[str, str]
) -> Highlight | None:
    """Return the ways between two boxes, None if neither depends on the other."""
    ways = ways_between(graph.graph, one, two)
    if ways is None:
        return None
    steps = plural(max(len(ways.shortest) - 1, 0), "edge")
    between = f"{titles[0]} and {titles[1]}"
    return Highlight(
        ways.nodes, f"{plural(len(ways.nodes), 'node')} on ways between {between}, {steps}"
    )
