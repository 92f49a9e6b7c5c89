"""Graphs in programs with jumps: the bits of single instructions, their errors and their budget."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._higher_order_ops.scan import scan

from compiler import to_edge
from runtime import DebugLevel, EventTracer, ExecutionError, Method, Runtime
from runtime.execution.fused import BasicBlock, Stretch, blocks
from schema.program import model as m
from tests.compiler import control_flow
from tests.compiler.compare import calls_of, exported, flat, module_of
from tests.runtime.one_op import Builder, encoded

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make graphs as soon as a block has run."""
    monkeypatch.setattr(blocks, "RUNS_BEFORE_GRAPHS", 1)


def loaded(buffer: bytes) -> Method:
    return Runtime.get().load_program(buffer).load_method("forward")


def blocks_in(method: Method) -> list[BasicBlock]:
    calls = method._runner.plan.calls
    return [one for chain in calls for one in chain if isinstance(one, BasicBlock)]


def graphs_in(method: Method) -> list[Stretch]:
    return [one for block in blocks_in(method) for one in block.calls if isinstance(one, Stretch)]


def assert_bits_of_single_calls(buffer: bytes, rounds: list[list[Any]]) -> Method:
    """Run a program, and another time traced, whose instructions run one by one."""
    method, single = loaded(buffer), loaded(buffer)
    single.tracer = EventTracer(DebugLevel.INTERMEDIATE)
    for inputs in rounds * 4:
        found, wanted = method.execute(inputs), single.execute(inputs)
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            same = torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other
            assert same
    return method


@pytest.mark.parametrize("name", sorted(control_flow.SAMPLES))
def test_programs_with_jumps_give_the_bits_of_single_calls(name: str) -> None:
    sample = control_flow.SAMPLES[name]
    buffer = bytes(to_edge(exported(sample, module_of(sample))).to_executorch().buffer)
    assert_bits_of_single_calls(buffer, [list(flat(inputs)) for inputs in calls_of(sample)])


class Gates(torch.nn.Module):
    """A recurrent cell over a sequence, whose gates are one tensor that is taken apart."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.given, self.kept = torch.nn.Linear(6, 24), torch.nn.Linear(6, 24)

    def _gates(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if self.how == "split_with_sizes":
            return x.split_with_sizes([6] * 4, -1)
        if self.how == "split":
            return x.split(6, -1)
        if self.how == "unbind":
            return x.view(-1, 4, 6).unbind(1)
        return x.chunk(4, -1)

    def step(self, carry: Any, row: torch.Tensor) -> Any:
        hidden, cell = carry
        i, f, g, o = self._gates(self.given(row) + self.kept(hidden))
        cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
        hidden = torch.sigmoid(o) * torch.tanh(cell)
        return (hidden, cell), hidden.clone()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return scan(self.step, (torch.zeros(2, 6), torch.zeros(2, 6)), x)[1]

    @torch.no_grad()
    def eager(self, x: torch.Tensor) -> torch.Tensor:
        """Return the result of the loop in Python."""
        carry: Any = (torch.zeros(2, 6), torch.zeros(2, 6))
        rows: list[torch.Tensor] = []
        for row in x:
            carry, found = self.step(carry, row)
            rows.append(found)
        return torch.stack(rows)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's, of a loop with weights
@pytest.mark.parametrize("how", ["split_with_sizes", "split", "chunk", "unbind"])
def test_a_cell_in_a_loop_is_a_few_graphs(how: str) -> None:
    torch.manual_seed(0)
    module, x = Gates(how).eval(), torch.randn(5, 2, 6)
    buffer = bytes(to_edge(torch.export.export(module, (x,))).to_executorch().buffer)
    method = assert_bits_of_single_calls(buffer, [[x], [torch.randn(5, 2, 6)]])
    block = max(blocks_in(method), key=lambda one: one.count)
    graphs = [one for one in block.calls if isinstance(one, Stretch)]
    assert sum(len(one.plain) for one in graphs) >= block.count - 4  # all but prims
    assert len(block.calls) <= 6
    assert torch.allclose(method.execute([x])[0], module.eager(x), atol=1e-6)


def branches(first: str, second: str = "aten::neg.out") -> bytes:
    """Return a program whose result is that of an operator on x, or y, and then of another one."""
    build = Builder()
    which, x, y = map(build.input, (torch.tensor([True]), torch.zeros(4), torch.zeros(4)))
    never = build.value(False)
    chosen, out = (build.tensor(torch.float32, (4,)) for _ in range(2))
    steps = [
        m.JumpFalseCall(which, 3),
        m.KernelCall(0, (x, chosen, chosen)),
        m.JumpFalseCall(never, 4),
        m.MoveCall(y, chosen),
        m.KernelCall(1, (chosen, out, out)),
        m.KernelCall(1, (out, out, out)),
    ]
    return encoded(build.plan(steps, [out], [first, second]))


@pytest.mark.parametrize("runs_before", [0, 1, 5])
def test_a_result_goes_where_a_move_has_put_its_value(
    runs_before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "RUNS_BEFORE_GRAPHS", runs_before)
    method = loaded(branches("aten::abs.out"))
    for which in (True, True, False, True, True, False, False, True, False, True, True):
        x, y = torch.randn(4), torch.randn(4)
        (found,) = method.execute([torch.tensor([which]), x, y])
        assert torch.equal(found, x.abs() if which else y)


def test_errors_in_a_block_name_their_instruction() -> None:
    build = Builder()
    rows, at = build.input(torch.randn(3, 2)), build.input(torch.tensor([0, 2]))
    yes, dim = build.value(True), build.value(0)
    found, out = (build.tensor(torch.float32, (2, 2)) for _ in range(2))
    steps = [
        m.JumpFalseCall(yes, 0),
        m.KernelCall(1, (found, out, out)),
        m.KernelCall(0, (rows, dim, at, found, found)),
        m.KernelCall(1, (found, out, out)),
    ]
    plan = build.plan(steps, [out], ["aten::index_select.out", "aten::abs.out"])
    method = loaded(encoded(plan))
    given = [torch.randn(3, 2), torch.tensor([0, 2])]
    for number in range(6):
        assert torch.equal(method.execute(given)[0], given[0][given[1]].abs())
        with pytest.raises(ExecutionError) as raised:
            method.execute([given[0], torch.tensor([0, 9])])
        assert raised.value.instruction == 2, number
        assert raised.value.operator == "aten::index_select.out"
    assert graphs_in(method)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("budget", [0, 1, 7, 30])
def test_blocks_stay_within_the_budget_of_single_instructions(budget: int) -> None:
    module, x = Gates("chunk").eval(), torch.randn(5, 2, 6)
    buffer = bytes(to_edge(torch.export.export(module, (x,))).to_executorch().buffer)
    method = loaded(buffer)
    for _ in range(3):
        method.execute([x])
    method.instruction_budget = budget
    with pytest.raises(ExecutionError, match=f"exceeded {budget} instructions"):
        method.execute([x])
    executed = sum(len(chain.instructions) for chain in method._plan.chains) * 6
    method.instruction_budget = executed
    method.execute([x])


def test_the_setting_of_torch_is_left_as_it_was() -> None:
    method = loaded(branches("aten::abs.out"))
    before = torch._C._get_graph_executor_optimize()
    for _ in range(4):
        method.execute([torch.tensor([True]), torch.randn(4), torch.randn(4)])
    assert torch._C._get_graph_executor_optimize() == before
