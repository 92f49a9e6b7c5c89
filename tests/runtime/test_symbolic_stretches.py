"""Graphs of sizes that change: same bits, values of the stock runtime, same errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional

from compiler import to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from runtime import EventTracer, ExecutionError, Method, Runtime
from runtime.execution import ways
from runtime.execution.fused import stretches
from runtime.execution.fused.stretches import Stretch, SymbolicStretch
from tests.runtime.stock import Stock

pytestmark = pytest.mark.slow
_LONGEST = 24


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make graphs in the first run that may."""
    monkeypatch.setattr(ways, "RUNS_BEFORE_SCRIPTS", 0)


class Images(nn.Module):
    """Convolutions of a batch of any size."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 6, 3, stride=2)
        self.norm, self.last = nn.BatchNorm2d(4), nn.Linear(6, 5)

    def forward(self, x):
        y = functional.relu(self.norm(self.first(x)))
        y = self.second(y).mean((2, 3))
        return functional.softmax(self.last(y), -1), y.amax(0)


class Decoder(nn.Module):
    """Attention over as many words as there are."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(32, 8), nn.Embedding(_LONGEST, 8)
        self.all, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.norm, self.logits = nn.LayerNorm(8), nn.Linear(8, 32)
        self.register_buffer("past", torch.tril(torch.ones(_LONGEST, _LONGEST)))

    def forward(self, index):
        length = index.shape[1]
        x = self.words(index) + self.places(torch.arange(length))
        query, key, value = (
            one.unflatten(-1, (2, -1)).transpose(1, 2)
            for one in self.all(self.norm(x)).chunk(3, -1)
        )
        scores = query @ key.transpose(-2, -1) / 2.0
        scores = scores.masked_fill(self.past[:length, :length] == 0, float("-inf"))
        x = x + self.out((functional.softmax(scores, -1) @ value).transpose(1, 2).flatten(2))
        return self.logits(x[:, -1]), x


class Pieces(nn.Module):
    """Slices, reshapes, concatenations and indices, with sizes computed from sizes."""

    def forward(self, x):
        rows = x.shape[0]
        both = torch.cat([x, x.flip(0) + 1, torch.ones(rows, 4)], 0)
        paired = both.reshape(rows, 3, 4).permute(1, 0, 2)
        chosen = both[torch.arange(rows) + rows]
        halves = torch.full((rows, 2), 0.5) * x[:, 1:3]
        return paired[1:].sum(0), chosen.view(-1)[: 2 * rows], halves.unsqueeze(0).expand(3, -1, -1)


class Cached(nn.Module):
    """State that is written from a position on, which the graph reads from a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(_LONGEST, 4))
        self.change = nn.Linear(4, 4)

    def forward(self, x, start):
        places = torch.arange(x.shape[0]) + start
        self.cache.index_copy_(0, places, self.change(x))
        return torch.tanh(self.cache[places]) * 2 + x, self.cache.sum(0)


class Mixed(nn.Module):
    """A layer whose ends are delegated, and whose middle is not."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 8)

    def forward(self, x):
        return self.last(self.norm(self.first(x).roll(1, 1)).flip(0)) + x


