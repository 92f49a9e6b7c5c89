"""Parts of a cluster that no edge joins: found, and stood side by side on shelves."""

from __future__ import annotations

import math
from collections.abc import Sequence

from devtools_app.viewmodels.layout.problem import ITEM_GAP, Edge, Problem

_FEW = 8  # boxes joined by stubs only, up to which they stand in rows
_WIDE = 1.6  # wanted width for a height of all shelves together


def components(problem: Problem) -> list[list[int]]:
    """Return the items of each connected part; the part connected to ports is the first."""
    items = len(problem.items)
    total = items + problem.top_ports + problem.bottom_ports
    leader = list(range(total))
    for port in range(items + 1, total):  # the border holds all ports together
        leader[port] = items
    parts = items + (total > items)
    for upper, _, lower, _, _ in problem.edges:
        a, b = _find(leader, upper), _find(leader, lower)
        if a != b:
            leader[max(a, b)] = min(a, b)
            parts -= 1
    if parts == 1 and items:
        return [list(range(items))]
    _join_inputs(problem, leader)
    groups: dict[int, list[int]] = {}
    if total > items:
        groups[_find(leader, items)] = []
    for item in range(items):
        groups.setdefault(_find(leader, item), []).append(item)
    return [group for group in groups.values() if group]


def _join_inputs(problem: Problem, leader: list[int]) -> None:
    """Keep a few boxes that are joined by stubs only in the rows of the first large part."""
    items = len(problem.items)
    roots = [_find(leader, item) for item in range(items)]
    size: dict[int, int] = {}
    for root in roots:
        size[root] = size.get(root, 0) + 1
    large = [root for root in roots if size[root] > 1]
    lone = [item for item in range(items) if size[roots[item]] == 1]
    stubbed = [item for item in lone if problem.items[item].left or problem.items[item].right]
    if large and len(stubbed) <= _FEW:
        for item in stubbed:
            a, b = _find(leader, item), _find(leader, large[0])
            leader[max(a, b)] = min(a, b)


def _find(leader: list[int], item: int) -> int:
    while leader[item] != item:
        leader[item] = leader[leader[item]]
        item = leader[item]
    return item


def split(problem: Problem, groups: Sequence[Sequence[int]]) -> list[tuple[Problem, list[int]]]:
    """Return each part as a separate problem, with the indices of its edges in the whole."""
    items = len(problem.items)
    part_of = [0] * (items + problem.top_ports + problem.bottom_ports)
    place = [0] * items
    for part, group in enumerate(groups):
        for at, item in enumerate(group):
            part_of[item], place[item] = part, at
    edges: list[list[Edge]] = [[] for _ in groups]
    numbers: list[list[int]] = [[] for _ in groups]
    grown = len(groups[0]) - items  # ports stay with the first part and move up with its end
    for number, (upper, upper_port, lower, lower_port, upward) in enumerate(problem.edges):
        part = part_of[upper] if upper < items else part_of[lower]
        new_upper = place[upper] if upper < items else upper + grown
        new_lower = place[lower] if lower < items else lower + grown
        edges[part].append((new_upper, upper_port, new_lower, lower_port, upward))
        numbers[part].append(number)
    return [
        (_part(problem, group, edges[part], first=part == 0), numbers[part])
        for part, group in enumerate(groups)
    ]


def _part(problem: Problem, group: Sequence[int], edges: list[Edge], *, first: bool) -> Problem:
    return Problem(
        items=tuple(problem.items[item] for item in group),
        ranks=tuple(problem.ranks[item] for item in group),
        edges=tuple(edges),
        top_ports=problem.top_ports if first else 0,
        bottom_ports=problem.bottom_ports if first else 0,
        framed=problem.framed,
    )


def shelves(sizes: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the upper left corner of each part; the first keeps the whole left side.

    Ports of the first part stay at the upper and lower border, so nothing stands below it.
    """
    if len(sizes) == 1:
        return [(0.0, 0.0)]
    rest = sizes[1:]
    area = sum((width + ITEM_GAP) * (height + ITEM_GAP) for width, height in rest)
    tall = max(height for _, height in rest)
    limit = max(max(width for width, _ in rest), _shelf_width(area, sizes[0], tall))
    corners = [(0.0, 0.0)]
    left = sizes[0][0] + ITEM_GAP
    x = y = high = 0.0
    for width, height in rest:
        if x and x + width > limit:
            x, y, high = 0.0, y + high + ITEM_GAP, 0.0
        corners.append((left + x, y))
        x += width + ITEM_GAP
        high = max(high, height)
    return corners


def _shelf_width(area: float, first: tuple[float, float], tall: float) -> float:
    """Return the width of shelves that gives the drawing a pleasant aspect ratio."""
    height = max(first[1], tall)
    if area < height * height * _WIDE:  # all fits beside the first part
        return area / height
    return math.sqrt(area * _WIDE)
