"""The sample session: a small keyword spotter, partly delegated.

Run from tests/data: python zoo/keyword_net.py ../../devtools_app/sample_data
"""

from __future__ import annotations

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from writing import Recipe, write_all

FRAMES, MELS, WIDTH, WORDS = 49, 40, 32, 12


class Activation(torch.nn.Module):
    """GELU written out by hand, which keeps a partitioner from seeing one operator."""

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
    """Scores that grow over time, as a streaming spotter has them."""

    def __init__(self, width: int, words: int) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(width, words)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        evidence = torch.cumsum(self.fc(x.transpose(1, 2)), 1)[:, -1]
        values, indices = torch.topk(torch.softmax(evidence / x.shape[2], -1), 3)
        return values, indices


class KeywordNet(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = torch.nn.Sequential(torch.nn.Conv1d(MELS, WIDTH, 3, padding=1), torch.nn.ReLU())
        self.encoder = torch.nn.Sequential(*(Block(WIDTH) for _ in range(3)))
        self.head = Head(WIDTH, WORDS)

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.head(self.encoder(self.stem(features)))


def keyword_net() -> Recipe:
    runs = [("forward", (torch.randn(1, MELS, FRAMES),))] * 8
    return Recipe("keyword_net", runs, KeywordNet().eval(), partitioner=[XnnpackPartitioner()])


if __name__ == "__main__":
    write_all([keyword_net])
