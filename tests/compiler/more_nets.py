"""Nets of other families, written out small: attention over patches, gates, state, two heads."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  torch's own habit


class SqueezeExcite(nn.Module):
    """Weighs channels by what is in them; gates as in MobileNetV3."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.down = nn.Conv2d(channels, channels // 4, 1)
        self.up = nn.Conv2d(channels // 4, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = F.adaptive_avg_pool2d(x, 1)
        return x * F.hardsigmoid(self.up(F.relu(self.down(scale))))


class Bottleneck(nn.Module):
    """The block of MobileNetV3."""

    def __init__(self, channels: int, wide: int, *, squeeze: bool, act: nn.Module) -> None:
        super().__init__()
        steps: list[nn.Module] = [nn.Conv2d(channels, wide, 1, bias=False), nn.BatchNorm2d(wide)]
        steps += [act, nn.Conv2d(wide, wide, 5, padding=2, groups=wide, bias=False)]
        steps += [nn.BatchNorm2d(wide), act]
        if squeeze:
            steps.append(SqueezeExcite(wide))
        steps += [nn.Conv2d(wide, channels, 1, bias=False), nn.BatchNorm2d(channels)]
        self.body = nn.Sequential(*steps)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x)


def mobile_net_v3() -> nn.Module:
    """Return MobileNetV3 with both kinds of blocks, narrow."""
    blocks: list[nn.Module] = [nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8)]
    blocks.append(nn.Hardswish(inplace=True))
    for index in range(6):
        act: nn.Module = nn.Hardswish(inplace=True) if index > 2 else nn.ReLU(inplace=True)
        blocks.append(Bottleneck(8, 24, squeeze=index % 2 == 0, act=act))
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 16), nn.Hardswish()]
    return nn.Sequential(*blocks, *head, nn.Dropout(0.2), nn.Linear(16, 10))


class SmallViT(nn.Module):
    """Patches, a class token, positions, encoder layers."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 8, 8)
        self.token = nn.Parameter(torch.randn(1, 1, 32))
        self.positions = nn.Parameter(torch.randn(1, 17, 32))
        layer = nn.TransformerEncoderLayer(
            32, 4, 64, batch_first=True, activation="gelu", norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = self.patches(x).flatten(2).transpose(1, 2)
        rows = torch.cat([self.token.expand(x.shape[0], -1, -1), rows], 1) + self.positions
        return self.head(self.encoder(rows)[:, 0])


class DepthwiseTwoHeads(nn.Module):
    """Squeeze-and-excite with GroupNorm, depthwise convolutions, two outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, 2, 1)
        self.norm = nn.GroupNorm(4, 16)
        self.deep = nn.Conv2d(16, 16, 3, padding=2, dilation=2, groups=16)
        self.gate = SqueezeExcite(16)
        self.classes = nn.Linear(16, 5)
        self.mask = nn.ConvTranspose2d(16, 1, 2, 2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = F.silu(self.norm(self.stem(x)))
        y = self.gate(F.mish(self.deep(y)) + y)
        return self.classes(y.mean((2, 3))), torch.sigmoid(self.mask(y))


class GatedCounts(nn.Module):
    """A GRU whose outputs are summed up and chosen by a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(6, 8, batch_first=True, bidirectional=True)
        self.head = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor, keep: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows, last = self.gru(x)
        summed = torch.cumsum(rows, 1)
        rows = torch.where(keep[..., None], summed / (1 + summed.abs()), torch.zeros_like(rows))
        return self.head(rows), last


class CachedDecoder(nn.Module):
    """A decoder layer that writes keys and values at a position and masks what is ahead."""

    keys: torch.Tensor
    values: torch.Tensor
    mask: torch.Tensor

    def __init__(self, width: int = 16, heads: int = 4, length: int = 8) -> None:
        super().__init__()
        self.heads = heads
        self.embed = nn.Embedding(20, width)
        self.project = nn.Linear(width, 3 * width)
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, 20, bias=False)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(1, heads, length, width // heads))
        self.register_buffer("mask", torch.ones(length, length, dtype=torch.bool).tril())

    def forward(self, token: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.embed(token))
        parts = self.project(x).view(1, 1, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        self.keys.index_copy_(2, position, key)
        self.values.index_copy_(2, position, value)
        mask = self.mask[position][None, None]
        y = F.scaled_dot_product_attention(query, self.keys, self.values, attn_mask=mask)
        return self.out(x + y.transpose(1, 2).reshape(1, 1, -1)).log_softmax(-1)


class SpeechNet(nn.Module):
    """One-dimensional convolutions and an LSTM with its state as input and output."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.Sequential(
            nn.Conv1d(4, 8, 3, padding=1), nn.BatchNorm1d(8), nn.ELU(), nn.AvgPool1d(2)
        )
        self.lstm = nn.LSTM(8, 6, num_layers=2)

    def forward(
        self, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        rows, (h, c) = self.lstm(self.convs(x).permute(2, 0, 1), (h, c))
        return F.normalize(rows, dim=-1), h, c


class UNet(nn.Module):
    """Down, up with resizing, and a skip connection."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.inside = nn.Conv2d(2, 4, 3, 2, 1), nn.Conv2d(4, 4, 3, padding=1)
        self.up = nn.Conv2d(6, 2, 3, padding=1, padding_mode="reflect")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.leaky_relu(self.inside(F.relu(self.down(x))), 0.1)
        y = F.interpolate(y, scale_factor=2.0, mode="bilinear", align_corners=False)
        return torch.softmax(self.up(torch.cat([x, y], 1)), 1)
