"""Quantized programs, made with our quantizer in torchao's flow."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  torch's own habit

from tests.compiler.programs import Apply

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of torchao, about itself
    pytest.importorskip("torchao")  # comes with the stock wheel
    import torchao.quantization.quant_primitives
    from torchao.quantization.pt2e.quantize_pt2e import (
        convert_pt2e,
        prepare_pt2e,
        prepare_qat_pt2e,
    )

    from compiler import DuplicateDynamicQuantChainPass  # noqa: F401 - torchao goes first
    from compiler.backends.xnnpack.quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
        get_weight_only_quantization_config,
    )

IMAGE = torch.randn(2, 8, 6, 7)
ROW = torch.randn(3, 32)
SIGNAL = torch.randn(2, 8, 9)
FILTER = torch.randn(4, 8, 3, 3)
STATIC = get_symmetric_quantization_config(is_per_channel=True)
PER_TENSOR = get_symmetric_quantization_config()
DYNAMIC = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=True)
NIBBLES = get_symmetric_quantization_config(
    is_per_channel=True, is_dynamic=True, weight_qmin=-8, weight_qmax=7
)
WEIGHTS = get_weight_only_quantization_config()


def quantizer(config: Any) -> XNNPACKQuantizer:
    return XNNPACKQuantizer().set_global(config)


def prepared(module: nn.Module, inputs: tuple[Any, ...], chosen: Any, dynamic: Any = None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported = torch.export.export(module.eval(), inputs, dynamic_shapes=dynamic, strict=True)
        graph = exported.module()
        return prepare_pt2e(graph, chosen)


def quantized(module: nn.Module, inputs: tuple[Any, ...], config: Any) -> Any:
    """Return a quantized program: the numbers it gives are those of the reference."""
    chosen = config if isinstance(config, XNNPACKQuantizer) else quantizer(config)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = prepared(module, inputs, chosen)
        graph(*inputs)
        return torch.export.export(convert_pt2e(graph), inputs)


def trained(module: nn.Module, inputs: tuple[Any, ...], config: Any) -> Any:
    """Return a program quantized in training, of one step."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = torch.export.export(copy.deepcopy(module).train(), inputs, strict=True).module()
        graph = prepare_qat_pt2e(graph, quantizer(config))
        graph(*inputs)
        torchao.quantization.pt2e.move_exported_model_to_eval(graph)
        return torch.export.export(convert_pt2e(graph), inputs)


def reference(program: Any, inputs: tuple[Any, ...]) -> list[torch.Tensor]:
    with torch.no_grad():
        return list(torch.utils._pytree.tree_leaves(program.module()(*copy.deepcopy(inputs))))


def quantum(program: Any) -> float:
    """Return the largest scale of what a statically quantized program computes."""
    nodes = [n for n in program.graph.nodes if "quantize_per_tensor.default" in str(n.target)]
    return max((float(n.args[1]) for n in nodes), default=0.0)


class Residual(nn.Module):
    """Sums of branches, layers in a row, and something between that is not quantized."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(8, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.depth = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.last = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.norm(self.first(x)))
        z = F.hardtanh(self.depth(y), 0, 6) + y
        z = torch.cat([F.max_pool2d(z, 2), F.max_pool2d(z * 0.5, 2)], 1)[:, 4:12]
        return self.last(torch.sigmoid(F.adaptive_avg_pool2d(z, 1)).flatten(1)).softmax(-1)


def padded(x: torch.Tensor) -> torch.Tensor:
    return F.conv2d(F.pad(x, (1, 0, 2, 1)), FILTER)


CASES: dict[str, tuple[nn.Module, tuple[torch.Tensor, ...]]] = {
    "conv": (nn.Sequential(nn.Conv2d(8, 6, 3, 2, 1), nn.ReLU()), (IMAGE,)),
    "conv_groups": (nn.Conv2d(8, 12, (3, 2), groups=4, dilation=2, bias=False), (IMAGE,)),
    "conv_depthwise": (
        nn.Conv2d(8, 16, 3, groups=8),
        (IMAGE.to(memory_format=torch.channels_last),),
    ),
    "conv_same": (nn.Conv2d(8, 6, (3, 5), padding="same", groups=2), (IMAGE,)),
    "conv_same_even": (nn.Conv2d(8, 6, (2, 3), padding="same", dilation=(1, 2)), (IMAGE,)),
    "conv_signal": (nn.Conv1d(8, 4, 3), (SIGNAL,)),
    "conv_transposed": (nn.ConvTranspose2d(8, 4, 2, 2), (IMAGE,)),
    "conv_transposed_groups": (  # stays as it is: no kernel takes quantized weights there
        nn.Sequential(nn.Conv2d(8, 8, 1), nn.ConvTranspose2d(8, 4, 2, 2, groups=2)),
        (IMAGE,),
    ),
    "linear": (nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 5)), (ROW,)),
    "linear_rows": (nn.Linear(9, 5, bias=False), (SIGNAL,)),
    "sums": (Apply(lambda x, y: F.relu(x + y) * y + 0.25), (IMAGE, IMAGE[:, :, :1].clone())),
    "square": (Apply(lambda x: x * x), (ROW,)),
    "cat": (Apply(lambda x: torch.cat([x + 1, x * 2, x + 1], 1).relu()), (IMAGE,)),
    "moves": (
        Apply(lambda x: (x * 2).permute(0, 2, 3, 1)[:, 1:4].reshape(2, -1).unsqueeze(1)),
        (IMAGE,),
    ),
    "pools": (Apply(lambda x: F.max_pool2d(x * 2, 2).mean((2, 3), keepdim=True)), (IMAGE,)),
    "clamps": (Apply(lambda x: F.hardtanh(x + 1, 0, 1).clamp(min=0.5)), (IMAGE,)),
    "copies": (nn.Sequential(nn.Linear(32, 8), nn.Dropout(), nn.Linear(8, 4)), (ROW,)),
    "padded": (Apply(padded), (IMAGE,)),
    "plain_between": (Apply(lambda x: torch.sigmoid(x + x).cumsum(0) + x), (ROW,)),
    "net": (Residual(), (IMAGE,)),
}
