"""The ETRecord object: what it shows, what may be added and updated, and what others read of it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from inspector import ETRecord, RebuildError, parse_etrecord
from inspector.compat.devtools.etrecord import opened, reference_output
from schema import bundled, etrecord
from tests.architecture.tree import run_python
from tests.inspector.sessions import DATA, folders, label
from tests.oracle.client import Oracle

pytestmark = pytest.mark.slow

MM = DATA / "corpus" / "v1.5.1" / "mm_xnnpack" / "model.etrecord"
CONVNET = DATA / "corpus" / "v1.5.1" / "convnet_portable" / "model.etrecord"
TWO = DATA / "extra" / "two_methods" / "model.etrecord"
RECORDS = [folder / "model.etrecord" for folder in folders("model.etrecord")]


def name_of(path: Path) -> str:
    """Return the name of a record in test ids."""
    return label(path.parent)


def without(path: Path, *members: str) -> ETRecord:
    """Return a record with members left out, side files included."""
    artifact = parse_etrecord(path).artifact
    gone = [m.name for m in artifact.members if m.name.startswith(members)]
    return opened(etrecord.replace_members(artifact, dict.fromkeys(gone)))


# ---- opening
def test_parse_file_that_is_no_record_raises_runtime_error(tmp_path: Path) -> None:
    other = tmp_path / "model.etrecord"
    other.write_bytes(b"PK\x03\x04 not a zip archive at all")
    with pytest.raises(RuntimeError, match="Invalid etrecord file"):
        parse_etrecord(other)


def test_maps_are_json_with_texts_for_keys() -> None:
    record = parse_etrecord(str(MM))
    assert record._debug_handle_map["forward"] == {"0": 1, "1": [2, 3], "2": 4, "3": [5]}
    assert record._delegate_map["forward"]["1"]["name"] == "XnnpackBackend"
    assert record._instruction_id_to_num_outs_map["forward"]["1"] == 1
    assert isinstance(record.export_graph_id, int)


def test_absent_members_are_none() -> None:
    record = without(MM, "delegate_map", "reference_outputs", "export_graph_id")
    assert (record._delegate_map, record._reference_outputs, record.export_graph_id) == (
        None,
        None,
        0,
    )
    assert reference_output(record.artifact, "forward", 0) is None


def test_reference_outputs_and_inputs_are_tensors() -> None:
    torch = pytest.importorskip("torch")
    record = parse_etrecord(DATA / "extra" / "bundled_cases" / "model.etrecord")
    cases = record._reference_outputs["forward"]
    assert all(isinstance(value, torch.Tensor) for case in cases for value in case)
    assert record._representative_inputs[0].dtype == torch.float32


# ---- saving
@pytest.mark.parametrize("path", RECORDS, ids=name_of)
def test_save_unchanged_record_reads_the_same(path: Path, tmp_path: Path) -> None:
    record = parse_etrecord(path)
    record.save(tmp_path / "saved.etrecord")
    assert parse_etrecord(tmp_path / "saved.etrecord").artifact == record.artifact


def test_save_into_a_stream_is_the_same_file(tmp_path: Path) -> None:
    stream = io.BytesIO()
    parse_etrecord(MM).save(stream)
    stream.seek(0)
    assert parse_etrecord(stream)._debug_handle_map == parse_etrecord(MM)._debug_handle_map
    parse_etrecord(MM).save(tmp_path / "saved")
    assert stream.getvalue() == (tmp_path / "saved").read_bytes()


@pytest.mark.parametrize("member", ["edge_dialect_exported_program", "debug_handle_map"])
def test_save_without_edge_program_or_handles_raises(member: str) -> None:
    with pytest.raises(RuntimeError, match="must contain edge dialect program and executorch"):
        without(MM, member).save(io.BytesIO())


# ---- changing
@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        ("add_exported_program", "Exported program already exists in the ETRecord"),
        ("add_edge_dialect_program", "Edge dialect program already exists in the ETRecord"),
        ("add_executorch_program", "Executorch program data already exists in the ETRecord"),
    ],
)
def test_add_a_second_time_raises(method: str, sentence: str) -> None:
    with pytest.raises(RuntimeError, match=sentence):
        getattr(parse_etrecord(MM), method)(SimpleNamespace())


def test_add_what_is_no_program_raises_type_error() -> None:
    record = without(MM, "exported_program", "export_graph_id")
    record.add_exported_program(None)
    with pytest.raises(TypeError, match=r"expected a torch\.export\.ExportedProgram"):
        record.add_exported_program(SimpleNamespace(graph="x"))
    with pytest.raises(TypeError, match="debug_handle_map"):
        record.copy().add_executorch_program(3)


def test_add_extra_module_with_a_reserved_name_raises() -> None:
    with pytest.raises(RuntimeError, match="reserved name in the ETRecord namespace"):
        parse_etrecord(MM).add_extra_export_modules({"my_debug_handle_map": None})


def test_copy_has_programs_and_no_compiled_data() -> None:
    record = parse_etrecord(MM)
    copied = record.copy()
    assert copied.artifact.program_names == record.artifact.program_names
    assert copied._debug_handle_map is None
    assert copied._reference_outputs is None
    assert record._debug_handle_map is not None


def test_add_executorch_program_takes_the_maps_and_test_cases() -> None:
    pytest.importorskip("torch")
    bundle = bundled.decode((DATA / "extra" / "bundled_cases" / "model.bpte").read_bytes())
    program = SimpleNamespace(
        executorch_program=SimpleNamespace(
            debug_handle_map={"forward": {0: 1, 1: [2, 3]}},
            delegate_map={"forward": {1: {"name": "Demo", "delegate_map": {0: [2]}}}},
            instruction_id_to_num_outs_map={"forward": {1: 1}},
        ),
        method_test_suites=bundle.method_test_suites,
    )
    record = parse_etrecord(MM).copy()
    record.add_executorch_program(program)
    assert record._debug_handle_map == {"forward": {0: 1, 1: [2, 3]}}
    assert record.artifact.delegate_map["forward"][1].handles == {"0": (2,)}
    suite = bundle.method_test_suites[0]
    assert len(record._reference_outputs["forward"]) == len(suite.test_cases)
    wanted = np.frombuffer(suite.test_cases[0].inputs[0].val.data, dtype=np.float32)
    np.testing.assert_array_equal(record._representative_inputs[0].numpy().reshape(-1), wanted)


@pytest.mark.parametrize("kind", ["list", "map", "bundle"])
def test_update_reference_outputs_replaces_them(kind: str) -> None:
    torch = pytest.importorskip("torch")
    bundle = bundled.decode((DATA / "extra" / "bundled_cases" / "model.bpte").read_bytes())
    cases = [[torch.ones(2), 3], [np.zeros((1, 2), dtype=np.float32), True]]
    given = {"list": cases, "map": {"forward": cases}, "bundle": bundle}[kind]
    record = parse_etrecord(MM)
    assert len(reference_output(record.artifact, "forward", 0)) == 1  # kept, and to be forgotten
    record.update_reference_outputs(given)
    if kind == "bundle":
        assert len(record._reference_outputs["forward"]) == len(
            bundle.method_test_suites[0].test_cases
        )
        return
    found = reference_output(record.artifact, "forward", 1).arrays()
    np.testing.assert_array_equal(found[0], np.zeros((1, 2)))
    assert found[1] is True
    assert torch.equal(record._reference_outputs["forward"][0][0], torch.ones(2))


def test_update_with_cases_that_lack_values_raises() -> None:
    case = bundled.TestCase((), ())
    given = SimpleNamespace(method_test_suites=[bundled.BundledSuite("forward", (case,))])
    with pytest.raises(ValueError, match="forward expects no outputs"):
        parse_etrecord(MM).update_reference_outputs(given)
    none = SimpleNamespace(method_test_suites=[bundled.BundledSuite("forward", ())])
    with pytest.raises(ValueError, match="no test case"):
        parse_etrecord(MM).update_representative_inputs(none)


# ---- programs
REBUILD = """
import sys, warnings
warnings.simplefilter("ignore")  # torch's reader warns of symbols
import logging; logging.disable(logging.CRITICAL)
from pathlib import Path
import torch
from inspector import Inspector, RebuildError, parse_etrecord

