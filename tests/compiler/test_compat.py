"""Names that programs written for ExecuTorch import: what they give, against torch and eager."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._export.verifier import SpecViolationError
from torch.export.graph_signature import OutputKind, OutputSpec, TensorArgument

from compiler import NamedDataStore, export, ops, to_edge
from compiler.compat import capture as capturing
from compiler.compat import graphs, operators, plan_checks, verifying, xnnpack
from compiler.compat.passes.export_pass import ExportPass
from compiler.compat.passes.values import NodeMetadata
from compiler.compat.programs import save_pte_program
from compiler.compat.session import ExportRecipe
from compiler.compat.xnnpack.recipes import XNNPackRecipeType
from compiler.errors import PlanError
from compiler.interface.file_data import FileBackedData
from compiler.memory.tensor_spec import TensorSpec
from runtime import Runtime

aten = torch.ops.aten


class Chain(torch.nn.Module):
    """Four operators in a row, on a buffer too."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.tensor([2.0, 3.0]), persistent=False)
        self.linear = torch.nn.Linear(2, 2)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x = (x + y) * self.scale
        return self.linear(x - y) / (y * y + 1)


def _inputs() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(3)
    return torch.randn(4, 2), torch.randn(4, 2)


def _edge() -> Any:
    torch.manual_seed(4)
    return to_edge(export(Chain().eval(), _inputs()))


# named data


def test_refused_duplicate_leaves_the_store_as_it_was() -> None:
    store = NamedDataStore()
    store.add_named_data("key", b"data")
    for tag in (None, "file"):
        with pytest.raises(ValueError, match="Duplicate key key with different data"):
            store.add_named_data("key", b"other", external_tag=tag)
    assert (store.buffers, store.external_data, list(store.pte_data)) == ([b"data"], {}, ["key"])


def test_permuted_tensor_is_refused_as_named_data() -> None:
    permuted = torch.randn(2, 3, 4, 5).permute(0, 2, 3, 1)
    with pytest.raises(ValueError, match=r"neither contiguous nor channels-last: call contiguous"):
        NamedDataStore().add_named_data("key", permuted)
    store = NamedDataStore()
    store.add_named_data("key", torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last))
    layout = store.pte_data["key"].tensor_layout
    assert layout is not None
    assert tuple(layout.dim_order) == (0, 2, 3, 1)


@pytest.mark.parametrize("order", [["a", "b", "alias", "c"], ["c", "alias", "b", "a"]])
def test_externalized_data_is_packed_alike_whatever_the_order(order: list[str]) -> None:
    content = {"a": b"a" * 6, "alias": b"a" * 6, "b": b"b" * 4, "c": b"c" * 5}
    store = NamedDataStore()
    for key in order:
        store.add_named_data(key, content[key], 16)
    store.externalize_pte_data(10, "weights")
    files = store.get_named_data_store_output().external_data
    assert [sorted(entries) for entries in files.values()] == [["a", "alias", "b"], ["c"]]
    assert all(name.startswith("weights_") for name in files)
    assert store.pte_data == {}
    store.externalize_pte_data(10, "weights")
    assert store.get_named_data_store_output().external_data == files


def test_too_large_data_is_not_externalized_in_part() -> None:
    store = NamedDataStore()
    store.add_named_data("small", b"s")
    store.add_named_data("large", b"l" * 11)
    with pytest.raises(ValueError, match="large has 11 bytes and exceeds external data shard cap"):
        store.externalize_pte_data(10, "weights")
    assert sorted(store.pte_data) == ["large", "small"]
    for wrong in (True, 0, -1, 1.5, "10"):
        with pytest.raises(ValueError, match="positive integer"):
            store.externalize_pte_data(wrong, "weights")


