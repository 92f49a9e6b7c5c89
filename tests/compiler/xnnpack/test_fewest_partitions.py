"""As few calls of XNNPACK as the stock partitioner makes, with the outputs of eager."""

from __future__ import annotations

import random
import warnings
from typing import Any

import pytest
import torch
from torch import nn

from compiler import to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from runtime import Runtime
from tests.compiler.stock import Stock
from tests.compiler.xnnpack import quantizing as q

pytestmark = [pytest.mark.slow, pytest.mark.interop]
TAKEN = (torch.add, torch.mul, torch.sub, torch.maximum)
ALONE = (torch.relu, torch.sigmoid, torch.tanh)  # all of them XNNPACK's, the next ones not
LEFT = (torch.sin, torch.erf, torch.asinh, lambda x: x.cumsum(-1))


class Layers(nn.Module):
    """A recurrent layer, a linear head and the last state."""

    def __init__(self, kind: Any, layers: int, bidirectional: bool) -> None:
        super().__init__()
        options = {"batch_first": True, "bidirectional": bidirectional}
        self.first = kind(6, 5, layers, **options)
        self.head = nn.Linear(10 if bidirectional else 5, 3)

    def forward(self, values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the head of all steps, and the last state."""
        found, state = self.first(values)
        return self.head(found), state[0] if isinstance(state, tuple) else state


class Drawn(nn.Module):
    """Operators drawn by chance, about a third of which XNNPACK does not take."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        """Return the last values."""
        draw, values = random.Random(self.seed), [x, y]
        for _ in range(24):
            kind = draw.choice((TAKEN, ALONE, LEFT))
            operands = draw.sample(values[-6:], 2 if kind is TAKEN else 1)
            values.append(draw.choice(kind)(*operands))
        return values[-4:]


def _assert_fewest(module: nn.Module, inputs: Any, config: Any, stock: Stock, near: float) -> None:
    if config is None:
        program = torch.export.export(module.eval(), inputs)
    else:
        program = q.quantized(module, inputs, config)
    wanted = q.reference(program, inputs)
    manager = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    graph = manager.exported_program().graph
    ours = sum("call_delegate" in str(node.target) for node in graph.nodes)
    assert 0 < ours <= stock.about("lowered", program)["delegates"]
    buffer = manager.to_executorch().buffer
    (found,) = stock.run_each([(buffer, inputs)])
    assert not isinstance(found, str), found
    loaded = [
        Runtime.get().load_program(buffer).load_method("forward", engine=engine)
        for engine in ("torch", "native")
    ]
    for outputs in (found, *(method.execute(list(inputs)) for method in loaded)):
        for output, right in zip(outputs, wanted, strict=True):
            torch.testing.assert_close(output, right, rtol=near, atol=near)


@pytest.mark.parametrize(
    ("kind", "layers", "both", "config"),
    [
        (nn.RNN, 2, False, q.DYNAMIC),
        (nn.GRU, 1, True, None),
        (nn.GRU, 1, False, q.DYNAMIC),
        (nn.LSTM, 1, True, None),
    ],
)
def test_recurrent_layers(kind: Any, layers: int, both: bool, config: Any, stock: Stock) -> None:
    torch.manual_seed(3)
    module, inputs = Layers(kind, layers, both), (torch.randn(2, 2, 6),)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch, about weights of such layers
        _assert_fewest(module, inputs, config, stock, 1e-5 if config is None else 2e-2)


@pytest.mark.parametrize("seed", range(2))
def test_graphs_drawn_by_chance(seed: int, stock: Stock) -> None:
    torch.manual_seed(seed)
    inputs = (torch.randn(2, 5), torch.randn(2, 5))
    _assert_fewest(Drawn(seed), inputs, None, stock, 1e-4)
