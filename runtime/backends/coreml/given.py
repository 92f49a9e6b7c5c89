"""Parameters of operators: constants of the program, or tensors that it computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

from torch import Tensor

Given: TypeAlias = Any
"""A number, a word, a list of them, or a tensor."""


def ints(value: Given) -> list[int]:
    """Return a list of integers."""
    if isinstance(value, Tensor):
        flat: Given = value.reshape(-1)
        return [int(one) for one in flat.tolist()]
    if isinstance(value, Sequence):
        return [one for item in cast("Sequence[Given]", value) for one in ints(item)]
    return [int(value)]


def number(value: Given) -> Given:
    """Return a scalar."""
    return value.item() if isinstance(value, Tensor) else value


def several(value: Given, count: int, default: int) -> list[int]:
    """Return one integer a dimension; the default where the program gives none."""
    return [default] * count if value is None else ints(value)


def positive(axis: Given, rank: int) -> int:
    """Return an axis counted from the first."""
    found = int(number(axis))
    return found + rank if found < 0 else found
