"""Helpers of graphs, sizes and logs that programs written for ExecuTorch import."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.export import Dim, export

from compiler import (
    MemoryPlanningAlgorithmSuite,
    PassManager,
    SpecPropPass,
    ToOutVarPass,
    greedy,
    ops,
    to_edge,
)
from compiler.compat import graphs, operators, sizes
from compiler.compat.emission import pretty_print
from compiler.compat.memory_planning import _extend_storage_base_lifetimes, _is_inplace_node
from compiler.compat.passes.debug_pass import DebugPass
from compiler.compat.plan_apply import apply_algo
from compiler.compat.plan_checks import Verifier, collect_specs_from_nodes
from compiler.compat.programs import WrapperModule, patch_forward
from compiler.errors import CompileError, PlanError, UnboundedShapeError
from compiler.memory.tensor_spec import DeviceType, TensorSpec
from compiler.passes.standard.reinplace import DEFAULT_INPLACEABLE_OPS, reinplace_pass
from runtime import Runtime
from tests.architecture.tree import run_python

pytestmark = pytest.mark.slow

aten = torch.ops.aten


class Branch(torch.nn.Module):
    """A product in one branch of two."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda a: a * 2, lambda a: a - 1, (x,))


def _exported() -> Any:
    return export(Branch(), (torch.ones(3),))


def test_operators_are_found_in_branches_and_behind_edge_operators() -> None:
    exported = _exported()
    for module in (exported.graph_module, to_edge(exported).exported_program().graph_module):
        assert graphs.contains_any_call_fn_target_op(module, {aten.mul.Tensor, aten.sub.Tensor})
        assert not graphs.contains_any_call_fn_target_op(module, {aten.div.Tensor})
        seen: list[str] = []
        graphs.bfs_trace_with_node_process(module, lambda node, seen=seen: seen.append(node.op))
        bodies = [m for m in module.modules() if isinstance(m, torch.fx.GraphModule)]
        assert len(seen) == sum(len(body.graph.nodes) for body in bodies)
        (call,) = [n for n in module.graph.nodes if n.target is torch.ops.higher_order.cond]
        name, body, found = graphs.get_submodule(module, call, 2)
        assert (getattr(module, name), found) == (body, call)


