"""The documented ETRecord over live programs: the same class as that of records that are read."""

from __future__ import annotations

import copy
import io
from pathlib import Path
from typing import Any

import pytest
import torch

import compiler
import inspector
from compiler import EdgeProgramManager, ETRecord, ExecutorchProgramManager, to_edge
from compiler.backends.xnnpack import XnnpackPartitioner
from inspector import generate_etrecord, parse_etrecord
from inspector.compat.devtools.etrecord import opened
from runtime.bundled import BundledProgram, MethodTestCase, MethodTestSuite
from schema import etrecord
from tests.architecture.tree import run_python
from tests.compiler.compare import exported, flat, module_of
from tests.compiler.control_flow import SAMPLES
from tests.compiler.programs import EVERY
from tests.compiler.stock import Stock

pytestmark = pytest.mark.slow
ALL = EVERY | SAMPLES
NAMES = ["conv_bn", "lstm", "dynamic_shapes", "kv_cache", "integers", "cond", "attention"]


class Programs:
    """A sample at each stage of its compile."""

    def __init__(self, name: str) -> None:
        self.sample = ALL[name]
        self.aten = exported(self.sample, module_of(self.sample))
        self.edge: EdgeProgramManager = to_edge(self.aten)
        self.program: ExecutorchProgramManager = self.edge.to_executorch()

    def bundled(self) -> BundledProgram:
        """Return the program with one case."""
        case = MethodTestCase(self.sample.inputs, self.aten.module()(*self.sample.inputs))
        return BundledProgram(self.program, [MethodTestSuite("forward", [case])])


def _calls(program: Any) -> list[tuple[Any, ...]]:
    return [
        (node.name, node.target, node.meta.get("debug_handle"))
        for node in program.graph.nodes
        if node.op == "call_function"
    ]


def test_there_is_one_class() -> None:
    assert compiler.ETRecord is inspector.ETRecord
    assert compiler.generate_etrecord is inspector.generate_etrecord


@pytest.mark.filterwarnings("ignore::FutureWarning:copyreg")  # torch's own, of a deep copy
@pytest.mark.parametrize("name", ["kv_cache", "cond"])
def test_deep_copy_of_a_record_is_a_record_of_its_own(name: str) -> None:
    made, stream = Programs(name), io.BytesIO()
    generate_etrecord(stream, made.edge, made.program, made.aten)
    read = opened(etrecord.decode(stream.getvalue()))
    again = copy.deepcopy(read)
    again.update_representative_inputs([made.sample.inputs])
    assert (read._representative_inputs, len(again._representative_inputs or [])) == (None, 1)
    assert copy.deepcopy(again).artifact.check() == ()
    live = ETRecord()
    live.add_exported_program(made.aten)
    live.add_edge_dialect_program(made.edge)
    twin = copy.deepcopy(live)
    twin.add_executorch_program(made.program)
    live.add_executorch_program(made.program)  # an error where the copy had given it
    assert twin.exported_program is not made.aten
    assert isinstance(twin.edge_dialect_program, torch.export.ExportedProgram)
    assert _calls(twin.edge_dialect_program) == _calls(made.edge.exported_program())
    first, second = io.BytesIO(), io.BytesIO()
    live.write_to_file(first)
    twin.write_to_file(second)
    assert first.getvalue() == second.getvalue()


@pytest.mark.filterwarnings("ignore::FutureWarning:copyreg")  # torch's own, of a deep copy
@pytest.mark.parametrize("name", NAMES)
def test_written_as_documented_reads_the_same(name: str, tmp_path: Path) -> None:
    made = Programs(name)
    kept = copy.deepcopy(made.edge)  # as the documentation does it
    path = tmp_path / "model.etrecord"
    generate_etrecord(
        path,
        edge_dialect_program=kept,
        executorch_program=made.program,
        exported_program=made.aten,
        extra_recorded_export_modules={"aten": made.aten, "edge": kept},
    )
    record = parse_etrecord(path)
    edge = record.edge_dialect_program
    assert isinstance(edge, torch.export.ExportedProgram)
    wanted = [call for call in _calls(kept.exported_program()) if "getitem" not in str(call[1])]
    assert [call for call in _calls(edge) if "getitem" not in str(call[1])] == wanted
    found = [call[:2] for call in _calls(record.exported_program)]
    assert found == [call[:2] for call in _calls(made.aten)]
    assert record.export_graph_id == id(made.aten.graph)
    assert isinstance(record.graph_map, dict)
    assert sorted(record.graph_map) == ["aten/forward", "edge/forward"]
    handles = {str(at): given for at, given in made.program.debug_handle_map["forward"].items()}
    assert record._debug_handle_map == {"forward": handles}
    assert record._instruction_id_to_num_outs_map == {"forward": {}}
    assert record.artifact.check() == ()


