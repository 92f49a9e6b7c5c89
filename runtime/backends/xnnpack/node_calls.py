"""A node as one call, and the pieces that every call is put together of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from runtime.backends.xnnpack.model import Value
from runtime.backends.xnnpack.representation import Bounds, Change, settle, to_real
from runtime.errors import ErrorCode, ExecutionError

Tensor = torch.Tensor
Values = Mapping[int, Value]
_MANY_ELEMENTS = 1 << 26
_MOST_TIMES = 64


@dataclass(frozen=True, slots=True)
class Bound:
    """A node, ready to run.

    Attributes:
        run: takes the held operands, returns the held result, several as a tuple
        reads: ids of the operands that are handed in
    """

    run: Callable[..., Any]
    reads: tuple[int, ...]


def chain(*changes: Change | None) -> Change | None:
    """Return one change that makes all of them, None where none is left."""
    left = [change for change in changes if change is not None]
    if not left:
        return None
    if len(left) == 1:
        return left[0]
    if len(left) == 2:
        first, second = left
        return lambda value: second(first(value))
    head, tail = left[0], chain(*left[1:])
    assert tail is not None
    return lambda value: tail(head(value))


def alike(one: Value, other: Value) -> bool:
    """Return whether two values are held the same way, so that elements may just be moved."""
    if one.datatype != other.datatype:
        return False
    if one.scaling is None or other.scaling is None:
        return one.scaling is other.scaling
    return one.scaling.scale == other.scaling.scale and (
        one.scaling.zero_point == other.scaling.zero_point
    )


def moved(source: Value, target: Value, move: Change, bounds: Bounds | None = None) -> Change:
    """Return a change that only moves elements, with those around it that types ask for."""
    if alike(source, target) and bounds is None:
        return move
    found = chain(to_real(source), move, settle(target, bounds))
    assert found is not None
    return found


def check_size(count: int, given: int) -> None:
    """Refuse results that no compiler would ask for: a damaged number must not use up the machine.

    Args:
        count: elements of the result
        given: elements of the operand it is made of

    Raises: ExecutionError OutOfResources
    """
    if count > max(_MANY_ELEMENTS, given * _MOST_TIMES):
        raise ExecutionError(
            ErrorCode.OutOfResources,
            f"{count:,} elements would be made of {given:,}",
        )
