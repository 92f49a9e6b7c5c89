"""What the documented functions promise: nothing given is changed, errors name the user's line."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import torch

import compiler
from compiler import EdgeCompileConfig, ExecutorchBackendConfig, MemoryPlanningPass, ops, to_edge
from compiler.memory.planners import PLANNERS
from schema import program as pte
from schema.program import model as m
from tests.architecture.tree import run_python
from tests.compiler.compare import exported, module_of
from tests.compiler.programs import EVERY, SAMPLES, Apply

pytestmark = pytest.mark.slow


def _exported(name: str) -> torch.export.ExportedProgram:
    return exported(EVERY[name], module_of(EVERY[name]))


def _program(function: Any, *inputs: Any, **options: Any) -> torch.export.ExportedProgram:
    return torch.export.export(Apply(function), inputs, **options)


def _nodes(edge: compiler.EdgeProgramManager) -> list[torch.fx.Node]:
    return list(edge.exported_program().graph.nodes)


@pytest.mark.parametrize("name", ["in_place", "counter", "write_through_view", "mixed_types"])
def test_compile_leaves_the_exported_and_the_edge_program_as_they_were(name: str) -> None:
    program = _exported(name)
    before = str(program)
    edge = to_edge(program)
    lowered = str(edge.exported_program())
    first = edge.to_executorch().buffer
    assert str(program) == before
    assert str(edge.exported_program()) == lowered
    assert edge.to_executorch().buffer == first


@pytest.mark.parametrize("name", SAMPLES)
def test_edge_program_has_edge_operators_handles_and_source_lines(name: str) -> None:
    graph = to_edge(_exported(name)).exported_program().graph
    for node in graph.nodes:
        if node.op != "call_function" or not hasattr(node.target, "_schema"):
            continue
        assert "val" in node.meta
        assert isinstance(node.meta["debug_handle"], int)
        if node.meta["debug_handle"]:
            assert node.meta["stack_trace"]
            assert node.meta["from_node"]


@pytest.mark.parametrize("name", SAMPLES)
def test_program_file_decodes_to_what_was_emitted(name: str) -> None:
    program = to_edge(_exported(name)).to_executorch()
    decoded = pte.decode(program.buffer)
    assert decoded.issues == ()
    plan = decoded.plan("forward")
    for value in plan.values:
        if isinstance(value.val, m.Tensor) and value.val.data_buffer_idx:
            assert decoded.constant_data(value.val) is not None
    assert pte.decode(pte.encode(decoded)) == decoded


def test_edge_operator_is_one_object_with_the_documented_name() -> None:
    graph = to_edge(_exported("softmax")).exported_program().graph
    nodes = [node for node in graph.nodes if node.op == "call_function"]
    assert nodes[0].target is ops.edge.aten._softmax.default
    assert nodes[0].name == "aten__softmax_default"
    assert nodes[0].target._schema.name == "aten::_softmax"


def test_nodes_of_one_aten_operator_share_its_handle() -> None:
    nodes = to_edge(_exported("conv_bn")).exported_program().graph.nodes
    handles = [n.meta["debug_handle"] for n in nodes if n.op == "call_function"]
    assert handles == [1, 2, 2, 3]  # convolution, batch norm and its getitem, relu


def test_tied_weights_are_stored_once() -> None:
    program = pte.decode(to_edge(_exported("embedding_tied")).to_executorch().buffer)
    starts = program.table.constant_segment
    assert starts is not None
    assert len(starts.offsets) == 2
    assert len(program.segments[0]) == 20 * 8 * 4


def test_buffers_keep_their_initial_state() -> None:
    program = pte.decode(to_edge(_exported("counter")).to_executorch().buffer)
    plan = program.plan("forward")
    tensors = [v.val for v in plan.values if isinstance(v.val, m.Tensor)]
    held = [program.constant_data(t) for t in tensors if t.data_buffer_idx and t.allocation_info]
    expected = torch.tensor([1.0, 2.0, 3.0]).numpy().tobytes()
    assert expected in [bytes(data) for data in held if data is not None]


def test_unplanned_inputs_and_outputs_have_no_place() -> None:
    planning = MemoryPlanningPass(alloc_graph_input=False, alloc_graph_output=False)
    config = ExecutorchBackendConfig(memory_planning_pass=planning)
    buffer = to_edge(_exported("linear")).to_executorch(config).buffer
    plan = pte.decode(buffer).plan("forward")
    for index in (*plan.inputs, *plan.outputs):
        value = plan.values[index].val
        assert isinstance(value, m.Tensor)
        assert value.allocation_info is None


def test_named_planner_is_used() -> None:
    planning = {"forward": MemoryPlanningPass(memory_planning_algo=PLANNERS["naive"])}
    config = ExecutorchBackendConfig(memory_planning_pass=planning)
    edge = to_edge(_exported("res_net"))
    naive = edge.to_executorch(config).memory_plans["forward"]
    assert naive.planner == "naive"
    assert naive.nbytes > edge.to_executorch().memory_plans["forward"].nbytes


def test_stack_traces_are_written_on_request() -> None:
    config = ExecutorchBackendConfig(emit_stacktrace=True)
    chain = (
        pte.decode(to_edge(_exported("kv_cache")).to_executorch(config).buffer)
        .plan("forward")
        .chains[0]
    )
    assert chain.stacktrace is not None
    assert len(chain.stacktrace) == len(chain.instructions)
    frames = [frame for frames in chain.stacktrace for frame in frames.items]
    assert any(frame.filename.endswith("programs.py") and frame.context for frame in frames)


def test_stages_are_told_in_order_with_their_times() -> None:
    seen: list[Any] = []
    edge = to_edge(_exported("linear"), observer=seen.append)
    program = edge.to_executorch(observer=seen.append)
    ended = [event for event in seen if event.seconds is not None]
    assert [event.stage for event in ended] == ["edge", "plan", "emit"]
    assert program.events == tuple(ended)
    assert ended[0].nodes == 4  # view, permute, mm, view


def test_cancelled_compile_stops_before_the_next_stage() -> None:
    edge = to_edge(_exported("linear"))
    with pytest.raises(compiler.CancelledError, match="before stage plan"):
        edge.to_executorch(cancelled=lambda: True)


def test_save_under_another_name_is_refused_and_writes_nothing(tmp_path: Path) -> None:
    program = to_edge(_exported("linear")).to_executorch()
    with pytest.raises(ValueError, match=r"ending in \.pte, found model\.bin"):
        program.save(tmp_path / "model.bin")
    assert [*tmp_path.iterdir()] == []


def test_save_and_write_to_file_give_the_buffer(tmp_path: Path) -> None:
    program = to_edge(_exported("conv_bn")).to_executorch()
    program.save(tmp_path / "model.pte")
    stream = io.BytesIO()
    program.write_to_file(stream)
    assert (tmp_path / "model.pte").read_bytes() == stream.getvalue() == program.buffer
    assert [path.name for path in tmp_path.iterdir()] == ["model.pte"]


def test_size_without_a_maximum_is_an_error_with_the_users_line() -> None:
    shapes = (({0: torch.export.Dim("rows")},),)
    program = _program(lambda x: x.neg(), torch.randn(4, 2), dynamic_shapes=shapes)
    with pytest.raises(compiler.UnboundedShapeError, match=r"upper bound.*a max .*: node.*\.py:"):
        to_edge(program).to_executorch()


def test_size_beyond_what_a_file_can_say_is_an_error_with_the_users_line() -> None:
    shapes = (({0: torch.export.Dim("rows", max=2**31)},),)
    program = _program(lambda x: x.neg(), torch.randn(4, 2), dynamic_shapes=shapes)
    words = r"up to 2,147,483,648, and a program stores sizes up to 2,147,483,647.*node.*\.py:"
    with pytest.raises(compiler.UnsupportedError, match=words):
        to_edge(program).to_executorch()


def test_weight_without_values_is_named() -> None:
    net = torch.nn.Linear(3, 2, device="meta").eval()
    edge = to_edge(torch.export.export(net, (torch.ones(1, 3, device="meta"),)))
    with pytest.raises(compiler.UnsupportedError, match="weight is on the device meta and has no"):
        edge.to_executorch()


def test_missing_out_variants_are_named_together() -> None:
    with torch.library._scoped_library("etscope_test", "FRAGMENT") as library:
        for name in ("thrice", "twice"):
            library.define(f"{name}(Tensor x) -> Tensor")
            library.impl(name, torch.empty_like, "CompositeExplicitAutograd")
        own = torch.ops.etscope_test
        program = _program(lambda x: (own.twice(x), own.thrice(x), x.neg()), torch.ones(2))
        edge = to_edge(program)
        assert ops.edge.etscope_test.twice.default in {n.target for n in _nodes(edge)}
        with pytest.raises(compiler.MissingOutVariantsError, match="Missing out variants") as found:
            edge.to_executorch()
        for name in ("thrice", "twice"):  # what the error asks for, in the same session
            library.define(f"{name}.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")
        plan = pte.decode(edge.to_executorch().buffer).table.execution_plan[0]
        kernels = {(one.name, one.overload) for one in plan.operators}
        assert {("etscope_test::thrice", "out"), ("etscope_test::twice", "out")} < kernels
    assert found.value.operators == ("etscope_test::thrice", "etscope_test::twice")
    assert "used at" in str(found.value)
    assert ".py:" in str(found.value)


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        (5, TypeError, "expected an ExportedProgram, or such by method, found int"),
        ({"f": torch.nn.ReLU()}, TypeError, "as method f, found ReLU"),
        ({"": None}, compiler.CompileError, "must be a non-empty string, found ''"),
    ],
)
def test_what_is_no_program_is_refused(given: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        to_edge(given)


def test_constant_method_without_a_place_in_files_is_named(tmp_path: Path) -> None:
    edge = to_edge(_exported("linear"), {"odd": object()})
    with pytest.raises(compiler.UnsupportedError, match="the constant method odd: "):
        edge.to_executorch()
    with pytest.raises(FileNotFoundError, match="No such file or directory"):
        to_edge(_exported("linear")).to_executorch().save(tmp_path / "no" / "model.pte")


def test_operator_outside_the_core_set_is_refused_with_its_remedy() -> None:
    program = _program(lambda x: x.erfinv(), torch.ones(2))
    with pytest.raises(Exception, match="_core_aten_ops_exception_list"):
        to_edge(program)
    config = EdgeCompileConfig(_core_aten_ops_exception_list=[torch.ops.aten.erfinv.default])
    assert to_edge(program, compile_config=config).methods == {"forward"}


@pytest.mark.parametrize("place", ["core_aten_ops_exception_list", "preserve_ops"])
def test_manager_lets_through_the_operators_that_it_is_given(place: str) -> None:
    program = _program(lambda x: x.erfinv(), torch.ones(2))
    op = torch.ops.aten.erfinv.default
    config = EdgeCompileConfig(_core_aten_ops_exception_list=[op])
    edge = to_edge(program, compile_config=config).exported_program()
    with pytest.raises(Exception, match="_core_aten_ops_exception_list"):
        compiler.EdgeProgramManager(edge).transform([])
    given: dict[str, Any] = {place: [op]}
    assert compiler.EdgeProgramManager(edge, **given).transform([]).methods == {"forward"}


def test_method_and_constant_of_one_name_are_refused() -> None:
    with pytest.raises(compiler.CompileError, match="share the names forward"):
        to_edge(_exported("linear"), {"forward": 1})


def test_preserved_operator_is_not_decomposed() -> None:
    config = EdgeCompileConfig(preserve_ops=[torch.ops.aten.linear.default])
    graph = to_edge(_exported("linear"), compile_config=config).exported_program().graph
    assert ops.edge.aten.linear.default in [node.target for node in graph.nodes]


def test_importing_the_package_does_not_import_torch() -> None:
    assert run_python("import compiler, sys; print('torch' in sys.modules)").strip() == "False"
