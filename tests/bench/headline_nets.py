"""Small nets of three families for the headline: a tiny one, a convolutional one, a transformer.

Compiled by `etscope compile FILE:NAME`, which runs this file alone: it imports torch only.
"""

from __future__ import annotations

import torch
from torch import nn

Case = tuple[nn.Module, tuple[torch.Tensor, ...]]


class _Gate(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up, self.gate = nn.Linear(width, 2 * width), nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(torch.sigmoid(self.gate(x)) * self.up(x))


class _Dense(nn.Module):
    """Layers that each read all that came before, as in DenseNet, and a transposed one."""

    def __init__(self, growth: int, layers: int) -> None:
        super().__init__()
        widths = [growth + i * growth for i in range(layers)]
        self.stem = nn.Conv2d(3, growth, 3, stride=2, padding=1)
        self.layers = nn.ModuleList(nn.Conv2d(width, growth, 3, padding=1) for width in widths)
        self.up = nn.ConvTranspose2d(growth * (layers + 1), 4, 2, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for layer in self.layers:
            x = torch.cat([x, nn.functional.hardtanh(layer(x))], dim=1)
        return self.up(nn.functional.avg_pool2d(x, 2))


class _Encoder(nn.Module):
    """Two blocks with attention over patches, and a norm before each."""

    def __init__(self, width: int, heads: int, tokens: int) -> None:
        super().__init__()
        self.heads = heads
        self.place = nn.Parameter(torch.randn(tokens, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(4))
        self.qkv = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(2))
        self.out = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.mlp = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            for _ in range(2)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.place
        for block in range(2):
            q, k, v = (
                part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
                for part in self.qkv[block](self.norms[2 * block](x)).chunk(3, dim=-1)
            )
            seen = torch.softmax(q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5, dim=-1) @ v
            x = x + self.out[block](seen.transpose(1, 2).flatten(2))
            x = x + self.mlp[block](self.norms[2 * block + 1](x))
        return x


def tiny() -> Case:
    """A gated layer of 16 numbers: some tens of microseconds."""
    torch.manual_seed(0)
    return _Gate(16).eval(), (torch.randn(1, 16),)


def dense() -> Case:
    """Six densely connected convolutions on a picture of 64 by 64."""
    torch.manual_seed(0)
    return _Dense(16, 6).eval(), (torch.randn(1, 3, 64, 64),)


def encoder() -> Case:
    """Two transformer blocks of width 128 on 64 tokens."""
    torch.manual_seed(0)
    return _Encoder(128, 4, 64).eval(), (torch.randn(1, 64, 128),)
