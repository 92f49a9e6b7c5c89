"""What must hold for a graph that was made of one position of attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

Tensor = torch.Tensor


@dataclass(slots=True)
class OnePosition:
    """What must hold for a graph of one position to stand for its calls.

    The graph itself would count negative positions from the end of a cache, and read behind it.

    Attributes:
        starts: index of each scalar that is a position, and how many positions its cache has
        given: tensors of shape [batch, 1, ...]
    """

    starts: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    given: list[Tensor] = field(default_factory=list[Tensor])

    def holds(self, items: Sequence[Any]) -> bool:
        """Return whether it holds for the values of a method."""
        for index, context in self.starts:
            if not 0 <= items[index] < context:
                return False
        for tensor in self.given:  # noqa: SIM110 - a generator takes as long as an operator
            if tensor.size(1) != 1:
                return False
        return True

    def has_held(self, items: Sequence[Any]) -> bool:
        """Return whether it held in the last run, as far as its tensors are still there."""
        kept = [tensor for tensor in self.given if tensor.dim() > 1]
        return OnePosition(self.starts, kept).holds(items)
