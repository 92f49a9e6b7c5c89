"""Sizes that change: planned by the first run, so that a size that comes later plans nothing."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional

from compiler import export, to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from runtime import Method, Runtime
from runtime.execution import runner

MOST = {"batch": Dim("batch", max=6), "length": Dim("length", min=2, max=40)}


class Pooled(nn.Module):
    """Attention with rotated positions, of which means and the largest values are results."""

    def __init__(self) -> None:
        super().__init__()
        self.three, self.out = nn.Linear(32, 96), nn.Linear(32, 8)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        batch, length, _ = x.shape
        query, key, value = self.three(x).view(batch, length, 3, 4, 8).permute(2, 0, 3, 1, 4)
        turns = torch.arange(length).float()[:, None] * 0.1
        found = functional.scaled_dot_product_attention(
            query * turns.cos(), key * turns.sin(), value, is_causal=True
        )
        found = self.out(found.transpose(1, 2).reshape(batch, length, 32))
        return found.mean(1), found.amax(1)


class Filtered(nn.Module):
    """A dilated convolution over time, and a sum that grows along it."""

    def __init__(self) -> None:
        super().__init__()
        self.filter = nn.Conv1d(32, 32, 3, padding=2, dilation=2, groups=32)
        self.norm, self.out = nn.LayerNorm(32), nn.Linear(32, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = functional.gelu(self.filter(x.transpose(1, 2))).transpose(1, 2)
        found = self.out(self.norm(found + x))
        return found.softmax(-1), found.cumsum(1)


NETS: dict[str, Callable[[], nn.Module]] = {"pooled": Pooled, "filtered": Filtered}


def _loaded(module: nn.Module, *, delegates: bool, changes: bool = True) -> Method:
    given = (torch.randn(2, 9, 32),)
    sizes: Any = ({0: MOST["batch"], 1: MOST["length"]},) if changes else None
    edge = to_edge_transform_and_lower(
        export(module, given, dynamic_shapes=sizes),
        partitioner=[XnnpackPartitioner()] if delegates else None,
    )
    return Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that has an entry for each time that a method is planned."""
    found: list[str] = []
    for name in ("final_plan", "planned_beside_results"):
        made = getattr(runner, name)

        def noted(chains: Any, name: str = name, made: Any = made) -> Any:
            found.append(name)
            return made(chains)

        monkeypatch.setattr(runner, name, noted)
    return found


@pytest.mark.parametrize("delegates", [False, True], ids=["portable", "xnnpack"])
@pytest.mark.parametrize("name", NETS)
def test_the_first_run_plans_all_sizes(name: str, plans: list[str], *, delegates: bool) -> None:
    """In random order, many of them twice: values are those of eager, and nothing is planned."""
    torch.manual_seed(0)
    draw = random.Random(7)
    module = NETS[name]().eval()
    method = _loaded(module, delegates=delegates)
    sizes = [(draw.randint(1, 6), draw.randint(2, 40)) for _ in range(8)] * 2
    draw.shuffle(sizes)
    for batch, length in sizes:
        x = torch.randn(batch, length, 32)
        with torch.no_grad():
            wanted = module(x)
        for found, one in zip(method.execute([x]), wanted, strict=True):
            torch.testing.assert_close(found, one, rtol=1e-4, atol=1e-5)
        assert plans == ["planned_beside_results"]


def test_results_stay_where_the_first_run_left_them() -> None:
    torch.manual_seed(0)
    module = Pooled().eval()
    method, x = _loaded(module, delegates=False), torch.randn(3, 17, 32)
    method.set_inputs([x])
    method.run()
    with torch.no_grad():
        wanted = module(x)
    for index, one in enumerate(wanted):
        torch.testing.assert_close(method.get_output(index), one, rtol=1e-4, atol=1e-5)


def test_a_method_of_one_size_is_planned_when_it_runs_again(plans: list[str]) -> None:
    """What runs once, as most do, plans nothing."""
    method, x = _loaded(Filtered().eval(), delegates=False, changes=False), torch.randn(2, 9, 32)
    first = [one.clone() for one in method.execute([x])]
    assert plans == []
    torch.testing.assert_close(method.execute([x]), first)
    assert plans == ["final_plan"]
