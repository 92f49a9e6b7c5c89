"""Eight small programs of families that no other test has: a module and inputs each."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

Made = tuple[nn.Module, tuple[torch.Tensor, ...]]
_SIDE, _TAPS = 12, 9


class MovedTaps(nn.Module):
    """A convolution whose taps are moved by learnt offsets, read between four elements."""

    def __init__(self) -> None:
        super().__init__()
        self.offsets, self.mix = nn.Conv2d(4, 2 * _TAPS, 3, padding=1), nn.Conv2d(4 * _TAPS, 8, 1)

    def forward(self, x: Any) -> Any:
        by = torch.tanh(self.offsets(x)).view(2, _TAPS, 2, _SIDE, _SIDE)
        place = torch.arange(_SIDE, dtype=torch.float32)
        rows = (place.view(1, 1, _SIDE, 1) + by[:, :, 0]).clamp(0, _SIDE - 1)
        columns = (place.view(1, 1, 1, _SIDE) + by[:, :, 1]).clamp(0, _SIDE - 1)
        top, left = rows.floor(), columns.floor()
        bottom, right = (top + 1).clamp(0, _SIDE - 1), (left + 1).clamp(0, _SIDE - 1)
        down, across = (rows - top).unsqueeze(1), (columns - left).unsqueeze(1)
        flat = x.view(2, 4, _SIDE * _SIDE)

        def at(row: Any, column: Any) -> Any:
            index = (row * _SIDE + column).to(torch.int64).view(2, 1, -1).expand(2, 4, -1)
            return flat.gather(2, index).view(2, 4, _TAPS, _SIDE, _SIDE)

        upper = at(top, left) * (1 - across) + at(top, right) * across
        lower = at(bottom, left) * (1 - across) + at(bottom, right) * across
        found = upper * (1 - down) + lower * down
        return self.mix(found.reshape(2, 4 * _TAPS, _SIDE, _SIDE))


class Waves(nn.Module):
    """Convolutions over time, dilated and transposed, with a gate."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv1d(1, 16, 9, stride=4, padding=4), nn.GroupNorm(4, 32)
        self.wide = nn.Conv1d(16, 32, 5, padding=4, dilation=2)
        self.up, self.last = nn.ConvTranspose1d(32, 16, 8, stride=4, padding=2), nn.Conv1d(8, 1, 1)

    def forward(self, x: Any) -> Any:
        y = functional.silu(self.norm(self.wide(functional.gelu(self.first(x)))))
        return torch.tanh(self.last(functional.glu(self.up(y), 1)))


class Edges(nn.Module):
    """Messages along the edges of a graph: gathered, added up where they arrive, averaged."""

    def __init__(self) -> None:
        super().__init__()
        self.message, self.update = nn.Linear(16, 32), nn.Linear(48, 16)
        ends = torch.randint(0, 40, (2, 120), generator=torch.Generator().manual_seed(1))
        self.register_buffer("ends", ends)

    def forward(self, x: Any) -> Any:
        start, end = self.ends[0], self.ends[1]
        for _ in range(2):
            sent = torch.relu(self.message(x[start]))
            arrived = torch.zeros(40, 32).index_add(0, end, sent)
            count = torch.zeros(40, 1).index_add(0, end, torch.ones(120, 1)).clamp(min=1)
            x = self.update(torch.cat([x, arrived / count], 1))
        return x.softmax(1)


class Tiny(nn.Module):
    """Two layers of a few microseconds."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x: Any) -> Any:
        return self.last(torch.relu(self.first(x)))


class Bag(nn.Module):
    """Rows of a table, averaged where a mask is set."""

    def __init__(self) -> None:
        super().__init__()
        self.rows, self.last = nn.Embedding(500, 24), nn.Linear(24, 6)

    def forward(self, index: Any, mask: Any) -> Any:
        total = (self.rows(index) * mask.unsqueeze(-1)).sum(1)
        return self.last(total / mask.sum(1, keepdim=True).clamp(min=1)).log_softmax(1)


class BothWays(nn.Module):
    """A bidirectional GRU."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(8, 12, bidirectional=True, batch_first=True)
        self.last = nn.Linear(24, 5)

    def forward(self, x: Any) -> Any:
        return self.last(self.gru(x)[0])


class Patches(nn.Module):
    """One block of a vision transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.patch, self.place = nn.Conv2d(3, 32, 8, stride=8), nn.Parameter(torch.randn(1, 17, 32))
        self.token, self.qkv = nn.Parameter(torch.randn(1, 1, 32)), nn.Linear(32, 96)
        self.out, self.one, self.two = nn.Linear(32, 32), nn.LayerNorm(32), nn.LayerNorm(32)
        self.mlp = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))
        self.head = nn.Linear(32, 10)

    def forward(self, x: Any) -> Any:
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(2, -1, -1), x], 1) + self.place
        q, k, v = self.qkv(self.one(x)).view(2, 17, 3, 4, 8).permute(2, 0, 3, 1, 4).unbind(0)
        seen = torch.softmax(q @ k.transpose(2, 3) / 8**0.5, -1) @ v
        x = x + self.out(seen.transpose(1, 2).reshape(2, 17, 32))
        return self.head((x + self.mlp(self.two(x)))[:, 0])


def _layers(inputs: int, outputs: int) -> nn.Module:
    conv = nn.Conv2d(inputs, outputs, 3, padding=1)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU())


class Levels(nn.Module):
    """A small U-Net: pooled, transposed and interpolated."""

    def __init__(self) -> None:
        super().__init__()
        self.top, self.below, self.middle = _layers(1, 8), _layers(8, 16), _layers(16, 16)
        self.up, self.joined = nn.ConvTranspose2d(16, 8, 2, stride=2), _layers(16, 8)
        self.last = nn.Conv2d(8, 2, 1)

    def forward(self, x: Any) -> Any:
        top = self.top(x)
        low = self.middle(self.below(functional.max_pool2d(top, 2)))
        wide = functional.interpolate(low[:, :8], scale_factor=2.0, mode="bilinear")
        return self.last(self.joined(torch.cat([top, self.up(low) + wide], 1)))


def _made(kind: type[nn.Module], *shape: int) -> Made:
    torch.manual_seed(0)
    return kind().eval(), (torch.randn(*shape),)


def moved_taps() -> Made:
    return _made(MovedTaps, 2, 4, _SIDE, _SIDE)


def waves() -> Made:
    return _made(Waves, 1, 1, 512)


def edges() -> Made:
    return _made(Edges, 40, 16)


def tiny() -> Made:
    return _made(Tiny, 1, 4)


def bag() -> Made:
    torch.manual_seed(0)
    mask = (torch.rand(4, 12) > 0.3).float()
    return Bag().eval(), (torch.randint(0, 500, (4, 12)), mask)


def both_ways() -> Made:
    return _made(BothWays, 2, 10, 8)


def patches() -> Made:
    return _made(Patches, 2, 3, 32, 32)


def levels() -> Made:
    return _made(Levels, 1, 1, 32, 32)


NETS = (moved_taps, waves, edges, tiny, bag, both_ways, patches, levels)
