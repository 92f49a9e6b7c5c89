"""A small keyword spotter: what `make demo` compiles, runs and opens.

The GELU is written out by hand, which keeps a partitioner from seeing one operator, and the scores
grow over time, as a streaming spotter has them: two things that ETScope has something to say about.
"""

from __future__ import annotations

import torch

FRAMES, MELS, WIDTH, WORDS = 49, 40, 32, 12


class Activation(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 0.5 * (1.0 + torch.erf(x * 0.7071067811865476))


class Block(torch.nn.Module):
    """Depthwise and pointwise convolution with a residual."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise = torch.nn.Conv1d(width, width, 5, padding=2, groups=width)
        self.pointwise = torch.nn.Conv1d(width, width, 1)
        self.norm = torch.nn.BatchNorm1d(width)
        self.act = Activation()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.act(self.norm(self.pointwise(self.depthwise(x))))


class Head(torch.nn.Module):
    def __init__(self, width: int, words: int) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(width, words)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        evidence = torch.cumsum(self.fc(x.transpose(1, 2)), 1)[:, -1]
        values, indices = torch.topk(torch.softmax(evidence / x.shape[2], -1), 3)
        return values, indices


class KeywordSpotter(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = torch.nn.Sequential(torch.nn.Conv1d(MELS, WIDTH, 3, padding=1), torch.nn.ReLU())
        self.encoder = torch.nn.Sequential(*(Block(WIDTH) for _ in range(3)))
        self.head = Head(WIDTH, WORDS)

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.head(self.encoder(self.stem(features)))


def build() -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """Return the module and example inputs, as `etscope compile` wants them."""
    torch.manual_seed(0)
    return KeywordSpotter().eval(), (torch.randn(1, MELS, FRAMES),)
