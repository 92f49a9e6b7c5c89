"""Odd programs: many outputs, bool and int outputs, no constants, half precision, stack traces."""

from __future__ import annotations

import torch
from executorch.exir import ExecutorchBackendConfig
from torch.export import Dim, export
from writing import Recipe, write_all


class ManyOutputs(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = torch.nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor | tuple[torch.Tensor, ...]]:
        y = self.lin(x)
        values, indices = torch.topk(y, 2)
        low, high = torch.split(y, 3, dim=1)
        return {"all": y, "top": (values, indices), "halves": (low, high), "first": x}


class BoolAndInt(torch.nn.Module):
    def forward(
        self, x: torch.Tensor, n: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
        return x > 0, torch.argmax(x, 1), (n * 3).to(torch.int32), 7


class NoConstants(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.relu(a + b)


class Identity(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


class Half(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(2, 4, 3)
        self.lin = torch.nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lin(torch.relu(self.conv(x)).mean((2, 3)))


class Mlp(torch.nn.Module):
    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(width, width) for _ in range(layers)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x)) + x
        return x


def many_outputs() -> Recipe:
    x = torch.randn(3, 6)
    return Recipe("many_outputs", [("forward", (x,))] * 3, ManyOutputs(), reference=False)


def bool_and_int() -> Recipe:
    inputs = (torch.randn(2, 5), torch.tensor([1, 2, 3], dtype=torch.int64))
    return Recipe("bool_and_int", [("forward", inputs)] * 2, BoolAndInt(), reference=False)


def no_constants() -> Recipe:
    inputs = (torch.randn(2, 3), torch.randn(2, 3))
    return Recipe("no_constants", [("forward", inputs)] * 2, NoConstants())


def identity() -> Recipe:
    return Recipe("identity", [("forward", (torch.randn(2),))] * 2, Identity())


def half_precision() -> Recipe:
    # The stock tracer has no half precision: no intermediate tensors for such a program.
    x = torch.randn(1, 2, 6, 6, dtype=torch.float16)
    runs = [("forward", (x,))] * 3
    return Recipe("half_precision", runs, Half().half().eval(), debug=False)


def dynamic_rows() -> Recipe:
    model, rows = Mlp(2, 4), Dim("rows", min=1, max=8)
    exported = export(model, (torch.randn(3, 4),), dynamic_shapes=({0: rows},), strict=False)
    runs = [("forward", (torch.randn(5, 4),))] * 3
    return Recipe("dynamic_rows", runs, model, exported={"forward": exported})


def emit_stacktrace() -> Recipe:
    config = ExecutorchBackendConfig(emit_stacktrace=True)
    runs = [("forward", (torch.randn(1, 4),))] * 2
    return Recipe("emit_stacktrace", runs, Mlp(2, 4), config=config)


def deep_mlp() -> Recipe:
    runs = [("forward", (torch.randn(1, 8),))] * 2
    return Recipe("deep_mlp", runs, Mlp(10, 8))


if __name__ == "__main__":
    write_all(
        [
            many_outputs,
            bool_and_int,
            no_constants,
            identity,
            half_precision,
            dynamic_rows,
            emit_stacktrace,
            deep_mlp,
        ]
    )
