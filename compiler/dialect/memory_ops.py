"""Operators on memory in graphs of out variants: ``alloc``, ``view``, ``free``."""

from __future__ import annotations

from collections.abc import Sequence

import torch

IN_PLACE_OF = "in_place_of"  # in a node's metadata: number of the argument it is written over
AllocSpec = tuple[tuple[int, ...], torch.dtype]


def alloc(spec: AllocSpec) -> torch.Tensor:
    """Return memory for a tensor of a shape and a dtype."""
    shape, dtype = spec
    return torch.empty(shape, dtype=dtype)


def view(base: torch.Tensor, size: Sequence[int]) -> torch.Tensor:
    """Return the same memory under another shape."""
    return base.view(tuple(size))


def free(spec: AllocSpec) -> None:
    """Mark that memory is not needed any more."""
