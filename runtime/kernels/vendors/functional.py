"""Functional forms of vendors' operators, for recorded graphs that call them in torch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from runtime.kernels.vendors import cadence

_OUT, _FUNCTIONAL = ", *, Tensor(a!) out) -> Tensor(a!)", ") -> Tensor"
_libraries: dict[str, Any] = {}  # an operator lives as long as what defines it


def register_functional(missing: Iterable[tuple[str, str]]) -> None:
    """Register operators that this process lacks, with the kernels of their out variants.

    Args:
        missing: namespace and name of each; those without a kernel of ours are left out
    """
    wanted = {f"{space}::{name}" for space, name in missing}
    for name, rule in cadence.TABLE.items():
        full, _, overload = name.partition(".")
        if full not in wanted or not rule.schema.endswith(_OUT):
            continue
        space, _, short = full.partition("::")
        if space not in _libraries:
            _libraries[space] = torch.library.Library(space, "FRAGMENT")
        own = overload.removesuffix("out").removesuffix("_")
        called = f"{short}.{own}" if own else short
        _libraries[space].define(called + rule.schema.removesuffix(_OUT) + _FUNCTIONAL)
        _libraries[space].impl(called, rule.run, "CompositeExplicitAutograd")
