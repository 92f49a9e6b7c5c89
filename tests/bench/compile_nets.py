"""Known nets at their full size, with random weights, and chains of any length."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram
from torch.nn import functional as F  # noqa: N812  torch's own habit

from tests.compiler.more_nets import SqueezeExcite
from tests.compiler.nets import BasicBlock, Classifier, InvertedResidual

_V2 = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1))
_V2_REST = ((6, 160, 3, 2), (6, 320, 1, 1))
# kernel, width inside, width after, squeeze-and-excite, hardswish, stride
_V3 = (
    (3, 16, 16, True, False, 2),
    (3, 72, 24, False, False, 2),
    (3, 88, 24, False, False, 1),
    (5, 96, 40, True, True, 2),
    (5, 240, 40, True, True, 1),
    (5, 240, 40, True, True, 1),
    (5, 120, 48, True, True, 1),
    (5, 144, 48, True, True, 1),
    (5, 288, 96, True, True, 2),
    (5, 576, 96, True, True, 1),
    (5, 576, 96, True, True, 1),
)


def _conv(
    inside: int, outside: int, size: int, stride: int, act: Any, groups: int = 1
) -> nn.Module:
    conv = nn.Conv2d(inside, outside, size, stride, size // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outside), act)


def mobile_net_v2() -> tuple[nn.Module, tuple[Any, ...]]:
    blocks: list[nn.Module] = [_conv(3, 32, 3, 2, nn.ReLU6(inplace=True))]
    inside = 32
    for grow, outside, count, stride in (*_V2, *_V2_REST):
        for index in range(count):
            step = stride if index == 0 else 1
            blocks.append(InvertedResidual(inside, outside, step, grow))
            inside = outside
    blocks.append(_conv(inside, 1280, 1, 1, nn.ReLU6(inplace=True)))
    head = Classifier(nn.Sequential(*blocks), 1280)
    head.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, 1000))
    return head, (torch.randn(1, 3, 224, 224),)


class _V3Block(nn.Module):
    def __init__(self, inside: int, row: tuple[int, int, int, bool, bool, int]) -> None:
        super().__init__()
        size, wide, outside, squeeze, hard, stride = row
        act: nn.Module = nn.Hardswish(inplace=True) if hard else nn.ReLU(inplace=True)
        steps: list[nn.Module] = [] if wide == inside else [_conv(inside, wide, 1, 1, act)]
        steps.append(_conv(wide, wide, size, stride, act, groups=wide))
        if squeeze:
            steps.append(SqueezeExcite(wide))
        steps.append(_conv(wide, outside, 1, 1, nn.Identity()))
        self.body = nn.Sequential(*steps)
        self.residual = stride == 1 and inside == outside

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.residual else self.body(x)


def mobile_net_v3_small(side: int = 224) -> tuple[nn.Module, tuple[Any, ...]]:
    blocks: list[nn.Module] = [_conv(3, 16, 3, 2, nn.Hardswish(inplace=True))]
    inside = 16
    for row in _V3:
        blocks.append(_V3Block(inside, row))
        inside = row[2]
    blocks += [_conv(inside, 576, 1, 1, nn.Hardswish(inplace=True)), nn.AdaptiveAvgPool2d(1)]
    head = [nn.Flatten(), nn.Linear(576, 1024), nn.Hardswish(inplace=True), nn.Dropout(0.2)]
    net = nn.Sequential(*blocks, *head, nn.Linear(1024, 1000))
    return net, (torch.randn(1, 3, side, side),)


def res_net_18(width: int = 64, side: int = 224) -> tuple[nn.Module, tuple[Any, ...]]:
    stem = [_conv(3, width, 7, 2, nn.ReLU(inplace=True)), nn.MaxPool2d(3, 2, 1)]
    blocks: list[nn.Module] = [*stem]
    inside = width
    for outside, stride in ((width, 1), (2 * width, 2), (4 * width, 2), (8 * width, 2)):
        blocks += [BasicBlock(inside, outside, stride), BasicBlock(outside, outside, 1)]
        inside = outside
    head = Classifier(nn.Sequential(*blocks), 8 * width)
    head.head = nn.Sequential(nn.Linear(8 * width, 1000))
    return head, (torch.randn(1, 3, side, side),)


class _Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.attend(self.first(x)).split(width, 2)
        rows = [p.view(batch, length, self.heads, -1).transpose(1, 2) for p in parts]
        y = F.scaled_dot_product_attention(*rows, is_causal=True)
        x = x + self.project(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.second(x)), approximate="tanh"))


class _Gpt2(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(50257, 768), nn.Embedding(1024, 768)
        self.layers = nn.ModuleList(_Layer(768, 12) for _ in range(12))
        self.norm = nn.LayerNorm(768)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return F.linear(self.norm(x), self.words.weight)  # tied


def gpt2() -> tuple[nn.Module, tuple[Any, ...]]:
    return _Gpt2(), (torch.randint(0, 50257, (1, 64)),)


NETS = {
    "MobileNetV2": mobile_net_v2,
    "MobileNetV3-small": mobile_net_v3_small,
    "ResNet18": res_net_18,
    "GPT-2": gpt2,
}


def chain(length: int) -> ExportedProgram:
    """Return a program of so many operators one after the other, made without torch's export."""

    class Short(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x)

    program = torch.export.export(Short(), (torch.randn(4),))
    graph = program.graph
    first = next(node for node in graph.nodes if node.op == "call_function")
    output = next(reversed(graph.nodes))
    last = first
    aten: Any = torch.ops.aten
    with graph.inserting_before(output):
        for index in range(length - 1):
            target = (aten.relu.default, aten.neg.default, aten.sigmoid.default)[index % 3]
            made = graph.call_function(target, (last,))
            made.meta = {**first.meta, "val": first.meta["val"], "from_node": []}
            last = made
    output.args = ((last,),)
    program.graph_signature.output_specs[0].arg.name = last.name
    return program
