"""Delegation, memory traces and sizes of files, without executorch and torch."""

from __future__ import annotations

import io
import itertools
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from inspector import (
    format_delegated_graph,
    generate_memory_trace,
    generate_model_size_information,
    get_delegated_payload,
    get_delegation_info,
    parse_etrecord,
    print_delegated_graph,
    print_delegation_info,
)
from inspector.files.load import load_session
from inspector.memory.plan import analyse_memory
from schema.graph import Graph
from tests.inspector.sessions import DATA, folders, label, session
from tests.oracle.client import Oracle

LOWERED = DATA / "records" / "lowered.etrecord"
PROGRAMS = folders("model.pte")
RECORDS = folders("model.etrecord")
# Its reference outputs are pickles, which the stock tool of today refuses with the whole record.
TODAYS = [folder for folder in RECORDS if folder.parent.name != "v1.0.1"]
CONVNET = DATA / "corpus" / "v1.5.1" / "convnet_xnnpack"


# ---- delegation
@pytest.mark.interop
@pytest.mark.parametrize("folder", TODAYS, ids=label)
def test_recorded_graphs_have_the_stock_numbers(folder: Path, oracle: Oracle) -> None:
    path = folder / "model.etrecord"
    facts = oracle.ask("record", path=path, program=folder / "model.pte")
    record = parse_etrecord(path).artifact
    assert set(facts["programs"]) == {_stock_name(name) for name in record.program_names}
    for name in record.program_names:
        stock = facts["programs"][_stock_name(name)]["delegation"]
        info = get_delegation_info(record.graph(name))
        assert info.get_summary() == stock["summary"], name
        rows = info.get_operator_delegation_dataframe().itertuples(index=False, name=None)
        ours = [list(row) for row in rows]
        if info.delegation_by_operator:
            assert ours == stock["by_operator"], name
        else:  # the stock table of a graph without operators is a KeyError
            assert (ours, stock["by_operator"]) == ([["Total", 0, 0]], []), name


def _stock_name(member: str) -> str:
    flat = "edge_dialect_exported_program"
    return f"{flat}/forward" if member == flat else member


def test_delegation_of_a_lowered_record_counts_both_sides() -> None:
    graph = parse_etrecord(LOWERED).artifact.edge_graph()
    info = get_delegation_info(graph)
    assert info.num_delegated_subgraphs == 1
    assert info.num_delegated_nodes == sum(
        row.delegated for row in info.delegation_by_operator.values()
    )
    text = io.StringIO()
    with redirect_stdout(text):
        print_delegation_info(graph)
    assert "Total delegated subgraphs: 1" in text.getvalue()
    assert "│ Total " in text.getvalue()


def test_delegation_table_of_an_empty_graph_is_its_total() -> None:
    frame = get_delegation_info(Graph("empty", (), {})).get_operator_delegation_dataframe()
    assert frame.to_numpy().tolist() == [["Total", 0, 0]]


def test_formatted_graph_opens_the_delegate_in_place() -> None:
    graph = parse_etrecord(LOWERED).artifact.edge_graph()
    lines = format_delegated_graph(graph).splitlines()
    assert lines[0] == "graph():"
    at = lines.index("    backend_id: XnnpackBackend")
    assert lines[at - 1].endswith("get_attr[target=lowered_module_0]")
    assert lines[at + 1] == "    lowered graph():"
    inner = [line for line in lines if line.startswith("      ")]
    assert any("aten.linear.default" in line for line in inner)
    call = next(line for line in lines if "executorch_call_delegate](" in line)
    assert "(args = (%lowered_module_0, %x)" in call
    text = io.StringIO()
    with redirect_stdout(text):
        print_delegated_graph(graph)
    assert text.getvalue().rstrip("\n").splitlines() == lines


def test_payload_of_a_lowered_record_is_the_delegate_blob() -> None:
    payload = get_delegated_payload(parse_etrecord(LOWERED).artifact.edge_graph())
    backend, specs, data = payload["lowered_module_0"]
    assert (backend, specs) == ("XnnpackBackend", [])
    assert bytes(data[4:8]) == b"XH00"


@pytest.mark.parametrize(
    "function", [get_delegation_info, format_delegated_graph, get_delegated_payload]
)
def test_graph_functions_refuse_other_objects(function: Any) -> None:
    with pytest.raises(TypeError, match="recorded Graph, found int"):
        function(3)