def test_data_in_a_file_is_kept_once_and_deleted_when_closed(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(b"content of a file")
    with FileBackedData.move_from(tmp_path / "one") as first:
        store = NamedDataStore()
        store.add_named_data("first", first)
        store.add_named_data("second", FileBackedData(tmp_path / "two"))
        store.add_named_data("third", b"content of a file")
        assert [*store.buffers] == [first]
        assert {entry.buffer_index for entry in store.pte_data.values()} == {0}
        assert first.prefix(7) == b"content"
    assert [path.name for path in tmp_path.iterdir()] == ["two"]


# graphs


def test_nodes_become_a_module_that_computes_the_same() -> None:
    program = _edge().exported_program()
    module = program.graph_module
    wanted = {ops.edge.aten.add.Tensor, ops.edge.aten.mul.Tensor}
    chosen = [node for node in module.graph.nodes if node.target in wanted][:2]
    inner, call = graphs.create_submodule_from_nodes(module, chosen, "part")
    assert call.target == "fused_part"
    assert isinstance(inner.graph.output_node().args[0], list)
    module.recompile()
    torch.manual_seed(4)
    expected = Chain().eval()(*_inputs())
    torch.testing.assert_close(program.module()(*_inputs()), expected)


def test_results_written_back_come_first() -> None:
    inner = torch.fx.Graph()
    x = inner.placeholder("x")
    made = [inner.call_function(op, (x, x)) for op in (torch.add, torch.mul, torch.sub)]
    inner.output(tuple(made))
    kinds = (OutputKind.USER_OUTPUT, OutputKind.BUFFER_MUTATION, OutputKind.USER_OUTPUT)
    specs = [
        OutputSpec(kind, TensorArgument(name=n.name), None)
        for kind, n in zip(kinds, made, strict=True)
    ]
    outer = torch.fx.Graph()
    call = outer.call_module("inner", (outer.placeholder("x"),))
    items = [outer.call_function(operator.getitem, (call, place)) for place in range(3)]
    graphs.arrange_graph_outputs(torch.fx.GraphModule({}, inner), specs, call)
    assert inner.output_node().args[0] == (made[1], made[0], made[2])
    assert [item.args[1] for item in items] == [1, 0, 2]
    assert specs[0].kind == OutputKind.BUFFER_MUTATION


def test_graphs_are_compared_by_calls_and_values() -> None:
    module = _edge().exported_program().graph_module
    assert graphs.is_identical_graph(module, _edge().exported_program().graph_module)
    other = to_edge(export(torch.nn.Linear(2, 2).eval(), _inputs()[:1])).exported_program()
    assert not graphs.is_identical_graph(module, other.graph_module)


def test_fake_program_has_no_values_until_it_gets_them() -> None:
    program = _edge().exported_program()
    fake = graphs.get_fake_program(program)
    assert all(hasattr(tensor, "fake_mode") for tensor in fake.state_dict.values())
    graphs.update_to_real_program(fake, program)
    torch.testing.assert_close(fake.module()(*_inputs()), program.module()(*_inputs()))


def test_pass_class_can_build_a_graph_by_its_hooks() -> None:
    class Builder(ExportPass):
        def __init__(self) -> None:
            self.fake_tensor_mode = torch._subclasses.FakeTensorMode()
            self.tracer = self.ExportTracer(self, torch.fx.graph.CodeGen())

    builder = Builder()
    value = builder.fake_tensor_mode.from_tensor(torch.randn(2, 3))
    x = builder.placeholder("x", value, NodeMetadata({}))
    with builder.fake_tensor_mode:
        y = builder.call_operator(ops.edge.aten.mul.Tensor, (x, x), {}, NodeMetadata({}))
    builder.output([y], NodeMetadata({}))
    made = torch.fx.GraphModule(builder.tracer.root, builder.tracer.graph)
    given = torch.randn(2, 3, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(made(given)[0], given * given)


# operators and the verifier


@pytest.mark.parametrize(
    ("op", "name", "outs"),
    [
        (aten.add.Tensor, "aten::add.out", ("out",)),
        (ops.edge.aten.topk.default, "aten::topk.values", ("values", "indices")),
        (aten.mul.out, "aten::mul.out", ("out",)),
    ],
)
def test_out_variant_of_an_operator(op: Any, name: str, outs: tuple[str, ...]) -> None:
    found, names = operators.to_out_variant(op)
    assert (found.name(), names) == (name, outs)


def test_schema_helpers_agree_with_torch() -> None:
    for op, out in (
        (aten.mul.Scalar, aten.mul.Scalar_out),
        (aten.add_.Scalar, aten.add.Scalar_out),
    ):
        assert operators.gen_out_variant_schema(str(op._schema)) == str(out._schema)
    assert operators.output_to_aliased_input_map(aten.add.Tensor._schema) == {}
    assert operators.output_to_aliased_input_map(aten.index_put_.default._schema) == {0: 0}
    assert operators.unwrap_op_overload(ops.edge.aten.add.Tensor) is aten.add.Tensor
    with pytest.raises(TypeError, match="found str"):
        operators.unwrap_op_overload("add")


def test_names_lose_their_namespace_alone() -> None:
    given = ("aten.add.Tensor", "add.Tensor", "add", "quantized_decomposed.add.out")
    short = ["add.Tensor", "add.Tensor", "add", "add.out"]
    assert [operators.format_target_name(name) for name in given] == short


def test_verifier_takes_programs_and_graphs_and_refuses_others() -> None:
    verifier = verifying.EXIREdgeDialectVerifier()
    program = _edge().exported_program()
    verifier(program)
    verifier(program.graph_module)
    verifier.check_valid_edge_op(ops.edge.aten.add.Tensor)
    assert not verifier.is_valid(export(Chain().eval(), _inputs()))
    with pytest.raises(SpecViolationError, match="not an Edge operator"):
        verifier.check_valid_edge_op(aten.add.Tensor)
    with pytest.raises(SpecViolationError, match="not in the Core ATen opset"):
        verifier.check_valid_op(ops.edge.aten.rot90.default)


def test_validator_names_operators_called_with_other_dtypes() -> None:
    given = torch.randn(3, generator=torch.Generator().manual_seed(2))
    module = to_edge(export(torch.nn.Sigmoid().eval(), (given,))).exported_program().graph_module
    validator = verifying.EdgeOpArgValidator(module)
    validator.run(given)
    assert validator.violating_ops == {}
    validator.run(given.to(torch.complex64))
    ((op, (dtypes, node)),) = validator.violating_ops.items()
    assert (op, node.name) == (ops.edge.aten.sigmoid.default, "aten_sigmoid_default")
    assert dtypes == {"self": torch.complex64, "__ret_0": torch.complex64}


# planned memory


def _spec(first: int, last: int, offset: int, size: int = 4) -> TensorSpec:
    spec = TensorSpec(torch.float32, [size])
    spec.lifetime, spec.mem_id, spec.mem_offset = [first, last], 1, offset
    return spec


def _planned(*specs: TensorSpec) -> plan_checks.Verifier:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    for spec in specs:
        x = graph.call_function(torch.relu, (x,))
        x.meta["spec"] = spec
    graph.output((x,)).meta["spec"] = [specs[-1]]
    return plan_checks.Verifier(torch.fx.GraphModule({}, graph), True, True, True)


def test_tensors_that_share_memory_at_one_time_are_refused() -> None:
    assert _planned(_spec(0, 1, 0), _spec(2, 3, 0), _spec(2, 3, 64)).verify_storage_reuse() == 1
    clash = _planned(_spec(0, 2, 0), _spec(2, 3, 8))
    with pytest.raises(PlanError, match="Unexpected storage overlap"):
        clash.verify_storage_reuse()
    assert clash.verify_storage_reuse(allow_lifetime_and_storage_overlap=True) == 1


def test_tensor_inside_of_another_on_purpose_is_no_overlap() -> None:
    whole, part = _spec(0, 2, 0, 8), _spec(1, 2, 8)
    part.storage_base = whole
    assert _planned(whole, part).verify_storage_reuse() == 1


def test_results_without_memory_are_named() -> None:
    verifier = _planned(_spec(0, 1, 0))
    verifier.verify_graph_input_output()
    verifier.alloc_graph_output = False
    with pytest.raises(AssertionError, match="Misallocate graph output"):
        verifier.verify_graph_input_output()


def _layers() -> torch.nn.Module:
    parts = (torch.nn.Linear(2, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 3))
    return torch.nn.Sequential(*parts)


@pytest.mark.parametrize("model", [Chain, _layers])
def test_own_plans_pass_the_check(model: Any) -> None:
    torch.manual_seed(6)
    inputs = _inputs() if model is Chain else (torch.randn(3, 2),)
    program = to_edge(export(model().eval(), inputs)).to_executorch().exported_program()
    signature = program.graph_signature
    checks = plan_checks.Verifier(program.graph_module, True, True, True, signature)
    specs = [*plan_checks.collect_specs_from_nodes(program.graph.nodes, signature)]
    assert len(specs) == len(set(specs)) > 2
    assert checks.verify_storage_reuse() >= 0


# XNNPACK and files


class Expanded(torch.nn.Module):
    """Expands to the shape that there is, and to a larger one."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.expand(x.shape) + x.expand(5, 1, 3)


def test_expansion_to_the_same_shape_is_removed() -> None:
    given = torch.randn(1, 3, generator=torch.Generator().manual_seed(5))
    config = xnnpack.get_xnnpack_edge_compile_config()
    manager = to_edge(export(Expanded().eval(), (given,)), compile_config=config)
    changed = manager.transform(xnnpack.get_transform_passes())
    by_class = xnnpack.XNNPACKPassManager(
        manager.exported_program(), [xnnpack.RemoveNoopExpandCopyPass]
    ).transform()
    for program in (changed.exported_program(), by_class):
        targets = [node.target for node in program.graph.nodes]
        assert targets.count(ops.edge.aten.expand_copy.default) == 1
        torch.testing.assert_close(program.module()(given), Expanded()(given))


def test_program_is_saved_with_its_data_beside_it(tmp_path: Path) -> None:
    program = _edge().to_executorch()
    path = save_pte_program(program, "model", str(tmp_path))
    assert path == str(tmp_path / "model.pte")
    assert Path(path).read_bytes() == program.buffer
    again = save_pte_program(program, str(tmp_path / "other.pte"), str(tmp_path))
    torch.manual_seed(4)
    expected = Chain().eval()(*_inputs())
    found = Runtime.get().load_program(again).load_method("forward").execute(_inputs())
    torch.testing.assert_close(found[0], expected)


def test_recipes_for_xnnpack_have_the_documented_configuration() -> None:
    recipe = ExportRecipe.get_recipe(XNNPackRecipeType.FP32)
    assert recipe.lowering_recipe is not None
    wanted = xnnpack.get_xnnpack_edge_compile_config()
    assert recipe.lowering_recipe.edge_compile_config == wanted


def test_captured_program_is_what_export_and_to_edge_give() -> None:
    config, x = capturing.CaptureConfig(enable_aot=True), torch.tensor([1.0, -2.0])
    with pytest.warns(DeprecationWarning, match="to_edge"):
        captured = capturing.capture(lambda x: (x + x).relu() * x, (x,), config)
    edge = captured.to_edge()
    assert {node.target for node in edge.exported_program.graph.nodes} >= {
        ops.edge.aten.add.Tensor,
        ops.edge.aten.relu.default,
    }
    loaded = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    assert torch.equal(loaded.execute([x])[0], edge(x))


def test_operators_that_return_views_are_not_kept_whole() -> None:
    views = [aten.split.Tensor, aten.chunk.default, aten.view.default, aten.relu_.default]
    kept = [aten.linear.default, aten.relu.default, aten.max.dim]
    assert operators.without_views([*views, *kept]) == kept
