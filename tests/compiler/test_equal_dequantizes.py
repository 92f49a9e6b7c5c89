"""A stored value that a program dequantizes twice is one result for vendors that return reals."""

from __future__ import annotations

import pytest
import torch
import torch.ao.quantization.fx._decomposed
from torch import nn

from compiler.interface.package_forms import for_backend

_FACTS = (0.1, 0, -128, 127, torch.int8)
_quantized = torch.ops.quantized_decomposed


class Twice(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        stored = _quantized.quantize_per_tensor.default(torch.sin(x), *_FACTS)
        finer = _quantized.dequantize_per_tensor.default(stored, 0.2, *_FACTS[1:])
        near, far = (_quantized.dequantize_per_tensor.default(stored, *_FACTS) for _ in range(2))
        return near, finer, far


@pytest.mark.parametrize(("backend", "left"), [("OpenvinoBackend", 2), ("TOSABackend", 3)])
def test_equal_dequantizes_are_one_node(backend: str, left: int) -> None:
    x = torch.randn(2, 3)
    program = torch.export.export(Twice(), (x,))
    expected = program.module()(x)
    for_backend(backend, program)
    names = [node.name for node in program.graph.nodes if "dequantize" in node.name]
    assert len(names) == left
    program.validate()
    for found, before in zip(program.module()(x), expected, strict=True):
        assert torch.equal(found, before)
