"""TensorSpec and its helpers beside stock's; specs, out variants and plans of graph modules."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim, export

from compiler import (
    ExecutorchBackendConfig,
    MemoryPlanningPass,
    PassManager,
    SpecPropPass,
    TensorSpec,
    ToOutVarPass,
    greedy,
    naive,
    to_edge,
)
from compiler.compat import memory_planning, tensor
from compiler.errors import PlanError
from tests.tools.forked import run_stock


@pytest.mark.interop
def test_specs_strides_and_rows_equal_stocks() -> None:
    finished = run_stock(["-m", "tests.compiler.tensor_spec_against_stock"])
    found = json.loads(finished.stdout)
    assert {name: answer["different"] for name, answer in found.items()} == {
        "specs": [],
        "strides": [],
        "rows": [],
    }
    assert [answer["compared"] > 30 for answer in found.values()] == [True] * 3


def test_offsets_and_strides_no_file_can_hold_are_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        tensor.make_allocation_info(1, -1)
    with pytest.raises(tensor.AddressSpaceOverflowException):
        tensor.make_allocation_info(1, 2**64)
    with pytest.raises(RuntimeError, match="0 in strides"):
        tensor.dim_order_from_stride((4, 0, 1))


def test_base_of_a_spec_begins_where_it_does() -> None:
    base, part = TensorSpec(torch.float32, (8,)), TensorSpec(torch.float32, (4,))
    part.inplace_base = base
    assert part.storage_base is base
    part.storage_base_offset = 16
    with pytest.raises(PlanError, match="offset 16"):
        _ = part.inplace_base
    part.init_mem_planning_fields()
    assert part.inplace_base is None


class Net(nn.Module):
    """Several results of one call, and values that are alive together."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, places = (x * 2).max(1)
        return values + 1, torch.relu(x).sum(1) + places


def _graph() -> torch.fx.GraphModule:
    dynamic = ({0: Dim("rows", max=9)},)
    program = export(Net(), (torch.ones(4, 3),), dynamic_shapes=dynamic, strict=True)
    return to_edge(program).exported_program().graph_module


def test_specs_and_out_variants_over_a_graph_module() -> None:
    result = PassManager(passes=[SpecPropPass(), ToOutVarPass()])(_graph())
    for node in result.graph_module.graph.nodes:
        for spec in memory_planning.get_node_tensor_specs(node):
            assert spec.shape[:1] in ([], [9])
        for place in (v for k, v in node.kwargs.items() if k == "out"):
            assert place.meta["spec"] is node.meta["spec"]
        if node.name.startswith("getitem"):
            source, index = node.args
            assert node.meta["spec"] is source.meta["spec"][index]


@pytest.mark.parametrize("algorithm", [None, greedy, naive])
@pytest.mark.parametrize("lent", [True, False])
def test_plan_of_a_graph_module_overlaps_nowhere(algorithm: Any, lent: bool) -> None:
    planning = MemoryPlanningPass(
        algorithm, alloc_graph_input=not lent, alloc_graph_output=not lent
    )
    module = PassManager(passes=[SpecPropPass(), ToOutVarPass(), planning])(_graph()).graph_module
    specs = {
        spec
        for node in module.graph.nodes
        for spec in memory_planning.get_node_tensor_specs(node)
        if spec.mem_offset is not None
    }
    (nothing, size) = module.meta["non_const_buffer_sizes"]
    assert nothing == 0
    assert len(specs) > 4
    for a, b in itertools.combinations(specs, 2):
        apart = a.lifetime[1] < b.lifetime[0] or b.lifetime[1] < a.lifetime[0]
        ends = (
            a.mem_offset + a.nbytes() <= b.mem_offset or b.mem_offset + b.nbytes() <= a.mem_offset
        )
        assert apart or ends
    assert all(spec.mem_offset + spec.nbytes() <= size for spec in specs)
    (x,) = [node for node in module.graph.nodes if node.name == "x"]
    assert (x.meta["spec"].mem_offset is None) == lent


def test_graph_without_specs_is_not_planned() -> None:
    with pytest.raises(PlanError, match="SpecPropPass"):
        MemoryPlanningPass()(_graph())


def _first_fit(
    alignment: int, specs: Any, graph_module: Any, graph_signature: Any, extra_padding: int = 0
) -> Any:
    """Plan as planners written for the stock compiler do: by shared objects."""
    from compiler import MemoryAlgoResult, SpecAllocResult

    result, objects, owner = MemoryAlgoResult({}, []), {1: []}, {}
    for spec in specs:
        spec.realign(alignment)
    for spec in sorted(specs, key=lambda one: -one.allocated_memory):
        owner[spec] = memory_planning.pick_shared_obj(objects[1], spec)
        result.spec_dict[spec] = SpecAllocResult(1, 0, 0)
    result.bufsizes = memory_planning._compute_total_sizes(
        objects, graph_module, extra_padding, result, len(owner)
    )
    return result


def test_planner_made_of_shared_objects_plans_a_program() -> None:
    config = ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(_first_fit))
    program = export(Net(), (torch.ones(4, 3),), strict=True)
    plan = to_edge(program).to_executorch(config).memory_plans["forward"]
    assert plan.planner == "_first_fit"
    assert plan.nbytes >= plan.lower_bound


@pytest.mark.parametrize("algorithm", [greedy, naive])
def test_tensor_in_the_memory_of_another_lies_inside_it(algorithm: Any) -> None:
    base, part, inner, other = (TensorSpec(torch.float32, (n,)) for n in (64, 16, 4, 16))
    for spec, lifetime in zip(
        (base, part, inner, other), ([0, 1], [1, 5], [2, 9], [6, 7]), strict=True
    ):
        spec.lifetime = lifetime
    part.storage_base, part.storage_base_offset = base, 64
    inner.storage_base, inner.storage_base_offset = part, 16
    result = algorithm(16, [other, inner, part, base], None, None)
    at = {spec: result.spec_dict[spec].mem_offset for spec in (base, part, inner, other)}
    assert (at[part] - at[base], at[inner] - at[part]) == (64, 16)
    assert at[other] >= at[base] + 256 or at[other] + 64 <= at[base]  # alive until the last part is
