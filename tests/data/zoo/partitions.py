"""XNNPACK: two partitions around an operator it refuses, and quantized linears."""

from __future__ import annotations

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import (
    XnnpackDynamicallyQuantizedPartitioner,
    XnnpackPartitioner,
)
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from torch.export import export
from torchao.quantization.granularity import PerGroup
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.quant_api import Int8DynamicActivationIntxWeightConfig, quantize_
from writing import Recipe, write_all


class Split(torch.nn.Module):
    """Two convolutions and a linear, with a cumulative sum that no XNNPACK operator does."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(2, 4, 3, padding=1)
        self.second = torch.nn.Conv2d(4, 4, 3, padding=1, bias=False)
        self.lin = torch.nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(x))
        x = torch.cumsum(x, 1)
        x = torch.nn.functional.hardtanh(self.second(x), -1.0, 1.0) + x
        return self.lin(x.mean((2, 3)))


class Linears(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = torch.nn.Linear(width, 2 * width)
        self.down = torch.nn.Linear(2 * width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(torch.nn.functional.gelu(self.up(x)))


def xnnpack_split() -> Recipe:
    runs = [("forward", (torch.randn(1, 2, 6, 6),))] * 3
    return Recipe("xnnpack_split", runs, Split().eval(), partitioner=[XnnpackPartitioner()])


def xnnpack_dynamic_quantized() -> Recipe:
    x = (torch.randn(2, 16),)
    quantizer = XNNPACKQuantizer()
    quantizer.set_global(get_symmetric_quantization_config(is_per_channel=True, is_dynamic=True))
    prepared = prepare_pt2e(export(Linears(16).eval(), x, strict=False).module(), quantizer)
    prepared(*x)
    exported = export(convert_pt2e(prepared), x, strict=False)
    return Recipe(
        "xnnpack_dynamic_quantised",
        [("forward", x)] * 3,
        exported={"forward": exported},
        partitioner=[XnnpackDynamicallyQuantizedPartitioner()],
    )


def xnnpack_8da4w() -> Recipe:
    model, x = Linears(32).eval(), (torch.randn(1, 32),)
    config = Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4, weight_granularity=PerGroup(32)
    )
    quantize_(model, config)
    return Recipe(
        "xnnpack_8da4w",
        [("forward", x)] * 3,
        exported={"forward": export(model, x, strict=False)},
        partitioner=[XnnpackDynamicallyQuantizedPartitioner(), XnnpackPartitioner()],
    )


if __name__ == "__main__":
    write_all([xnnpack_split, xnnpack_dynamic_quantized, xnnpack_8da4w])
