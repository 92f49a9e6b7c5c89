"""LayerRows of vertices for one component of a cluster, long edges cut into one line per row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from devtools_app.viewmodels.layout.problem import (
    ITEM_GAP,
    ITEM_LINE_GAP,
    LINE_GAP,
    Edge,
    Problem,
)

LINE, SOURCE, FLOW = 1, 0, 2  # how much a neighbour counts when a vertex is aligned
# neighbour, what to add to its anchor to be straight, how much it counts, where it is met
Link = tuple[int, float, int, float]


@dataclass(slots=True)
class LayerRows:
    """Vertices in rows; filled by make_rows, ordered by order_rows, placed by place_rows.

    Attributes:
        items: number of items; ports and lines follow
        fixed: number of items and ports; lines follow
        row_of: row of each vertex
        left: extent of each vertex left of its anchor
        right: likewise to the right
        above: links to the row above
        below: links to the row below
        rows: vertices of each row from left to right
        paths: vertices that each edge passes, ends included
    """

    items: int
    fixed: int
    row_of: list[int]
    left: list[float]
    right: list[float]
    above: list[list[Link]]
    below: list[list[Link]]
    rows: list[list[int]]
    paths: list[list[int]]

    def gap(self, before: int, after: int) -> float:
        """Return the space kept between two neighbours of a row."""
        lines = (before >= self.items) + (after >= self.items)
        return (ITEM_GAP, ITEM_LINE_GAP, LINE_GAP)[lines]

    def apart(self, before: int, after: int) -> float:
        """Return the least distance of the anchors of two neighbours of a row."""
        return self.right[before] + self.gap(before, after) + self.left[after]


def make_rows(problem: Problem) -> LayerRows:
    """Return the rows of a problem, in execution order."""
    row_of = _row_numbers(problem)
    fixed = len(row_of)
    count = max(row_of, default=-1) + 1
    ports = [0.0] * (fixed - len(problem.items))
    left = [item.left + item.width / 2 for item in problem.items] + ports
    right = [item.right + item.width / 2 for item in problem.items] + ports
    rows: list[list[int]] = [[] for _ in range(count)]
    for vertex, row in enumerate(row_of):
        rows[row].append(vertex)
    empty: list[list[Link]] = [[] for _ in range(fixed)]
    state = LayerRows(
        len(problem.items), fixed, row_of, left, right, empty, [[] for _ in empty], rows, []
    )
    _add_paths(problem, state)
    return state


def _row_numbers(problem: Problem) -> list[int]:
    down = 1 if problem.top_ports else 0
    lowest = min(problem.ranks, default=0)
    rows = [rank - lowest + down for rank in problem.ranks]
    last = max(rows, default=down - 1)
    return rows + [0] * problem.top_ports + [last + 1] * problem.bottom_ports


def attach(problem: Problem, vertex: int, port: int, *, lower_side: bool) -> float:
    """Return where an edge meets a vertex, relative to its anchor (the middle of the box)."""
    if vertex >= len(problem.items) or port < 0:
        return 0.0
    item = problem.items[vertex]
    ports = item.lower if lower_side else item.upper
    return ports[port] - item.width / 2


class _LayerFlow:
    """Which vertices have edges from above, and which to below."""

    def __init__(self, count: int, edges: Sequence[Edge]) -> None:
        self.fed = [False] * count
        self.read = [False] * count
        for upper, _, lower, _, _ in edges:
            self.fed[lower] = True
            self.read[upper] = True


def _add_paths(problem: Problem, state: LayerRows) -> None:
    flow = _LayerFlow(state.fixed, problem.edges)
    chains: dict[tuple[int, int], list[int]] = {}
    for number, (upper, upper_port, lower, lower_port, upward) in enumerate(problem.edges):
        # uses of one value share a line; edges drawn upwards keep their own
        if _is_step(state, upper, lower) and upper_port < 0 and lower_port < 0:
            state.above[lower].append((upper, 0.0, FLOW if flow.fed[upper] else SOURCE, 0.0))
            state.below[upper].append((lower, 0.0, FLOW, 0.0))
            state.paths.append([upper, lower])
            continue
        key = (-1 - number, 0) if upward else (upper, upper_port)
        chain = chains.setdefault(key, [])
        out = attach(problem, upper, upper_port, lower_side=True)
        requested = state.row_of[lower] - state.row_of[upper] - 1
        while len(chain) < requested:
            line = _new_line(state, state.row_of[upper] + len(chain) + 1)
            _join(state, (chain[-1], line) if chain else (upper, line), (out, 0.0), flow)
            chain.append(line)
            out = 0.0
        path = [upper, *chain[:requested], lower] if requested > 0 else [upper, lower]
        state.paths.append(path)
        into = attach(problem, lower, lower_port, lower_side=False)
        _join(state, (path[-2], lower), (0.0 if requested > 0 else out, into), flow)


def _is_step(state: LayerRows, upper: int, lower: int) -> bool:
    """Return whether an edge joins boxes of neighbouring rows, as most of a long program do."""
    boxes = upper < state.items and lower < state.items
    return boxes and state.row_of[lower] - state.row_of[upper] == 1


def _new_line(state: LayerRows, row: int) -> int:
    vertex = len(state.row_of)
    state.row_of.append(row)
    state.left.append(0.0)
    state.right.append(0.0)
    state.above.append([])
    state.below.append([])
    state.rows[row].append(vertex)
    return vertex


def _join(
    state: LayerRows, pair: tuple[int, int], meets: tuple[float, float], flow: _LayerFlow
) -> None:
    upper, lower = pair
    out, into = meets
    boxes = upper < state.items and lower < state.items
    # lines and the ends of the flow align by where they meet, other boxes by their middles,
    # or a chain of boxes whose ports lie apart would drift sideways
    inner = boxes and flow.fed[upper] and flow.read[lower]
    shift = 0.0 if inner else out - into
    counts = LINE if upper >= state.items else (FLOW if flow.fed[upper] else SOURCE)
    state.above[lower].append((upper, shift, counts, out))
    counts = LINE if lower >= state.items else FLOW
    state.below[upper].append((lower, -shift, counts, into))
