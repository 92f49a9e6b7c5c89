"""User code for a warm worker."""

from __future__ import annotations

import os
import signal

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


def crashes():
    os.kill(os.getpid(), signal.SIGSEGV)


def raises():
    raise ValueError("no weights here")


def never():
    print("waiting", flush=True)  # noqa: T201 - the code of users prints
    while True:
        pass


class Fatal(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        os.kill(os.getpid(), signal.SIGKILL)
        return x


def fatal():
    return Fatal(), (torch.ones(2),)
