"""Expressions of weights alone are folded by default where that makes the file no larger."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations

from compiler import (
    EdgeCompileConfig,
    ExecutorchBackendConfig,
    to_edge,
    to_edge_transform_and_lower,
)
from compiler.backends.xnnpack import XnnpackPartitioner
from runtime import Runtime
from tests.compiler.stock import Stock

pytestmark = pytest.mark.slow
WIDTH = 48


class Scaled(nn.Module):
    """A linear layer whose weight is a sum and a scale."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.change = nn.Parameter(torch.randn(9, WIDTH)), torch.randn(9, WIDTH)
        self.register_buffer("scale", torch.rand(9, 1))

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, (self.weight + self.change) * self.scale.sigmoid())


class LowRank(nn.Module):
    """A weight with an adapter of low rank."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(WIDTH, WIDTH))
        self.down, self.up = (
            nn.Parameter(torch.randn(4, WIDTH)),
            nn.Parameter(torch.randn(WIDTH, 4)),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x @ (self.weight + self.up @ self.down)


class Twice(nn.Module):
    """Equal expressions of two equal weights."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Parameter(torch.ones(WIDTH, 3))
        self.two = nn.Parameter(torch.ones(WIDTH, 3))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.one.exp() + x @ self.two.exp()


def convolution() -> nn.Module:
    return parametrizations.weight_norm(nn.Conv1d(4, 6, 3), dim=2)


def spectral() -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return parametrizations.spectral_norm(nn.Linear(WIDTH, 9))


SMALLER: dict[str, tuple[Any, tuple[int, ...]]] = {
    "sum": (Scaled, (2, WIDTH)),
    "low rank": (LowRank, (2, WIDTH)),
    "equal": (Twice, (2, WIDTH)),
    "weight norm": (convolution, (1, 4, 17)),
    "weight norm of a linear layer": (
        lambda: parametrizations.weight_norm(nn.Linear(WIDTH, 9)),
        (2, WIDTH),
    ),
    "spectral norm": (spectral, (2, WIDTH)),
}


def _lowered(program: Any, *, folds: bool = True, delegate: bool = True) -> Any:
    config = EdgeCompileConfig(_fold_constants=folds)
    partitioner = [XnnpackPartitioner()] if delegate else []
    return to_edge_transform_and_lower(program, partitioner=partitioner, compile_config=config)


def _calls(manager: Any) -> int:
    return sum(node.op == "call_function" for node in manager.exported_program().graph.nodes)


@pytest.mark.interop
@pytest.mark.parametrize("delegate", [False, True])
def test_programs_are_smaller_and_give_the_same_on_the_stock_runtime(
    delegate: bool, stock: Stock
) -> None:
    torch.manual_seed(0)
    runs, wanted = [], []
    for name, (module, shape) in SMALLER.items():
        inputs = (torch.randn(shape),)
        built = module().eval()
        program = torch.export.export(built, inputs)
        managers = [_lowered(program, folds=folds, delegate=delegate) for folds in (True, False)]
        new, old = (manager.to_executorch().buffer for manager in managers)
        assert len(new) < len(old) or (delegate and len(new) == len(old)), name
        assert delegate or _calls(managers[0]) < _calls(managers[1]), name
        runs.append((new, inputs))
        wanted.append(built(*inputs))
    ours = [Runtime.get().load_program(b).load_method("forward").execute(list(x)) for b, x in runs]
    for found in (stock.run_each(runs), ours):
        for each, right, name in zip(found, wanted, SMALLER, strict=True):
            assert not isinstance(each, str), (name, each)
            torch.testing.assert_close(each[0], right, rtol=1e-4, atol=1e-4)


def test_a_layer_whose_weight_is_folded_is_one_partition() -> None:
    program = torch.export.export(convolution().eval(), (torch.randn(1, 4, 17),))
    targets = [str(n.target) for n in _lowered(program).exported_program().graph.nodes]
    assert sum("call_delegate" in target for target in targets) == 1
    assert not any("aten" in target for target in targets)


