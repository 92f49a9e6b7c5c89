"""A constant that several partitions read is in the file once, in a layout that all can read."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from compiler import to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from runtime import Runtime
from tests.compiler.stock import Stock

pytestmark = [pytest.mark.slow, pytest.mark.interop]
_BETWEEN = torch.asinh  # XNNPACK has no node for it


class Filter(nn.Module):
    """A filter that another partition multiplies with."""

    def __init__(self, *sizes: int, **options: Any) -> None:
        super().__init__()
        self.weight, self.options = nn.Parameter(torch.randn(sizes)), options
        kind = "conv_transpose" if options.pop("transposed", False) else "conv"
        self.apply_filter = getattr(functional, f"{kind}{len(sizes) - 2}d")

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        found = _BETWEEN(self.apply_filter(x, self.weight, **self.options))
        return found.relu(), _BETWEEN(y).sigmoid() * self.weight


class Added(nn.Module):
    """A constant added to an image that a convolution made, and again outside of images."""

    def __init__(self, *, plainly: bool) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 6, 3), nn.Conv2d(6, 6, 3, padding=1)
        self.place = nn.Parameter(torch.randn(1, 6, 10, 8))
        self.plainly = plainly

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        image = _BETWEEN(self.second(self.first(x) + self.place))
        if self.plainly:
            return _BETWEEN(y) * self.place, image
        return self.second(self.second(image) + self.place), image


class Outside(nn.Module):
    """A constant that a kernel of the runtime reads too."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 6, 3), nn.Conv2d(6, 6, 3, padding=1)
        self.place = nn.Parameter(torch.randn(1, 6, 10, 8))

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return self.second(self.first(x) + self.place), torch.atan2(y, self.place)


IMAGE = torch.randn(1, 3, 12, 10), torch.randn(1, 6, 10, 8)
CASES: dict[str, tuple[nn.Module, tuple[Tensor, ...]]] = {
    "filter": (Filter(8, 6, 3, 3), (torch.randn(1, 6, 9, 9), torch.randn(8, 6, 3, 3))),
    "signal": (Filter(16, 8, 5), (torch.randn(1, 8, 19), torch.randn(16, 8, 5))),
    "depthwise": (
        Filter(32, 1, 3, 5, groups=32),
        (torch.randn(1, 32, 9, 9), torch.randn(32, 1, 3, 5)),
    ),
    "groups": (Filter(8, 6, 3, 3, groups=2), (torch.randn(1, 12, 9, 9), torch.randn(8, 6, 3, 3))),
    "transposed": (
        Filter(6, 8, 3, 3, transposed=True),
        (torch.randn(1, 6, 9, 9), torch.randn(6, 8, 3, 3)),
    ),
    "image and plain": (Added(plainly=True), IMAGE),
    "images": (Added(plainly=False), IMAGE),
    "outside": (Outside(), IMAGE),
}


def _stored(buffer: bytes, weight: Tensor) -> int:
    """Return how often the elements of a weight are in a file, in any order of dimensions."""
    orders = itertools.permutations(range(weight.dim()))
    contents = {weight.permute(order).contiguous().numpy().tobytes() for order in orders}
    return sum(buffer.count(content) for content in contents)


def test_constants_are_stored_once_and_outputs_are_those_of_eager(stock: Stock) -> None:
    runs, wanted = [], []
    for name, (module, inputs) in CASES.items():
        program = torch.export.export(module.eval(), inputs)
        manager = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
        calls = [str(n.target) for n in manager.exported_program().graph.nodes]
        assert sum("call_delegate" in target for target in calls) >= 1, name
        buffer = bytes(manager.to_executorch().buffer)
        shared = module.weight if isinstance(module, Filter) else module.place
        assert isinstance(shared, Tensor)
        assert _stored(buffer, shared.detach()) == 1, name
        runs.append((buffer, inputs))
        wanted.append(module(*inputs))
    found = [stock.run_each(runs)]
    for engine in ("torch", "native"):
        loaded = [
            Runtime.get().load_program(b).load_method("forward", engine=engine) for b, _ in runs
        ]
        found.append([m.execute(list(x)) for m, (_, x) in zip(loaded, runs, strict=True)])
    for outputs in found:
        for each, right, name in zip(outputs, wanted, CASES, strict=True):
            assert not isinstance(each, str), (name, each)
            for output, expected in zip(each, right, strict=True):
                torch.testing.assert_close(output, expected, rtol=1e-4, atol=1e-4)


def test_partitions_that_agree_transpose_nothing() -> None:
    module, inputs = CASES["images"]
    program = torch.export.export(module.eval(), inputs)
    manager = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    buffer = bytes(manager.to_executorch().buffer)
    place = module.get_parameter("place").detach()
    assert buffer.count(place.permute(0, 2, 3, 1).contiguous().numpy().tobytes()) == 1
