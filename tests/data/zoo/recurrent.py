"""Recurrent models: one module becomes many instructions which share a handful of handles."""

from __future__ import annotations

import torch
from writing import Recipe, write_all


class Lstm(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(4, 6, batch_first=True)
        self.head = torch.nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        y, (h, c) = self.lstm(x)
        return self.head(y[:, -1]), h, c


class Gru(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = torch.nn.GRU(4, 5, batch_first=True, bidirectional=True)
        self.head = torch.nn.Linear(10, 2)

    def forward(self, x: torch.Tensor, h: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y, h = self.gru(x, h)
        return torch.sigmoid(self.head(y)), h


def lstm_portable() -> Recipe:
    x = torch.randn(2, 3, 4)
    return Recipe("lstm_portable", [("forward", (x,))] * 2, Lstm().eval())


def gru_portable() -> Recipe:
    inputs = (torch.randn(1, 2, 4), torch.zeros(2, 1, 5))
    return Recipe("gru_portable", [("forward", inputs)] * 2, Gru().eval())


if __name__ == "__main__":
    write_all([lstm_portable, gru_portable])
