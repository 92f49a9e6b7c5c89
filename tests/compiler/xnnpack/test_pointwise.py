"""Pointwise convolutions of dynamic int8 share what they read with layers of other sizes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from compiler import to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from runtime import Runtime
from tests.compiler.stock import Stock
from tests.compiler.xnnpack import quantizing as q

pytestmark = [pytest.mark.slow, pytest.mark.interop]
OTHERS: dict[str, Any] = {
    "wide": lambda: nn.Conv2d(8, 6, 3, padding=1),
    "strided": lambda: nn.Conv2d(8, 6, 1, 2),
    "pointwise": lambda: nn.Conv2d(8, 6, 1, bias=False),
    "spread": lambda: nn.Conv2d(8, 6, 1, dilation=2),
    "grouped": lambda: nn.Conv2d(8, 6, 1, groups=2),
    "transposed": lambda: nn.ConvTranspose2d(8, 6, 1),
    "linear": lambda: nn.Linear(9, 5),
}


class Shared(nn.Module):
    """Two layers that read one value; a second stage so that more than one value is shared."""

    def __init__(self, other: Any, dilation: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(8, 8, 3, padding=1)
        self.one, self.two = nn.Conv2d(8, 6, 1, dilation=dilation), other()

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return both."""
        y = torch.relu(self.first(x))
        return self.one(y), self.two(y)


@pytest.mark.parametrize("dilation", [1, 2])
def test_real_kernels_give_what_the_graph_says(dilation: int, stock: Stock) -> None:
    runs, wanted, ours = [], [], []
    for other in OTHERS.values():
        torch.manual_seed(1)
        given = (torch.randn(2, 8, 7, 9),)
        program = q.quantized(Shared(other, dilation), given, q.DYNAMIC)
        manager = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
        buffer = manager.to_executorch().buffer
        runs.append((buffer, given))
        wanted.append(q.reference(program, given))
        ours += [
            Runtime.get().load_program(buffer).load_method("forward", engine=engine).execute(given)
            for engine in ("torch", "native")
        ]
    found = stock.run_each(runs)
    for at, name in enumerate(OTHERS):
        for outputs in (found[at], *ours[2 * at : 2 * at + 2]):
            assert not isinstance(outputs, str), outputs
            for output, right in zip(outputs, wanted[at], strict=True):
                # A pixel and an image have scales of their own, the graph one for all of them.
                assert (output - right).abs().max() <= 0.03 * right.abs().max(), name
        for one, other in zip(ours[2 * at], ours[2 * at + 1], strict=True):
            assert (one - other).abs().max() <= 0.01 * one.abs().max(), name
