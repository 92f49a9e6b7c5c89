"""Verdicts of the stock toolchain on what quantizes for nodes that stay outside."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from inspector.toolchain.stock.verdicts import PartitionerLog, judge


def test_quantization_of_what_stays_outside_says_what_that_is() -> None:
    from torch.ao.quantization.fx import _decomposed as _registers  # noqa: F401

    rounding: Any = torch.ops.quantized_decomposed
    how = (0.1, 0, -128, 127, torch.int8)
    graph = torch.fx.Graph()
    given = graph.placeholder("x")
    stored = graph.call_function(rounding.quantize_per_tensor.default, (given, *how))
    real = graph.call_function(rounding.dequantize_per_tensor.default, (stored, *how))
    relu = graph.call_function(torch.ops.aten.relu.default, (real,))
    again = graph.call_function(rounding.quantize_per_tensor.default, (relu, *how))
    graph.output((again,))
    stored.meta["delegation_tag"] = "t"
    module = torch.fx.GraphModule(torch.nn.Module(), graph)
    tags = {"t": SimpleNamespace(backend_id="NameBackend")}
    found = judge(module, object(), tags, PartitionerLog({}, {}, {}))
    reasons = {one["node"]: one["reason"] for one in found}
    end = f"{relu.name}, outside of every partition"
    assert reasons[real.name] == f"it dequantizes for {end}"
    assert reasons[again.name] == f"it quantizes {end}"
