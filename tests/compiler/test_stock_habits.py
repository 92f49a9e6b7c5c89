"""Habits of programs for ExecuTorch: nested inputs of lowered modules, attributes, passes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim, export
from torch.utils import _pytree as pytree

from compiler import (
    ExportPass,
    PassManager,
    constant_prop_pass,
    ops,
    to_backend,
    to_edge,
)
from compiler.backends.demo import AddMulPartitionerDemo
from compiler.dialect.delegate_call import get_lowered_submodules
from compiler.errors import UnsupportedError
from compiler.passes.base import PassError
from runtime.api import Runtime

pytestmark = pytest.mark.slow


class FromList(nn.Module):
    def forward(self, x: list[torch.Tensor]) -> torch.Tensor:
        return x[0].sin() + x[1]


class FromMany(nn.Module):
    def forward(self, x: dict[str, Any], y: tuple[torch.Tensor]) -> torch.Tensor:
        return x["a"].sin() + x["b"][1] * y[0]


class Around(nn.Module):
    """Calls a module, and computes with its result."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *given: Any) -> torch.Tensor:
        return self.inner(*given) + 1


def _nested(name: str) -> tuple[nn.Module, tuple[Any, ...]]:
    torch.manual_seed(0)
    a, b, c, d = torch.randn(4, 2, 2)
    if name == "dict":
        return FromMany(), ({"a": a, "b": [b, c]}, (d,))
    return FromList(), ([a, b],) if name == "list" else ((a, b),)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("name", ["list", "tuple", "dict"])
def test_lowered_module_with_nested_inputs_inside_another(name: str, strict: bool) -> None:
    module, inputs = _nested(name)
    alone = to_edge(export(module, inputs, strict=True)).exported_program()
    lowered = to_backend("ExecutorBackend", alone, [])
    torch.testing.assert_close(lowered(*inputs), module(*inputs))
    manager = to_edge(export(Around(lowered), inputs, strict=strict))
    wanted = module(*inputs) + 1
    program = manager.exported_program()
    torch.testing.assert_close(program.module()(*inputs), wanted)
    (call,) = [found for _, _, found in get_lowered_submodules(program.graph_module)]
    assert call.meta["debug_handle"] == call.args[0].meta["debug_handle"] > 0
    method = Runtime().load_program(manager.to_executorch().buffer).load_method("forward")
    torch.testing.assert_close(method.execute(pytree.tree_leaves(inputs))[0], wanted)