def test_sizes_have_examples_and_bounds() -> None:
    class Sized(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x.repeat(2, 1), y.nonzero()

    shapes = ({0: Dim("a", max=7), 1: Dim("b")}, None)
    given = (torch.ones(3, 4), torch.ones(5))
    program = export(Sized(), given, dynamic_shapes=shapes)
    repeated, found = [node.meta["val"].shape for node in program.graph.output_node().args[0]]
    assert sizes.eval_shape(repeated) == [6, 4]
    assert sizes.eval_shape_upper_bound(repeated) == [14, 4]  # b has no bound: its example
    assert sizes.eval_shape(found) == [None, 1]
    assert len(sizes.collect_free_symbols(repeated)) == 2
    assert sizes.collect_free_symbols([3]) == set()
    unbounded = next(s for s in found if not isinstance(s, int))
    if sizes.largest(unbounded.node.expr, unbounded.node.shape_env.var_to_range) is None:
        with pytest.raises(UnboundedShapeError, match="has no maximum"):
            sizes.eval_upper_bound(unbounded)


def test_another_method_is_exported_as_forward() -> None:
    class Two(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

        def other(self, x: torch.Tensor) -> torch.Tensor:
            return x * 3

    module, x = Two(), torch.ones(2)
    with patch_forward(module, module.other):
        program: Any = export(module, (x,))
    assert program.module()(x).tolist() == [3, 3]
    assert module(x).tolist() == [2, 2]
    assert WrapperModule(module.other)(x).tolist() == [3, 3]


def test_log_of_a_graph_has_code_specs_and_lines(tmp_path: Path) -> None:
    module = to_edge(_exported()).to_executorch().exported_program().graph_module
    text = str(module.graph)
    log = tmp_path / "log.txt"
    DebugPass(msg="hello", show_spec=True, show_src=True, log_filename=str(log))(module)
    lines = log.read_text().splitlines()
    assert lines[0] == "hello"
    assert any("TensorSpec(" in line for line in lines)
    assert any(f"> {Path(__file__).name}:" in line for line in lines)
    count = sum(node.op == "call_function" for node in module.graph.nodes)
    assert f" op call_function, cnt {count}" in lines
    assert str(module.graph) == text
    DebugPass(enable_debug_pass=False, log_filename=str(tmp_path / "none"))(module)
    assert not (tmp_path / "none").exists()


def test_tables_are_printed_field_by_field() -> None:
    plan = to_edge(_exported()).to_executorch().executorch_program.execution_plan[0]
    out = io.StringIO()
    pretty_print(plan, out=out)
    text = out.getvalue()
    assert text.startswith("ExecutionPlan(\n  name=forward,\n")
    assert all(f"name={operator.name}" in text for operator in plan.operators)
    assert text.count("(") == text.count(")")
    with pytest.raises(TypeError, match="GraphModule"):
        pretty_print(_exported().graph_module)


def test_calls_that_write_over_an_argument_are_told_apart() -> None:
    class Put(torch.nn.Module):
        def forward(self, x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            return torch.index_put(x + 1, (torch.tensor([0, 2]),), v)

    edge = to_edge(export(Put(), (torch.ones(3, 2), torch.zeros(2, 2)))).exported_program()
    marked = [n.name for n in reinplace_pass(edge).graph.nodes if _is_inplace_node(n)]
    assert marked == ["aten_index_put_default"]
    assert not any(_is_inplace_node(node) for node in edge.graph.nodes)
    assert frozenset({ops.edge.aten.index_put.default}) == DEFAULT_INPLACEABLE_OPS
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    assert _is_inplace_node(graph.call_function(aten.add_.Tensor, (x, 1)))
    assert not _is_inplace_node(graph.call_function(aten.add.Tensor, (x, 1)))
    assert not _is_inplace_node(x)


def test_memory_lives_as_long_as_what_lies_in_it() -> None:
    first, second, third = (TensorSpec(torch.float32, [size]) for size in (8, 4, 2))
    first.lifetime, second.lifetime, third.lifetime = [3, 4], [2, 3], [6, 9]
    second.storage_base, third.storage_base = first, second
    _extend_storage_base_lifetimes({first, second, third})
    assert (first.lifetime, second.lifetime, third.lifetime) == ([2, 9], [2, 9], [6, 9])
    first.storage_base = third
    with pytest.raises(PlanError, match="alias each other"):
        _extend_storage_base_lifetimes({first, second, third})


@pytest.mark.slow
def test_operators_of_a_namespace_are_found_before_torch_defines_them() -> None:
    code = (
        "from compiler.dialect.ops import ops\n"
        "q = ops.edge.quantized_decomposed\n"
        "print(q.quantize_per_tensor.default.name(), q.dequantize_per_channel.default.name())\n"
    )
    assert "quantized_decomposed::quantize_per_tensor" in run_python(code)


def test_errors_of_a_compile_are_those_that_are_documented() -> None:
    class Format(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.to(dtype=torch.float32, memory_format=torch.channels_last)

    from compiler import EdgeCompileConfig
    from inspector.compat.names import place_of

    place = place_of("executorch.exir.error", "InternalError")
    assert place is not None
    assert place.name == "CompileError"
    config = EdgeCompileConfig(_check_ir_validity=False, _skip_dim_order=True)
    edge = to_edge(export(Format(), (torch.ones(2, 3, 4, 5),)), compile_config=config)
    with pytest.raises(CompileError, match="channels_last"):
        edge.to_executorch()


def test_graph_with_specs_is_planned_by_an_algorithm() -> None:
    class Chain(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            for _ in range(4):
                x = (x * y) + y
            return x

    def prepared() -> Any:
        edge = to_edge(export(Chain(), (torch.ones(10), torch.ones(10)))).exported_program()
        manager = PassManager(passes=[SpecPropPass(), ToOutVarPass()])
        return manager(edge.graph_module).graph_module, edge.graph_signature

    suite = MemoryPlanningAlgorithmSuite(algo_list=[greedy])
    module, signature = prepared()
    assert apply_algo(suite, module, 16, signature) == module.meta["non_const_buffer_sizes"]
    Verifier(module, True, True, True, signature).verify_storage_reuse()
    module, signature = prepared()
    specs = [*collect_specs_from_nodes(module.graph.nodes, signature, do_assertion=False)]
    for place, spec in enumerate(specs):
        spec.device, spec.device_index = (DeviceType.CUDA, place % 2) if place % 3 else (0, 0)
    sizes = apply_algo(suite, module, 16, signature, enable_non_cpu_memory_planning=True)
    rows = module.meta["non_const_buffer_device"]
    assert [(row.buffer_idx, row.device_index) for row in rows] == [(2, 0), (3, 1)]
    assert {spec.mem_id for spec in specs if spec.device == DeviceType.CUDA} == {2, 3}
    assert all(spec.mem_offset + spec.allocated_memory <= sizes[spec.mem_id] for spec in specs)
    with pytest.raises(NotImplementedError, match=r"spec\.mem_id"):  # they have places by now
        apply_algo(suite, module, 16, signature, enable_non_cpu_memory_planning=True)
    branches = to_edge(_exported()).exported_program().graph_module
    with pytest.raises(CompileError, match="found bodies true_graph_0"):
        apply_algo(suite, branches, 16)


@pytest.mark.parametrize(
    ("name", "overload", "inplace", "out"),
    [("add_", "Tensor", True, False), ("add", "Tensor", False, False), ("add", "out", False, True)],
)
def test_kind_of_an_overload(name: str, overload: str, inplace: bool, out: bool) -> None:
    named = f"aten::{name}", overload
    assert operators.is_inplace_variant(*named) == inplace
    assert operators.is_out_variant(*named) == out
    schema = operators.function_schema(getattr(getattr(aten, name), overload))
    assert str(schema.name) == f"{name}.{overload}"


@pytest.mark.filterwarnings("ignore:The tensor attributes self.lstm", "ignore:.*LeafSpec")
def test_own_decompositions_are_used_by_torch() -> None:
    class Recurrent(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = torch.nn.LSTM(3, 4, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.lstm(x)[0]

    torch.manual_seed(1)
    module, x = Recurrent().eval(), torch.randn(1, 2, 3)
    program: Any = export(module, (x,)).run_decompositions(graphs.default_decomposition_table())
    torch.testing.assert_close(program.module()(x), module(x))


def test_dead_code_is_removed_from_bodies_too() -> None:
    module = to_edge(_exported()).exported_program().graph_module
    body = next(m for m in module.modules() if m is not module and hasattr(m, "graph"))
    for graph in (module.graph, body.graph):
        first = next(iter(graph.nodes))
        with graph.inserting_after(first):
            graph.call_function(ops.edge.aten.relu.default, (first,))
    assert graphs.dead_code_elimination_pass(module).modified
    assert not graphs.contains_any_call_fn_target_op(module, {aten.relu.default})
    assert not graphs.dead_code_elimination_pass(module).modified


def test_propagated_specs_have_numbers_as_sizes() -> None:
    class Sum(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + x

    program = export(Sum(), (torch.ones(3, 2),), dynamic_shapes=({0: Dim("a", max=9)},))
    edge = to_edge(program).transform(graphs.propagate_dynamic_shape())
    nodes = [n for n in edge.exported_program().graph.nodes if n.op == "call_function"]
    assert [list(node.meta["spec"].shape) for node in nodes] == [[3, 2]]  # of the example


def test_edge_programs_are_of_the_documented_dialect() -> None:
    assert to_edge(_exported()).exported_program().dialect == "EDGE"
    with pytest.raises(RuntimeError, match="aten op library does not belong to backend ops"):
        _ = ops.backend.aten


def test_complex_numbers_of_two_doubles_are_moved_and_added() -> None:
    class Turned(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([x.unsqueeze(0).permute(2, 0, 1), (x * x + x).t().unsqueeze(1)])

    x = torch.randn(4, 3, dtype=torch.complex128, generator=torch.Generator().manual_seed(2))
    buffer = to_edge(export(Turned(), (x,))).to_executorch().buffer
    method = Runtime().load_program(buffer).load_method("forward")
    torch.testing.assert_close(method.execute([x])[0], Turned()(x))
