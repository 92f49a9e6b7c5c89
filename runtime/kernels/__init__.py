"""All kernels: the tables of the families, joined."""

from __future__ import annotations

from functools import cache

from runtime.kernels import (
    elementwise,
    factories,
    guarded,
    indexing,
    networks,
    prims,
    products,
    quantized,
    reductions,
    shapes,
    wider,
)
from runtime.kernels.rule import Kernel, Rule, made_kernel

FAMILIES = (
    elementwise,
    factories,
    guarded,
    indexing,
    networks,
    prims,
    products,
    quantized,
    reductions,
    shapes,
    wider,
)
TABLE: dict[str, Rule] = {name: rule for family in FAMILIES for name, rule in family.TABLE.items()}


@cache
def built_in(name: str) -> Kernel | None:
    """Return the kernel of an operator, None when there is none."""
    rule = TABLE.get(name)
    return None if rule is None else made_kernel(name, rule)