class Large(nn.Module):
    """What is larger than the weights it is computed from."""

    def __init__(self) -> None:
        super().__init__()
        self.row, self.column = nn.Parameter(torch.randn(200, 1)), nn.Parameter(torch.randn(1, 200))
        self.small = nn.Parameter(torch.randn(200, 200, dtype=torch.float16))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return (
            x * (self.row * self.column),
            x * self.small.float(),
            x * self.row.sin().expand(200, 200),
        )


class Read(nn.Module):
    """A weight that is read as it is, too; twice, as itself and moved."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(64, 64))
        self.moved = nn.Parameter(torch.randn(64, 64))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight + x @ self.weight.exp() + x * self.moved.t()


def test_what_would_make_the_file_larger_is_left() -> None:
    for module, shape in ((Large(), (200, 200)), (Read(), (64, 64))):
        program = torch.export.export(module.eval(), (torch.randn(shape),))
        managers = [_lowered(program, folds=folds, delegate=False) for folds in (True, False)]
        sizes = [len(manager.to_executorch().buffer) for manager in managers]
        assert sizes[0] <= sizes[1]
        names = [n.name for n in managers[0].exported_program().graph.nodes]
        kept = ["aten_mul_tensor", "exp" if shape[0] == 64 else "expand"]
        assert all(any(word in name for name in names) for word in kept)


class State(nn.Module):
    """A buffer that is written."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        return x * (self.count * 2).exp()


def test_state_and_to_edge_are_left() -> None:
    x = torch.randn(3)
    program = torch.export.export(State(), (x,))
    buffer = _lowered(program).to_executorch().buffer
    method = Runtime.get().load_program(buffer).load_method("forward")
    state = State()
    for _ in range(3):
        torch.testing.assert_close(method.execute([x])[0], state(x))
    plain = torch.export.export(convolution().eval(), (torch.randn(1, 4, 17),))
    assert _calls(to_edge(plain)) == _calls(_lowered(plain, folds=False, delegate=False))


def test_folded_weights_of_two_methods_go_into_one_data_file() -> None:
    one, two = (parametrizations.weight_norm(nn.Conv1d(4, 6, 3, bias=False)) for _ in "ab")
    x = torch.randn(1, 4, 17)
    programs = {
        name: torch.export.export(module, (x,))
        for name, module in (("one", one), ("again", one), ("two", two))
    }
    emitted = to_edge_transform_and_lower(programs).to_executorch(
        ExecutorchBackendConfig(external_constants=True)
    )
    files = emitted._tensor_data
    held = [key for data in files.values() for key in _keys(bytes(data))]
    assert len([key for key in held if key.startswith("_prop_tensor_constant")]) == 2


def _keys(data: bytes) -> list[str]:
    from schema.flat_tensor import decode

    return [entry.key for entry in decode(data).entries]


@pytest.mark.parametrize("name", SMALLER)
def test_what_is_folded_from_weights_is_a_weight_with_its_value(name: str) -> None:
    """A buffer outside of the state is one without a value to some backends: zero at first."""
    module, shape = SMALLER[name]
    program = torch.export.export(module().eval(), (torch.randn(shape),))
    built = _lowered(program, delegate=False).exported_program()
    specs = [
        spec
        for spec in built.graph_signature.input_specs
        if str(spec.target).startswith("_prop_tensor_constant")
    ]
    assert specs
    for spec in specs:
        assert spec.persistent is True
        assert spec.target in built.state_dict
        assert spec.target not in built.constants


class WrittenOnly(nn.Module):
    """A buffer that is overwritten and never read, beside an expression of weights."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 2))
        self.register_buffer("last", torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        self.last.copy_(x[0])
        return x @ self.weight.exp().t()


@pytest.mark.filterwarnings("ignore::FutureWarning:copyreg")  # torch's own, of a deep copy
@pytest.mark.parametrize("partitioners", [[], [XnnpackPartitioner()]])
def test_a_buffer_that_is_only_written_stays(partitioners: list[Any]) -> None:
    module, given = WrittenOnly().eval(), torch.randn(4, 2)
    exported = torch.export.export(module, (given,)).run_decompositions({})  # without the copy
    lowered = to_edge_transform_and_lower(exported, partitioner=partitioners)
    buffer = lowered.to_executorch().buffer
    found = Runtime.get().load_program(buffer).load_method("forward").execute([given])[0]
    torch.testing.assert_close(found, given @ module.weight.exp().t())
