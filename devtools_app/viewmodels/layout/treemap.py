"""Squarified treemap: nested parts as rectangles whose areas are their sizes."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from devtools_app.viewmodels.canvas_data import TreemapData

Ints = NDArray[np.int64]
Box = tuple[float, float, float, float]
SMALLEST = 14.0  # square pixels below which parts are gathered in one cell
HEADER = 19.0  # height of the name of a part that shows its parts
_PAD = 2.0
_OPEN = (72.0, 52.0)  # a part of at least this size shows its parts
_MANY = -1


@dataclass(frozen=True, slots=True)
class Cell:
    """One rectangle.

    Attributes:
        part: number of the part; -1 for gathered small parts
        box: x, y, width, height
        inside: the part around it
        count: parts that it stands for
        nbytes: their bytes
        is_open: it shows its parts below a header
        depth: levels below the part that fills the screen
    """

    part: int
    box: Box
    inside: int
    count: int
    nbytes: int
    is_open: bool
    depth: int


class TreemapIndex:
    """Children of every part, largest first."""

    def __init__(self, data: TreemapData) -> None:
        order = np.lexsort((-data.nbytes, data.parent))
        self._order = order
        parents = data.parent[order]
        numbers = np.arange(len(data.names) + 1, dtype=np.int64)
        self._start: list[int] = np.searchsorted(parents, numbers).tolist()

    def children(self, part: int) -> Ints:
        """Return the parts of a part, largest first."""
        if part + 1 >= len(self._start):
            return self._order[:0]
        return self._order[self._start[part] : self._start[part + 1]]

    def has_children(self, part: int) -> bool:
        """Return whether a part has parts."""
        return bool(len(self.children(part)))


def squarify(sizes: Sequence[float], box: Box) -> list[Box]:
    """Return a rectangle for each size, as square as can be, that together fill a box.

    Args:
        sizes: all above zero, largest first
        box: x, y, width, height to fill
    """
    x, y, width, height = box
    total = sum(sizes)
    if total <= 0 or width <= 0 or height <= 0:
        return [(x, y, 0.0, 0.0)] * len(sizes)
    scale = width * height / total
    areas = [size * scale for size in sizes]
    found: list[Box] = []
    first = 0
    while first < len(areas):
        side = min(width, height)
        last = _row_end(areas, first, side)
        row = areas[first:last]
        # what is left of a side after a large cell has few digits: never more than there is
        thick = min(sum(row) / side, max(width, height)) if side > 0 else 0.0
        if width >= height:  # a column at the left
            found += _stacked(row, (x, y), thick, down=True)
            x, width = x + thick, max(width - thick, 0.0)
        else:
            found += _stacked(row, (x, y), thick, down=False)
            y, height = y + thick, max(height - thick, 0.0)
        first = last
    return found


def _row_end(areas: Sequence[float], first: int, side: float) -> int:
    """Return the end of the row that begins at first: as long as its cells get squarer."""
    total = areas[first]
    worst = _worst(areas[first], areas[first], total, side)
    at = first + 1
    while at < len(areas):
        grown = total + areas[at]
        ratio = _worst(areas[first], areas[at], grown, side)
        if ratio > worst:
            break
        total, worst = grown, ratio
        at += 1
    return at


def _worst(largest: float, smallest: float, total: float, side: float) -> float:
    """Return the worst ratio of sides in a row."""
    thick = total / side if side > 0 else 0.0
    if thick <= 0 or smallest <= 0:
        return float("inf")
    return max(largest / (thick * thick), thick * thick / smallest)


def _stacked(
    row: Sequence[float], corner: tuple[float, float], thick: float, *, down: bool
) -> list[Box]:
    x, y = corner
    found: list[Box] = []
    for area in row:
        long = area / thick if thick > 0 else 0.0
        if down:
            found.append((x, y, thick, long))
            y += long
        else:
            found.append((x, y, long, thick))
            x += long
    return found


def lay_out_treemap(data: TreemapData, index: TreemapIndex, root: int, box: Box) -> list[Cell]:
    """Return the cells of a part that fills a box, outer ones before those inside them.

    Parts smaller than a few pixels are gathered into one cell of each surrounding part, so that
    areas still add up; parts of no bytes are counted there too.
    """
    cells: list[Cell] = []
    waiting: deque[tuple[int, Box, int]] = deque([(root, box, 0)])
    while waiting:
        part, room, depth = waiting.popleft()
        for cell in _cells_inside(data, index, part, room, depth):
            cells.append(cell)
            if cell.is_open:
                waiting.append((cell.part, _inner(cell.box), depth + 1))
    return cells


def _inner(box: Box) -> Box:
    x, y, width, height = box
    return x + _PAD, y + HEADER, width - 2 * _PAD, height - HEADER - _PAD


def _cells_inside(
    data: TreemapData, index: TreemapIndex, part: int, room: Box, depth: int
) -> list[Cell]:
    children = index.children(part)
    sizes = data.nbytes[children].astype(np.float64)
    total = float(sizes.sum())
    if total <= 0:
        return []
    large = sizes * (room[2] * room[3] / total) >= SMALLEST
    kept: list[int] = children[large].tolist()
    rest = children[~large]
    rest_bytes = int(data.nbytes[rest].sum())
    amounts: list[float] = sizes[large].tolist()
    if rest_bytes > 0:  # at its place by size, or rows would not be in order
        at = int(np.searchsorted(-sizes[large], -float(rest_bytes)))
        kept.insert(at, _MANY)
        amounts.insert(at, float(rest_bytes))
    found: list[Cell] = []
    for number, box in zip(kept, squarify(amounts, room), strict=True):
        if number == _MANY:
            found.append(Cell(_MANY, box, part, len(rest), rest_bytes, False, depth))
            continue
        opens = box[2] >= _OPEN[0] and box[3] >= _OPEN[1] and index.has_children(number)
        found.append(Cell(number, box, part, 1, int(data.nbytes[number]), opens, depth))
    return found
