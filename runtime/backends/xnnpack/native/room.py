"""Working memory of a partition at the largest sizes of its inputs."""

from __future__ import annotations

import math
from collections.abc import Iterable

from runtime.backends.xnnpack.model import BITS, PartitionPlan, Value
from runtime.memory.slots import TensorSlot


def largest_bytes(plan: PartitionPlan, inputs: Iterable[tuple[Value, TensorSlot]]) -> int:
    """Return about how many bytes the values inside take at the largest sizes of the inputs.

    A payload has the sizes of example inputs only: a size inside that is one of those is taken to
    grow with it.
    """
    most: dict[int, int] = {}
    for value, slot in inputs:
        for size, dim in zip(value.dims, slot.dim_order, strict=True):
            most[size] = max(most.get(size, size), slot.sizes[dim])
    inner = (one for one in plan.values.values() if one.data is None and one.argument is None)
    return sum(
        math.prod(most.get(size, size) for size in one.dims) * BITS[one.datatype] // 8
        for one in inner
    )
