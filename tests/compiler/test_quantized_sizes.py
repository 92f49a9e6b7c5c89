"""Dynamic sizes stay what they are when a program is quantized, also those made of others."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim

from compiler.memory.specs import upper_bound
from compiler.quantize.program import quantize_program
from compiler.untyped import ranges_of

pytestmark = pytest.mark.slow


class Rows(nn.Module):
    """Two blocks of rows through one layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 4)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layer(torch.cat([x, y], 0)))


def _sizes(program: Any) -> list[int]:
    user = set(program.graph_signature.user_inputs)
    values = [n.meta["val"] for n in program.graph.nodes if n.name in user]
    return [upper_bound(value.shape[0], ranges_of(program)) for value in values]


N, M = Dim("n", min=2, max=16), Dim("m", min=2, max=5)


@pytest.mark.parametrize(
    ("shapes", "rows", "largest"),
    [
        (({0: N}, {0: M}), (4, 3), [16, 5]),
        (({0: N}, {0: N}), (4, 4), [16, 16]),
        (({0: N}, {0: 2 * N}), (4, 8), [16, 32]),
        (({0: 3 * N}, {0: M}), (6, 3), [48, 5]),
        (({0: 2 * N + 1}, {0: 4 * M}), (9, 12), [33, 20]),
        (({0: N + 3}, None), (7, 5), [19, 5]),
    ],
)
@pytest.mark.parametrize("mode", ["static", "weight-only"])
def test_sizes_of_a_quantized_program_have_the_bounds_of_the_float_one(
    shapes: Any, rows: tuple[int, int], largest: list[int], mode: str
) -> None:
    torch.manual_seed(0)
    inputs = tuple(torch.randn(count, 6) for count in rows)
    program = torch.export.export(Rows().eval(), inputs, dynamic_shapes=shapes)
    assert _sizes(program) == largest
    quantized = quantize_program(program, mode)
    assert _sizes(quantized) == largest
    found = quantized.module()(*inputs)
    torch.testing.assert_close(found, program.module()(*inputs), atol=0.1, rtol=0.1)
