"""Folds tall clusters into columns, read downwards and then from left to right."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

FOLD_HEIGHT = 2400.0  # a cluster below this height stays one column
WHOLE_HEIGHT = 760.0  # and so does the graph itself, all of which is seen when it is opened
_TALL = 3.0  # height for a width from which folding pays
_WHOLE_TALL = 1.2  # the same of the graph itself
_WIDE = 1.5  # wanted width for a height of the folded cluster
_WHOLE_WIDE = 2.2  # of the graph itself: that of its view, with Operators open or folded below
_SHORTEST = 900.0  # a column is at least so high
_WHOLE_SHORTEST = 420.0
_WINDOW = 6  # rows up and down in which the break with the fewest lines is looked for
_UNEVEN = 8.0  # lines that a column as high again as the others would have to save
CHANNEL = 26.0  # free space beside and around the lines between columns
TRACK = 7.0  # distance of those lines


@dataclass(frozen=True, slots=True)
class FoldColumn:
    """A run of rows that stands beside the one before it.

    Attributes:
        first: first row
        last: last row, inclusive
        shift_x: offset added to x of its vertices
        shift_y: offset added to y of its rows
        right: x of its right side, after the shift
        bottom: y of its lower side, after the shift
    """

    first: int
    last: int
    shift_x: float
    shift_y: float
    right: float
    bottom: float


def break_rows(
    tops: Sequence[float],
    heights: Sequence[float],
    width: float,
    links: Sequence[int],
    *,
    whole: bool = False,
) -> list[int]:
    """Return the first row of each column; ``[0]`` when the cluster is not folded.

    Args:
        tops: y of each row
        heights: height of each row
        width: of the cluster in one column
        links: lines between each row and the next
        whole: it is the graph itself
    """
    total = tops[-1] + heights[-1] if tops else 0.0
    height, tall = (WHOLE_HEIGHT, _WHOLE_TALL) if whole else (FOLD_HEIGHT, _TALL)
    if total < height or total < tall * width or len(tops) < 4:
        return [0]
    wide, shortest = (_WHOLE_WIDE, _WHOLE_SHORTEST) if whole else (_WIDE, _SHORTEST)
    columns = round(math.sqrt(wide * total / (width + CHANNEL * 2)))
    columns = max(2, min(columns, int(total / shortest)))
    starts = [0]
    for column in range(1, columns):
        row = _best_break(tops, total / columns, column, links, starts[-1] + 1)
        if row is not None:
            starts.append(row)
    return starts


def _best_break(
    tops: Sequence[float], high: float, column: int, links: Sequence[int], least: int
) -> int | None:
    """Return the row that starts a column of about this height: few lines lead to it."""
    requested = high * column
    near = bisect_left(tops, requested)
    # neither the first nor the last row stands alone: they may be ports
    rows = range(max(least + 1, near - _WINDOW), min(len(tops) - 1, near + _WINDOW + 1))

    def cost(row: int) -> float:
        return links[row - 1] + _UNEVEN * abs(tops[row] - requested) / high

    return min(rows, key=cost, default=None)


def corner_points(
    start: tuple[float, float],
    end: tuple[float, float],
    track: int,
    tracks: int,
    column: FoldColumn,
) -> list[tuple[float, float]]:
    """Return the way from the foot of one column to the head of the next, around both.

    Args:
        start: where the line leaves the last row
        end: where it meets the first row of the next column
        track: number of the line, counted from the right
        tracks: number of lines that take this way
        column: the column that is left
    """
    down = column.bottom + CHANNEL / 2 + track * TRACK
    beside = column.right + CHANNEL + track * TRACK
    over = end[1] - CHANNEL / 2 - (tracks - 1 - track) * TRACK
    return _rounded([start, (start[0], down), (beside, down), (beside, over), (end[0], over), end])


def _rounded(corners: list[tuple[float, float]]) -> list[tuple[float, float]]:
    points = [corners[0]]
    for before, corner, after in zip(corners, corners[1:], corners[2:], strict=False):
        points.extend(_bend(before, corner, after))
    points.append(corners[-1])
    return points


def _bend(
    before: tuple[float, float], corner: tuple[float, float], after: tuple[float, float]
) -> list[tuple[float, float]]:
    """Return points of a quarter turn of up to 8 pixels."""
    into = math.dist(before, corner)
    out = math.dist(corner, after)
    radius = min(8.0, into / 2, out / 2)
    if radius < 1.0:
        return [corner]
    start = _toward(corner, before, radius / into)
    end = _toward(corner, after, radius / out)
    points: list[tuple[float, float]] = []
    for step in range(5):
        t = step / 4
        a, b = _toward(start, corner, t), _toward(corner, end, t)
        points.append(_toward(a, b, t))
    return points


def _toward(
    origin: tuple[float, float], target: tuple[float, float], share: float
) -> tuple[float, float]:
    return (
        origin[0] + (target[0] - origin[0]) * share,
        origin[1] + (target[1] - origin[1]) * share,
    )
