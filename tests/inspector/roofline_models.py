"""Models of different families, torch's count of their FLOPs, and their programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from compiler import export, to_edge_transform_and_lower
from inspector.files.load import load_session
from inspector.files.session import Session


class Recurrent(nn.Module):
    """An LSTM cell over four steps."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(6, 5)

    def forward(self, steps: torch.Tensor) -> torch.Tensor:
        hidden, cell = torch.zeros(2, 5), torch.zeros(2, 5)
        for step in range(4):
            hidden, cell = self.cell(steps[step], (hidden, cell))
        return hidden


class Attention(nn.Module):
    """Attention of grouped heads, with its projection."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(8, 4)

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return self.out(nn.functional.scaled_dot_product_attention(query, key, value))


class Vision(nn.Module):
    """A vision transformer of one layer."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, stride=4)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.head = nn.Linear(16, 3)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        words = self.patches(image).flatten(2).transpose(1, 2)
        return self.head(self.layer(words).mean(1))


class Products(nn.Module):
    """One call of each matmul."""

    def forward(self, one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
        flat = torch.mm(one[0], two[0]) + torch.addmm(one[0, :, :5], one[0], two[0])
        return flat + torch.bmm(one, two) + torch.baddbmm(one[:, :, :5], one, two)


Made = tuple[nn.Module, tuple[torch.Tensor, ...]]
_SHAPES: dict[str, tuple[Callable[[], nn.Module], tuple[tuple[int, ...], ...]]] = {
    "conv1d": (lambda: nn.Conv1d(3, 8, 3, stride=2, padding=1), ((2, 3, 20),)),
    "conv2d": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 8, 3, dilation=2), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)
        ),
        ((2, 3, 16, 14),),
    ),
    "conv3d": (lambda: nn.Conv3d(2, 4, (1, 3, 2), padding=1), ((1, 2, 5, 6, 7),)),
    "grouped": (lambda: nn.Conv2d(8, 12, 3, groups=4), ((1, 8, 9, 9),)),
    "depthwise": (
        lambda: nn.Sequential(nn.Conv2d(6, 6, 3, groups=6), nn.Hardswish(), nn.Conv2d(6, 4, 1)),
        ((1, 6, 8, 8),),
    ),
    "transposed": (
        lambda: nn.ConvTranspose2d(6, 4, 3, stride=2, groups=2, output_padding=1),
        ((2, 6, 5, 5),),
    ),
    "mlp": (
        lambda: nn.Sequential(nn.Linear(12, 20), nn.GELU(), nn.LayerNorm(20), nn.Linear(20, 3)),
        ((2, 4, 12),),
    ),
    "products": (Products, ((2, 4, 6), (2, 6, 5))),
    "recurrent": (Recurrent, ((4, 2, 6),)),
    "attention": (Attention, ((1, 2, 5, 8), (1, 2, 7, 8), (1, 2, 7, 8))),
    "vision": (Vision, ((1, 3, 16, 16),)),
}
MODELS = tuple(_SHAPES)


def made(name: str) -> Made:
    """Return a model and its inputs."""
    maker, shapes = _SHAPES[name]
    generator = torch.Generator().manual_seed(0)
    return maker().eval(), tuple(torch.randn(shape, generator=generator) for shape in shapes)


def counted(model: nn.Module, inputs: tuple[torch.Tensor, ...]) -> dict[str, int]:
    """Return torch's count of an eager run by operator."""
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        model(*inputs)
    found: dict[Any, int] = counter.get_flop_counts()["Global"]
    return {str(operator).removeprefix("aten."): flops for operator, flops in found.items()}


def session_of(made: Made, folder: Any, *partitioners: Any) -> Session:
    """Return the session of the program of a model."""
    edge = to_edge_transform_and_lower(export(*made), partitioner=list(partitioners) or None)
    path = folder / "model.pte"
    path.write_bytes(edge.to_executorch().buffer)
    return load_session([str(path)])
