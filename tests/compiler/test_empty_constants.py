"""Programs whose constants outside of delegates are all empty run on the stock runtime."""

from __future__ import annotations

import pytest
import torch

from compiler import to_edge_transform_and_lower
from runtime import Runtime
from tests.compiler.stock import Stock


class Empty(torch.nn.Module):
    def __init__(self, count: int) -> None:
        super().__init__()
        for number in range(count):
            self.register_buffer(f"none_{number}", torch.zeros(0, 3 + number))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (torch.cat([x, self.none_0]), *self.buffers())


@pytest.mark.slow
@pytest.mark.interop
@pytest.mark.parametrize("count", [1, 2])
def test_empty_constants_alone_load_and_run(count: int, stock: Stock) -> None:
    net, inputs = Empty(count).eval(), (torch.arange(6.0).reshape(2, 3),)
    buffer = to_edge_transform_and_lower(torch.export.export(net, inputs)).to_executorch().buffer
    (stocks,) = stock.run(buffer, [("forward", inputs)])
    ours = Runtime.get().load_program(buffer).load_method("forward").execute(list(inputs))
    for one, other, right in zip(ours, stocks, net(*inputs), strict=True):
        assert torch.equal(one, right)
        assert torch.equal(other, right)
