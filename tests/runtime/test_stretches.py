"""Graphs that stand for stretches of calls: same bits, same errors, and nothing where they fail."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from compiler import to_edge, to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from runtime import DebugLevel, EventTracer, ExecutionError, Method, Runtime
from runtime.execution import ways
from runtime.execution.fused import Stretch, stretches
from tests.architecture.tree import run_python
from tests.compiler.compare import calls_of, exported, flat, module_of
from tests.compiler.programs import EVERY
from tests.runtime.samples import PORTABLE, load
from tests.runtime.samples import calls_of as calls_of_session
from tests.runtime.test_fused import assert_same_runs

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make graphs in the first run that may."""
    monkeypatch.setattr(ways, "RUNS_BEFORE_SCRIPTS", 0)


def compiled(module: torch.nn.Module, inputs: tuple[Any, ...]) -> bytes:
    return bytes(to_edge(torch.export.export(module.eval(), inputs)).to_executorch().buffer)


def method_of(buffer: bytes) -> Method:
    return Runtime.get().load_program(buffer).load_method("forward")


def graphs_of(method: Method) -> list[Stretch]:
    fused = method._runner.plan.fused
    return [] if fused is None else [one for one in fused.calls if isinstance(one, Stretch)]


@pytest.mark.parametrize("name", PORTABLE)
def test_sessions_run_as_graphs_as_they_run_traced(name: str) -> None:
    program, other = load(name), load(name)
    calls = calls_of_session(program, rounds=6)
    for method in sorted(program.method_names):
        own = [inputs for called, inputs in calls if called == method]
        assert_same_runs(other, program, method, own)


@pytest.mark.parametrize("delegated", [False, True])
@pytest.mark.parametrize("name", [*sorted(EVERY)[::3], "gru", "lstm"])
def test_compiled_programs_give_the_bits_of_single_calls(
    name: str, delegated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = EVERY[name]
    partitioner = [XnnpackPartitioner()] if delegated else []
    program = exported(sample, module_of(sample))
    edge = to_edge_transform_and_lower(program, partitioner=partitioner)
    buffer = bytes(edge.to_executorch().buffer)
    loaded = [
        Runtime().load_program(buffer).load_method("forward", engine="torch") for _ in range(2)
    ]
    calls = [flat(inputs) for inputs in calls_of(sample)] * 5
    scripted = [loaded[0].execute(inputs) for inputs in calls]
    monkeypatch.setattr(ways, "RUNS_BEFORE_SCRIPTS", 1 << 30)
    single = [loaded[1].execute(inputs) for inputs in calls]
    for left, right in zip(scripted, single, strict=True):
        for one, other in zip(left, right, strict=True):
            if isinstance(one, torch.Tensor):
                assert torch.equal(one.nan_to_num(7), other.nan_to_num(7))
            else:
                assert one == other


class Chain(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(10, 4)

    def forward(self, x, index):
        rows = self.table(index)
        return torch.sigmoid(x) * torch.tanh(rows) + (rows - x).exp().sum(-1, keepdim=True)


def test_a_method_without_jumps_becomes_one_graph_and_no_warning(
    recwarn: pytest.WarningsRecorder,
) -> None:
    given = (torch.randn(3, 4), torch.tensor([1, 2, 9]))
    module = Chain()
    method = method_of(compiled(module, given))
    for _ in range(3):
        found = method.execute(list(given))
    assert len(graphs_of(method)) == 1
    assert torch.allclose(found[0], module(*given), atol=1e-6)
    assert not [one for one in recwarn if "jit" in str(one.message).lower()]


def test_an_error_in_a_graph_names_the_instruction() -> None:
    given = [torch.randn(3, 4), torch.tensor([1, 2, 9])]
    method = method_of(compiled(Chain(), tuple(given)))
    for _ in range(3):
        method.execute(given)
    assert graphs_of(method)
    with pytest.raises(ExecutionError) as raised:
        method.execute([given[0], torch.tensor([1, 2, 11])])
    assert raised.value.operator == "aten::embedding.out"
    assert torch.equal(method.execute(given)[0], method.execute(given)[0])


def test_traces_between_graphs_have_the_values_of_each_instruction() -> None:
    given = [torch.randn(3, 4), torch.tensor([1, 2, 9])]
    method = method_of(compiled(Chain(), tuple(given)))
    wanted = [method.execute(given) for _ in range(3)][-1]
    method.tracer = EventTracer(DebugLevel.INTERMEDIATE)
    assert torch.equal(method.execute(given)[0], wanted[0])
    method.tracer = None
    assert torch.equal(method.execute(given)[0], wanted[0])


def test_a_state_that_is_read_and_written_advances_once_a_run() -> None:
    sample = EVERY["kv_cache"]
    buffer = to_edge(exported(sample, module_of(sample))).to_executorch().buffer
    one, other = (Runtime().load_program(buffer).load_method("forward") for _ in range(2))
    calls = [flat(inputs) for inputs in calls_of(sample)] * 4
    found = [one.execute(inputs) for inputs in calls]
    other.tracer = EventTracer()
    for left, inputs in zip(found, calls, strict=True):
        right = other.execute(inputs)
        assert all(torch.equal(a, b) for a, b in zip(left, right, strict=True))


def test_results_that_are_kept_while_recording_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "_MOST_HELD", 100)
    given = [torch.randn(3, 4), torch.tensor([1, 2, 9])]
    module = Chain()
    method = method_of(compiled(module, tuple(given)))
    for _ in range(4):
        found = method.execute(given)
    assert torch.allclose(found[0], module(*given), atol=1e-6)


def test_the_setting_of_torch_is_left_as_it_was() -> None:
    given = [torch.randn(3, 4), torch.tensor([1, 2, 9])]
    method = method_of(compiled(Chain(), tuple(given)))
    before = torch._C._get_graph_executor_optimize()
    for _ in range(4):
        method.execute(given)
    assert torch._C._get_graph_executor_optimize() == before


def test_without_graphs_in_torch_calls_run_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "has_scripts", lambda: False)
    given = [torch.randn(3, 4), torch.tensor([1, 2, 9])]
    method = method_of(compiled(Chain(), tuple(given)))
    for _ in range(4):
        method.execute(given)
    assert graphs_of(method) == []


def test_recording_imports_nothing_more() -> None:
    code = f"""
import sys, torch
from runtime import Runtime
from tests.runtime.samples import load, calls_of
program = load({PORTABLE[0]!r})
method, inputs = next(iter(calls_of(program, rounds=1)))
loaded = program.load_method(method)
loaded.execute(inputs)
before = set(sys.modules)
for _ in range(6):
    loaded.execute(inputs)
assert loaded._runner.plan.fused.flow is None
print(sorted(name for name in set(sys.modules) - before if name in ("sympy", "torch._dynamo")))
"""
    assert run_python(code).strip() == "[]"