@pytest.mark.filterwarnings("ignore::FutureWarning:copyreg")  # torch's own, of a deep copy
@pytest.mark.parametrize("inputs", [("input",), ("x",), ("input", "dict")])
def test_deep_copies_compile_to_the_same_bytes(inputs: tuple[str, ...]) -> None:
    namespace: dict[str, Any] = {"torch": torch}
    body = f"def forward(self, {', '.join(inputs)}): return torch.relu({' + '.join(inputs)}) * 2"
    exec(body, namespace)  # inputs called like builtins, which torch renames in a deep copy
    module = type("Module", (torch.nn.Module,), {"forward": namespace["forward"]})()
    program = torch.export.export(module, tuple(torch.rand(2, 3) for _ in inputs))
    edge = to_edge(program, generate_etrecord=True)
    wanted = edge.to_executorch().buffer
    assert copy.deepcopy(edge).to_executorch().buffer == wanted
    assert to_edge(copy.deepcopy(program)).to_executorch().buffer == wanted
    delegated = copy.deepcopy(edge).to_backend(XnnpackPartitioner()).to_executorch()
    assert delegated.get_etrecord().artifact.check() == ()
    record = ETRecord(edge_dialect_program=copy.deepcopy(program))  # names differ in it
    assert record.artifact.check() == ()


@pytest.mark.parametrize("name", ["conv_bn", "attention", "integers"])
def test_program_read_back_computes_what_was_exported(name: str) -> None:
    made = Programs(name)
    stream = io.BytesIO()
    generate_etrecord(stream, made.edge, made.program, made.aten)
    record = opened(etrecord.decode(stream.getvalue()))
    wanted = torch.utils._pytree.tree_leaves(made.aten.module()(*made.sample.inputs))
    for program in (record.exported_program, record.edge_dialect_program):
        results = torch.utils._pytree.tree_leaves(program.module()(*made.sample.inputs))
        for one, other in zip(results, wanted, strict=True):
            torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("delegated", [False, True])
def test_parts_are_what_was_given_and_can_be_set(delegated: bool) -> None:
    made = Programs("conv_bn")
    edge = made.edge.to_backend(XnnpackPartitioner()) if delegated else made.edge
    program = edge.to_executorch()
    record = ETRecord(
        exported_program=made.aten,
        export_graph_id=id(made.aten.graph),
        edge_dialect_program=edge.exported_program(),
        graph_map={"before/forward": made.aten},
        _debug_handle_map=program.debug_handle_map,
        _delegate_map=program.delegate_map,
        _instruction_id_to_num_outs_map=program.instruction_id_to_num_outs_map,
        _reference_outputs={"forward": [[torch.ones(2)]]},
        _representative_inputs=list(flat(made.sample.inputs)),
    )
    assert record.exported_program is made.aten
    assert record.edge_dialect_program is edge.exported_program()
    assert record._delegate_map == program.delegate_map
    decoded = record.artifact
    assert decoded.check() == ()
    assert bool(decoded.delegate_map["forward"]) == delegated
    assert decoded.roles.extra == ("before/forward",)
    copied = record.copy()
    assert copied.exported_program is made.aten
    assert copied.graph_map is record.graph_map
    assert copied._debug_handle_map is None
    with pytest.raises(RuntimeError, match="must contain edge dialect program and executorch"):
        copied.save(io.BytesIO())
    record.graph_map = None
    assert record.artifact.roles.extra == ()


def test_adding_twice_or_something_else_is_refused() -> None:
    made = Programs("linear")
    record = ETRecord()
    record.add_exported_program({"forward": made.aten})
    record.add_edge_dialect_program(made.edge)
    record.add_executorch_program(made.program)
    for add, given, sentence in (
        (record.add_exported_program, made.aten, "Exported program already exists"),
        (record.add_edge_dialect_program, made.edge, "Edge dialect program already exists"),
        (record.add_executorch_program, made.program, "Executorch program data already exists"),
        (record.add_extra_export_modules, {"x": made.program}, "Unsupported graph module type"),
        (record.add_extra_export_modules, {"delegate_map": made.aten}, "is a reserved name"),
        (ETRecord().add_edge_dialect_program, made.program, "Unsupported type of edge_dialect"),
    ):
        with pytest.raises(RuntimeError, match=sentence):
            add(given)
    with pytest.raises(TypeError, match="found tuple"):
        ETRecord().add_exported_program((made.aten,))
    with pytest.raises(RuntimeError, match="Exported program already exists"):
        ETRecord(export_graph_id=7).add_exported_program(made.aten)


def test_bundled_program_gives_inputs_and_outputs(tmp_path: Path) -> None:
    made = Programs("linear")
    path = tmp_path / "model.etrecord"
    generate_etrecord(path, made.edge, made.bundled())
    record = parse_etrecord(path)
    (result,) = record._reference_outputs["forward"][0]
    assert torch.equal(result, made.aten.module()(*made.sample.inputs))
    assert torch.equal(record._representative_inputs[0], made.sample.inputs[0])


class Twice(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) * 2


