"""Orders of dimensions in memory, and conversions between them.

A layout lists the logical dimensions from the outermost in memory to the innermost; ``UNIT`` is a
dimension of size 1 that exists only in memory. Image kernels expect channels
last: ``(0, 2, 3, 1)``, and a one-dimensional signal as an image of height 1: ``(0, UNIT, 2, 1)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from compiler.dialect.dim_order import dim_order_of

UNIT = -1
Layout = tuple[int, ...]


def plain(rank: int) -> Layout:
    """Return the layout in which the last dimension is the innermost."""
    return tuple(range(rank))


def channels_last(rank: int) -> Layout:
    """Return the layout of image kernels: dimension 1 is the innermost; plain below rank 3."""
    if rank == 3:
        return (0, UNIT, 2, 1)
    return (0, *range(2, rank), 1) if rank > 2 else plain(rank)


def boundary(value: torch.Tensor) -> Layout:
    """Return the layout of a tensor at the boundary of a delegate."""
    return dim_order_of(value)


def in_memory(sizes: Sequence[Any], layout: Layout) -> tuple[Any, ...]:
    """Return sizes, or anything else by dimension, in the order of memory."""
    return tuple(1 if dim == UNIT else sizes[dim] for dim in layout)


def axis_in(layout: Layout, dim: int, rank: int) -> int:
    """Return where in memory a logical dimension is; a negative one counts from the last."""
    return layout.index(dim % rank)


def in_layout(tensor: torch.Tensor, layout: Layout) -> torch.Tensor:
    """Return a constant with its dimensions in the order of memory."""
    moved = tensor.permute([dim for dim in layout if dim != UNIT])
    for place, dim in enumerate(layout):
        if dim == UNIT:
            moved = moved.unsqueeze(place)
    return moved.contiguous()


def moves_data(sizes: Sequence[Any], source: Layout, requested: Layout) -> bool:
    """Return whether elements are reordered in memory; dimensions of size 1 are ignored."""
    first, second = (
        [d for d in layout if d != UNIT and not _is_one(sizes[d])] for layout in (source, requested)
    )
    return first != second


def _is_one(size: Any) -> bool:  # noqa: ANN401
    return isinstance(size, int) and size == 1


def transposition(source: Layout, requested: Layout) -> tuple[tuple[int, ...], Layout]:
    """Return a permutation of memory, and the resulting layout.

    It is the requested layout except for memory-only dimensions, which keep their positions from
    the source.
    """
    order = [dim for dim in requested if dim != UNIT]
    reached = list(order)
    for place, dim in enumerate(source):
        if dim == UNIT:
            reached.insert(place, UNIT)
    units = [place for place, dim in enumerate(source) if dim == UNIT]
    taken = [units.pop(0) if dim == UNIT else source.index(dim) for dim in reached]
    return tuple(taken), tuple(reached)
