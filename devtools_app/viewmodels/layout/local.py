"""Solve one cluster: components, rows, order, places, ways, and a frame around all."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from devtools_app.viewmodels.layout.layers import make_rows
from devtools_app.viewmodels.layout.order import order_rows
from devtools_app.viewmodels.layout.pack import components, shelves, split
from devtools_app.viewmodels.layout.place import place_rows
from devtools_app.viewmodels.layout.problem import SIDE, LayoutResult, Problem
from devtools_app.viewmodels.layout.route import EdgeRouter, RouteGrid, Way, grid

_NEAR_MIDDLE = 30.0  # pixels; a straight line is worth that much asymmetry


def solve(problem: Problem) -> LayoutResult:
    """Return the places of all items, ports and edges of one cluster."""
    if not problem.items:
        size = (problem.least_width, problem.head + problem.foot)
        return LayoutResult(*size, np.zeros((0, 2)), (), (), *_flat([], np.zeros((0, 2))))
    groups = components(problem)
    if len(groups) == 1:
        parts = [(problem, list(range(len(problem.edges))))]
    else:
        parts = split(problem, _big_first(problem, groups))
    solved = [_LocalPart.of(part) for part, _ in parts]
    corners = shelves([(part.width, part.height) for part in solved])
    return _framed(problem, solved, corners, _numbers(problem, groups, parts))


def _big_first(problem: Problem, groups: list[list[int]]) -> list[list[int]]:
    """Order parts in place: those connected to ports, then those with edges, then lone boxes."""
    lead = groups[:1] if problem.top_ports or problem.bottom_ports else []
    rest = groups[len(lead) :]
    groups[:] = lead + sorted(rest, key=lambda group: len(group) == 1)
    return groups


_Numbers = list[tuple[list[int], list[int]]]


def _numbers(
    problem: Problem, groups: list[list[int]], parts: list[tuple[Problem, list[int]]]
) -> _Numbers:
    """Return for each part the indices of its items and edges in the whole."""
    if len(groups) == 1:
        return [(list(range(len(problem.items))), parts[0][1])]
    return [(group, edges) for group, (_, edges) in zip(groups, parts, strict=True)]


@dataclass(slots=True)
class _LocalPart:
    """One component laid out from the upper left corner of its content."""

    router: EdgeRouter
    width: float
    height: float

    @classmethod
    def of(cls, problem: Problem) -> _LocalPart:
        """Lay out one component."""
        state = make_rows(problem)
        order_rows(state)
        places = grid(problem, state, place_rows(state))
        router = EdgeRouter(problem, state, places, places.height + problem.foot)
        return cls(router, places.width, places.height)

    @property
    def grid(self) -> RouteGrid:
        """Return the places of its rows."""
        return self.router.grid


def _framed(
    problem: Problem, parts: list[_LocalPart], corners: list[tuple[float, float]], numbers: _Numbers
) -> LayoutResult:
    side = SIDE if problem.framed else 0.0
    wide = max(x + part.width for part, (x, _) in zip(parts, corners, strict=True))
    high = max(y + part.height for part, (_, y) in zip(parts, corners, strict=True))
    indent, width = _indent(problem, parts[0], wide, side)
    parts[0].router.bottom = high + problem.foot
    boxes = np.zeros((len(problem.items), 2))
    ways: list[Way] = [[] for _ in problem.edges]
    moved = np.zeros((len(problem.edges), 2))
    for part, (x, y), (items, edges) in zip(parts, corners, numbers, strict=True):
        dx, dy = indent + x, problem.head + y
        boxes[items] = part.router.corners() + np.array([dx, dy])
        moved[edges] = (dx, dy)
        for edge, way in zip(edges, part.router.ways(), strict=True):
            ways[edge] = way
    upper, lower = _port_places(problem, parts[0], indent)
    points, curved, offsets = _flat(ways, moved)
    height = problem.head + high + problem.foot
    return LayoutResult(width, height, boxes, upper, lower, points, curved, offsets)


def _indent(problem: Problem, part: _LocalPart, wide: float, side: float) -> tuple[float, float]:
    """Return where content begins and the whole width.

    A single port near the middle is moved into it, so that the line goes on straight outside.
    """
    width = max(wide + 2 * side, problem.least_width)
    indent = (width - wide) / 2
    if problem.top_ports > 1 or problem.bottom_ports > 1 or not problem.framed:
        return indent, width
    for port in (*_port_places(problem, part, indent)[0], *_port_places(problem, part, indent)[1]):
        off = width / 2 - port
        if abs(off) <= _NEAR_MIDDLE:
            return indent + max(off, 0.0) * 2, width + abs(off) * 2
    return indent, width


def _port_places(
    problem: Problem, part: _LocalPart, indent: float
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    first = len(part.router.problem.items)
    xs = [x + indent for x in part.grid.xs[first : part.router.state.fixed]]
    return tuple(xs[: problem.top_ports]), tuple(xs[problem.top_ports :])


def _flat(
    ways: list[Way], moved: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.int64]]:
    """Return points, curves and offsets of all ways, each moved as a whole."""
    lengths = [len(way) for way in ways]
    numbers = chain.from_iterable(chain.from_iterable(ways))
    flat = np.reshape(np.fromiter(numbers, np.float64, 3 * sum(lengths)), (-1, 3))
    offsets = np.zeros(len(ways) + 1, np.int64)
    offsets[1:] = np.cumsum(lengths)
    return flat[:, :2] + np.repeat(moved, lengths, axis=0), flat[:, 2] > 0.5, offsets
