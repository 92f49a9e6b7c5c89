"""What is alive is planned: one law of memory for programs of every family and both compilers."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from torch import nn

from compiler import (
    ExecutorchBackendConfig,
    MemoryPlanningPass,
    to_edge,
    to_edge_transform_and_lower,
)
from compiler.backends.xnnpack import XnnpackPartitioner
from inspector.join.operands import plan_operands
from inspector.memory.plan import Arena, PlannedValue, analyse_memory
from schema.program import ProgramFile, decode
from tests.compiler import control_flow
from tests.compiler.compare import exported, module_of
from tests.compiler.programs import EVERY, Sample, of
from tests.compiler.stock import Stock

pytestmark = pytest.mark.slow

X = torch.ones(4, 8)


def _views(x: torch.Tensor) -> Any:
    a = (x + 1).view(8, 4).view(2, 16).view(32)
    b = torch.relu((x * 2).unsqueeze(0).unsqueeze(0).squeeze(0))
    c = torch.cat([x, x]).view(8, 8)
    return (
        a.sum(),
        b.view(32).view(4, 8),
        (c.view(64) * 2).view(4, 16),
        c.view(4, 16).view(64).sum(),
    )


def _shared_view(x: torch.Tensor) -> Any:
    made = x.neg()
    early, late = made.view(32), made.view(2, 16)
    for _ in range(4):
        x = torch.cat([x, x * 2], 0)[:4]
    return early.sum() + x.sum(), late.unsqueeze(0).view(32).relu() * 3


class State(nn.Module):
    """A buffer that is written through views and read through views of views."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", torch.zeros(2, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.kept.view(4, 8).add_(x)
        return self.kept.view(32).view(8, 4).relu() + 1


class Reader(nn.Module):
    """Reads the buffer of another method."""

    def __init__(self, writer: State) -> None:
        super().__init__()
        self.register_buffer("kept", writer.kept)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum() + self.kept.view(32).view(4, 8)


ROWS = {0: torch.export.Dim("rows", min=2, max=9)}
FAMILIES: dict[str, Sample] = {
    "views_of_views": of(_views, X),
    "shared_view": of(_shared_view, X),
    "state_in_views": Sample(State, (X,)),
    "sized_views": of(
        lambda x: (x.view(-1).view(-1, 2) + 1).view(-1, 4).sum(), X, dynamic=((ROWS,),)
    ),
    **EVERY,
    **{f"flow_{name}": sample for name, sample in control_flow.SAMPLES.items()},
}
QUICK = ("views_of_views", "shared_view", "state_in_views", "sized_views", "counter", "identity")


def check_law(program: ProgramFile, *, stateful: set[str] | None = None) -> None:
    """Check every planned buffer of a program; which methods have state where that is known."""
    for plan in program.plans:
        memory = analyse_memory(program, plan.name)
        assert memory.issues == ()
        for arena in memory.arenas:
            assert 0 <= arena.lower_bound_bytes <= arena.peak_bytes <= arena.planned_bytes
            assert [_union(_alive(arena, step)) for step in range(len(arena.live_bytes))] == (
                arena.live_bytes.tolist()
            )
            _check_peak(arena)
        values = {value.value: value for arena in memory.arenas for value in arena.values}
        _check_reads(plan_operands(plan), values)
        if stateful is not None:
            shown = any(value.role == "state" for value in values.values())
            assert shown == (plan.name in stateful)


def _alive(arena: Arena, step: int) -> list[PlannedValue]:
    return [value for value in arena.values if 0 <= value.first <= step <= value.last]


def _union(values: list[PlannedValue]) -> int:
    used = end = 0
    for low, high in sorted((one.offset, one.offset + one.nbytes) for one in values):
        used += max(high - max(low, end), 0)
        end = max(end, high)
    return used


def _check_peak(arena: Arena) -> None:
    step = arena.peak_instruction
    listed = arena.at_peak()
    assert sum(value.peak_bytes for value in listed) == arena.peak_bytes
    assert sum(value.peak_bytes for value in arena.values) == arena.peak_bytes
    if step is None:
        return
    assert {value.value for value in listed} == {value.value for value in _alive(arena, step)}
    known = {value.value for value in listed}
    for value in listed:
        assert set(value.shares_with) <= known - {value.value}
        assert value.peak_bytes == value.nbytes or value.shares_with


def _check_reads(operands: Any, values: dict[int, PlannedValue]) -> None:
    """Check that what an instruction reads has been alive since its bytes were written."""
    written: dict[int, int] = {}
    for step, touched in enumerate(operands):
        for index in touched.reads:
            value = values.get(index)
            if value is not None and value.nbytes:
                over = [s for i, s in written.items() if _common(values[i], value)]
                assert value.first <= max(over, default=step)
                assert value.last >= step
        for index in touched.writes:
            if index in values:
                written[index] = step
                assert values[index].first <= step <= values[index].last


def _common(one: PlannedValue, other: PlannedValue) -> bool:
    low = max(one.offset, other.offset)
    return low < min(one.offset + one.nbytes, other.offset + other.nbytes)


def _mutates(program: torch.export.ExportedProgram) -> set[str]:
    return {"forward"} if program.graph_signature.buffers_to_mutate else set()


def _names() -> list[Any]:
    slow = pytest.mark.slow
    return [name if name in QUICK else pytest.param(name, marks=slow) for name in FAMILIES]


@pytest.mark.parametrize("name", _names())
def test_portable_program_keeps_the_law(name: str) -> None:
    sample = FAMILIES[name]
    edge = to_edge(exported(sample, module_of(sample)))
    made = decode(edge.to_executorch().buffer)
    check_law(made, stateful=_mutates(edge.exported_program()))
    unused = [v for arena in analyse_memory(made, "forward").arenas for v in arena.values]
    assert all(value.role != "unused" for value in unused)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["views_of_views", "state_in_views", "gru", "transformer", "u_net"]
)
def test_xnnpack_program_keeps_the_law(name: str) -> None:
    sample = FAMILIES[name]
    program = exported(sample, module_of(sample))
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    stateful = _mutates(edge.exported_program())
    check_law(decode(edge.to_executorch().buffer), stateful=stateful)


