"""Linear layers in branches and loops, which words of weights do not quantize."""

from __future__ import annotations

import re
import warnings

import pytest
import torch

from compiler import export
from compiler.quantize.weights import WeightModes, quantize_weights


class _Branches(torch.nn.Module):
    """A layer, two in branches, one of which is called within a branch of a branch."""

    def __init__(self) -> None:
        super().__init__()
        self.top = torch.nn.Linear(32, 32)
        self.one = torch.nn.Linear(32, 32)
        self.two = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the result of a branch."""

        def deeper(y: torch.Tensor) -> torch.Tensor:
            return torch.cond(y.sum() > 9, self.two, lambda z: z + 1, (y,))

        return torch.cond(x.sum() > 0, lambda y: self.one(y), deeper, (self.top(x),))


def _sentences(how: WeightModes) -> list[str]:
    program = export(_Branches().eval().requires_grad_(False), (torch.randn(2, 32),))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = quantize_weights(program, how)
    given = torch.ones(2, 32)
    near = program.module()(given)
    assert torch.allclose(found.module()(given), near, atol=0.2)
    texts = (str(one.message) for one in caught)
    return [one for one in texts if "stay floats" in one]


@pytest.mark.parametrize(
    ("how", "named"),
    [
        (WeightModes("int8"), "2 linear layers in branches or loops stay floats: one, two.0"),
        (WeightModes("8da4w"), "2 linear layers in branches or loops stay floats: one, two.0"),
        (WeightModes("int8", modules={"two": "none"}), "a linear layer in .* floats: one"),
        (WeightModes(modules={"two": "int8"}), "a linear layer in .* floats: two.0"),
        (WeightModes(modules={"top": "int8"}), None),
        (WeightModes("int8", modules={"one": "none", "two": "none"}), None),
    ],
)
def test_layers_in_branches_that_stay_floats_are_named(how: WeightModes, named: str | None) -> None:
    found = _sentences(how)
    assert len(found) == (named is not None)
    assert named is None or re.search(named, found[0])
