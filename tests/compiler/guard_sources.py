"""Programs whose delegates load, and some that partitioners take and kernels refuse."""

from __future__ import annotations

import torch
import torch.ao.quantization.fx._decomposed
from torch import nn
from torch.nn import functional as F  # noqa: N812  torch's own habit

q = torch.ops.quantized_decomposed
IMAGE = torch.linspace(-1, 1, 144).reshape(1, 4, 6, 6)
RANGE = (-128, 127, torch.int8)


def steps(x: torch.Tensor, scale: float) -> torch.Tensor:
    """Return a value rounded to steps, as a calibrated program does."""
    rounded = q.quantize_per_tensor.default(x, scale, 0, *RANGE)
    return q.dequantize_per_tensor.default(rounded, scale, 0, *RANGE)


class Layer(nn.Module):
    """A quantized layer; a scale that is too small is what calibration with zeros leaves."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        numbers = torch.arange(-72, 72, dtype=torch.int8).reshape(4, 4, 3, 3)
        self.weight = nn.Parameter(numbers, requires_grad=False)
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = q.dequantize_per_tensor.default(self.weight, 0.05, 0, *RANGE)
        return steps(F.conv2d(x, weight, padding=1), self.scale)  # line: refused


class Net(nn.Module):
    def __init__(self, *scales: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Layer(scale) for scale in scales])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = steps(x, 0.1)
        for layer in self.layers:
            x = layer(x)
        return torch.sigmoid(x)


class Rough(nn.Module):
    """Two hundred nodes; of its activations the payload has the second in another form only."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.gelu(x * 2)
        for at in range(65):
            x = x + torch.tanh(x) * 0.02
            if at == 43:
                x = F.gelu(x * 3, approximate="tanh")  # line: rough
        return torch.sigmoid(x - 1)


class Squeezed(nn.Module):
    """A clamp that leaves one number, which the kernels refuse."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(x) + 1
        return torch.exp(x.clamp(0.5, 0.5))  # line: squeezed


def sound():
    return Net(0.1, 0.2).eval(), (IMAGE,)


def dead():
    return Net(0.1, 1e-7, 0.3).eval(), (IMAGE,)


def twice_dead():
    return Net(1e-7, 0.1, 1e-8).eval(), (IMAGE,)


def rough():
    return Rough().eval(), (IMAGE,)


def squeezed():
    return Squeezed().eval(), (IMAGE,)


def plain():
    return nn.Sequential(nn.Linear(6, 6), nn.ReLU()).eval(), (IMAGE,)


def one_channel():
    """An image whose layout changes without a move, and whose height and width are unknown."""
    torch.manual_seed(0)
    sizes = ({2: torch.export.Dim("h", min=4, max=8), 3: torch.export.Dim("w", min=4, max=8)},)
    module = nn.Sequential(nn.Tanh(), nn.Conv2d(1, 2, 3, padding=1), nn.Sigmoid())
    return module.eval(), (IMAGE[:, :1].clone(),), None, sizes
