"""Copies that vendors' quantizers insert, written so that every interpreter can read them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from inspector.toolchain.stock.quantize import with_plain_copies

aten = torch.ops.aten


class PackageCopy:
    """An operator of the package in the little that a graph asks of it."""

    def __init__(self, name: str) -> None:
        self._name, self.__name__ = name, name.replace(".", "_")

    def __str__(self) -> str:
        return self._name

    def __call__(self, *_given: Any, **_named: Any) -> Any:
        raise NotImplementedError(self._name)


def _graph(name: str, **named: Any) -> torch.fx.GraphModule:
    graph = torch.fx.Graph()
    given = graph.placeholder("x")
    graph.output(graph.call_function(PackageCopy(name), (given,), named))
    return torch.fx.GraphModule(torch.nn.Module(), graph)


@pytest.mark.parametrize(
    ("name", "named", "plain"),
    [
        ("_to_dim_order_copy", {"dtype": torch.int32}, aten._to_copy.default),
        ("_to_dim_order_copy", {"dtype": torch.int32, "dim_order": [0, 1]}, aten._to_copy.default),
        ("_to_dim_order_copy", {"dtype": torch.float16, "dim_order": None}, aten._to_copy.default),
        ("_clone_dim_order", {"dim_order": [0, 1]}, aten.clone.default),
    ],
)
def test_copy_of_the_package_becomes_one_of_aten(
    name: str, named: dict[str, Any], plain: Any
) -> None:
    made = with_plain_copies(_graph(f"dim_order_ops.{name}.default", **named))
    (call,) = (node for node in made.graph.nodes if node.op == "call_function")
    assert call.target is plain
    values = torch.tensor([[1, 2, 3], [-4, 5, 6]])
    result = made(values)
    assert result.equal(values)
    assert result.dtype is named.get("dtype", values.dtype)
    assert result.data_ptr() != values.data_ptr()


@pytest.mark.parametrize("name", ["_to_dim_order_copy", "_clone_dim_order"])
def test_copy_into_another_order_of_dimensions_stays(name: str) -> None:
    made = with_plain_copies(_graph(f"dim_order_ops.{name}.default", dim_order=[0, 2, 3, 1]))
    (call,) = (node for node in made.graph.nodes if node.op == "call_function")
    assert str(call.target) == f"dim_order_ops.{name}.default"
    assert call.kwargs["dim_order"] == [0, 2, 3, 1]
