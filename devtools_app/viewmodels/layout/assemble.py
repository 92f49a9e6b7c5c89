"""Combines the layouts of clusters into absolute coordinates, all edges at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from devtools_app.viewmodels.layout.cluster_tree import ClusterPath
from devtools_app.viewmodels.layout.lift import CROSS, GraphPieces
from devtools_app.viewmodels.layout.placed import Placed
from devtools_app.viewmodels.layout.problem import LayoutResult
from devtools_app.viewmodels.layout.scene_graph import SceneGraph
from devtools_app.viewmodels.layout.stubs import LOOP_ROOM, place_stubs
from devtools_app.viewmodels.layout.topology import Topology
from devtools_app.viewmodels.layout.visible import Ints, Visible

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
_STEPS = (8, 14)  # straight pieces of a narrow and of a wide curve
_WIDE = 60.0  # pixels sideways that make a curve wide
_LABEL_DROP = 11.0  # how far along its way the text of an edge stands
_SAME = 0.75  # pixels sideways below which a curve is a straight line


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Layouts of all open clusters, and the edge of each piece in them.

    Attributes:
        pieces: pieces drawn as lines
        answer_of: number of the answer of each open cluster, -1 for others
        edge_of: number of each piece among the edges of its cluster
        answers: by number
        sizes: width and height of every visible item

    Shapes: answer_of int64[clusters]; edge_of int64[pieces]; sizes float64[items, 2]
    """

    pieces: GraphPieces
    answer_of: Ints
    edge_of: Ints
    answers: list[LayoutResult]
    sizes: Floats


def assemble(
    scene: SceneGraph,
    expanded: frozenset[ClusterPath],
    visible: Visible,
    ranks: Topology,
    solution: Solution,
) -> Placed:
    """Return the whole scene with places."""
    boxes, origins = _boxes(visible, ranks, solution)
    points, knots, offsets, label_at = _lines(visible, ranks, solution, origins, boxes)
    nodes = len(scene.names)
    clusters = np.flatnonzero(visible.shown)
    clusters = clusters[np.argsort(scene.tree.depth[clusters], kind="stable")]
    root = solution.answers[int(solution.answer_of[0])]
    return Placed(
        scene=scene,
        expanded=expanded,
        boxes=boxes,
        nodes=np.flatnonzero(visible.holder[:nodes] >= 0),
        clusters=clusters + nodes,
        collapsed=~visible.opened[clusters],
        item_of_node=visible.item_of_node,
        edges=visible.edges,
        edge_uses=visible.uses,
        edge_bytes=visible.nbytes,
        edge_label_of=visible.label_of,
        edge_emphasised=visible.emphasised,
        edge_upward=ranks.upward,
        edge_stubbed=ranks.stubbed,
        points=points,
        knots=knots,
        offsets=offsets,
        label_at=label_at,
        stubs=place_stubs(visible.edges, ranks.stubbed, boxes),
        width=root.width,
        height=root.height,
    )


def _boxes(visible: Visible, ranks: Topology, solution: Solution) -> tuple[Floats, Floats]:
    """Return the box of every item and the upper left corner of every open cluster."""
    nodes = len(visible.item_of_node)
    corners = np.full((len(visible.holder), 2), np.nan)
    corners[nodes] = 0.0  # the root, until its inside is placed
    start: list[int] = ranks.start.tolist()
    answer_of: list[int] = solution.answer_of.tolist()
    opened: list[int] = np.flatnonzero(visible.opened).tolist()  # outer ones come first
    for cluster in opened:
        inside = ranks.items[start[cluster] : start[cluster + 1]]
        corners[inside] = solution.answers[answer_of[cluster]].corners + corners[nodes + cluster]
    origins = np.array(corners[nodes:], np.float64)
    corners[nodes] = np.nan
    sizes = np.where(np.isnan(corners), np.nan, solution.sizes)
    return np.concatenate([corners, sizes], axis=1), origins


def _lines(
    visible: Visible, ranks: Topology, solution: Solution, origins: Floats, boxes: Floats
) -> tuple[Floats, Bools, Ints, Floats]:
    """Return points, knots, offsets and label places of all visible edges."""
    points, curved, edge, first = _corner_points(ranks.upward, solution, origins)
    label_at = np.full((len(visible.edges), 2), np.nan)
    cross = solution.pieces.kind == CROSS
    crossing = solution.pieces.edge[cross]
    drop = np.where(ranks.upward[crossing], -_LABEL_DROP, _LABEL_DROP)
    label_at[crossing] = points[first[cross]]
    label_at[crossing, 1] += drop
    points, knots, edge = _smooth(points, curved, edge)
    points, knots, edge = _with_loops(points, knots, edge, visible.edges, boxes)
    counts = np.bincount(edge, minlength=len(visible.edges))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return points, knots, offsets, label_at


