"""Programs whose work is a number of equal layers."""

from __future__ import annotations

from pathlib import Path

import torch

_SIZE = (1, 16, 48, 48)


class Chain(torch.nn.Module):
    """Layers that each take the same time."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(
            torch.nn.Conv2d(16, 16, 3, padding=1) for _ in range(layers)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x


def save_chain(folder: str, layers: int) -> str:
    """Compile a chain for portable kernels; return the path of the program."""
    from compiler import to_edge

    torch.manual_seed(0)
    exported = torch.export.export(Chain(layers).eval(), (torch.randn(_SIZE),))
    path = Path(folder, f"chain{layers}.pte")
    path.write_bytes(to_edge(exported).to_executorch().buffer)
    return str(path)
