"""The documented planning pass: code of users that chooses arenas or places values itself."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from compiler import (
    EdgeProgramManager,
    ExecutorchBackendConfig,
    ExecutorchProgramManager,
    MemoryAlgoResult,
    MemoryPlanningAlgorithmSuite,
    MemoryPlanningPass,
    SpecAllocResult,
    greedy,
    interval,
    naive,
    to_edge,
)
from compiler.errors import PlanError
from runtime import Runtime
from schema import program as pte
from schema.program import model as m
from tests.compiler.compare import assert_equal, eager_outputs, exported, module_of
from tests.compiler.programs import EVERY, Apply
from tests.compiler.stock import Stock

pytestmark = pytest.mark.slow
X, Y = torch.randn(2, 2), torch.randn(2, 2)


class AddSubMul(nn.Module):
    def forward(self, a: torch.Tensor, x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        y = torch.mm(a, x)
        z = y + b
        z = z - a
        z = torch.mm(a, z)
        return z + b


class TwoPools(MemoryPlanningPass):
    """Inputs and products in the first arena, sums in the second."""

    def run(self, graph_module: torch.fx.GraphModule, graph_signature: Any = None) -> Any:
        for module in graph_module.modules():
            if not isinstance(module, torch.fx.GraphModule):
                continue
            for node in module.graph.nodes:
                if node.op == "placeholder":
                    node.meta["spec"].mem_id = 1
                elif node.target == torch.ops.aten.add.out:
                    node.meta["spec"].mem_id = 2
                elif node.target == torch.ops.aten.mm.out:
                    node.meta["spec"].mem_id = 1
        return super().run(graph_module, graph_signature)


def _edge() -> EdgeProgramManager:
    return to_edge(torch.export.export(AddSubMul(), (X, Y, X)))


def _planned(planning: Any, edge: EdgeProgramManager | None = None) -> Any:
    config = ExecutorchBackendConfig(memory_planning_pass=planning)
    return (edge or _edge()).to_executorch(config)


def _sizes(program: Any) -> tuple[int, ...]:
    return pte.decode(program.buffer).plan("forward").non_const_buffer_sizes


def test_program_after_planning_is_a_graph_of_out_variants_with_memory() -> None:
    program = _edge().to_executorch()
    graph = program.exported_program().graph
    calls = [node for node in graph.nodes if node.op == "call_function"]
    allocs = [node for node in calls if node.target.__name__ == "alloc"]
    assert [node.args for node in allocs] == [(((2, 2), torch.float32),)] * 5
    others = [node.target for node in calls if node not in allocs]
    aten: Any = torch.ops.aten
    assert others == [aten.mm.out, aten.add.out, aten.sub.out, aten.mm.out, aten.add.out]
    assert all(node.meta["spec"].mem_offset is not None for node in calls)


def test_pass_that_chooses_arenas_gets_them(stock: Stock) -> None:
    program = _planned(TwoPools(memory_planning_algo=greedy))
    sizes = _sizes(program)
    assert len(sizes) == 3
    assert all(sizes[1:])
    plan = pte.decode(program.buffer).plan("forward")
    tensors = [value.val for value in plan.values if isinstance(value.val, m.Tensor)]
    arenas = {t.allocation_info.memory_id for t in tensors if t.allocation_info is not None}
    assert arenas == {1, 2}


@pytest.mark.interop
def test_plans_of_users_run_on_the_stock_runtime(stock: Stock) -> None:
    wanted = eager_outputs(AddSubMul(), [(X, Y, X)])
    suite = MemoryPlanningAlgorithmSuite([naive, greedy])
    for planning in (TwoPools(greedy), TwoPools(suite), MemoryPlanningPass(_stacked)):
        program = _planned(planning)
        assert_equal(stock.run(program.buffer, [("forward", (X, Y, X))]), wanted, 1e-5)


def _stacked(
    alignment: int, specs: Any, graph_module: Any, graph_signature: Any, extra_padding: int
) -> MemoryAlgoResult:
    """Put everything behind each other, with one more step between."""
    del graph_module, graph_signature
    result, at = MemoryAlgoResult({}, [0, 0]), 0
    for spec in specs:
        assert spec.lifetime[0] <= spec.lifetime[1]
        spec.realign(alignment)
        result.spec_dict[spec] = SpecAllocResult(1, 0, at)
        at += spec.allocated_memory + alignment
    result.bufsizes[1] = at + extra_padding
    return result


def test_algorithm_of_a_user_places_every_value() -> None:
    program = _planned(MemoryPlanningPass(_stacked))
    # Three inputs and five results of 16 bytes, and as many steps of 16.
    assert _sizes(program) == (0, 8 * 32)
    assert program.memory_plans["forward"].planner == "_stacked"


def test_specs_come_in_the_order_of_the_graph_so_that_a_plan_is_reproducible() -> None:
    starts: list[list[int]] = []

    def noting(alignment: int, specs: Any, *more: Any) -> MemoryAlgoResult:
        starts.append([spec.lifetime[0] for spec in specs])
        return _stacked(alignment, specs, *more)

    buffers = {bytes(_planned(MemoryPlanningPass(noting)).buffer) for _ in range(5)}
    assert len(buffers) == 1
    assert all(found == sorted(found) for found in starts)
    assert len(starts[0]) == 8


WRONG: dict[str, tuple[Any, str]] = {
    "between": (lambda at: at + 4, r"\w+ at \d+ does not start at a multiple of 16"),
    "before": (lambda at: at - 16, r"\w+ at -16 lies outside 256 bytes of planned buffer 1"),
    "fractions": (float, r"assigned \d+\.0 of planned buffer 1 to \w+, expected integers"),
    "nowhere": (lambda _: None, r"assigned no offset to \w+"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_place_that_is_none_is_one_error(kind: str) -> None:
    move, message = WRONG[kind]

    def moving(*given: Any, **named: Any) -> MemoryAlgoResult:
        result = _stacked(*given, **named)
        for place in result.spec_dict.values():
            place.mem_offset = move(place.mem_offset)
        return result

    with pytest.raises(PlanError, match=message):
        _planned(MemoryPlanningPass(moving))


def test_algorithm_that_returns_no_plan_is_named() -> None:
    with pytest.raises(PlanError, match="_nothing returned NoneType"):
        _planned(MemoryPlanningPass(_nothing))


def _nothing(*_: Any) -> None:
    return None


def test_plan_of_a_user_that_overlaps_names_both_values() -> None:
    def overlapping(alignment: int, specs: Any, *_: Any) -> MemoryAlgoResult:
        places = {spec: SpecAllocResult(1, 0, 0) for spec in specs}
        return MemoryAlgoResult(places, [0, 16 * alignment])

    with pytest.raises(PlanError, match="overlap in time and in memory"):
        _planned(MemoryPlanningPass(overlapping))
    allowed = MemoryPlanningPass(overlapping, allow_lifetime_and_storage_overlap=True)
    assert _sizes(_planned(allowed)) == (0, 256)


@pytest.mark.parametrize("name", ["conv_bn", "lstm", "kv_cache", "dynamic_shapes"])
def test_smallest_plan_wins_unless_one_is_named(name: str) -> None:
    edge = to_edge(exported(EVERY[name], module_of(EVERY[name])))
    sizes = {
        algorithm: _planned(MemoryPlanningPass(algorithm), edge).memory_plans["forward"].nbytes
        for algorithm in (None, "naive", "greedy", "interval", greedy, naive, interval)
    }
    assert sizes[None] == min(sizes.values())
    assert sizes["naive"] == sizes[naive] >= sizes["greedy"] == sizes[greedy]
    slow = _planned(MemoryPlanningPass(lambda *a: greedy(*a)), edge)  # the same by the long way
    assert slow.memory_plans["forward"].nbytes == sizes["greedy"]
    apart = partial(greedy, allow_overlapping_allocations=False)
    separate = _planned(MemoryPlanningPass(apart), edge)
    assert sizes["greedy"] <= separate.memory_plans["forward"].nbytes <= sizes["naive"]


def test_planner_that_is_not_there_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="naive, greedy, interval"):
        MemoryPlanningPass("best")
    with pytest.raises(ValueError, match="needs alloc_mutable_buffers"):
        MemoryPlanningPass(share_mutable_buffers=True, alloc_mutable_buffers=False)
    with pytest.raises(ValueError, match="power of two, not 12"):
        MemoryPlanningPass(alignment=12)


@pytest.mark.parametrize("alignment", [1, 64, 4096])
def test_values_start_at_the_alignment(alignment: int) -> None:
    program = _planned(MemoryPlanningPass(alignment=alignment))
    assert all(offset % alignment == 0 for offset in program.memory_plans["forward"].offsets)


class Count(nn.Module):
    """Adds to a buffer, or only tells what it holds."""

    total: torch.Tensor

    def __init__(self, *, adds: bool, writes: bool = True) -> None:
        super().__init__()
        self.adds, self.writes = adds, writes
        self.register_buffer("total", torch.full((3,), 5.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.writes:
            self.total.add_(x if self.adds else x * 0)
        return self.total + 0


def _sharing(**tells: bool) -> ExecutorchProgramManager:
    x = torch.ones(3)
    methods = {
        "add": torch.export.export(Count(adds=True), (x,)),
        "tell": torch.export.export(Count(adds=False, **tells), (x,)),
    }
    sharing = MemoryPlanningPass(share_mutable_buffers=True)
    return to_edge(methods).to_executorch(
        ExecutorchBackendConfig(memory_planning_pass=sharing, emit_mutable_buffer_names=True)
    )


def test_method_that_only_reads_a_shared_buffer_sees_what_others_wrote() -> None:
    program = Runtime.get().load_program(_sharing(writes=False).buffer)
    add, tell = program.load_method("add"), program.load_method("tell")
    x = torch.ones(3)
    for _ in range(3):
        assert torch.equal(add.execute((x,))[0], tell.execute((x,))[0])


@pytest.mark.parametrize("writes", [True, False])
def test_shared_buffers_have_one_place_in_a_second_arena_of_all_methods(writes: bool) -> None:
    program = _sharing(writes=writes)
    places: list[Any] = []
    for plan in pte.decode(program.buffer).table.execution_plan:
        assert plan.non_const_buffer_sizes[2:] == (16,)
        tensors = (v.val for v in plan.values if isinstance(v.val, m.Tensor))
        places += [t.allocation_info for t in tensors if t.extra_tensor_info is not None]
    assert places == [m.AllocationDetails(2, 0, 0)] * 2


def test_joint_arena_is_that_of_the_largest_method() -> None:
    def of(size: int) -> torch.export.ExportedProgram:
        return torch.export.export(Apply(lambda x: (x * 2).exp()), (torch.randn(size),))

    edge = to_edge({"small": of(10), "large": of(1000)})
    alone = edge.to_executorch().memory_plans
    joint = edge.to_executorch(ExecutorchBackendConfig(joint_arena=True)).memory_plans
    assert {plan.nbytes for plan in joint.values()} == {alone["large"].nbytes}
    assert alone["small"].nbytes < alone["large"].nbytes


def _read_as_views(x: torch.Tensor) -> Any:
    y = x + 1
    return y, y.view(-1) * 2, y.unsqueeze(0) - 1


def _of_branches(x: torch.Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda a: (a.sin(), a + 1), lambda a: (a.cos(), a * 2), (x,))


@pytest.mark.interop
@pytest.mark.parametrize("function", [_read_as_views, _of_branches])
def test_results_in_memory_of_the_caller_may_be_read_and_moved(function: Any, stock: Stock) -> None:
    module, calls = Apply(function), [(X,), (-X,), (X * 2,)]
    planning = MemoryPlanningPass(alloc_graph_output=False, alloc_graph_input=False)
    edge = to_edge(torch.export.export(module, (X,)))
    program = _planned(planning, edge)
    wanted = eager_outputs(module, calls)
    assert_equal(stock.run(program.buffer, [("forward", one) for one in calls]), wanted, 1e-5)
    method = Runtime().load_program(program.buffer).load_method("forward")
    assert_equal([[v.clone() for v in method.execute(list(one))] for one in calls], wanted, 1e-5)
    owned = _planned(MemoryPlanningPass(), edge).memory_plans["forward"].nbytes
    assert program.memory_plans["forward"].nbytes < owned


def test_memory_of_inputs_that_nobody_reads_is_free_before_the_first_instruction() -> None:
    module = Apply(lambda a, _b, _c: (a + 1).exp())
    program = to_edge(torch.export.export(module, (X, Y, Y))).to_executorch()
    plan = program.memory_plans["forward"]
    assert plan.nbytes == plan.lower_bound == 3 * 16  # the inputs; two results lie over two of them
    method = Runtime().load_program(program.buffer).load_method("forward")
    for given in (X, Y):
        assert_equal([method.execute([given, Y, X])], [[(given + 1).exp()]], 1e-6)
