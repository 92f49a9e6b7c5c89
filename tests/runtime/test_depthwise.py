"""Small depthwise convolutions over time run tap by tap, with the results of the kernel."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from compiler import to_edge
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
    "large": (lambda: _conv(groups=6), (1, 6, 1 << 14), False),
    "infinite": (_endless, (1, 6, 9), False),
    "double": (lambda: _conv(groups=6).double(), (1, 6, 9), False),
}


@pytest.mark.parametrize("name", CASES)
def test_taps_are_the_convolution(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, sizes, expected = CASES[name]
    torch.manual_seed(3)
    convolution = make()
    module = nn.Sequential(convolution, nn.Tanh()).eval()
    given = torch.randn(sizes, dtype=convolution.weight.dtype)
    taken: list[bool] = []

    def noticed(bound: Any, flow: Dataflow, known: Any) -> Any:
        found = depthwise_taps(bound, flow, known)
        taken.append(found is not None)
        return found

    monkeypatch.setattr("runtime.execution.fused.planner.depthwise_taps", noticed)
    program = to_edge(torch.export.export(module, (given,))).to_executorch()
    method = Runtime.get().load_program(program.buffer).load_method("forward")
    for _ in range(6):  # checked, planned, and as a graph
        given = torch.randn(sizes, dtype=convolution.weight.dtype)
        torch.testing.assert_close(method.execute([given])[0], module(given), equal_nan=True)
    assert any(taken) is expected