class Gathered(nn.Module):
    """Rows and single elements of tables at positions that are given, some from the end."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.randn(_LONGEST, 4))

    def forward(self, places):
        rows = self.table[places] * 2
        pairs = self.table[places.to(torch.int32), places % 4]
        columns = self.table[:, places % 4]
        return rows, pairs + 1, columns.sum(0)


class Branches(nn.Module):
    """A branch between stretches of sizes that change."""

    def forward(self, x):
        y = torch.cat([x, x * 2], 0)
        y = torch.cond(y.sum() > 0, lambda v: v + 1, lambda v: v - 1, (y,))
        return y.exp().sum(0, keepdim=True) + x


ROWS = Dim("rows", max=_LONGEST - 1)
_SIZES = (3, 5, 4, 9, 1, 12, 5, 2, 23, 22, 7)


def _rows(*shape: int) -> Callable[[int], list[Tensor]]:
    return lambda rows: [torch.randn(rows, *shape)]


def _words(length: int) -> list[Tensor]:
    return [torch.randint(0, 32, (1, length))]


def _from(rows: int) -> list[Tensor]:
    return [torch.randn(rows, 4), torch.tensor([min(rows, _LONGEST - rows)])]


def _places(count: int) -> list[Tensor]:
    return [torch.randint(-_LONGEST, _LONGEST, (count,))]


FAMILIES: dict[str, tuple[type[nn.Module], Callable[[int], list[Tensor]], Any]] = {
    "images": (Images, _rows(3, 7, 7), ({0: ROWS},)),
    "decoder": (Decoder, _words, ({1: ROWS},)),
    "pieces": (Pieces, _rows(4), ({0: ROWS},)),
    "cached": (Cached, _from, ({0: ROWS}, {})),
    "gathered": (Gathered, _places, ({0: ROWS},)),
    "branches": (Branches, _rows(3), ({0: ROWS},)),
}


def compiled(name: str, *, delegated: bool = False) -> bytes:
    torch.manual_seed(0)
    make, inputs, dynamic = FAMILIES[name]
    program = torch.export.export(make().eval(), tuple(inputs(6)), dynamic_shapes=dynamic)
    partitioner = [XnnpackPartitioner()] if delegated else []
    edge = to_edge_transform_and_lower(program, partitioner=partitioner)
    return bytes(edge.to_executorch().buffer)


def method_of(buffer: bytes) -> Method:
    return Runtime().load_program(buffer).load_method("forward")


def graphs_of(method: Method) -> list[SymbolicStretch]:
    fused = method._runner.plan.fused
    found = [] if fused is None else fused.calls
    return [one for one in found if isinstance(one, SymbolicStretch)]


def failures_of(method: Method) -> int:
    fused = method._runner.plan.fused
    found = [] if fused is None else fused.calls
    return sum(one.failures for one in found if isinstance(one, Stretch))


def same_bits(left: Any, right: Any) -> bool:
    return all(
        one.dtype is two.dtype and one.shape == two.shape and torch.equal(one, two)
        for one, two in zip(left, right, strict=True)
    )


def calls_of(name: str) -> Iterator[list[Tensor]]:
    torch.manual_seed(1)
    yield from map(FAMILIES[name][1], _SIZES)


def without_graphs(buffer: bytes, calls: list[list[Tensor]]) -> list[list[Any]]:
    """Return the outputs of calls that run one by one."""
    method = method_of(buffer)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ways, "RUNS_BEFORE_SCRIPTS", 1 << 30)
        return [method.execute(inputs) for inputs in calls]


@pytest.mark.parametrize("delegated", [False, True])
@pytest.mark.parametrize("name", FAMILIES)
def test_every_size_gives_the_bits_of_single_calls(name: str, delegated: bool) -> None:
    buffer = compiled(name, delegated=delegated)
    calls = [*calls_of(name)]
    graphs, steps = method_of(buffer), method_of(buffer)
    steps.tracer = EventTracer()
    for inputs, single in zip(calls, without_graphs(buffer, calls), strict=True):
        found = graphs.execute(inputs)
        assert same_bits(found, single), inputs[0].shape
        for one, other in zip(found, steps.execute(inputs), strict=True):
            torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-6)
    assert bool(graphs_of(graphs)) == (name != "branches")
    assert failures_of(graphs) == 0


@pytest.mark.parametrize("delegated", [False, True])
def test_layers_of_one_form_share_their_graphs(delegated: bool) -> None:
    torch.manual_seed(0)
    program = torch.export.export(
        nn.Sequential(*(Mixed() for _ in range(3))).eval(),
        (torch.randn(6, 8),),
        dynamic_shapes=({0: ROWS},),
    )
    partitioner = [XnnpackPartitioner()] if delegated else []
    edge = to_edge_transform_and_lower(program, partitioner=partitioner)
    method = method_of(bytes(edge.to_executorch().buffer))
    for rows in (3, 5, 4, 7, 3):
        method.execute([torch.randn(rows, 8)])
    found = [one.function for one in method._runner.plan.fused.calls if isinstance(one, Stretch)]
    assert (len(found) >= 3) == delegated
    assert len({id(one) for one in found}) <= max(1, len(found) // 2)


@pytest.mark.interop
@pytest.mark.parametrize("delegated", [False, True])
@pytest.mark.parametrize("name", FAMILIES)
def test_every_size_gives_the_values_of_the_stock_runtime(
    name: str, delegated: bool, stock: Stock, tmp_path: Path
) -> None:
    buffer = compiled(name, delegated=delegated)
    path = tmp_path / "model.pte"
    path.write_bytes(buffer)
    inputs = [*calls_of(name)]
    wanted = stock.calls(path, [("forward", one) for one in inputs])
    method = method_of(buffer)
    for given, expected in zip(inputs, wanted, strict=True):
        for one, other in zip(method.execute(given), expected, strict=True):
            torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["decoder", "pieces", "cached"])
def test_traces_between_sizes_have_the_same_values(name: str) -> None:
    buffer = compiled(name)
    graphs, steps = method_of(buffer), method_of(buffer)
    steps.tracer = EventTracer()
    for number, inputs in enumerate(calls_of(name)):
        graphs.tracer = EventTracer() if number % 4 == 3 else None
        for one, other in zip(graphs.execute(inputs), steps.execute(inputs), strict=True):
            torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-6)


def test_sizes_beyond_the_plan_are_the_error_of_single_steps() -> None:
    class Squared(nn.Module):
        def forward(self, x):
            return (x @ x.t()).relu().sum(0) + 1

    rows, columns = Dim("rows", max=8), Dim("columns", max=8)
    given = (torch.randn(4, 3),)
    program = torch.export.export(Squared(), given, dynamic_shapes=({0: rows, 1: columns},))
    buffer = bytes(to_edge_transform_and_lower(program).to_executorch().buffer)
    graphs, steps = method_of(buffer), method_of(buffer)
    steps.tracer = EventTracer()
    for count in (3, 4, 5):
        graphs.execute([torch.randn(count, 3)])
    assert graphs_of(graphs)
    long = [torch.randn(32, 2)]  # as many elements as planned, but more rows
    texts: list[str] = []
    for method in (graphs, steps):
        with pytest.raises(ExecutionError) as raised:
            method.execute(long)
        texts.append(str(raised.value))
    assert texts[0] == texts[1]
    again = [torch.randn(5, 3)]
    torch.testing.assert_close(graphs.execute(again), steps.execute(again))


def test_an_index_out_of_range_names_its_instruction() -> None:
    method = method_of(compiled("decoder"))
    for length in (3, 4, 5):
        method.execute(_words(length))
    assert graphs_of(method)
    with pytest.raises(ExecutionError) as raised:
        method.execute([torch.tensor([[1, 2, 99]])])
    assert raised.value.operator == "aten::embedding.out"
    assert len(method.execute(_words(7))) == 2


@pytest.mark.parametrize("place", [_LONGEST, -_LONGEST - 1])
def test_a_place_outside_of_a_table_names_its_instruction(place: int) -> None:
    buffer = compiled("gathered")
    method, calls = method_of(buffer), [*calls_of("gathered")]
    for inputs in calls:
        method.execute(inputs)
    graphed = {at for one in graphs_of(method) for at in one.places}
    operators = method._runner._chains.instructions[0]
    assert "aten::index.Tensor_out" in {operators[at].operator for at in graphed}
    for _ in range(5):  # errors of the inputs are no reason to leave the graph
        with pytest.raises(ExecutionError) as raised:
            method.execute([torch.tensor([1, place])])
        assert raised.value.operator == "aten::index.Tensor_out"
    assert failures_of(method) == 0
    for inputs, single in zip(calls, without_graphs(buffer, calls), strict=True):
        assert same_bits(method.execute(inputs), single)


def test_a_graph_that_never_fits_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "_MOST_FAILURES", 2)
    buffer = compiled("pieces")
    method, calls = method_of(buffer), [*calls_of("pieces")]
    for inputs in calls:
        method.execute(inputs)
    asked: list[int] = []

    def refuse(*_: Any) -> None:
        asked.append(1)
        raise RuntimeError("a graph that fails")

    for one in graphs_of(method):
        one.function = refuse
    count = len(graphs_of(method))
    for inputs, single in zip(calls, without_graphs(buffer, calls), strict=True):
        assert same_bits(method.execute(inputs), single)
    assert len(asked) == 2 * count