def _corner_points(
    upward: Bools, solution: Solution, origins: Floats
) -> tuple[Floats, Bools, Ints, Ints]:
    """Return all points of all pieces one after the other.

    Returns: points, whether the step to the next is a curve, edge of each point, first point of
        each piece
    """
    pieces = solution.pieces
    way, curves, start, length = _templates(solution)
    number = np.repeat(np.arange(len(length)), length)
    first = np.cumsum(length) - length
    at = np.arange(len(number)) - first[number]
    up = upward[pieces.edge][number]
    index = start[number] + np.where(up, length[number] - 1 - at, at)
    ends = at == length[number] - 1
    curved = curves[np.where(up & ~ends, index - 1, index)] & ~ends
    points = way[index] + origins[pieces.cluster][number]
    return points, curved, pieces.edge[number], first


def _templates(solution: Solution) -> tuple[Floats, Bools, Ints, Ints]:
    """Return points of all answers in use, and first point and length for each piece."""
    used = np.unique(solution.answer_of[solution.answer_of >= 0])
    numbers: list[int] = used.tolist()
    answers = [solution.answers[number] for number in numbers]
    point_base = np.cumsum([0] + [len(answer.points) for answer in answers])
    edge_base = np.cumsum([0] + [len(answer.offsets) - 1 for answer in answers])
    starts = [answer.offsets[:-1] + base for answer, base in zip(answers, point_base, strict=False)]
    lengths = [np.diff(answer.offsets) for answer in answers]
    which = np.searchsorted(used, solution.answer_of[solution.pieces.cluster])
    edge = edge_base[which] + solution.edge_of
    return (
        np.concatenate([answer.points for answer in answers]),
        np.concatenate([answer.curved for answer in answers]),
        np.concatenate(starts)[edge],
        np.concatenate(lengths)[edge],
    )


def _smooth(points: Floats, curved: Bools, edge: Ints) -> tuple[Floats, Bools, Ints]:
    """Replace curves by short straight pieces; return points, knots and edge of each point."""
    if not len(points):
        return points, np.zeros(0, np.bool_), edge
    step = np.zeros_like(points)
    step[:-1] = points[1:] - points[:-1]
    last = np.ones(len(points), np.bool_)
    last[:-1] = edge[1:] != edge[:-1]
    kept = last | (np.abs(step).max(axis=1) > 1e-6)
    points, step, edge, last = points[kept], step[kept], edge[kept], last[kept]
    bent = curved[kept] & ~last & (np.abs(step[:, 0]) > _SAME)
    wide = np.abs(step[:, 0]) > _WIDE
    count = np.where(bent, np.where(wide, _STEPS[1], _STEPS[0]), 1)
    number = np.repeat(np.arange(len(points)), count)
    at = np.arange(len(number)) - (np.cumsum(count) - count)[number]
    t = at / count[number]
    across = t * t * (3.0 - 2.0 * t)
    down = t * (1.5 - 1.5 * t + t * t)
    smooth = points[number] + step[number] * np.stack([across, down], axis=1)
    return smooth, (at == 0) & _corners(step, last)[number], edge[number]


def _corners(step: Floats, last: Bools) -> Bools:
    """Return the points where a line changes its direction, and its ends."""
    found = np.ones(len(step), np.bool_)
    turn = step[1:, 0] * step[:-1, 1] - step[1:, 1] * step[:-1, 0]
    found[1:] = last[:-1] | last[1:] | (np.abs(turn) > 1e-6)
    return found


def _with_loops(
    points: Floats, knots: Bools, edge: Ints, edges: Ints, boxes: Floats
) -> tuple[Floats, Bools, Ints]:
    """Add a loop at the right side for every edge from a node to itself."""
    loops = np.flatnonzero(edges[:, 0] == edges[:, 1])
    if not len(loops):
        return points, knots, edge
    box = boxes[edges[loops, 0]]
    right = box[:, 0] + box[:, 2]
    out = right + LOOP_ROOM * 0.6
    upper, lower = box[:, 1] + box[:, 3] * 0.3, box[:, 1] + box[:, 3] * 0.7
    ways = np.stack([right, upper, out, upper, out, lower, right, lower], axis=1)
    points = np.concatenate([points, np.reshape(ways, (-1, 2))])
    knots = np.concatenate([knots, np.ones(4 * len(loops), np.bool_)])
    edge = np.concatenate([edge, np.repeat(loops, 4)])
    order = np.argsort(edge, kind="stable")
    return points[order], knots[order], edge[order]
