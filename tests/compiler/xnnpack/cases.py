"""What each rule takes and refuses: functions with inputs, by the name of the rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  torch's own habit

from tests.compiler.programs import Apply

aten = torch.ops.aten
LAST = torch.channels_last
IMAGE = torch.randn(2, 4, 6, 7)
WIDE = IMAGE.to(memory_format=LAST)
SIGNAL = torch.randn(2, 4, 9)
ROW = torch.randn(3, 8)
POSITIVE = torch.rand(2, 4, 6, 7) + 0.5
NARROW = POSITIVE[:, :1, :, :1].clone()
CHANNEL = POSITIVE[0, :, :1, :1].clone()
MATRIX, VECTOR = torch.randn(8, 5), torch.randn(5)
FILTER, TAPS, SPREAD = torch.randn(2, 4, 2, 2), torch.randn(2, 4, 2), torch.randn(2, 9, 2)
VALUES = (IMAGE, WIDE, SIGNAL, ROW, torch.randn(2, 3, 4, 5, 2))


@dataclass(frozen=True)
class Case:
    """A program all of whose operators a rule takes, or one it refuses.

    Attributes:
        what: module or function
        inputs: example inputs
        reason: part of the reason of the refusal, empty where it is taken
        dynamic: dynamic shapes for export
    """

    what: Any
    inputs: tuple[Any, ...]
    reason: str = ""
    dynamic: Any = None

    @property
    def module(self) -> nn.Module:
        return self.what if isinstance(self.what, nn.Module) else Apply(self.what)


ROWS_CHANGE = ({0: torch.export.Dim("rows", min=2, max=9)},)


def each(function: Any, *values: torch.Tensor) -> list[Case]:
    """Return a case for each kind of operand: images in both layouts, signals, rows."""
    return [Case(function, (value,)) for value in values or VALUES]


def both(function: Any) -> list[Case]:
    """Return cases of operands of equal and of other shapes, given, constant and as numbers."""
    return [
        Case(function, (IMAGE, POSITIVE)),
        Case(function, (WIDE, POSITIVE)),
        Case(function, (IMAGE, NARROW)),
        Case(function, (CHANNEL, POSITIVE[0].clone())),
        Case(lambda x: function(x, CHANNEL), (WIDE,)),
        Case(lambda x: function(F.max_pool2d(x, 2), CHANNEL), (IMAGE,)),
        Case(lambda x: function(x, 1.5), (ROW,)),
        Case(lambda x: function(x, 1.5), (WIDE,)),
    ]


def layer(module: nn.Module, *inputs: torch.Tensor, reason: str = "") -> Case:
    for parameter in module.parameters():
        nn.init.uniform_(parameter, -0.5, 0.5)
    return Case(module, inputs, reason)


def normed(module: nn.Module, norm: Any, *inputs: torch.Tensor) -> Case:
    for moments in (norm.running_mean, norm.running_var):
        moments.uniform_(0.5, 2)
    return layer(nn.Sequential(module, norm, nn.ReLU()), *inputs)


def _argmax(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    found = x.max(2)
    return found.values, found.indices


TAKEN: dict[str, list[Case]] = {
    "AbsConfig": each(torch.abs),
    "AddConfig": [*both(torch.add), Case(lambda x, y: F.relu(x + y), (WIDE, IMAGE))],
    "AddmmConfig": [Case(lambda x: torch.addmm(VECTOR, x, MATRIX), (ROW,))],
    "AvgPoolingConfig": [
        Case(lambda x: F.avg_pool2d(x, 2), (IMAGE,)),
        Case(lambda x: F.avg_pool2d(x, (3, 2), (1, 2)), (WIDE,)),
        Case(lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), (IMAGE,)),
    ],
    "BMMConfig": [
        Case(torch.bmm, (torch.randn(2, 3, 4), torch.randn(2, 4, 5))),
        Case(lambda x, y: x @ y.transpose(1, 2), (SIGNAL, SIGNAL + 1)),
        Case(lambda x, y: torch.bmm(x + 1, y.mT) @ y.mT.mT, (SIGNAL, SIGNAL)),
    ],
    "BatchNormConfig": [
        normed(nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6), IMAGE),
        normed(nn.Conv2d(4, 4, 3, groups=4, bias=False), nn.BatchNorm2d(4), WIDE),
        normed(nn.ConvTranspose2d(4, 6, 3, groups=2), nn.BatchNorm2d(6), IMAGE),
        normed(nn.Conv1d(4, 6, 3), nn.BatchNorm1d(6), SIGNAL),
        normed(nn.Linear(8, 5), nn.BatchNorm1d(5), ROW),
        normed(nn.Linear(9, 5), nn.BatchNorm1d(4), SIGNAL),
        normed(nn.Tanh(), nn.BatchNorm2d(4), IMAGE),
        normed(nn.Tanh(), nn.BatchNorm1d(8, affine=False), ROW),
    ],
    "CatConfig": [
        *(
            Case(lambda *x, dim=dim: torch.cat(x, dim), (IMAGE, WIDE, IMAGE))
            for dim in (0, 1, 2, -1)
        ),
        *(
            Case(lambda x, count=count: torch.cat([x, *[x + 1] * count]), (ROW,))
            for count in (1, 3, 4, 5, 11)
        ),
    ],
    "CeilConfig": each(torch.ceil),
    "ClampConfig": [
        Case(lambda x: x.clamp(-0.5, 1), (IMAGE,)),
        Case(lambda x: x.clamp(min=0.25), (WIDE,)),
        Case(lambda x: (x * 2).clamp(max=0.25), (ROW,)),
    ],
    "CloneConfig": [*each(lambda x: x.clone() + 1), Case(lambda x: x.expand(3, 8) + 1, (ROW,))],
    "CloneDimOrderConfig": [
        Case(lambda x: x.contiguous(memory_format=LAST), (IMAGE,)),
        Case(lambda x: x.clone(memory_format=torch.contiguous_format), (WIDE,)),
    ],
    "ConstantPadConfig": [
        Case(lambda x: F.pad(x, (1, 2, 0, 3), value=1.5), (IMAGE,)),
        Case(lambda x: F.pad(x, (0, 0, 0, 0, 2, 1)), (WIDE,)),
        Case(lambda x: F.conv2d(F.pad(x, (1, 0)), FILTER), (WIDE,)),
        Case(lambda x: F.pad(x, (2, 1)), (SIGNAL,)),
        Case(lambda x: F.pad(x, (-1, 2)), (ROW,)),  # a cut first, which is delegated too
    ],
    "ConvolutionConfig": [
        layer(nn.Conv2d(4, 6, 3, padding=1, stride=2), IMAGE),
        layer(nn.Conv2d(4, 6, (3, 2), padding=(2, 0), dilation=2, bias=False), WIDE),
        layer(nn.Conv2d(4, 8, 3, groups=2), IMAGE),
        layer(nn.Conv2d(4, 8, 3, groups=4), WIDE),
        layer(nn.Conv2d(4, 4, 3, groups=4, padding="same"), IMAGE),
        layer(nn.Conv2d(1, 4, 3), IMAGE[:, :1].clone()),
        layer(nn.Sequential(nn.Conv2d(4, 6, 1), nn.ReLU6(), nn.Conv2d(6, 2, 1)), IMAGE),
        layer(nn.Conv1d(4, 6, 3, padding=1), SIGNAL),
        layer(
            nn.Sequential(nn.Conv1d(4, 8, 3, 2, groups=4), nn.ReLU(), nn.Conv1d(8, 2, 1)), SIGNAL
        ),
        layer(nn.ConvTranspose1d(4, 6, 3, stride=2, output_padding=1), SIGNAL),
        layer(nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2), IMAGE),
        layer(nn.ConvTranspose2d(4, 6, (2, 3), dilation=2), WIDE),
    ],
    "CosConfig": each(torch.cos),
    "DivConfig": both(torch.div),
    "EluConfig": each(lambda x: F.elu(x, 0.7)),
    "ExpConfig": each(torch.exp),
    "FloorConfig": each(torch.floor),
    "GeluConfig": each(F.gelu),
    "HardswishConfig": each(F.hardswish),
    "HardtanhConfig": each(lambda x: F.hardtanh(x, -0.3, 0.6)),
    "LeakyReLUConfig": each(lambda x: F.leaky_relu(x, 0.3)),
    "LinearConfig": [
        layer(nn.Linear(8, 5), ROW),
        layer(nn.Linear(9, 5, bias=False), SIGNAL),
        layer(nn.Sequential(nn.Linear(7, 5), nn.ReLU(), nn.Linear(5, 3), nn.Hardtanh()), WIDE),
        Case(lambda x: F.relu(x @ MATRIX), (ROW,), dynamic=(ROWS_CHANGE,)),
    ],
    "LogConfig": each(torch.log, POSITIVE, POSITIVE[0]),
    "MMConfig": [Case(lambda x: x @ MATRIX, (ROW,))],
    "MaxDimConfig": [
        Case(lambda x, dim=dim, keep=keep: x.max(dim, keepdim=keep)[0] * 2, (x,))
        for x in (IMAGE, WIDE)
        for dim in (2, -1)
        for keep in (True, False)
    ],
    "MaxPool2dConfig": [
        Case(lambda x: F.max_pool2d(x, 2), (IMAGE,)),
        Case(lambda x: F.max_pool2d(x, 3, 2, 1), (WIDE,)),
        Case(lambda x: F.max_pool2d(x, 2, 1, dilation=2), (IMAGE,)),
        Case(lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True), (IMAGE,)),
        Case(lambda x: F.max_pool2d(x, (3, 2), 2, 1, ceil_mode=True), (WIDE,)),
    ],
    "MaximumConfig": both(lambda x, y: torch.maximum(x, torch.as_tensor(y))),
    "MeanDimConfig": [
        Case(lambda x: x.mean((2, 3), keepdim=True), (IMAGE,)),
        Case(lambda x: x.mean((-1, -2)), (WIDE,)),
        Case(lambda x: F.adaptive_avg_pool2d(x, 1).flatten(1), (IMAGE,)),
    ],
    "MinimumConfig": both(lambda x, y: torch.minimum(x, torch.as_tensor(y))),
    "MulConfig": both(torch.mul),
    "NegConfig": each(torch.neg),
    "PermuteConfig": [
        Case(lambda x, order=order: x.permute(order) + 1, (x,))
        for x in (IMAGE, WIDE)
        for order in ((0, 2, 3, 1), (3, 1, 0, 2), (0, 3, 1, -2), (0, 1, 3, 2))
    ]
    + [
        Case(lambda x: F.max_pool2d(x, 2).permute(0, 2, 3, 1) * 2, (IMAGE,)),
        Case(lambda x: F.conv1d(x, TAPS).permute(0, 2, 1) * 2, (SIGNAL,)),
        Case(lambda x: F.conv1d(x.permute(0, 2, 1), SPREAD), (SIGNAL,)),
        Case(lambda x: x.T + 1, (ROW,)),
    ],
    "PowConfig": each(torch.square),
    "PreluConfig": [
        layer(nn.PReLU(4), IMAGE),
        layer(nn.PReLU(), WIDE),
        layer(nn.PReLU(4), SIGNAL),
        layer(nn.Sequential(nn.Conv2d(4, 3, 2), nn.PReLU(3)), IMAGE),
        layer(nn.PReLU(8), ROW),
    ],
    "ReLUConfig": each(F.relu),
    "ReciprocalSquareRootConfig": each(torch.rsqrt, POSITIVE, POSITIVE[0]),
    "SigmoidConfig": each(torch.sigmoid),
    "SinConfig": each(torch.sin),
    "SliceCopyConfig": [
        Case(lambda x: x[:, 1:3], (IMAGE,)),
        Case(lambda x: x[:, :, -3:-1], (WIDE,)),
        Case(lambda x: F.max_pool2d(x, 2)[:, 2:, :2], (IMAGE,)),
        Case(lambda x: x[:, -20:5], (ROW,)),
    ],
    "SoftmaxConfig": each(lambda x: F.softmax(x, -1)),
    "SquareRootConfig": each(torch.sqrt, POSITIVE, POSITIVE[0]),
    "SubConfig": [*both(torch.sub), Case(lambda x, y: F.relu6(x - y), (WIDE, IMAGE))],
    "TanhConfig": each(torch.tanh),
    "ToDimOrderCopyConfig": [
        Case(lambda x: x.to(memory_format=LAST) * 2, (IMAGE,)),
        Case(lambda x: x.to(memory_format=torch.contiguous_format), (WIDE,)),
    ],
    "UnsqueezeCopyConfig": [
        Case(lambda x, dim=dim: x.unsqueeze(dim), (x,)) for x in (SIGNAL, ROW) for dim in (0, 1, -1)
    ]
    + [Case(lambda x: F.avg_pool2d(x, 2).unsqueeze(1), (WIDE,))],
    "UpsampleBilinear2dConfig": [
        Case(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (IMAGE,)),
        Case(lambda x: F.interpolate(x, (9, 5), mode="bilinear", align_corners=True), (WIDE,)),
    ],
    "ViewCopyConfig": [
        Case(lambda x: x.reshape(8, 42), (IMAGE,)),
        Case(lambda x: F.max_pool2d(x, 2).flatten(1), (WIDE,)),
        Case(lambda x: x.reshape(-1, 4), (ROW,), dynamic=(ROWS_CHANGE,)),
    ],
}

CONVERTED = torch.randn(2, 3)
REFUSED: dict[str, list[Case]] = {
    "AddConfig": [
        Case(lambda x, y: aten.add.Tensor(x, y, alpha=2), (ROW, ROW), "alpha is 2"),
        Case(torch.add, (ROW.long(), ROW.long()), "int64"),
        Case(torch.add, (ROW.double(), ROW.double()), "float64"),
        Case(torch.add, (ROW[:0], ROW[:0]), "empty"),
        Case(lambda x: x + 1, (torch.ones(1, 1, 1, 1, 1, 1, 2),), "7 dimensions"),
    ],
    "AddmmConfig": [
        Case(torch.addmm, (VECTOR, ROW, MATRIX), "its weight inputs_2 is not a static parameter"),
    ],
    "AvgPoolingConfig": [
        Case(lambda x: F.avg_pool2d(x, 2, ceil_mode=True), (IMAGE,), "ceil_mode"),
        Case(lambda x: F.avg_pool2d(x, 2, padding=1), (IMAGE,), "padding [1, 1] is included"),
        Case(lambda x: F.avg_pool2d(x, 2, divisor_override=3), (IMAGE,), "divisor_override is 3"),
        Case(lambda x: F.avg_pool2d(x, 1), (IMAGE,), "[1, 1]"),
    ],
    "ClampConfig": [
        Case(lambda x: x.clamp(0.5, 0.5), (ROW,), "min 0.5 is not below max 0.5"),
        Case(lambda x: (x + 1).clamp(min=float("nan")), (ROW,), "min nan"),
        Case(lambda x: (x + 1).clamp(2, 1), (ROW,), "min 2 is not below max 1"),
    ],
    "CloneConfig": [Case(lambda x: x.expand(2, 3, 8) + 1, (ROW[None],), "it expands [1, 3, 8]")],
    "ConstantPadConfig": [
        Case(lambda x: F.pad(x, (1, 2), value=1.5), (ROW.half(),), "value is 1.5 in float16"),
    ],
    "ConvolutionConfig": [
        layer(nn.Conv3d(2, 2, 1), IMAGE[:, :2, None].clone(), reason="3 spatial dimensions"),
        Case(nn.ConvTranspose2d(4, 2, 2).half(), (IMAGE.half(),), "transposed and float16"),
        Case(F.conv2d, (IMAGE, torch.ones(2, 4, 2, 2)), "its weight inputs_1 is"),
        layer(
            nn.ConvTranspose2d(4, 2, 3, (1, 3), 1, (1, 2), dilation=2),
            IMAGE,
            reason="output_padding [1, 2] is not below the stride [1, 3]",
        ),
        layer(nn.ConvTranspose1d(4, 2, 3, 2, output_padding=2, dilation=3), SIGNAL, reason="[2]"),
    ],
    "GeluConfig": [
        Case(lambda x: F.gelu(x, approximate="tanh"), (ROW,), "approximate is 'tanh'"),
        Case(F.gelu, (ROW.half(),), "float16"),
    ],
    "HardtanhConfig": [
        Case(lambda x: F.hardtanh(x + 1, 0.25, 0.25), (ROW,), "min 0.25 is not below max 0.25"),
        Case(lambda x: F.hardtanh(x @ MATRIX, 1, 1), (ROW,), "min 1 is not below max 1"),
    ],
    "LeakyReLUConfig": [Case(lambda x: F.leaky_relu(x, float("nan")), (ROW,), "slope is nan")],
    "MaxDimConfig": [
        Case(_argmax, (IMAGE,), "is read for more than its values"),
        Case(lambda x: x.max(1)[0], (IMAGE,), "dim is 1"),
        Case(lambda x: x.max(1)[0], (ROW,), "2 dimensions"),
    ],
    "MaxPool2dConfig": [
        Case(lambda x: F.max_pool2d(x, 2, 3), (IMAGE,), "stride [3, 3]"),
        Case(lambda x: F.max_pool2d(x, 1), (IMAGE,), "[1, 1]"),
    ],
    "MeanDimConfig": [
        Case(lambda x: x.mean(1), (IMAGE,), "dims are [1]"),
        Case(lambda x: x.mean((1, 2)), (SIGNAL,), "3 dimensions"),
    ],
    "PowConfig": [Case(lambda x: x**3, (ROW,), "exponent is 3")],
    "SliceCopyConfig": [
        Case(lambda x: x[:, ::2], (ROW,), "step is 2"),
        Case(lambda x: x[:, :0], (ROW,), "is empty: [3, 0]"),
    ],
    "SoftmaxConfig": [Case(lambda x: F.softmax(x, 0), (ROW,), "dim is 0 of 2")],
    "UpsampleBilinear2dConfig": [
        Case(
            lambda x: F.interpolate(x, scale_factor=1.5, mode="bilinear"),
            (IMAGE,),
            "a different factor",
        ),
    ],
}

NARROW_TYPES: dict[str, list[Case]] = {
    "float16": [
        layer(nn.Sequential(nn.Conv2d(4, 6, 3, groups=2), nn.ReLU()).half(), IMAGE.half()),
        layer(nn.Sequential(nn.Linear(8, 5), nn.Sigmoid()).half(), ROW.half()),
        Case(lambda x, y: F.max_pool2d(x + y, 2).mean((2, 3)), (WIDE.half(), IMAGE.half())),
        Case(lambda x: F.pad(x, (1, 2, 0, 1)), (WIDE.half(),)),
    ],
    "bfloat16": [
        layer(
            nn.Sequential(nn.Linear(8, 5), nn.Linear(5, 3, bias=False)).bfloat16(), ROW.bfloat16()
        )
    ],
}
