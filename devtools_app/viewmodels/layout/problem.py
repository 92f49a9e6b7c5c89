"""The layout of one cluster as a separate problem, and its solution.

Vertices are numbered: items first, then ports on the upper border, then ports on the lower one.
All coordinates are relative to the upper left corner of the cluster, in pixels at scale 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ITEM_GAP = 24.0
LINE_GAP = 10.0
ITEM_LINE_GAP = 14.0
ROW_GAP = 32.0
SIDE = 14.0  # inner margin of a cluster
TITLE = 26.0  # height of its title bar

Edge = tuple[int, int, int, int, int]  # upper vertex, its port, lower vertex, its port, upward


@dataclass(frozen=True, slots=True)
class LayoutItem:
    """A box to place.

    Attributes:
        width: of the box
        height: of the box
        left: room kept free beside it
        right: likewise
        upper: x of the ports on the upper border, from its left side; empty for a plain box
        lower: likewise on the lower border
        is_open: it is a cluster whose inside is drawn
    """

    width: float
    height: float
    left: float = 0.0
    right: float = 0.0
    upper: tuple[float, ...] = ()
    lower: tuple[float, ...] = ()
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """One cluster to lay out.

    Attributes:
        items: boxes in execution order
        ranks: rank of each
        edges: all pointing down; upward ones have their source below
        top_ports: number of ports on the upper border
        bottom_ports: number on the lower border
        framed: it has a border and a title bar
        least_width: width of the title
    """

    items: tuple[LayoutItem, ...]
    ranks: tuple[int, ...]
    edges: tuple[Edge, ...]
    top_ports: int = 0
    bottom_ports: int = 0
    framed: bool = True
    least_width: float = 0.0

    @property
    def head(self) -> float:
        """Return the height kept above the first row."""
        if not self.framed:
            return 0.0
        return TITLE + (ROW_GAP - 8.0 if self.top_ports else 4.0)

    @property
    def foot(self) -> float:
        """Return the height kept below the last row."""
        if not self.framed:
            return 0.0
        return ROW_GAP - 8.0 if self.bottom_ports else SIDE


@dataclass(frozen=True, slots=True, eq=False)
class LayoutResult:
    """One cluster laid out.

    Attributes:
        width: of the cluster with its border
        height: likewise
        corners: upper left corner of each item's box
        upper: x of each port on the upper border
        lower: x of each port on the lower border
        points: way of each edge from its upper to its lower end
        curved: the step from this point to the next is a curve with vertical ends
        offsets: first point of each edge

    Shapes: corners float64[items, 2]; points float64[points, 2]; curved bool[points];
        offsets int64[edges + 1]
    """

    width: float
    height: float
    corners: NDArray[np.float64]
    upper: tuple[float, ...]
    lower: tuple[float, ...]
    points: NDArray[np.float64]
    curved: NDArray[np.bool_]
    offsets: NDArray[np.int64]
