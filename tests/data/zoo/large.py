"""Big sessions for benchmarks; their outputs are not committed.

python zoo/large.py OUT_DIR [mv2_portable mv2_xnnpack resnet18_portable gpt2_portable …]

Weights are random; the graphs are those of the published models. Portable kernels are
plain loops, so the whole takes some minutes.
"""

from __future__ import annotations

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from torch import nn
from writing import Recipe, write_all

RUNS = 3


def _conv(
    inner: int, outer: int, size: int = 3, stride: int = 1, groups: int = 1
) -> list[nn.Module]:
    conv = nn.Conv2d(inner, outer, size, stride, size // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(outer)]


class InvertedResidual(nn.Module):
    def __init__(self, inner: int, outer: int, stride: int, expand: int) -> None:
        super().__init__()
        hidden = inner * expand
        layers: list[nn.Module] = []
        if expand != 1:
            layers += [*_conv(inner, hidden, 1), nn.ReLU6()]
        layers += [*_conv(hidden, hidden, 3, stride, hidden), nn.ReLU6(), *_conv(hidden, outer, 1)]
        self.conv = nn.Sequential(*layers)
        self.shortcut = stride == 1 and inner == outer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.conv(x) if self.shortcut else self.conv(x)


class MobileNetV2(nn.Module):
    SETTINGS = (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    )

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        features: list[nn.Module] = [nn.Sequential(*_conv(3, 32, 3, 2), nn.ReLU6())]
        inner = 32
        for expand, outer, count, stride in self.SETTINGS:
            for index in range(count):
                step = stride if index == 0 else 1
                features.append(InvertedResidual(inner, outer, step, expand))
                inner = outer
        features.append(nn.Sequential(*_conv(inner, 1280, 1), nn.ReLU6()))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.features(x)
        x = nn.functional.adaptive_avg_pool2d(x, (1, 1)).flatten(1)
        return self.classifier(x)


class BasicBlock(nn.Module):
    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = _conv(inner, outer, 3, stride)
        self.conv2, self.bn2 = _conv(outer, outer)
        same = stride == 1 and inner == outer
        self.downsample = None if same else nn.Sequential(*_conv(inner, outer, 1, stride))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + shortcut)


class ResNet18(nn.Module):
    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self.stem = nn.Sequential(*_conv(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        blocks: list[nn.Module] = []
        inner = 64
        for outer, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            blocks += [BasicBlock(inner, outer, stride), BasicBlock(outer, outer, 1)]
            inner = outer
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(512, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.blocks(self.stem(x)).mean((2, 3)))


class GptAttention(nn.Module):
    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        self.register_buffer("bias", torch.tril(torch.ones(length, length)).bool()[None, None])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        split = (batch, length, self.heads, width // self.heads)
        q, k, v = (part.view(split).transpose(1, 2) for part in self.c_attn(x).split(width, 2))
        scores = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
        scores = scores.masked_fill(~self.bias[:, :, :length, :length], float("-inf"))
        y = (torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(batch, length, width)
        return self.c_proj(y)


class GptMlp(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width)
        self.c_proj = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.c_fc(x)
        inner = 0.7978845608028654 * (x + 0.044715 * torch.pow(x, 3.0))
        return self.c_proj(0.5 * x * (1.0 + torch.tanh(inner)))


class GptBlock(nn.Module):
    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = GptAttention(width, heads, length)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = GptMlp(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt2(nn.Module):
    def __init__(self, width: int, vocabulary: int, layers: int = 12, length: int = 64) -> None:
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(length, width)
        self.h = nn.ModuleList([GptBlock(width, 12, length) for _ in range(layers)])
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def _vision(name: str, model: nn.Module, partitioner: list[XnnpackPartitioner] | None) -> Recipe:
    runs = [("forward", (torch.randn(1, 3, 224, 224),))] * RUNS
    return Recipe(name, runs, model.eval(), partitioner=partitioner, debug_bytes=1 << 28)


def _language(name: str, partitioner: list[XnnpackPartitioner] | None) -> Recipe:
    # A quarter of the published width and a small vocabulary: the graph is the same, and the
    # debug buffer of three runs (portable kernels copy each weight transposed) stays small.
    runs = [("forward", (torch.randint(0, 4096, (1, 64)),))] * RUNS
    model = Gpt2(width=192, vocabulary=4096).eval()
    return Recipe(name, runs, model, partitioner=partitioner, debug_bytes=1 << 28)


def mv2_portable() -> Recipe:
    return _vision("mv2_portable", MobileNetV2(), None)


def mv2_xnnpack() -> Recipe:
    return _vision("mv2_xnnpack", MobileNetV2(), [XnnpackPartitioner()])


def resnet18_portable() -> Recipe:
    return _vision("resnet18_portable", ResNet18(), None)


def resnet18_xnnpack() -> Recipe:
    return _vision("resnet18_xnnpack", ResNet18(), [XnnpackPartitioner()])


def gpt2_portable() -> Recipe:
    return _language("gpt2_portable", None)


def gpt2_xnnpack() -> Recipe:
    return _language("gpt2_xnnpack", [XnnpackPartitioner()])


def gpt2_full_portable() -> Recipe:
    runs = [("forward", (torch.randint(0, 50257, (1, 64)),))] * RUNS
    model = Gpt2(width=768, vocabulary=50257).eval()
    return Recipe("gpt2_full_portable", runs, model, debug=False)


if __name__ == "__main__":
    write_all(
        [
            mv2_portable,
            mv2_xnnpack,
            resnet18_portable,
            resnet18_xnnpack,
            gpt2_portable,
            gpt2_xnnpack,
            gpt2_full_portable,
        ]
    )
