"""The eight models of the matrix of backends, as sources of compiles."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from compiler import export
from compiler.quantize.program import quantize_program
from tests.bench.compile_nets import NETS

Built = tuple[nn.Module, tuple[Any, ...]]


class Convolutional(nn.Module):
    """A convolution, a product and a sine; its 8 by 8 by 8 activation is a trap for layouts."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.head = nn.Linear(512, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return sines."""
        return torch.sin(self.head(torch.relu(self.conv(x)).flatten(1)))


class Words(nn.Module):
    """An embedding, a normalization, a running sum and the largest values."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.first, self.second = nn.Linear(16, 16), nn.Linear(16, 16)
        self.norm = nn.LayerNorm(16)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return shares and places of the largest values."""
        y = self.norm(torch.erf(self.first(self.embedding(x))))
        values, places = torch.topk(torch.cumsum(self.second(y), 1), 4)
        return torch.softmax(values, -1), places


class Masked(nn.Module):
    """Two layers of attention over a mask."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the last states."""
        return self.layers(x, mask)


class Recurrent(nn.Module):
    """A gated recurrent layer and a product."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.GRU(8, 16, batch_first=True)
        self.head = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return one result of the last state."""
        states, _ = self.cells(x)
        return self.head(states[:, -1])


class Shared(nn.Module):
    """A method over a layer that another one has too."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the positive part."""
        return torch.relu(self.body(x))


def m1() -> Built:
    """Return the convolutional one."""
    torch.manual_seed(0)
    return Convolutional().eval(), (torch.randn(1, 3, 8, 8),)


def m2() -> Built:
    """Return the one of words."""
    torch.manual_seed(0)
    return Words().eval(), (torch.arange(8).reshape(1, 8),)


def mobilenet() -> Built:
    """Return MobileNetV3-small, its weights random."""
    return NETS["MobileNetV3-small"]()


def resnet() -> Built:
    """Return ResNet18, its weights random."""
    return NETS["ResNet18"]()


def gru() -> Built:
    """Return the recurrent one."""
    torch.manual_seed(0)
    return Recurrent().eval(), (torch.randn(1, 5, 8),)


def transformer() -> Built:
    """Return the one with a mask."""
    torch.manual_seed(0)
    mask = torch.full((6, 6), float("-inf")).triu(1)
    return Masked().eval(), (torch.randn(1, 6, 32), mask)


def int8() -> torch.export.ExportedProgram:
    """Return the convolutional one in static int8."""
    module, inputs = m1()
    return quantize_program(export(module, inputs), "static", [inputs])


def methods() -> dict[str, Built]:
    """Return two methods over the same weights."""
    torch.manual_seed(0)
    body, inputs = nn.Linear(16, 16), (torch.randn(2, 16),)
    return {"forward": (Shared(body).eval(), inputs), "score": (Shared(body).eval(), inputs)}
