"""Which operators are replaced: those of torch's table, which is not walked for it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.export import default_decompositions

from compiler.edge import outside_core
from compiler.edge.decompositions import _OWN_RULES, decomposition_of

pytestmark = pytest.mark.slow

_MADE = torch.library.Library("etscope_composed", "DEF")


def _composed(x: torch.Tensor) -> torch.Tensor:
    return x * 2 + 1


_MADE.define("pure(Tensor x) -> Tensor")
_MADE.define("writes(Tensor(a!) x) -> Tensor(a!)")
_MADE.define("kept(Tensor x) -> Tensor")
_MADE.impl("pure", _composed, "CompositeImplicitAutograd")
_MADE.impl("writes", _composed, "CompositeImplicitAutograd")
_MADE.impl("kept", _composed, "CPU")


def test_operators_of_torchs_table_are_replaced_as_there() -> None:
    table: Any = default_decompositions()
    for op, rule in table.items():
        if torch.Tag.core in op.tags or op in outside_core.RULES or op in _OWN_RULES:
            continue
        found = decomposition_of(op)
        kernel = getattr(rule, "keywords", {}).get("kernel")
        in_python = op.py_kernels.get(torch._C.DispatchKey.CompositeImplicitAutograd)
        composed = kernel is op or rule is in_python
        assert found == op.decompose if composed else found is rule, str(op)


def test_custom_operator_is_replaced_when_it_is_composed_and_pure() -> None:
    ops = torch.ops.etscope_composed
    rule = decomposition_of(ops.pure.default)
    assert rule is not None
    assert torch.equal(rule(torch.ones(2)), torch.full((2,), 3.0))
    assert decomposition_of(ops.writes.default) is None
    assert decomposition_of(ops.kept.default) is None


def test_operator_of_the_core_set_stays() -> None:
    assert decomposition_of(torch.ops.aten.convolution.default) is None
    assert decomposition_of(torch.ops.aten.linear.default) is not None