def run(program):
    args, kwargs = program.example_inputs or ((), {})
    with torch.no_grad():
        return torch.utils._pytree.tree_leaves(program.module()(*args, **kwargs))

def close(one, two):
    return len(one) == len(two) and all(
        torch.allclose(a.double(), b.double(), atol=1e-3) if isinstance(a, torch.Tensor) else a == b
        for a, b in zip(one, two))

done = []
for path in map(Path, sys.argv[1:]):
    record = parse_etrecord(path)
    try:
        edge = record.edge_dialect_program
        edges = dict(edge) if not isinstance(edge, torch.export.ExportedProgram) else {"": edge}
    except RebuildError as error:
        done.append((path, str(error)))
        continue
    for name, program in edges.items():
        run(program)
        calls = [n for n in program.graph.nodes if n.op == "call_function"]
        assert not calls or any(n.meta.get("debug_handle") for n in calls), path
        assert all("etscope" not in str(n.target) or "dim_order" in str(n.target) for n in calls)
    if record.artifact.roles.exported and path.parent.name not in ("counter_state", "kv_cache",
            "counter_state_no_debug"):
        assert close(run(record.exported_program), run(edge)), path
    done.append((path, ""))
assert "executorch" not in sys.modules
for path, refusal in done:
    print(path.parent.name, "|", refusal)
