"""Operators outside the core set are computed where they read constants alone."""

from __future__ import annotations

import pytest
import torch
from torch._export.verifier import SpecViolationError

from compiler import to_edge
from runtime import Runtime


class Sparse(torch.nn.Module):
    """Keeps what is above a quantile of a normal distribution, as the layers of Gemma 3n do."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normal = torch.distributions.Normal(0.0, 1.0)
        factor = normal.icdf(torch.tensor(0.95))
        return torch.relu(x - (x.mean(-1, keepdim=True) + factor * x.std(-1, keepdim=True)))


class Window(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        values, _ = torch.tensor([[2.0, 1.0], [1.0, 3.0]]).slogdet()
        return x * torch.special.i0(torch.tensor([0.5, 1.0, 2.0])) * values


class OfInput(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.erfinv(x) + torch.erfinv(torch.tensor(0.5))


@pytest.mark.parametrize("made", [Sparse, Window])
def test_values_are_those_of_eager(made: type[torch.nn.Module]) -> None:
    module, given = made().eval(), torch.randn(4, 3)
    program = to_edge(torch.export.export(module, (given,))).to_executorch().buffer
    found = Runtime.get().load_program(program).load_method("forward").execute([given])[0]
    torch.testing.assert_close(found, module(given))


def test_what_reads_an_input_is_refused_as_before() -> None:
    with pytest.raises(SpecViolationError, match="erfinv is not in the Core ATen opset"):
        to_edge(torch.export.export(OfInput(), (torch.rand(3),)))
