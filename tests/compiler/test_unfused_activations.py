"""Activations that passes of Cortex-M leave on integers get the quantization around them back."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

import pytest
import torch

from compiler.backends.vendors.cortex_m_unfused import with_real_values
from compiler.backends.vendors.options import OptionError

aten: Any = torch.ops.aten
_RANGE = (-128, 127, torch.int8)


class _Folded(NamedTuple):
    """What the passes fold into a node."""

    scale: Any
    zp: int
    qmin: int
    qmax: int
    dtype: torch.dtype


def _operators() -> Any:
    importlib.import_module("torchao.quantization.pt2e")  # which has them
    return torch.ops.quantized_decomposed


def _left(target: Any, scale: Any, dtype: torch.dtype = torch.int8) -> torch.fx.GraphModule:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(target, (x,))
    graph.output((y,))
    x.meta["val"] = y.meta["val"] = torch.empty(2, 5, dtype=dtype, device="meta")
    y.meta["input_qparams"] = {0: _Folded(scale, 3, *_RANGE)}
    y.meta["output_qparams"] = {0: _Folded(0.02, -90, *_RANGE)}
    return torch.fx.GraphModule(torch.nn.Module(), graph)


@pytest.mark.parametrize("name", ["hardswish", "hardsigmoid"])
def test_activation_computes_on_the_real_values_of_what_is_stored(name: str) -> None:
    operators = _operators()
    module = _left(getattr(aten, name).default, 0.05)
    assert with_real_values(module, operators) == 1
    stored = torch.arange(-128, -118, dtype=torch.int8).reshape(2, 5) * 12
    real = getattr(torch.nn.functional, name)((stored.float() - 3) * 0.05)
    wanted = (torch.round(real / 0.02) - 90).clamp(-128, 127).to(torch.int8)
    (found,) = module(stored)
    assert torch.equal(found, wanted)
    kinds = {
        node.name: node.meta["val"].dtype for node in module.graph.nodes if node.op != "output"
    }
    assert kinds[f"{name}_default"] is torch.float32
    assert [*kinds.values()].count(torch.int8) == 2  # what is read, and what is returned


@pytest.mark.parametrize(
    ("target", "dtype"), [(aten.hardswish.default, torch.float32), (aten.relu.default, torch.int8)]
)
def test_others_stay_as_they_are(target: Any, dtype: torch.dtype) -> None:
    assert with_real_values(_left(target, 0.05, dtype), None) == 0


def test_scale_that_is_not_one_number_is_named_with_its_node() -> None:
    with pytest.raises(
        OptionError, match=r"left hardswish_default \(aten.hardswish.default\) on integers"
    ):
        with_real_values(_left(aten.hardswish.default, [0.1, 0.2]), None)
