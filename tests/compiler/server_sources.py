"""User code for a warm worker."""

from __future__ import annotations

import torch


class Net(torch.nn.Module):
    """Two convolutions with something between that XNNPACK does not take, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU())
        self.second = torch.nn.Sequential(torch.nn.Conv2d(4, 4, 3), torch.nn.ReLU())
        self.head = torch.nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x)
        y = torch.cumsum(y, 3) + y
        y = self.second(y).mean((2, 3))
        return self.head(torch.sigmoid(y) * y).softmax(-1)

    def scaled(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x)) * 2


def net():
    torch.manual_seed(3)
    made = Net().eval()
    inputs = (torch.randn(1, 3, 8, 8),)
    return {"module": made, "inputs": inputs, "methods": {"scaled": (made.scaled, inputs)}}


def plain():
    torch.manual_seed(3)
    return Net().eval(), (torch.randn(1, 3, 8, 8),)


def never():
    print("waiting", flush=True)  # noqa: T201 - the code of users prints
    while True:
        pass
