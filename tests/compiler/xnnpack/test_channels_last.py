"""Quantized images and models in channels last go into one delegate, without copies around it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from compiler import export, to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from compiler.quantize.program import quantize_program
from runtime import Runtime
from tests.compiler.stock import Stock

pytestmark = pytest.mark.slow

CASES = [(mode, what) for mode in ("static", "dynamic") for what in ("image", "model", "both")]
STEP = 0.02  # of the result, whose largest value is about 1, in 8 bits


def _program(mode: str, what: str) -> tuple[Any, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 6, 1)).eval()
    image = torch.randn(1, 4, 6, 5)
    if what != "image":
        net = net.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    if what != "model":
        image = image.to(memory_format=torch.channels_last)
    program = quantize_program(export(net, (image,)), mode, [(image,)], None)
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    return edge, image, net(image)


@pytest.mark.parametrize(("mode", "what"), CASES)
def test_everything_is_in_one_delegate(mode: str, what: str) -> None:
    edge, image, wanted = _program(mode, what)
    nodes = edge.exported_program().graph.nodes
    calls = [node.name.rstrip("_0123456789") for node in nodes if node.op == "call_function"]
    assert calls == ["executorch_call_delegate", "getitem"]
    loaded = Runtime.get().load_program(edge.to_executorch().buffer)
    (found,) = loaded.load_method("forward").execute([image])
    torch.testing.assert_close(found, wanted, atol=STEP, rtol=0, check_stride=False)


@pytest.mark.slow
@pytest.mark.interop
def test_the_stock_runtime_runs_them_alike(stock: Stock) -> None:
    programs = [_program(*case) for case in CASES]
    found = stock.run_each([(edge.to_executorch().buffer, (image,)) for edge, image, _ in programs])
    for values, (_, _, wanted) in zip(found, programs, strict=True):
        assert not isinstance(values, str), values
        torch.testing.assert_close(values[0], wanted, atol=STEP, rtol=0, check_stride=False)
