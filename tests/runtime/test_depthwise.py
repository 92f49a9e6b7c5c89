"""Small depthwise convolutions over time run as small products, with the results of the kernel."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from compiler import to_edge, to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from runtime import Runtime
from runtime.execution.fused.dataflow import Dataflow
from runtime.execution.fused.depthwise import depthwise_taps

pytestmark = pytest.mark.slow


def _conv(**options: Any) -> nn.Conv1d:
    return nn.Conv1d(**{"in_channels": 6, "out_channels": 6, "kernel_size": 4, **options})


def _endless() -> nn.Conv1d:
    """Return one whose padding times its weights is NaN, and zero in kernels that skip padding."""
    made = _conv(groups=6, padding=3)
    with torch.no_grad():
        made.weight[0, 0, 0] = float("inf")
    return made


CASES = {
    "padded": (lambda: _conv(groups=6, padding=3), (1, 6, 9), True),
    "plain": (lambda: _conv(groups=6, bias=False), (3, 6, 4), True),
    "dilated": (lambda: _conv(groups=6, padding=2, dilation=2), (2, 6, 11), True),
    "one tap": (lambda: _conv(groups=6, kernel_size=1), (1, 6, 1), True),
    "strided": (lambda: _conv(groups=6, stride=2), (1, 6, 9), False),
    "dense": (_conv, (1, 6, 9), False),
    "several of one": (lambda: _conv(groups=6, out_channels=12), (1, 6, 9), False),
    "long": (lambda: _conv(groups=6, padding=3), (1, 6, 1 << 10), True),
    "large": (lambda: _conv(groups=6), (1, 6, 1 << 14), False),
    "infinite": (_endless, (1, 6, 9), False),
    "double": (lambda: _conv(groups=6).double(), (1, 6, 9), False),
}


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each instruction of the planned programs was replaced."""
    answers: list[bool] = []

    def noticed(bound: Any, flow: Dataflow, known: Any) -> Any:
        found = depthwise_taps(bound, flow, known)
        answers.append(found is not None)
        return found

    monkeypatch.setattr("runtime.execution.fused.planner.depthwise_taps", noticed)
    return answers


@pytest.mark.parametrize("name", CASES)
def test_taps_are_the_convolution(name: str, taken: list[bool]) -> None:
    make, sizes, expected = CASES[name]
    torch.manual_seed(3)
    convolution = make()
    module = nn.Sequential(convolution, nn.Tanh()).eval()
    given = torch.randn(sizes, dtype=convolution.weight.dtype)
    program = to_edge(torch.export.export(module, (given,))).to_executorch()
    method = Runtime.get().load_program(program.buffer).load_method("forward")
    for _ in range(6):  # checked, planned, and as a graph
        given = torch.randn(sizes, dtype=convolution.weight.dtype)
        torch.testing.assert_close(method.execute([given])[0], module(given), equal_nan=True)
    assert any(taken) is expected


class _Scan(nn.Module):
    """A causal convolution between two layers, its weight stored without the middle dimension."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.after = nn.Linear(9, 9), nn.Linear(12, 4)
        self.weight = nn.Parameter(torch.randn(6, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = self.weight.unsqueeze(1)
        return self.after(nn.functional.conv1d(self.before(x), weight, padding=3, groups=6))


def test_a_weight_of_other_dimensions_is_constant_between_delegates(taken: list[bool]) -> None:
    """A delegate that gave it its dimensions would copy it in each run, and it would be unknown."""
    torch.manual_seed(3)
    module, given = _Scan().eval(), torch.randn(1, 6, 9)
    exported = torch.export.export(module, (given,))
    edge = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
    left = {str(one.target) for one in edge.exported_program().graph.nodes}
    assert any("unsqueeze_copy" in name for name in left)
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    for _ in range(6):
        given = torch.randn(1, 6, 9)
        torch.testing.assert_close(method.execute([given])[0], module(given))
    assert any(taken)
