"""The eight models of the matrix of backends, as sources of compiles."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn

ROOT = Path(__file__).resolve().parents[1]
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
        layers = [nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True) for _ in range(2)]
        self.layers = nn.ModuleList(layers)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the last states."""
        for layer in self.layers:  # their container would look at the values of the mask
            x = layer(x, mask)
        return x


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


def _ours(name: str) -> Any:
    """Return a module of this project, in an interpreter that another toolchain may have."""
    if str(ROOT) not in sys.path[:1]:
        sys.path.insert(0, str(ROOT))
    return importlib.import_module(name)


def m1() -> Built:
    """Return the convolutional one."""
    torch.manual_seed(0)
    return Convolutional().eval(), (torch.randn(1, 3, 8, 8),)


def m2() -> Built:
    """Return the one of words."""
    torch.manual_seed(0)
    return Words().eval(), (torch.arange(8).reshape(1, 8),)


def mobilenet() -> Built:
    """Return MobileNetV3-small for an image of 64 by 64, its weights random."""
    torch.manual_seed(0)
    net, inputs = _ours("tests.bench.compile_nets").mobile_net_v3_small(64)
    return net.eval(), inputs


def resnet() -> Built:
    """Return ResNet18 of a quarter of its width for an image of 64 by 64, its weights random."""
    torch.manual_seed(0)
    net, inputs = _ours("tests.bench.compile_nets").res_net_18(16, 64)
    return net.eval(), inputs


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
    program = _ours("compiler").export(module, inputs)
    return _ours("compiler.quantize.program").quantize_program(program, "static", [inputs])


def methods() -> dict[str, Built]:
    """Return two methods over the same weights."""
    torch.manual_seed(0)
    body, inputs = nn.Linear(16, 16), (torch.randn(2, 16),)
    return {"forward": (Shared(body).eval(), inputs), "score": (Shared(body).eval(), inputs)}
