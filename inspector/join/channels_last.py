"""Programs whose images passes of a vendor moved to channels last, behind the recorded graph."""

from __future__ import annotations

from collections.abc import Iterable

from schema.program import instructions, operator_name
from schema.program import model as m

LAST = (0, 2, 3, 1)
"""Dimensions of an image in the order of channels last."""


def is_last(operator: str) -> bool:
    """Return whether an operator reads and makes images with channels last."""
    return "_nhwc" in operator


def moves_images(plan: m.ExecutionPlan, recorded: Iterable[str]) -> bool:
    """Return whether instructions compute with channels last what the record has first.

    Args:
        plan: of the method
        recorded: operators of the recorded graph
    """
    calls = (each[2].instr_args for each in instructions(plan))
    kernels = (operator_name(plan, one) for one in calls if isinstance(one, m.KernelCall))
    return any(map(is_last, kernels)) and not any(map(is_last, recorded))
