"""Other forms of operators that vendors know have the same values."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from compiler.interface.package_forms import FORMS, in_package_form

CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("aten.squeeze_copy.dim", (1,), {}),
    ("aten.squeeze_copy.dim", (-3,), {}),
    ("aten.squeeze_copy.dim", (0,), {}),
    ("aten.fill.Scalar", (2.5,), {}),
    ("aten.var.dim", ([0],), {}),
    ("aten.var.dim", ([0, -1],), {}),
    ("aten.var.dim", ([2], False), {}),
    ("aten.var.dim", ([2], True, True), {}),
    ("aten.var.dim", ([1, 2], False, True), {}),
    ("aten.var.dim", ([2],), {"unbiased": False}),
    ("aten.var.dim", ([2], False), {"keepdim": True}),
    ("aten.var.dim", (None,), {"keepdim": True}),
]


def _operator(name: str) -> Any:
    found: Any = torch.ops
    for word in name.split("."):
        found = getattr(found, word)
    return found


@pytest.mark.parametrize(("name", "args", "kwargs"), CALLS)
def test_other_form_has_the_same_value(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 1, 4)
    node = SimpleNamespace(args=(x, *args), kwargs=kwargs)
    other = in_package_form(name, node)
    assert other == FORMS[name][0] != name
    assert torch.equal(
        _operator(other)(*node.args, **node.kwargs), _operator(name)(x, *args, **kwargs)
    )


def test_each_form_is_tried_and_other_operators_stay() -> None:
    assert {name for name, *_ in CALLS} == {*FORMS}
    node = SimpleNamespace(args=(torch.ones(2), 1), kwargs={})
    assert in_package_form("aten.add.Tensor", node) == "aten.add.Tensor"
    assert node.args[1] == 1
