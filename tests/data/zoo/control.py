"""Control flow: branches, maps and scans, nested graphs in the record."""

from __future__ import annotations

import torch
from torch._higher_order_ops.map import map as torch_map
from torch._higher_order_ops.scan import scan
from writing import Recipe, write_all


class NestedBranches(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)

    def forward(self, p: torch.Tensor, q: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        def inner(q: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor]:
            return torch.cond(q, lambda x: (x.sin(),), lambda x: (x.cos() + 1,), (x,))

        x = self.lin(x)
        return torch.cond(p, inner, lambda q, x: (x * 2,), (q, x))[0] + 1


class MapRows(torch.nn.Module):
    def forward(self, rows: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch_map(lambda row, y: torch.sigmoid(row + y) * row, rows, y)


class ScanRows(torch.nn.Module):
    def forward(self, start: torch.Tensor, rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        def step(carry: torch.Tensor, row: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            carry = torch.tanh(carry + row)
            return carry, carry * 2

        return scan(step, start, rows)


def nested_branches() -> Recipe:
    x = torch.randn(2, 4)
    true, false = torch.tensor(True), torch.tensor(False)
    runs = [("forward", (p, q, x)) for p, q in ((true, true), (true, false), (false, true))]
    # The stock record refuses a branch inside a branch: SerializeError.
    return Recipe("nested_branches", runs, NestedBranches(), record=False)


def map_rows() -> Recipe:
    runs = [("forward", (torch.randn(3, 4), torch.randn(4)))] * 2
    return Recipe("map_rows", runs, MapRows(), reference=False)


def scan_rows() -> Recipe:
    runs = [("forward", (torch.randn(4), torch.randn(3, 4)))] * 2
    return Recipe("scan_rows", runs, ScanRows(), record=False)  # refused, as above


if __name__ == "__main__":
    write_all([nested_branches, map_rows, scan_rows])