def _lowered(**options: Any) -> EdgeProgramManager:
    program = torch.export.export(Twice(), (torch.rand(2, 3),))
    return compiler.to_edge_transform_and_lower(program, generate_etrecord=True, **options)


def test_managers_hand_out_their_record() -> None:
    edge = _lowered()
    before = edge.get_etrecord()
    assert before._debug_handle_map is None
    program = edge.to_executorch()
    record = program.get_etrecord()
    assert record is program.get_etrecord()
    assert record._debug_handle_map == program.debug_handle_map
    assert before._debug_handle_map is None
    bare = to_edge(torch.export.export(Twice(), (torch.rand(2, 3),)))
    for manager in (bare, bare.to_executorch()):
        with pytest.raises(RuntimeError, match="ETRecord was not generated"):
            manager.get_etrecord()


class AbsPass(compiler.ExportPass):
    """Replaces relu."""

    def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        relu, absolute = compiler.ops.edge.aten.relu.default, compiler.ops.edge.aten.abs.default
        return super().call_operator(absolute if op is relu else op, args, kwargs, meta)


def test_programs_after_transform_passes_are_recorded() -> None:
    plain, changed = _lowered(), _lowered(transform_passes=[AbsPass()])
    assert plain.get_etrecord().graph_map is None
    record = changed.to_executorch().get_etrecord()
    (after,) = record.graph_map.values()
    assert list(record.graph_map) == ["edge_after_transform/forward"]
    assert "abs" in str(after.graph)
    assert "relu" in str(record.edge_dialect_program.graph)


def test_several_methods_are_a_dictionary(tmp_path: Path) -> None:
    programs = {name: torch.export.export(Twice(), (torch.rand(2),)) for name in ("decode", "a_b")}
    edge = to_edge(programs, generate_etrecord=True)
    path = tmp_path / "model.etrecord"
    edge.to_executorch().get_etrecord().save(path)
    found = parse_etrecord(path).edge_dialect_program
    assert isinstance(found, dict)
    assert set(found) == {"decode", "a_b"}
    assert all(isinstance(each, torch.export.ExportedProgram) for each in dict(found).values())
    lone = to_edge({"decode": programs["decode"]}, generate_etrecord=True).to_executorch()
    lone.get_etrecord().save(path)
    assert parse_etrecord(path).artifact.methods == ("decode",)


def test_inspector_takes_a_live_record(tmp_path: Path) -> None:
    from runtime import Runtime

    torch.manual_seed(0)
    edge = _lowered()
    manager = edge.to_executorch()
    inputs = torch.randn(2, 3)
    program = Runtime.get().load_program(
        manager.buffer, enable_etdump=True, debug_buffer_size=1 << 16
    )
    program.load_method("forward").execute((inputs,))
    trace, buffer = tmp_path / "run.etdp", tmp_path / "run.debug"
    program.write_etdump_result_to_file(str(trace), str(buffer))
    record = manager.get_etrecord()
    record.update_representative_inputs([inputs])
    path = tmp_path / "model.etrecord"
    record.save(path)
    tables = []
    for given in (record, str(path), path, parse_etrecord(path), record.artifact):
        found = inspector.Inspector(etdump_path=trace, etrecord=given, debug_buffer_path=buffer)
        tables.append((list(found.to_dataframe()["op_types"]), found.get_exported_program()))
        gap = found.calculate_numeric_gap("MSE")
        assert len(gap) == 2
        assert all(value == [0.0] for value in gap["gap"])
    assert all(types == tables[0][0] for types, _ in tables)
    assert any(tables[0][0])
    assert all(str(program.graph) == str(tables[0][1].graph) for _, program in tables)


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
from inspector import Inspector, parse_etrecord
record = parse_etrecord({path!r})
assert parse_etrecord({path!r})._debug_handle_map["forward"]
assert record.export_graph_id
record.save({out!r})
assert parse_etrecord({out!r}).artifact == record.artifact
looked_at = parse_etrecord({path!r})
looked_at._debug_handle_map["forward"]["0"] = [7]
looked_at.save({out!r})
assert parse_etrecord({out!r})._debug_handle_map["forward"]["0"] == [7]
"""


def test_a_record_opens_and_saves_without_torch(tmp_path: Path) -> None:
    path, out = tmp_path / "model.etrecord", tmp_path / "other.etrecord"
    _lowered().to_executorch().get_etrecord().save(path)
    run_python(WITHOUT_TORCH.format(path=str(path), out=str(out)))


@pytest.mark.interop
@pytest.mark.parametrize("name", ["conv_bn", "dynamic_shapes", "cond"])
def test_stock_tool_reads_what_live_programs_give(name: str, stock: Stock, tmp_path: Path) -> None:
    made = Programs(name)
    path = tmp_path / "model.etrecord"
    generate_etrecord(path, made.edge, made.program, made.aten, {"further": made.aten})
    answer = stock.ask("parsed", etrecord=str(path))
    assert "error" not in answer, answer
    assert answer["graphs"] == ["further/forward"]
    assert answer["export_graph_id"] == id(made.aten.graph)
