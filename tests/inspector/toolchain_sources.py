"""Programs that go through both toolchains: plain, with state and control flow, several methods."""

from __future__ import annotations

import torch


class Mixed(torch.nn.Module):
    """Convolutions and a linear layer that XNNPACK takes, around a cumsum that it does not."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.fc = torch.nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.norm(self.conv(x)))
        y = torch.cumsum(y.mean((2, 3)), 1)
        return self.fc(y)


class Counter(torch.nn.Module):
    """Keeps a sum from call to call."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x.sum(0))
        return self.total * x


class Coder(torch.nn.Module):
    """Two methods that share a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(10, 6)
        self.out = torch.nn.Linear(6, 10)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.out(self.table(ids))

    def decode(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, indices = torch.topk(torch.softmax(self.out(x), -1), 3)
        return values, indices


def mixed():
    torch.manual_seed(0)
    return Mixed().eval(), (torch.randn(1, 3, 12, 12),)


def counter():
    return Counter().eval(), (torch.ones(2, 4),)


def coder():
    torch.manual_seed(0)
    module = Coder().eval()
    return {
        "module": module,
        "inputs": (torch.tensor([[1, 2, 3]]),),
        "methods": {"decode": (module.decode, (torch.randn(2, 6),))},
        "constant_methods": {"vocabulary": 10},
    }


class Split(torch.nn.Module):
    """Two nodes that XNNPACK takes, around one that it does not."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(x - 1.0, 1) * x


def split():
    return Split().eval(), (torch.ones(2, 4),)
