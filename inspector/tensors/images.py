"""A tensor as an image: two of its dimensions, or all of them as tiles; large ones by patches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.tensors.elements import Array, Elements
from schema.dtypes.scalar_type import widened

SIDE = 512  # most pixels a side
_FEW = 256  # elements of a slice that is shown as one of many tiles
_WIDE = 2.0  # width to height of tiles that are wrapped: that of the drawing in the window
_BLOCK = 1 << 18  # elements read at a time
_MOST_READ = 1 << 24  # of one image; of more each patch is a sample
Check = Callable[[], object]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SliceChoice:
    """Which elements of a tensor an image and a table show.

    Attributes:
        rows: dimension that goes down, None for a tensor of one dimension or none
        columns: dimension that goes right, None for a scalar
        fixed: index in each of the other dimensions, in order; entries of the two are ignored
        tiled: whether the other dimensions are laid out as tiles instead
    """

    rows: int | None
    columns: int | None
    fixed: tuple[int, ...]
    tiled: bool = False


def usual_slice(sizes: tuple[int, ...]) -> SliceChoice:
    """Return the last two dimensions of more than one element, at the first index of the others.

    Slices of few elements, as filters of 3 x 3, are laid out as tiles: one alone shows nothing.
    """
    rank = len(sizes)
    wide = [axis for axis, size in enumerate(sizes) if size > 1]
    last = wide[-2:] if len(wide) > 1 else list(range(rank))[-2:]
    rows, columns = (last[0] if rank > 1 else None), (last[-1] if rank else None)
    small = len(wide) > 2 and sizes[last[0]] * sizes[last[-1]] <= _FEW
    return SliceChoice(rows, columns, (0,) * rank, small)


def fitting(choice: SliceChoice | None, sizes: tuple[int, ...]) -> SliceChoice:
    """Return a choice that a shape has: the given one if it fits, else the usual one."""
    usual = usual_slice(sizes)
    if choice is None or len(choice.fixed) != len(sizes):
        return usual
    if (choice.rows is None) != (usual.rows is None):
        return usual
    fixed = tuple(
        min(max(one, 0), max(size - 1, 0)) for one, size in zip(choice.fixed, sizes, strict=True)
    )
    return SliceChoice(choice.rows, choice.columns, fixed, choice.tiled and len(sizes) > 2)


@dataclass(frozen=True, slots=True, eq=False)
class TensorImage:
    """Pixels of a tensor.

    Attributes:
        values: value of each pixel, of a patch the element of the largest magnitude; infinite
            where one is not finite, NaN between tiles
        grid: rows and columns of elements before they are made patches
        tile: rows and columns of a tile with the line behind it, the grid if there is one tile
        choice: what is shown
        sizes: of the tensor
        sampled: whether only a part of the elements of each patch was read
        magnitude: whether the elements are complex, so that values are their magnitudes

    Shapes: values float64[rows, columns], at most SIDE a side
    """

    values: Floats
    grid: tuple[int, int]
    tile: tuple[int, int]
    choice: SliceChoice
    sizes: tuple[int, ...]
    sampled: bool = False
    magnitude: bool = False

    def cell(self, row: int, column: int) -> tuple[int, ...] | None:
        """Return the place of the element in a cell of the grid, None between tiles."""
        return place_of(self.choice, self.sizes, self.tile, (row, column))


def place_of(
    choice: SliceChoice, sizes: tuple[int, ...], tile: tuple[int, int], at: tuple[int, int]
) -> tuple[int, ...] | None:
    """Return the place of a cell of the grid, None between tiles and outside."""
    found = list(choice.fixed)
    inside = at
    if choice.tiled:
        (down, row), (right, column) = divmod(at[0], tile[0]), divmod(at[1], tile[1])
        inside = row, column
        axes, in_a_row = _tiles(choice, sizes, tile)
        if right >= in_a_row:
            return None
        number = down * in_a_row + right
        for axis in reversed(axes):
            number, found[axis] = divmod(number, sizes[axis])
        if number:
            return None
    for axis, index in ((choice.rows, inside[0]), (choice.columns, inside[1])):
        if axis is None:
            continue
        if not 0 <= index < sizes[axis]:
            return None
        found[axis] = index
    return tuple(found)


def _tiles(
    choice: SliceChoice, sizes: tuple[int, ...], tile: tuple[int, int]
) -> tuple[list[int], int]:
    """Return the dimensions that number the tiles, and how many tiles are in a row of them.

    The last dimension goes right where others go down; one alone is wrapped into lines.
    """
    axes = [one for one in range(len(sizes)) if one not in (choice.rows, choice.columns)]
    wide = [axis for axis in axes if sizes[axis] > 1]
    if len(wide) > 1:
        return axes, sizes[wide[-1]]
    count = sizes[wide[0]] if wide else 1
    in_a_row = round(float(np.sqrt(_WIDE * count * tile[0] / tile[1])))
    return axes, min(max(in_a_row, 1), count)


def layout_of(
    choice: SliceChoice, sizes: tuple[int, ...]
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return rows and columns of the grid, and of a tile in it."""
    rows = 1 if choice.rows is None else sizes[choice.rows]
    columns = 1 if choice.columns is None else sizes[choice.columns]
    if not choice.tiled:
        return (rows, columns), (rows, columns)
    tile = rows + 1, columns + 1  # a line between tiles
    axes, right = _tiles(choice, sizes, tile)
    count = int(np.prod([sizes[axis] for axis in axes], dtype=np.int64))
    down = -(-count // max(right, 1))
    return (down * tile[0] - 1, right * tile[1] - 1), tile


def image_of(elements: Elements, choice: SliceChoice, check: Check = lambda: None) -> TensorImage:
    """Return an image of a tensor."""
    sizes = elements.sizes
    grid, tile = layout_of(choice, sizes)
    if 0 in sizes or grid[0] < 1 or grid[1] < 1:
        return TensorImage(np.zeros((0, 0)), grid, tile, choice, sizes)
    steps = tuple(-(-side // SIDE) for side in grid)
    share = min(1.0, float(np.sqrt(_MOST_READ / (grid[0] * grid[1]))))
    kept = tuple(max(1, int(step * share)) for step in steps)  # of each patch its first ones
    taken = [_taken(side, step, keep) for side, step, keep in zip(grid, steps, kept, strict=True)]
    sampled, steps = steps != kept, kept
    rows_at_once = max(_BLOCK // max(len(taken[1]), 1), 1)
    rows_at_once = max(rows_at_once // steps[0], 1) * steps[0]
    done: list[Floats] = []
    for start in range(0, len(taken[0]), rows_at_once):
        check()
        rows = taken[0][start : start + rows_at_once]
        block = _cells(elements, choice, tile, rows, taken[1])
        done.append(_patches(block, steps[0], steps[1]))
    is_complex = elements.at(np.zeros((1, len(sizes)), np.int64)).dtype.kind == "c"
    return TensorImage(np.concatenate(done), grid, tile, choice, sizes, sampled, is_complex)


def _taken(side: int, step: int, keep: int) -> NDArray[np.int64]:
    """Return the first index of each bin along a side of the image."""
    found = (np.arange(0, side, step)[:, None] + np.arange(keep)).ravel()
    return found[found < side]


def _cells(
    elements: Elements,
    choice: SliceChoice,
    tile: tuple[int, int],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
) -> Floats:
    """Return the values of cells of the grid, NaN between tiles."""
    places, there = grid_places(elements.sizes, choice, tile, rows, columns)
    found = np.full(len(places), np.nan)
    values: Array = elements.at(places[there])
    if values.dtype.kind in "biufc":
        numbers = np.abs(values) if values.dtype.kind == "c" else widened(values)
        found[there] = np.where(np.isfinite(numbers), numbers, np.inf)
    return np.reshape(found, (len(rows), len(columns)))


def grid_places(
    sizes: tuple[int, ...],
    choice: SliceChoice,
    tile: tuple[int, int],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the places of cells, row by row, and which are elements and not between tiles.

    Shapes: int64[cells, rank], bool[cells]
    """
    places = np.empty((len(rows), len(columns), len(sizes)), np.int64)
    places[:] = np.array(choice.fixed, np.int64)
    there = np.ones((len(rows), len(columns)), np.bool_)
    inside = rows, columns
    if choice.tiled:
        (down, row), (right, column) = np.divmod(rows, tile[0]), np.divmod(columns, tile[1])
        inside = row, column
        axes, in_a_row = _tiles(choice, sizes, tile)
        rest = down[:, None] * in_a_row + right
        for axis in reversed(axes):
            rest, places[..., axis] = np.divmod(rest, sizes[axis])
        there &= rest == 0  # the last line of tiles may not be full
    for axis, index, turned in ((choice.rows, inside[0], False), (choice.columns, inside[1], True)):
        if axis is None:
            continue
        spread = index if turned else index[:, None]
        there &= spread < sizes[axis]
        places[..., axis] = np.minimum(spread, sizes[axis] - 1)
    return np.reshape(places, (there.size, len(sizes))), np.ravel(there)


def _patches(block: Floats, rows: int, columns: int) -> Floats:
    """Return of each patch the element of the largest magnitude, NaN only where all are."""
    for axis, step in ((0, rows), (1, columns)):
        if step == 1:
            continue
        starts: NDArray[np.int64] = np.arange(0, int(block.shape[axis]), step, dtype=np.int64)
        high = np.fmax.reduceat(block, starts, axis=axis)
        low = np.fmin.reduceat(block, starts, axis=axis)
        block = np.where(np.abs(low) > np.abs(high), low, high)
    return block
