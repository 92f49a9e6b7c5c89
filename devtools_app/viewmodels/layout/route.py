"""Vertical places of rows and the way of every edge of one component."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from devtools_app.viewmodels.layout.fold import (
    CHANNEL,
    TRACK,
    FoldColumn,
    break_rows,
    corner_points,
)
from devtools_app.viewmodels.layout.layers import LayerRows, attach
from devtools_app.viewmodels.layout.problem import ROW_GAP, TITLE, Edge, Problem

Run = tuple[float, float, float]  # x, from y, to y
Way = list[tuple[float, float, bool]]  # x, y, the step to the next point is a curve
_PORT_GAP = 16.0
_SPREAD = 14.0  # distance of edges that end at one plain box


@dataclass(slots=True)
class RouteGrid:
    """LayerRows and columns of one component in pixels, from the upper left corner of its content.

    Attributes:
        xs: anchor of each vertex
        tops: upper side of each row
        heights: height of each row
        columns: in reading order
        column_of: number of the column of each row
        width: of the content
        height: of the content
    """

    xs: list[float]
    tops: list[float]
    heights: list[float]
    columns: list[FoldColumn]
    column_of: list[int]
    width: float
    height: float


def grid(problem: Problem, state: LayerRows, xs: list[float]) -> RouteGrid:
    """Return the places of rows and columns."""
    heights = _row_heights(problem, state)
    links = [sum([len(state.below[vertex]) for vertex in row]) for row in state.rows]
    tops = _row_tops(problem, state, heights, links, xs)
    width = max((x + right for x, right in zip(xs, state.right, strict=True)), default=0.0)
    starts = break_rows(tops, heights, width, links, whole=not problem.framed)
    if len(starts) == 1:
        whole = FoldColumn(0, len(tops) - 1, 0.0, 0.0, width, 0.0)
        bottom = tops[-1] + heights[-1] if tops else 0.0
        bottom -= _PORT_GAP if problem.bottom_ports else 0.0
        return RouteGrid(xs, tops, heights, [whole], [0] * len(tops), width, bottom)
    return _folded(state, xs, (tops, heights), starts, links)


def _row_heights(problem: Problem, state: LayerRows) -> list[float]:
    heights = [0.0] * len(state.rows)
    for item, row in zip(problem.items, state.row_of, strict=False):
        if item.height > heights[row]:
            heights[row] = item.height
    return heights


def _row_tops(
    problem: Problem,
    state: LayerRows,
    heights: Sequence[float],
    links: Sequence[int],
    xs: Sequence[float],
) -> list[float]:
    """Return the y of each row; ports of the upper border lie above 0."""
    tops: list[float] = []
    y = 0.0
    for number, height in enumerate(heights):
        if number == 0 and problem.top_ports:
            tops.append(-problem.head)
            continue
        tops.append(y)
        y += height + (_gap_below(state, number, xs) if links[number] > 1 else ROW_GAP)
    if problem.bottom_ports:  # lines turn to their port directly below the last boxes
        tops[-1] = (tops[-2] + heights[-2] if len(tops) > 1 else 0.0) + _PORT_GAP
    return tops


def _gap_below(state: LayerRows, number: int, xs: Sequence[float]) -> float:
    """Return the gap below a row: wider where many lines turn sideways."""
    turning = 0
    for vertex in state.rows[number]:
        for near, _, _, _ in state.below[vertex]:
            turning += abs(xs[near] - xs[vertex]) > 40.0
    return ROW_GAP + min(4.0 * max(turning - 1, 0), 60.0)


def _folded(
    state: LayerRows,
    xs: list[float],
    rows: tuple[list[float], list[float]],
    starts: list[int],
    links: list[int],
) -> RouteGrid:
    tops, heights = list(rows[0]), rows[1]
    most = max(links[start - 1] for start in starts[1:])
    room = CHANNEL + most * TRACK
    order = np.array(list(chain.from_iterable(state.rows)), np.int64)
    first_of: list[int] = np.cumsum([0, *map(len, state.rows)]).tolist()
    place, left, right = np.array(xs), np.array(state.left), np.array(state.right)
    moved: NDArray[np.float64] = np.array(xs)
    columns: list[FoldColumn] = []
    column_of: list[int] = []
    cursor = 0.0
    ends = [*(start - 1 for start in starts[1:]), len(tops) - 1]
    for first, last in zip(starts, ends, strict=True):
        inside = order[first_of[first] : first_of[last + 1]]
        shift_x = cursor - float((place[inside] - left[inside]).min())
        shift_y = room - tops[first] if first else room
        moved[inside] = place[inside] + shift_x
        side = float((moved[inside] + right[inside]).max())
        bottom = tops[last] + heights[last] + shift_y
        columns.append(FoldColumn(first, last, shift_x, shift_y, side, bottom))
        column_of += [len(columns) - 1] * (last - first + 1)
        cursor = side + 2 * CHANNEL + most * TRACK
    for row, column in enumerate(column_of):
        ported = row == 0 and tops[0] < 0
        tops[row] += 0.0 if ported else columns[column].shift_y
    height = max(column.bottom for column in columns) + room
    return RouteGrid(moved.tolist(), tops, heights, columns, column_of, columns[-1].right, height)


@dataclass(slots=True)
class EdgeRouter:
    """Ways of the edges of one component.

    Attributes:
        problem: the problem that was placed
        state: rows of vertices
        grid: their places
        bottom: y of the lower border
    """

    problem: Problem
    state: LayerRows
    grid: RouteGrid
    bottom: float

    def ways(self) -> list[Way]:
        """Return the points of each edge from its upper to its lower end."""
        spread = self._spread()
        tracks = self._tracks()
        sides: list[float] = self.corners()[:, 1].tolist()
        found: list[Way] = []
        for path, edge in zip(self.state.paths, self.problem.edges, strict=True):
            if self._is_direct(path, edge) and (path[0], path[1]) not in tracks:
                found.append(self._direct(path[0], path[1], spread, sides))
                continue
            runs = self._runs(path, edge, spread)
            found.append(self._joined(path, runs, tracks))
        return found

    def corners(self) -> NDArray[np.float64]:
        """Return the upper left corner of the box of each item, float64[items, 2]."""
        boxes = self.problem.items
        row = np.array(self.state.row_of[: len(boxes)], np.int64)
        width = np.array([box.width for box in boxes], np.float64)
        height = np.array([box.height for box in boxes], np.float64)
        x = np.array(self.grid.xs[: len(boxes)]) - width / 2
        y = np.array(self.grid.tops)[row] + (np.array(self.grid.heights)[row] - height) / 2
        return np.stack([x, y], axis=1)

    def _is_direct(self, path: list[int], edge: Edge) -> bool:
        """Return whether an edge leads down from one plain box to another in the next row."""
        upper, upper_port, lower, lower_port, upward = edge
        plain = upper_port < 0 and lower_port < 0 and not upward
        return plain and len(path) == 2 and max(upper, lower) < self.state.items

    def _direct(
        self, upper: int, lower: int, spread: dict[tuple[int, int], float], sides: list[float]
    ) -> Way:
        """Return the way of a direct edge: down to the end of the row, and on to the box."""
        xs, tops, heights = self.grid.xs, self.grid.tops, self.grid.heights
        row, x = self.state.row_of[upper], xs[upper]
        foot = tops[row] + heights[row]
        start = tops[row] + (heights[row] + self.problem.items[upper].height) / 2
        way: Way = [(x, foot, True)]
        if foot - start > 1e-9:
            way.insert(0, (x, start, False))
        into, end = xs[lower] + spread.get((upper, lower), 0.0), sides[lower]
        if len(way) > 1 and into == x:
            way[-1] = (x, end, True)  # straight on
            return way
        head = tops[self.state.row_of[lower]]
        if end - head > 1e-9:
            way.append((into, head, False))
        way.append((into, end, True))
        return way

    def _runs(self, path: list[int], edge: Edge, spread: dict[tuple[int, int], float]) -> list[Run]:
        """Return the vertical runs of an edge, one per row."""
        upper, upper_port, lower, lower_port, upward = edge
        out = attach(self.problem, upper, upper_port, lower_side=True)
        into = attach(self.problem, lower, lower_port, lower_side=False)
        into += spread.get((path[-2], lower), 0.0)
        if upward:  # beside the edges that go down
            out += self._aside(upper, upper_port)
            into += self._aside(lower, lower_port)
        xs, tops, heights = self.grid.xs, self.grid.tops, self.grid.heights
        runs = [self._first_run(upper, xs[upper] + out)]
        for vertex in path[1:-1]:
            row = self.state.row_of[vertex]
            runs.append((xs[vertex], tops[row], tops[row] + heights[row]))
        runs.append(self._last_run(lower, xs[lower] + into))
        return runs

    def _aside(self, vertex: int, port: int) -> float:
        """Return the offset from the middle of a plain box at which an upward edge meets it."""
        if vertex >= self.state.items or port >= 0:
            return 0.0
        return min(_SPREAD, self.problem.items[vertex].width / 4)

    def _first_run(self, vertex: int, x: float) -> Run:
        row = self.state.row_of[vertex]
        top, height = self.grid.tops[row], self.grid.heights[row]
        if vertex >= self.state.items:  # from the upper border straight through the title bar
            return x, top, top + TITLE
        box = self.problem.items[vertex].height
        return x, top + (height + box) / 2, top + height

    def _last_run(self, vertex: int, x: float) -> Run:
        top = self.grid.tops[self.state.row_of[vertex]]
        return x, top, self.bottom if vertex >= self.state.items else self._upper_side(vertex)

    def _upper_side(self, item: int) -> float:
        row = self.state.row_of[item]
        box = self.problem.items[item].height
        return self.grid.tops[row] + (self.grid.heights[row] - box) / 2

    def _spread(self) -> dict[tuple[int, int], float]:
        """Return the offset from the middle of a plain box at which each edge from above ends."""
        found: dict[tuple[int, int], float] = {}
        xs = self.grid.xs
        for item, box in enumerate(self.problem.items):
            if box.upper or len(self.state.above[item]) < 2:
                continue
            near = sorted({link[0] for link in self.state.above[item]}, key=lambda v: (xs[v], v))
            if len(near) < 2:
                continue
            step = min(_SPREAD, max(box.width - 24.0, 0.0) / (len(near) - 1))
            straight = [at for at, vertex in enumerate(near) if abs(xs[vertex] - xs[item]) < 1.0]
            middle = straight[0] if straight else (len(near) - 1) / 2
            room = max(box.width / 4 - 6.0, 0.0) / max(middle, len(near) - 1 - middle)
            for at, vertex in enumerate(near):
                found[vertex, item] = (at - middle) * min(step, room)
        return found

    def _tracks(self) -> dict[tuple[int, int], tuple[int, int]]:
        """Return number, from the right, and count of the lines between two columns."""
        found: dict[tuple[int, int], tuple[int, int]] = {}
        for column in self.grid.columns[:-1]:
            pairs = {
                (vertex, link[0])
                for vertex in self.state.rows[column.last]
                for link in self.state.below[vertex]
            }
            ranked = sorted(pairs, key=lambda pair: (-self.grid.xs[pair[0]], pair))
            for track, pair in enumerate(ranked):
                found[pair] = (track, len(ranked))
        return found

    def _joined(
        self, path: list[int], runs: list[Run], tracks: dict[tuple[int, int], tuple[int, int]]
    ) -> Way:
        way: Way = []
        for at, (x, start, end) in enumerate(runs):
            around = tracks.get((path[at - 1], path[at])) if tracks and at else None
            if around is not None:
                way += self._around(path[at - 1], runs[at - 1], (x, start), around)
            elif len(way) > 1 and way[-1][0] == x == way[-2][0]:
                way[-1] = (x, end, True)  # straight on
                continue
            if end - start > 1e-9:
                way.append((x, start, False))
            way.append((x, end, True))
        return way

    def _around(
        self, vertex: int, run: Run, end: tuple[float, float], around: tuple[int, int]
    ) -> Way:
        column = self.grid.columns[self.grid.column_of[self.state.row_of[vertex]]]
        points = corner_points((run[0], run[2]), end, *around, column)
        return [(x, y, False) for x, y in points]
