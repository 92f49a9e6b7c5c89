"""TensorSpec and its helpers beside stock's; specs, out variants and plans of graph modules."""

from __future__ import annotations

import itertools
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

_SHAPES = [(), (3,), (2, 3), (2, 3, 4, 5), (2, 0, 4), (1, 7, 1, 1)]
_FIELDS = (
    "scalar_type",
    "shape",
    "stride",
    "dim_order",
    "const",
    "layout",
    "is_sparse",
    "requires_grad",
    "alignment",
    "lifetime",
    "mem_id",
    "mem_obj_id",
    "mem_offset",
    "storage_base",
    "storage_base_offset",
    "inplace_base",
    "shape_dynamism",
    "device",
    "device_index",
    "extra_tensor_info",
    "allocated_memory",
    "is_dynamic_unbound_tensor",
    "dtype",
    "is_static_shape_tensor",
    "is_dynamic_shape_tensor",
    "is_upper_bound_tensor",
)


def _layouts(x: torch.Tensor) -> list[torch.Tensor]:
    if x.dim() != 4:
        return [x]
    return [x, x.to(memory_format=torch.channels_last), x.permute(3, 0, 2, 1)]


@pytest.mark.interop
@pytest.mark.parametrize("shape", _SHAPES)
def test_spec_of_a_tensor_equals_stocks(shape: tuple[int, ...]) -> None:
    stock: Any = pytest.importorskip("executorch.exir.tensor")
    for dtype, const in itertools.product((torch.float32, torch.int8, torch.bool), (True, False)):
        for x in _layouts(torch.zeros(shape, dtype=dtype)):
            ours, theirs = (s.from_tensor(x, const) for s in (TensorSpec, stock.TensorSpec))
            for name in _FIELDS:
                assert getattr(ours, name) == getattr(theirs, name), name
            assert ours.nbytes() == theirs.nbytes()
            assert (ours.storage is None) == (not const)
            assert ours.realign(64) == theirs.realign(64)
            assert ours.debug().split("scalar")[1] == theirs.debug().split("scalar")[1]
            assert repr(ours) == repr(theirs)


@pytest.mark.interop
@pytest.mark.parametrize("shape", _SHAPES)
def test_strides_and_dim_orders_equal_stocks(shape: tuple[int, ...]) -> None:
    stock: Any = pytest.importorskip("executorch.exir.tensor")
    for order in itertools.permutations(range(len(shape))):
        strides = tensor.stride_from_dim_order(list(shape), list(order))
        assert strides == stock.stride_from_dim_order(list(shape), list(order))
        assert tensor.dim_order_from_stride(strides) == stock.dim_order_from_stride(tuple(strides))
    plain = tensor.contiguous_stride_from_shape(shape)
    assert plain == stock.contiguous_stride_from_shape(torch.Size(shape))
    for dtype in (torch.float16, torch.complex64, torch.uint8):
        assert tensor.num_bytes_from_shape_and_dtype(
            shape, dtype
        ) == stock.num_bytes_from_shape_and_dtype(torch.Size(shape), dtype)
        assert tensor.scalar_type_enum(dtype) == stock.scalar_type_enum(dtype)
        assert tensor.get_scalar_type(tensor.scalar_type_enum(dtype)) is dtype


@pytest.mark.interop
@pytest.mark.parametrize("offset", [0, 5, 2**32, 2**40 + 3])
def test_rows_of_program_files_equal_stocks(offset: int) -> None:
    stock: Any = pytest.importorskip("executorch.exir.tensor")
    row, theirs = tensor.make_allocation_info(2, offset), stock.make_allocation_info(2, offset)
    for name in ("memory_id", "memory_offset_low", "memory_offset_high"):
        assert getattr(row, name) == getattr(theirs, name)
    x = torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last)
    ours = tensor.make_tensor_value(0, row, TensorSpec.from_tensor(x))
    other = stock.make_tensor_value(0, theirs, stock.TensorSpec.from_tensor(x))
    for name in ("scalar_type", "layout", "shape_dynamism", "data_buffer_idx", "requires_grad"):
        assert getattr(ours, name) == getattr(other, name)
    assert [*ours.sizes] == [*other.sizes]
    assert [*ours.dim_order] == [*other.dim_order]


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
