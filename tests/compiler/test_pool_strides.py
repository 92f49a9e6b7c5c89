"""Pooling without strides for vendors that read them from the arguments: those of the kernel."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - its usual name

from compiler.interface.package_forms import for_backend, give_strides


class _Pools(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            F.max_pool2d(x, 2),
            F.avg_pool2d(x, (2, 1)),
            F.max_pool2d(x, 3, 2, 1),
            F.avg_pool2d(x, 2, padding=1, count_include_pad=False),
            F.max_pool1d(x[0], 2),
            F.avg_pool1d(x[0], 4, 2),
            F.avg_pool3d(x, 2),
        )


@pytest.fixture
def pools() -> tuple[torch.fx.GraphModule, torch.Tensor]:
    """Return a graph of pooling operators, and an input."""
    x = torch.randn(2, 4, 6, 8)
    return torch.export.export(_Pools(), (x,)).graph_module, x


def _strides(module: torch.fx.GraphModule) -> list[object]:
    pooling = [node for node in module.graph.nodes if "pool" in str(node.target)]
    return [node.args[2] if len(node.args) > 2 else [] for node in pooling]


def test_strides_are_written_out_and_results_are_the_same(
    pools: tuple[torch.fx.GraphModule, torch.Tensor],
) -> None:
    module, x = pools
    expected = module(x)
    assert [] in _strides(module)
    give_strides(module)
    assert [] not in _strides(module)
    assert _strides(module)[2] == [2, 2]  # a stride that is given stays
    for found, before in zip(module(x), expected, strict=True):
        assert torch.equal(found, before)


@pytest.mark.parametrize(
    ("backend", "changed"), [("CoreMLBackend", True), ("VulkanBackend", False)]
)
def test_only_programs_of_vendors_that_need_it_are_changed(
    backend: str, changed: bool, pools: tuple[torch.fx.GraphModule, torch.Tensor]
) -> None:
    module, _ = pools
    before = _strides(module)
    for_backend(backend, SimpleNamespace(graph_module=module))
    assert (_strides(module) != before) is changed