# ---- memory
@pytest.mark.parametrize("folder", PROGRAMS, ids=label)
def test_memory_trace_of_a_program_shows_the_bytes_in_use(folder: Path, tmp_path: Path) -> None:
    program = session(folder).program
    for plan in program.plans:
        arenas = analyse_memory(program, plan.name).arenas
        out = tmp_path / f"{plan.name}.json"
        if not any(arena.peak_bytes for arena in arenas):
            with pytest.raises(ValueError, match="does not have memory planning"):
                generate_memory_trace(folder / "model.pte", out, True, plan.name)
            continue
        generate_memory_trace(folder / "model.pte", out, True, plan.name)
        events = json.loads(out.read_text("ascii"))["traceEvents"]
        for arena in arenas:
            own = [event for event in events if event["pid"] == arena.mem_id]
            for step, live in enumerate(arena.live_bytes.tolist()):
                shown = [e for e in own if e["tid"] == step]
                assert sum(e["dur"] for e in shown) == live
                ends = sorted((e["ts"], e["ts"] + e["dur"]) for e in shown)
                assert all(one[1] <= two[0] for one, two in itertools.pairwise(ends))
                assert all(end <= arena.planned_bytes for _, end in ends)


def test_memory_trace_stacked_bars_leave_no_gap(tmp_path: Path) -> None:
    out = tmp_path / "trace.json"
    generate_memory_trace(load_session([CONVNET]), out, ommit_metadata=True)
    steps: dict[int, int] = {}
    for event in json.loads(out.read_text("ascii"))["traceEvents"]:
        assert event["ts"] == steps.get(event["tid"], 0)
        steps[event["tid"]] = event["ts"] + event["dur"]
        assert event["args"] == {}


def test_memory_trace_of_a_session_names_nodes_and_lines(tmp_path: Path) -> None:
    out = tmp_path / "trace.json"
    generate_memory_trace(load_session([CONVNET]), out)
    found = {e["name"]: e["args"] for e in json.loads(out.read_text("ascii"))["traceEvents"]}
    assert found["aten_mean_dim"]["op_name"] == "aten::mean.out"
    assert "models.py" in found["aten_mean_dim"]["source"]
    alone = tmp_path / "alone.json"
    generate_memory_trace(CONVNET / "model.pte", alone)
    names = {e["name"] for e in json.loads(alone.read_text("ascii"))["traceEvents"]}
    assert "aten_mean_dim" not in names


def test_memory_trace_of_other_things_raises(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expects ExecutorchProgramManager instance"):
        generate_memory_trace(3, tmp_path / "x")
    with pytest.raises(KeyError):
        generate_memory_trace(CONVNET / "model.pte", tmp_path / "x", method_name="backward")
    with pytest.raises(ValueError, match="has no program"):
        generate_memory_trace(load_session([CONVNET / "run.etdp"]), tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


# ---- sizes
@pytest.mark.interop
@pytest.mark.parametrize("folder", TODAYS, ids=label)
def test_size_of_a_record_equals_the_stock_tool(folder: Path, oracle: Oracle) -> None:
    path, program = folder / "model.etrecord", folder / "model.pte"
    facts = oracle.ask("record", path=path, program=program)["programs"]
    edges = {n.split("/")[1]: f for n, f in facts.items() if n.startswith("edge_dialect")}
    record = parse_etrecord(path)
    methods = record.artifact.methods
    wanted = edges["forward" if "forward" in methods else methods[0]]["size"]
    assert generate_model_size_information(record, None, program.read_bytes()) == wanted


@pytest.mark.parametrize("folder", PROGRAMS, ids=label)
def test_size_of_a_program_file_adds_up(folder: Path) -> None:
    path = folder / "model.pte"
    found = generate_model_size_information(path)
    overview = found["overview"]
    assert overview["model_size"] == path.stat().st_size
    assert overview["serialization_metadata_size"] > 0
    parts = [name for name in overview if name != "model_size"]
    assert sum(overview[name] for name in parts) == overview["model_size"]
    for key in ("tensor_data", "delegate_blob_data", "named_data"):
        sizes = [row["num_bytes"] for row in found[key]]
        assert sizes == sorted(sizes, reverse=True)
        assert sum(sizes) == overview[f"total_{key}_size"]
    json.dumps(found)


def test_size_deserializer_of_a_backend_adds_its_facts() -> None:
    extra = {"XnnpackBackend": lambda data: {"magic": data[4:8].decode()}}
    rows = generate_model_size_information(CONVNET / "model.pte", extra)["delegate_blob_data"]
    assert [row["magic"] for row in rows] == ["XH00"] * len(rows)
    assert rows


def test_size_of_a_bundle_is_that_of_its_program() -> None:
    folder = DATA / "extra" / "bundled_cases"
    assert generate_model_size_information(
        folder / "model.bpte"
    ) == generate_model_size_information(folder / "model.pte")


def test_size_of_other_things_raises() -> None:
    with pytest.raises(TypeError, match="expected a program, a record or a path"):
        generate_model_size_information(3)
    with pytest.raises(ValueError, match="expected a program"):
        generate_model_size_information(CONVNET / "run.etdp")
