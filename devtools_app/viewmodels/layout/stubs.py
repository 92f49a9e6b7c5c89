"""Named stubs beside boxes, in place of edges too long or too many to draw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from devtools_app.viewmodels.layout.visible import Ints

Floats = NDArray[np.float64]
STUB_WIDTH, STUB_HEIGHT = 84.0, 16.0
STUB_GAP = 3.0  # between stubs of one box
LEAD = 10.0  # line between a box and its stub
STUB_ROOM = STUB_WIDTH + LEAD
LOOP_ROOM = 20.0


@dataclass(frozen=True, slots=True, eq=False)
class Stubs:
    """Small named boxes; a line leads to the box they belong to.

    Attributes:
        boxes: x, y, width, height
        item: item that the stub belongs to
        other: item at the other end, -1 when it stands for several
        count: edges that it stands for
        leaves: it stands for readers of the item, else for a value that the item reads

    Shapes: boxes float64[stubs, 4]; item, other, count int64[stubs]; leaves bool[stubs]
    """

    boxes: NDArray[np.float64]
    item: Ints
    other: Ints
    count: Ints
    leaves: NDArray[np.bool_]

    def lines(self, boxes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the line between each stub and its box as x1, y1, x2, y2."""
        middle = self.boxes[:, 1] + STUB_HEIGHT / 2
        side = boxes[self.item]
        near = np.where(self.leaves, side[:, 0] + side[:, 2], side[:, 0])
        far = np.where(self.leaves, self.boxes[:, 0], self.boxes[:, 0] + STUB_WIDTH)
        return np.stack([near, middle, far, middle], axis=1)


def side_room(items: int, edges: Ints, stubbed: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the room each item needs at its left and right for stubs and loops.

    Shapes: result float64[items, 2]
    """
    room = np.zeros((items, 2))
    loops = edges[:, 0] == edges[:, 1]
    room[edges[loops, 0], 1] = LOOP_ROOM
    room[edges[stubbed, 1], 0] = STUB_ROOM
    room[edges[stubbed, 0], 1] = STUB_ROOM
    return room


def place_stubs(edges: Ints, stubbed: NDArray[np.bool_], boxes: NDArray[np.float64]) -> Stubs:
    """Return the stubs of all stubbed edges beside their boxes."""
    chosen = edges[stubbed]
    table = np.concatenate([_reading(chosen, boxes), _leaving(chosen, boxes)])
    place = np.stack(
        [
            table[:, 0],
            table[:, 1],
            np.full(len(table), STUB_WIDTH),
            np.full(len(table), STUB_HEIGHT),
        ],
        axis=1,
    )
    numbers = table[:, 2:].astype(np.int64)
    return Stubs(place, numbers[:, 0], numbers[:, 1], numbers[:, 2], numbers[:, 3] > 0)


def _reading(edges: Ints, boxes: Floats) -> Floats:
    """Return the stubs of what is read: x, y, item, other item, number of edges, 0.

    Shapes: result float64[stubs, 6]
    """
    items, first, count = _by_item(edges[:, 1])
    sources = edges[np.argsort(edges[:, 1], kind="stable"), 0]
    one = count == 1
    own: Floats = boxes[items[one]]
    single: Floats = np.zeros((len(own), 6))
    single[:, 0] = own[:, 0] - STUB_ROOM
    single[:, 1] = own[:, 1] + (own[:, 3] - (STUB_HEIGHT + STUB_GAP) + STUB_GAP) / 2
    single[:, 2], single[:, 3], single[:, 4] = items[one], sources[first[one]], 1.0
    rows: list[tuple[float, ...]] = []
    for item, at, number in zip(
        items[~one].tolist(), first[~one].tolist(), count[~one].tolist(), strict=True
    ):
        rows += _several(item, sources[at : at + number].tolist(), boxes[item].tolist())
    found: Floats = np.concatenate([single, np.reshape(np.array(rows, np.float64), (-1, 6))])
    return found[np.argsort(found[:, 2], kind="stable")]


def _several(item: int, sources: list[int], box: list[float]) -> list[tuple[float, ...]]:
    x, y, _, height = box
    fitting = max(1, int((height + STUB_GAP) // (STUB_HEIGHT + STUB_GAP)))
    shown = [(source, 1) for source in sources]
    if len(sources) > fitting:
        kept = shown[: fitting - 1]
        shown = [*kept, (-1, len(sources) - len(kept))]
    first = y + (height - len(shown) * (STUB_HEIGHT + STUB_GAP) + STUB_GAP) / 2
    return [
        (x - STUB_ROOM, first + at * (STUB_HEIGHT + STUB_GAP), item, other, count, 0)
        for at, (other, count) in enumerate(shown)
    ]


def _leaving(edges: Ints, boxes: Floats) -> Floats:
    """Return the stubs of what is written, one for each item, as ``_reading`` does, ending in 1."""
    items, first, count = _by_item(edges[:, 0])
    targets = edges[np.argsort(edges[:, 0], kind="stable"), 1]
    found: Floats = np.ones((len(items), 6))
    own: Floats = boxes[items]
    found[:, 0] = own[:, 0] + own[:, 2] + LEAD
    found[:, 1] = own[:, 1] + (own[:, 3] - STUB_HEIGHT) / 2
    found[:, 2], found[:, 4] = items, count
    found[:, 3] = np.where(count == 1, targets[first], -1)
    return found


def _by_item(ends: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the items at ends of edges, the first edge of each once sorted, and their number."""
    items, counts = np.unique(ends, return_counts=True)
    count = counts.astype(np.int64)
    return items, np.cumsum(count) - count, count
