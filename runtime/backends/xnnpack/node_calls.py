"""A node as one call, and the conversions that calls are composed of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from runtime.backends.xnnpack.model import Value
from runtime.backends.xnnpack.representation import Bounds, Change, from_real, to_real
from runtime.errors import ErrorCode, ExecutionError

Tensor = torch.Tensor
Values = Mapping[int, Value]
_MANY_ELEMENTS = 1 << 26  # results up to this size are always allowed
_MOST_TIMES = 64  # larger ones, up to this multiple of their operand


@dataclass(frozen=True, slots=True)
class NodeCall:
    """A bound node.

    Attributes:
        run: maps stored operands to the stored result, a tuple for several
        reads: ids of the operands
    """

    run: Callable[..., Any]
    reads: tuple[int, ...]


def chain(*changes: Change | None) -> Change | None:
    """Return the composition of conversions, None for an empty sequence."""
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


def same_representation(one: Value, other: Value) -> bool:
    """Return whether two values have the same representation, so that elements can be moved."""
    if one.datatype != other.datatype:
        return False
    if one.quantization is None or other.quantization is None:
        return one.quantization is other.quantization
    return one.quantization.scale == other.quantization.scale and (
        one.quantization.zero_point == other.quantization.zero_point
    )


def moving(source: Value, target: Value, move: Change, bounds: Bounds | None = None) -> Change:
    """Return a conversion that moves elements, with those that the datatypes need around it."""
    if same_representation(source, target) and bounds is None:
        return move
    found = chain(to_real(source), move, from_real(target, bounds))
    assert found is not None
    return found


def check_size(count: int, given: int) -> None:
    """Reject sizes that no compiler writes, so that a damaged payload cannot exhaust the memory.

    Args:
        count: elements of the result
        given: elements of its operand

    Raises: ExecutionError OutOfResources
    """
    if count > max(_MANY_ELEMENTS, given * _MOST_TIMES):
        raise ExecutionError(
            ErrorCode.OutOfResources,
            f"a result of {count:,} elements from {given:,}",
        )
