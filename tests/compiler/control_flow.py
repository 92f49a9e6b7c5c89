"""Programs with branches and loops."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch._higher_order_ops import scan, while_loop
from torch._higher_order_ops.map import map as _typed_map

from tests.compiler.programs import Sample, of

map_rows: Any = _typed_map


class Branches(nn.Module):
    """One branch has weights, the other writes in place."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, self._linear, lambda a: (a * 2).relu_(), (x,)) * 3

    def _linear(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) + 1


def _nested(x: torch.Tensor) -> torch.Tensor:
    def outer(a: torch.Tensor) -> torch.Tensor:
        return torch.cond(a.max() > 1, lambda b: b * 2.5, lambda b: b * 3.5 + 2.5, (a,)).sin()

    return torch.cond(x.sum() > 0, outer, lambda a: a.t().contiguous().t().contiguous() + 7, (x,))


class PaddedBranches(Branches):
    """In the branches the number of rows is only known as one less than that of their input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(nn.functional.pad(x, (0, 0, 1, 0)))


def _by_size(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.shape[0] > 3, lambda a: a + 1, lambda a: a - 1, (x,))


def _map_two(x: torch.Tensor, y: torch.Tensor) -> Any:
    return map_rows(lambda rows, b: (rows[0] + b, rows[1] * 2), (x, x + 1), y)


def _map_of_cond(x: torch.Tensor) -> torch.Tensor:
    def body(row: torch.Tensor) -> torch.Tensor:
        return torch.cond(row.sum() > 0, lambda a: a.cos(), lambda a: a * 2, (row,))

    return map_rows(body, x).sum(0)


def _scan(x: torch.Tensor, start: torch.Tensor) -> Any:
    return scan(lambda carry, row: (carry + row, carry * 2), start, x)


def _while(x: torch.Tensor) -> Any:
    start = torch.zeros((), dtype=torch.int64)
    return while_loop(lambda i, _: i < 5, lambda i, a: (i + 1, a * 2 - i), (start, x))


def _while_number(x: torch.Tensor) -> Any:
    return while_loop(lambda i, _: i < 4, lambda i, a: (i + 1, a + i), (0, x))


def _while_until(x: torch.Tensor, n: torch.Tensor) -> Any:
    start = torch.zeros((), dtype=torch.int64)
    return while_loop(lambda i, _: i < n.sum(), lambda i, a: (i + 1, a * 0.5 + i), (start, x))


def _while_swap(x: torch.Tensor) -> Any:
    start = torch.zeros((), dtype=torch.int64)
    swap = lambda i, a, b: (i + 1, b.clone(), a + 1)  # noqa: E731
    return while_loop(lambda i, _a, _b: i < 3, swap, (start, x, x * 10))


def _nested_loops(x: torch.Tensor) -> torch.Tensor:
    def body(i: torch.Tensor, a: torch.Tensor) -> Any:
        inner = while_loop(lambda j, _: j < 3, lambda j, b: (j + 1, b * 2 + i), (i * 0, a))
        return i + 1, inner[1]

    kept = x.exp()  # read after the loops
    start = torch.zeros((), dtype=torch.int64)
    return while_loop(lambda i, _: i < 3, body, (start, x))[1] + kept


def _number_of_tensor(x: torch.Tensor) -> torch.Tensor:
    return x * x.sum().item()


def _tensors_in_bodies(x: torch.Tensor) -> Any:
    def step(i: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        def inner(j: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return j + 1, z + j

        return i + 1, while_loop(lambda j, _: j < 2, inner, (torch.tensor(0), y))[1] * 1.5

    row = torch.cond(
        x.sum() > 0,
        lambda a: a * torch.tensor([1.0, 2.0, 3.0]),
        lambda a: a + torch.tensor(3),
        (x,),
    )
    return row, while_loop(lambda i, _: i < 3, step, (torch.tensor(0), x))


ROWS = {0: torch.export.Dim("rows", min=2, max=9)}
X, UP, DOWN = torch.randn(4, 3), torch.rand(4, 3), -torch.rand(4, 3)

SAMPLES: dict[str, Sample] = {
    "cond": Sample(Branches, (UP,), ((DOWN,), (UP,))),
    "cond_nested": of(_nested, UP, further=((UP + 1,), (DOWN,))),
    "cond_by_size": of(_by_size, X, further=((X[:2],), (torch.randn(9, 3),)), dynamic=((ROWS,),)),
    "cond_padded": Sample(PaddedBranches, (UP,), ((DOWN,), (UP[:2],)), (ROWS,)),
    "data_in_sizes": of(
        lambda x: (x.nonzero(), x[x > 0]), X, further=((UP,), (DOWN,), (torch.zeros(4, 3),))
    ),
    "map_of_cond": of(_map_of_cond, X, further=((UP,), (DOWN,))),
    "map_rows_change": of(
        _map_two, X, X[0].clone(), further=((torch.randn(7, 3), X[1]),), dynamic=((ROWS, None),)
    ),
    "map_two": of(_map_two, X, X[0].clone(), further=((DOWN, X[1].clone()),)),
    "nested_loops": of(_nested_loops, X, further=((UP,),)),
    "number_of_tensor": of(_number_of_tensor, X, further=((UP,),)),
    "tensors_in_bodies": of(_tensors_in_bodies, UP, further=((DOWN,), (X,))),
    "scan": of(_scan, X, X[0].clone(), further=((UP, X[1].clone()),)),
    "while_loop": of(_while, X, further=((UP,),)),
    "while_loop_number": of(_while_number, X, further=((UP,),)),
    "while_loop_until": of(
        _while_until, X, torch.tensor([1, 2]), further=((UP, torch.tensor([3, 1])),)
    ),
    "while_loop_swap": of(_while_swap, X, further=((UP,),)),
}
