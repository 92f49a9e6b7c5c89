"""Branches and loops of graph payloads: nested blocks, each an engine of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from runtime.backends.graph.engine import GraphEngine


def branch(
    engines: Sequence[GraphEngine],
    condition: Tensor | float,
    then: Sequence[Any],
    other: Sequence[Any],
) -> list[Any]:
    """Return the results of the block that a condition chooses, on the operands of that block."""
    if is_true(condition):
        return engines[0].run_nested(then)
    return engines[1].run_nested(other)


def loop(
    engines: Sequence[GraphEngine],
    loop_vars: Sequence[Any],
    of_condition: Sequence[Any] = (),
    of_body: Sequence[Any] = (),
) -> list[Any]:
    """Return the values of a loop after its last iteration.

    Args:
        engines: condition and body
        loop_vars: values of the first iteration
        of_condition: further operands of the condition, the same in each iteration
        of_body: further operands of the body
    """
    condition, body = engines
    state = list(loop_vars)
    while is_true(condition.run_nested([*state, *of_condition])[0]):
        state = body.run_nested([*state, *of_body])
    return state


def is_true(value: Tensor | float) -> bool:
    """Return whether a condition holds."""
    return bool(value.any()) if isinstance(value, Tensor) else bool(value)
