"""Operators on memory in graphs of out variants: ``alloc``, ``view``, ``free``."""

from __future__ import annotations

from collections.abc import Sequence

import torch

# in a node's metadata: index of the argument that the result overwrites
IN_PLACE_OF = "in_place_of"
AllocSpec = tuple[tuple[int, ...], torch.dtype]


def alloc(spec: AllocSpec) -> torch.Tensor:
    """Return memory for a tensor of a shape and a dtype."""
    shape, dtype = spec
    return torch.empty(shape, dtype=dtype)


def view(base: torch.Tensor, size: Sequence[int]) -> torch.Tensor:
    """Return the same memory with a different shape."""
    return base.view(tuple(size))


def free(spec: AllocSpec) -> None:
    """Mark that memory is not needed any more."""