def _random_net(seed: int) -> Sample:
    """Return a program of random views, sums, products, concatenations and long-lived values."""
    draw = random.Random(seed)
    plan = [(draw.randrange(6), draw.randrange(99), draw.randrange(99)) for _ in range(14)]

    def forward(x: torch.Tensor) -> Any:
        values = [x]
        for kind, one, other in plan:
            a, b = values[one % len(values)], values[other % len(values)]
            values.append(_grown(kind, a, b, one))
        return values[-1].sum(), values[len(values) // 2].neg()

    return of(forward, torch.ones(4, 6))


def _grown(kind: int, a: torch.Tensor, b: torch.Tensor, number: int) -> torch.Tensor:
    sizes = ((24,), (2, 12), (4, 6), (1, 3, 8), (6, 1, 4))
    if kind < 3:
        return a.view(sizes[number % 5])
    if kind == 3:
        return a.reshape(24) + b.reshape(24)
    if kind == 4:
        return torch.cat([a.reshape(24), b.reshape(24)])[12:36]
    return a.relu().unsqueeze(0).squeeze(0) * 2


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(n, marks=pytest.mark.slow) for n in range(6, 40))]
)
def test_generated_program_keeps_the_law_with_each_planner(seed: int) -> None:
    sample = _random_net(seed)
    edge = to_edge(exported(sample, module_of(sample)))
    names = ("greedy", "naive", "interval") if seed < 6 else ("greedy",)
    for name in names:
        planning = MemoryPlanningPass(name, alignment=(16, 1, 64)[seed % 3])
        made = edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=planning))
        check_law(decode(made.buffer), stateful=set())


STOCK = ("views_of_views", "shared_view", "state_in_views", "kv_cache", "lstm")
STOCK_PORTABLE = (*STOCK, "flow_cond", "flow_scan")  # the stock lowering refuses linear in branches
STOCK_XNNPACK = (*STOCK, "u_net", "dynamic_batch")


@pytest.mark.interop
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "delegated"),
    [*((name, False) for name in STOCK_PORTABLE), *((name, True) for name in STOCK_XNNPACK)],
)
def test_program_of_the_stock_compiler_keeps_the_law(
    name: str, delegated: bool, stock: Stock
) -> None:
    sample = FAMILIES[name]
    program = exported(sample, module_of(sample))
    check_law(decode(stock.compiled(program, delegated=delegated)))


@pytest.mark.parametrize("shared", [False, True])
def test_methods_with_state_of_their_own_or_shared_keep_the_law(shared: bool) -> None:
    module = module_of(FAMILIES["state_in_views"])
    reader = Reader(module)
    methods = {
        "write": torch.export.export(module, (X,)),
        "read": torch.export.export(reader, (X,)),
        "plain": torch.export.export(nn.ReLU(), (X,)),
    }
    planning = MemoryPlanningPass(share_mutable_buffers=shared)
    config = ExecutorchBackendConfig(memory_planning_pass=planning)
    made = to_edge(methods).to_executorch(config)
    check_law(decode(made.buffer), stateful={"write", "read"} if shared else {"write"})