"""
NOT_REBUILT = {
    "xnnpack_two_delegates": "delegate calls are not torch operators",
    "xnnpack_8da4w": "no operator torchao::",
}


def test_programs_of_every_record_are_rebuilt_and_run_without_executorch() -> None:
    pytest.importorskip("torch")
    listed = ", ".join(repr(str(path)) for path in RECORDS)
    printed = run_python(REBUILD.replace("sys.argv[1:]", f"[{listed}]"))
    lines = [line.split(" | ") for line in printed.splitlines() if " | " in line]
    assert len(lines) == len(RECORDS)
    for session, refusal in lines:
        assert refusal.strip() == "" or NOT_REBUILT.get(session, "\0") in refusal, session


def test_program_recorded_after_memory_planning_says_why_it_cannot_be_rebuilt() -> None:
    pytest.importorskip("torch")
    with pytest.raises(RebuildError, match=r"memory\.alloc is not torch's"):
        _ = parse_etrecord(DATA / "records" / "mutated.etrecord").edge_dialect_program


ADDING = """
import sys, warnings
warnings.simplefilter("ignore")
import logging; logging.disable(logging.CRITICAL)
from inspector import Inspector, parse_etrecord
first, second, out = {first!r}, {second!r}, {out!r}
record = parse_etrecord(first)
assert record.edge_dialect_program is record.edge_dialect_program
inner = parse_etrecord(second)
record.add_extra_export_modules({{"other": inner.edge_dialect_program["encode"]}})
record.update_representative_inputs([1, 2.5])
record.save(out)
again = parse_etrecord(out)
assert list(again.graph_map) == ["other/forward"]
assert again._representative_inputs == [1, 2.5]
new = record.copy()
new.add_executorch_program(type("Program", (), {{"debug_handle_map": record._debug_handle_map,
    "delegate_map": record._delegate_map}})())
changed = parse_etrecord(first)
for node in list(changed.exported_program.graph.nodes)[-2:-1]:
    node.name = "renamed"
changed.save(out)
names = [node.name for node in parse_etrecord(out).artifact.exported_graph().nodes]
assert "renamed" in names and len(names) == len(record.artifact.exported_graph().nodes)
assert changed.artifact is changed.source.artifact
bare = parse_etrecord({bare!r})
bare.add_exported_program(parse_etrecord(first).exported_program)
assert bare.export_graph_id == record.export_graph_id
assert bare.artifact.read("exported_program") == record.artifact.read("exported_program")
"""


def test_programs_of_records_are_added_to_others(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    bare = tmp_path / "bare.etrecord"
    without(CONVNET, "exported_program", "export_graph_id").save(bare)
    paths = {"first": str(CONVNET), "second": str(TWO), "bare": str(bare)}
    run_python(ADDING.format(out=str(tmp_path / "more.etrecord"), **paths))


@pytest.mark.interop
def test_stock_tool_reads_what_was_changed(oracle: Oracle, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    record = parse_etrecord(CONVNET)
    record.update_reference_outputs({"forward": [[torch.ones(3)]]})
    record.update_representative_inputs([torch.zeros(2), (1, "a")])
    record.save(tmp_path / "model.etrecord")
    facts = oracle.ask("record", path=tmp_path / "model.etrecord")
    assert facts["reference_outputs"]["forward"][0][0]["head"] == [1.0, 1.0, 1.0]
    assert facts["representative_inputs"][1] == [1, "a"]
    before = oracle.ask("record", path=CONVNET)
    for name in ("programs", "debug_handle_map", "delegate_map", "export_graph_id"):
        assert facts[name] == before[name]


def test_exported_programs_of_an_inspector(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from inspector import Inspector

    files = {"etdump_path": CONVNET.parent / "run.etdp"}
    files["debug_buffer_path"] = CONVNET.parent / "run.debug"
    alone, both = Inspector(**files), Inspector(**files, etrecord=parse_etrecord(CONVNET))
    assert alone.get_exported_program() is None
    assert both.get_exported_program() is both.etrecord.edge_dialect_program
    assert both.get_exported_program("no such graph") is None


def test_json_of_the_maps_is_what_the_file_holds() -> None:
    record = parse_etrecord(MM)
    assert json.loads(bytes(record.artifact.read("delegate_map"))) == record._delegate_map
