"""Known image nets, written out small: the blocks are the real ones, the widths are not."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class InvertedResidual(nn.Module):
    """The block of MobileNetV2."""

    def __init__(self, inside: int, outside: int, stride: int, grow: int) -> None:
        super().__init__()
        wide = inside * grow
        self.residual = stride == 1 and inside == outside
        steps: list[nn.Module] = [] if grow == 1 else [_conv(inside, wide, 1)]
        steps.append(_conv(wide, wide, 3, stride, groups=wide))
        self.body = nn.Sequential(*steps, nn.Conv2d(wide, outside, 1, bias=False), _norm(outside))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.residual else self.body(x)


class BasicBlock(nn.Module):
    """The block of ResNet18."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.first_norm = _norm(outside)
        self.second = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.second_norm = _norm(outside)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = None
        if stride != 1 or inside != outside:
            short = nn.Conv2d(inside, outside, 1, stride, bias=False)
            self.shortcut = nn.Sequential(short, _norm(outside))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.relu(self.first_norm(self.first(x)))
        out = self.second_norm(self.second(out))
        out += x if self.shortcut is None else self.shortcut(x)
        return self.relu(out)


def _norm(channels: int) -> nn.BatchNorm2d:
    norm = nn.BatchNorm2d(channels)
    nn.init.uniform_(norm.running_mean, -0.1, 0.1)
    nn.init.uniform_(norm.running_var, 0.5, 1.5)
    return norm


def _conv(inside: int, outside: int, size: int, stride: int = 1, **options: Any) -> nn.Module:
    conv = nn.Conv2d(inside, outside, size, stride, size // 2, bias=False, **options)
    return nn.Sequential(conv, _norm(outside), nn.ReLU6(inplace=True))


class Classifier(nn.Module):
    def __init__(self, features: nn.Module, channels: int) -> None:
        super().__init__()
        self.features = features
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(channels, 10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pooled = nn.functional.adaptive_avg_pool2d(self.features(x), (1, 1))
        return self.head(torch.flatten(pooled, 1))


def mobile_net() -> nn.Module:
    """Return MobileNetV2 with all its 17 blocks, at a quarter of the width."""
    settings = ((1, 4, 1, 1), (6, 6, 2, 2), (6, 8, 3, 2), (6, 16, 4, 2))
    settings += ((6, 24, 3, 1), (6, 40, 3, 2), (6, 80, 1, 1))
    blocks: list[nn.Module] = [_conv(3, 8, 3, 2)]
    inside = 8
    for grow, outside, count, stride in settings:
        for index in range(count):
            step = stride if index == 0 else 1
            blocks.append(InvertedResidual(inside, outside, step, grow))
            inside = outside
    return Classifier(nn.Sequential(*blocks, _conv(inside, 160, 1)), 160)


def res_net() -> nn.Module:
    """Return ResNet18 at a quarter of the width."""
    stem = [nn.Conv2d(3, 16, 7, 2, 3, bias=False), _norm(16), nn.ReLU(inplace=True)]
    blocks: list[nn.Module] = [*stem, nn.MaxPool2d(3, 2, 1)]
    inside = 16
    for outside, stride in ((16, 1), (32, 2), (64, 2), (128, 2)):
        blocks += [BasicBlock(inside, outside, stride), BasicBlock(outside, outside, 1)]
        inside = outside
    return Classifier(nn.Sequential(*blocks), 128)


def transformer() -> nn.Module:
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    return nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