class ToMany(nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        return {"a": x + x, "b": (x.sin(), [x * 2])}


class ToLists(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        return x + x, [x.sin(), x * 2]


class ToOne(nn.Module):
    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [x.sin()]


class Passing(nn.Module):
    """Returns what a module gives, and a sum over all of it."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> Any:
        given = self.inner(x)
        return given, sum(pytree.tree_leaves(given)).exp()


@pytest.mark.parametrize("strict", [True, False])
def test_lowered_module_with_a_list_of_one_output_inside_another(strict: bool) -> None:
    x = torch.linspace(-1, 1, 6).reshape(2, 3)
    alone = to_edge(export(ToOne(), (x,), strict=True)).exported_program()
    lowered = to_backend("ExecutorBackend", alone, [])
    manager = to_edge(export(Passing(lowered), (x,), strict=strict))
    wanted = Passing(ToOne())(x)
    torch.testing.assert_close(manager.exported_program().module()(x), wanted)
    method = Runtime().load_program(manager.to_executorch().buffer).load_method("forward")
    torch.testing.assert_close(list(method.execute([x])), pytree.tree_leaves(wanted))


@pytest.mark.parametrize("inner", [ToMany, ToLists])
def test_lowered_module_with_nested_outputs_inside_another_is_refused(
    inner: type[nn.Module],
) -> None:
    x = torch.ones(2, 3)
    alone = to_edge(export(inner(), (x,), strict=True)).exported_program()
    program = export(Passing(to_backend("ExecutorBackend", alone, [])), (x,))
    with pytest.raises(UnsupportedError, match="one flat list or tuple"):
        to_edge(program)


class Weighted(nn.Module):
    """What depends on weights alone, and what does not."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.arange(6.0).reshape(2, 3))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        doubled = self.w + self.w
        row = doubled[:1].t().contiguous().t()
        return torch.cat([x, row]), doubled


@pytest.mark.parametrize("strict", [True, False])
def test_constants_of_an_exported_program_are_folded(strict: bool) -> None:
    x = torch.ones(2, 3)
    program = export(Weighted(), (x,), strict=strict)
    before = str(program.graph)
    folded = constant_prop_pass(program)
    assert str(program.graph) == before
    calls = [str(n.target) for n in folded.graph.nodes if n.op == "call_function"]
    assert "aten.cat.default" in calls
    assert set(calls) <= {"aten.cat.default", "aten.clone.default"}
    wanted = Weighted()(x)
    torch.testing.assert_close(folded.module()(x), wanted)
    method = Runtime().load_program(to_edge(folded).to_executorch().buffer).load_method("forward")
    torch.testing.assert_close(tuple(method.execute([x])), tuple(w.detach() for w in wanted))


class Sized(ExportPass):
    """Makes views of the sizes of what they view."""

    def __init__(self, *, edge: bool) -> None:
        super().__init__()
        self.edge = edge
        self.seen: list[Any] = []

    def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        result = super().call_operator(op, args, kwargs, meta)
        if op is not ops.edge.aten.relu.default:
            return result
        sizes = self.call_size_operator_all(result, meta, edge_dialect=self.edge)
        self.seen = sizes
        return super().call_operator(ops.edge.aten.view_copy.default, (result, sizes), {}, meta)


@pytest.mark.parametrize("edge", [True, False])
def test_sizes_of_a_value_are_numbers_or_nodes(edge: bool) -> None:
    program = export(nn.ReLU(), (torch.ones(4, 3),), dynamic_shapes=({0: Dim("n", max=9)},))
    given = Sized(edge=edge)
    graph = given(to_edge(program).exported_program().graph_module).graph_module.graph
    first, second = given.seen
    assert second == 3
    assert first.node.args[1] == 0
    target = ops.edge.aten.sym_size.int if edge else torch.ops.aten.sym_size.int
    assert [n.target for n in graph.nodes].count(target) == 1


class Symbolic(ExportPass):
    """Makes views of the symbolic sizes of a fake value, and of what is computed with them."""

    def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        result = super().call_operator(op, args, kwargs, meta)
        if op is not ops.edge.aten.relu.default:
            return result
        rows, columns = result.data.shape
        flat = (result, [rows * columns])
        flattened = super().call_operator(ops.edge.aten.view_copy.default, flat, {}, meta)
        again = (flattened, [rows, columns])
        return super().call_operator(ops.edge.aten.view_copy.default, again, {}, meta)


def test_symbolic_sizes_in_the_arguments_of_a_pass_become_nodes() -> None:
    program = export(nn.ReLU(), (torch.ones(4, 3),), dynamic_shapes=({0: Dim("n", max=9)},))
    manager = to_edge(program).transform([Symbolic()])
    method = Runtime.get().load_program(manager.to_executorch().buffer).load_method("forward")
    for rows in (1, 4, 9):
        x = torch.linspace(-1, 1, rows * 3).reshape(rows, 3)
        torch.testing.assert_close(method.execute([x]), [x.relu()])


class Renaming(ExportPass):
    def placeholder(self, name: str, arg: Any, meta: Any) -> Any:
        return super().placeholder(f"renamed_{name}", arg, meta)


def test_renamed_inputs_have_their_new_names_in_graph_and_signature() -> None:
    manager = to_edge(export(nn.Linear(3, 2), (torch.ones(4, 3),)))
    made = manager.transform([Renaming()]).exported_program()
    names = [node.name for node in made.graph.nodes if node.op == "placeholder"]
    assert names == ["renamed_p_weight", "renamed_p_bias", "renamed_input"]
    assert [spec.arg.name for spec in made.graph_signature.input_specs] == names
    x = torch.ones(4, 3)
    torch.testing.assert_close(made.module()(x), manager.exported_program().module()(x))


@pytest.mark.parametrize("each", [True, False])
def test_call_of_a_method_is_found_behind_a_pass(each: bool) -> None:
    def bad(module: torch.fx.GraphModule) -> None:
        last = [node for node in module.graph.nodes if node.op == "call_function"][-1]
        with module.graph.inserting_after(last):
            new = module.graph.call_method("relu", (last,))
        last.replace_all_uses_with(new, lambda user: user is not new)

    module = to_edge(export(nn.ReLU(), (torch.ones(2),))).exported_program().graph_module
    manager = PassManager(passes=[bad], run_checks_after_each_pass=each)
    if not each:
        manager(module)
        return
    with pytest.raises(PassError, match="call_method `relu`"):
        manager(module)


class Copies(nn.Module):
    """Everything whose planned operator carries a dim order."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = torch.cat([x.double(), torch.empty((0, 6), dtype=torch.float64)])
        return wide.clone() + 1


def test_planned_program_with_dim_orders_runs_in_torch() -> None:
    x = torch.arange(18.0).reshape(3, 6)
    program = to_edge(export(Copies(), (x,))).to_executorch().exported_program()
    torch.testing.assert_close(program.module()(x), Copies()(x))


def test_output_of_a_planned_graph_has_the_specs_of_the_results() -> None:
    program = to_edge(export(Copies(), (torch.ones(3, 6),))).to_executorch().exported_program()
    output = program.graph.output_node()
    assert [*output.meta["spec"]] == [node.meta["spec"] for node in output.args[0]]


class Sums(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.sin(x * y + y)


def test_attributes_that_programs_for_executorch_read() -> None:
    inputs = (torch.ones(2, 2), torch.ones(2, 2))
    edge = to_edge(export(Sums(), inputs), constant_methods={"size": 2})
    edge = edge.to_backend(AddMulPartitionerDemo())
    assert edge._edge_programs["forward"] is edge.exported_program()
    assert edge._config_methods == {"size": 2}
    ((name, module, call),) = get_lowered_submodules(edge.exported_program().graph_module)
    assert getattr(edge.exported_program().graph_module, name) is module
    assert call.args[0].target == name
    edge._config_methods["more"] = 3  # as passes that quantize inputs and outputs do
    made = edge.to_executorch()
    assert made.config_methods == {"size", "more"}
    found = made._emitter_output
    assert {plan.name for plan in found.program.plans} == {"forward", "size", "more"}
    assert found.debug_handle_map == made.debug_handle_map
    assert found.method_to_delegate_debug_id_map == made.delegate_map
    counts = found.instruction_id_to_num_outs_map["forward"]
    assert counts == dict.fromkeys(made.delegate_map["forward"], 1) != {}
    assert made._tensor_data == {}


class InEdgeOperators(nn.Module):
    """Calls operators of the edge dialect itself."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        summed = ops.edge.aten.add.Tensor(x, x, alpha=2)
        viewed = ops.edge.aten.view_copy.default(summed, [3, 2])
        quantized = ops.edge.quantized_decomposed
        numbers = (0.5, 0, -128, 127, torch.int8)
        integers = quantized.quantize_per_tensor.default(viewed, *numbers)
        viewed = quantized.dequantize_per_tensor.default(integers, *numbers)
        values, _ = ops.edge.aten.max.dim(viewed, 1)
        return ops.edge.aten._softmax.default(values, 0, False) - 1


@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`")
@pytest.mark.parametrize("strict", [True, False])
def test_module_that_calls_edge_operators_is_exported(strict: bool) -> None:
    x = torch.randn(2, 3, generator=torch.Generator().manual_seed(0))
    manager = to_edge(export(InEdgeOperators(), (x,), strict=strict))
    wanted = torch.softmax((x * 6).round().view(3, 2).max(1).values / 2, 0) - 1
    torch.testing.assert_close(InEdgeOperators()(x), wanted)
    method = Runtime().load_program(manager.to_executorch().buffer).load_method("forward")
    torch.testing.assert_close(method.execute([x])[0], wanted)


def test_operators_of_any_overload_are_found_in_sets() -> None:
    wanted = {ops.edge.aten.permute_copy, ops.edge.quantized_decomposed.quantize_per_tensor}
    assert ops.edge.aten.permute_copy in wanted
    assert ops.edge.quantized_decomposed.quantize_per_tensor in wanted
    assert ops.edge.aten.view_copy not in wanted
    assert ops.edge.aten != torch.ops.aten
