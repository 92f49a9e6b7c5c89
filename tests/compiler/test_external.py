"""Constants in files beside the program: what is written, read back, and run with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import compiler
from compiler import (
    BackendDetails,
    CompileError,
    CompileSpec,
    ExecutorchBackendConfig,
    ExecutorchProgramManager,
    MemoryPlanningPass,
    NamedDataStore,
    PreprocessResult,
    to_edge,
)
from compiler.backends.xnnpack import XnnpackPartitioner
from compiler.errors import PlanError
from runtime import Runtime
from schema import flat_tensor
from schema import program as pte
from schema.program import model as m
from tests.compiler.compare import assert_equal, calls_of, eager_outputs, exported, module_of
from tests.compiler.programs import EVERY, Apply
from tests.compiler.stock import Stock

pytestmark = pytest.mark.slow


def _program(name: str, **options: Any) -> ExecutorchProgramManager:
    sample = EVERY[name]
    edge = to_edge(exported(sample, module_of(sample)))
    return edge.to_executorch(ExecutorchBackendConfig(**options))


def _tensors(program: ExecutorchProgramManager) -> list[m.Tensor]:
    plan = pte.decode(program.buffer).plan("forward")
    return [value.val for value in plan.values if isinstance(value.val, m.Tensor)]


def test_all_weights_go_into_one_file_under_their_names(tmp_path: Path) -> None:
    program = _program("conv_bn", external_constants=True)
    program.write_tensor_data_to_file(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["_default_external_constant.ptd"]
    data = flat_tensor.decode((tmp_path / "_default_external_constant.ptd").read_bytes())
    state = module_of(EVERY["conv_bn"]).state_dict()
    entries = {entry.key: bytes(entry.data) for entry in data.entries}
    assert data.issues == ()
    assert set(entries) == {name for name in state if "num_batches" not in name}
    assert all(entries[name] == state[name].numpy().tobytes() for name in entries)
    outside = [t.extra_tensor_info for t in _tensors(program) if t.extra_tensor_info is not None]
    assert {info.fully_qualified_name for info in outside} == set(entries)
    assert all(info.location == 1 for info in outside)
    assert len(program.buffer) < len(_program("conv_bn").buffer)


def test_function_says_which_weight_goes_where(tmp_path: Path) -> None:
    def tag(node: torch.fx.Node) -> str | None:
        return "weights" if node.name.endswith("weight") else None

    program = _program("conv_bn", external_constants=tag)
    program.write_tensor_data_to_file(tmp_path)
    data = flat_tensor.decode((tmp_path / "weights.ptd").read_bytes())
    assert {entry.key for entry in data.entries} == {"0.weight", "1.weight"}
    assert program.tensor_data_files == ("weights.ptd",)


def test_numbers_and_tensors_in_code_stay_in_the_program() -> None:
    program = _program("constant_tensor", external_constants=True)
    assert program.tensor_data_files == ()
    assert any(tensor.data_buffer_idx for tensor in _tensors(program))


def test_equal_weights_of_two_methods_are_one_entry_and_other_ones_an_error() -> None:
    config = ExecutorchBackendConfig(external_constants=True)
    one, other = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    x = torch.ones(1, 3)
    both = {name: torch.export.export(one, (x,)) for name in ("a", "b")}
    assert to_edge(both).to_executorch(config).tensor_data_files
    both["b"] = torch.export.export(other, (x,))
    with pytest.raises(CompileError, match=r"two tensors are named weight in _default"):
        to_edge(both).to_executorch(config)


@pytest.mark.interop
@pytest.mark.parametrize("name", ["conv_bn", "embedding_tied", "gru", "counter"])
def test_program_with_weights_beside_it_runs_on_the_stock_runtime(
    name: str, stock: Stock, tmp_path: Path
) -> None:
    sample = EVERY[name]
    wanted = eager_outputs(module_of(sample), calls_of(sample))
    program = _program(name, external_constants=True)
    program.write_tensor_data_to_file(tmp_path)
    files = [str(path) for path in tmp_path.iterdir()]
    calls = [("forward", inputs) for inputs in calls_of(sample)]
    found = stock.run(program.buffer, calls, data=files[0] if files else "")
    assert_equal(found, wanted, sample.tolerance)


def test_buffers_that_are_written_are_named_when_asked_and_else_need_a_place() -> None:
    def names(**options: Any) -> dict[str, bool]:
        return {
            tensor.extra_tensor_info.fully_qualified_name: tensor.allocation_info is not None
            for tensor in _tensors(_program("counter", **options))
            if tensor.extra_tensor_info is not None
        }

    unplanned = MemoryPlanningPass(alloc_mutable_buffers=False)
    assert names() == {}
    assert names(emit_mutable_buffer_names=True) == {"total": True, "calls": True}
    both = {"memory_planning_pass": unplanned, "emit_mutable_buffer_names": True}
    assert names(**both) == {"total": False, "calls": False}
    # the stock runtime would run over memory that is not there
    with pytest.raises(PlanError, match=r'"(total|calls)" must have a memory id .*plan its memory'):
        names(memory_planning_pass=unplanned)


@pytest.mark.parametrize("alignment", [16, 128, 4096])
def test_segments_and_constants_start_at_their_alignment(alignment: int) -> None:
    program = _program(
        "conv_bn", segment_alignment=4096, constant_tensor_alignment=alignment
    ).executorch_program
    assert program.header is not None
    assert program.header.segment_base_offset % 4096 == 0
    table = program.table.constant_segment
    assert table is not None
    assert all(offset % alignment == 0 for offset in table.offsets)


def test_alignment_that_is_no_power_of_two_is_refused() -> None:
    with pytest.raises(ValueError, match="segment_alignment is a power of two, not 100"):
        ExecutorchBackendConfig(segment_alignment=100)


def test_views_are_copied_when_they_are_not_to_be_removed() -> None:
    kept = _program("attention", remove_view_copy=False)
    removed = _program("attention")
    assert len(kept.executorch_program.plan("forward").chains[0].instructions) > len(
        removed.executorch_program.plan("forward").chains[0].instructions
    )


def test_passes_of_the_configuration_run_before_planning() -> None:
    from compiler.passes.base import PassResult

    def sigmoid_for_relu(module: torch.fx.GraphModule) -> Any:
        from compiler import ops

        for node in module.graph.nodes:
            if node.target is ops.edge.aten.relu.default:
                node.target = ops.edge.aten.sigmoid.default
        return PassResult(module, True)

    program = torch.export.export(Apply(lambda x: x.relu()), (torch.ones(2),))
    edge = to_edge(program)
    made = edge.to_executorch(ExecutorchBackendConfig(passes=[sigmoid_for_relu]))
    plain = edge.to_executorch()
    named = [p.executorch_program.plan("forward").operators[0].name for p in (made, plain)]
    assert named == ["aten::sigmoid", "aten::relu"]


def test_program_is_printed_with_its_instructions(capsys: pytest.CaptureFixture[str]) -> None:
    _program("linear").dump_executorch_program(verbose=True)
    text = capsys.readouterr().out
    assert "method forward" in text
    assert "aten::mm.out(" in text
    assert "float32[" in text


@pytest.mark.interop
def test_weights_of_a_delegate_go_where_they_were_marked(stock: Stock, tmp_path: Path) -> None:
    net, inputs = (
        torch.nn.Sequential(torch.nn.Linear(5, 3), torch.nn.ReLU()).eval(),
        torch.randn(2, 5),
    )
    marked = torch.export.export(net, (inputs,)).module()
    compiler.delegate_external_constants_pass_unlifted(marked, lambda _: "weights")
    program = torch.export.export(marked, (inputs,), strict=True)
    edge = compiler.to_edge_transform_and_lower(program, partitioner=XnnpackPartitioner())
    emitted = edge.to_executorch()
    assert emitted.tensor_data_files == ("weights.ptd",)
    emitted.write_tensor_data_to_file(tmp_path)
    assert net[0].weight.detach().numpy().tobytes() not in emitted.buffer
    file = str(tmp_path / "weights.ptd")
    found = stock.run(emitted.buffer, [("forward", (inputs,))], data=file)
    torch.testing.assert_close(found[0], [net(inputs)])


def _marked(net: torch.nn.Module, inputs: Any, file_of: Any) -> torch.export.ExportedProgram:
    marked = torch.export.export(net.eval(), inputs).module()
    compiler.delegate_external_constants_pass_unlifted(marked, lambda node: file_of(node.target))
    return torch.export.export(marked, inputs, strict=True)


def _file_of(name: str) -> str | None:
    """Weights of the second layer go to one file, those of the third stay, the rest to another."""
    if name.startswith("2."):
        return "second"
    return None if name.startswith("5.") else "first"


@pytest.mark.interop
def test_weights_of_one_partition_go_into_several_files(stock: Stock, tmp_path: Path) -> None:
    torch.manual_seed(1)
    layers: list[torch.nn.Module] = [torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)]
    layers += [torch.nn.ConvTranspose2d(4, 5, 2), torch.nn.PReLU(), torch.nn.Flatten()]
    net: Any = torch.nn.Sequential(*layers, torch.nn.Linear(245, 6))
    inputs = (torch.randn(1, 3, 8, 8),)
    program = _marked(net, inputs, _file_of)
    edge = compiler.to_edge_transform_and_lower(program, partitioner=XnnpackPartitioner())
    emitted = edge.to_executorch()
    assert len(emitted.executorch_program.plan("forward").delegates) == 1
    assert sorted(emitted.tensor_data_files) == ["first.ptd", "second.ptd"]
    emitted.write_tensor_data_to_file(tmp_path)
    sizes = {name: _bytes_in(tmp_path / f"{name}.ptd") for name in ("first", "second")}
    assert sizes == {
        "first": sorted([3 * 4 * 9 * 4, 4 * 4, 4]),  # with the norm in it, and the slope
        "second": sorted([4 * 5 * 4 * 4, 5 * 4]),
    }
    assert net[5].weight.detach().numpy().tobytes() in emitted.buffer
    wanted = net(*inputs)
    files = [tmp_path / "first.ptd", tmp_path / "second.ptd"]
    method = Runtime.get().load_program(emitted.buffer, data_path=files).load_method("forward")
    assert method is not None
    torch.testing.assert_close(method.execute(list(inputs)), [wanted], rtol=1e-4, atol=1e-5)
    # The stock runtime takes one file: both in one.
    entries = [entry for file in files for entry in flat_tensor.decode(file.read_bytes()).entries]
    blobs = ((entry.key, flat_tensor.PlacedBlob(entry.data, entry.layout)) for entry in entries)
    whole = tmp_path / "whole.ptd"
    whole.write_bytes(flat_tensor.encode(flat_tensor.pack(blobs)))
    found = stock.run(emitted.buffer, [("forward", inputs)], data=str(whole))
    torch.testing.assert_close(found[0], [wanted], rtol=1e-4, atol=1e-5)


def _bytes_in(file: Path) -> list[int]:
    return sorted(len(entry.data) for entry in flat_tensor.decode(file.read_bytes()).entries)


class _Packs(BackendDetails):
    """Keeps the bytes of the first weight as they are and packs all."""

    @staticmethod
    def preprocess(edge_program: Any, compile_specs: list[CompileSpec]) -> PreprocessResult:
        """Return weights as named data."""
        del compile_specs
        every = list(edge_program.state_dict.values())
        store = NamedDataStore()
        store.add_named_data("first", every[0].detach().numpy().tobytes())
        store.add_named_data("packed", b"".join(t.detach().numpy().tobytes() for t in every))
        return PreprocessResult(b"", {}, store.get_named_data_store_output())


@pytest.mark.parametrize("several", [False, True])
def test_packed_weights_stay_where_their_files_are_not_one(several: bool) -> None:
    net, inputs = torch.nn.Linear(5, 3), (torch.randn(2, 5),)
    program = _marked(net, inputs, lambda name: name if several else "all")
    lowered: Any = compiler.to_backend(_Packs.__name__, to_edge(program).exported_program(), [])
    data = lowered.named_data_store_output
    kept = {tag: sorted(entries) for tag, entries in data.external_data.items()}
    if not several:
        assert (kept, sorted(data.pte_data)) == ({"all": ["first", "packed"]}, [])
        return
    assert (kept, sorted(data.pte_data)) == ({"weight": ["first"]}, ["packed"])
