"""Tables that a worker computes: the same rows as those of the verbs, by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import inspector
from inspector.files.load import load_session
from inspector.jobs import run as jobs
from inspector.tables.query import QueryError
from inspector.tables.registry import TABLES, build
from tests.inspector.cli_runs import run, valid
from tests.inspector.jobs_here import Here
from tests.inspector.sessions import DATA

GPT = DATA / "corpus/v1.5.1/tinygpt_xnnpack"


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "Worker", Here)


def test_planners_are_a_table_that_can_be_queried() -> None:
    verb = valid(run("memory", GPT / "model.pte", "--planners", "--format", "json"), "memory")
    (planned,) = (one["planners"] for one in verb["data"]["methods"].values())
    frame = inspector.table(GPT / "model.pte", "planners", dataframe=True)
    assert list(frame["planner"]) == [one["planner"] for one in planned]
    assert list(frame["planned"]) == [one["planned_bytes"] for one in planned]
    found = inspector.table(GPT / "model.pte", "planners", filter="naive", columns="planner")
    assert list(found.dataframe()["planner"]) == ["naive"]


@pytest.mark.slow
def test_gap_is_a_table_that_can_be_queried() -> None:
    rows = valid(run("gap", GPT, "--format", "json"), "gap")["data"]["rows"]
    frame = inspector.table(GPT, "gap", dataframe=True)
    assert list(frame["node"].fillna("")) == [row["node"] or "" for row in rows]
    known = frame["max_abs"].dropna()
    assert list(known) == [row["max_abs"] for row in rows if row["compared"]]
    tops = run("table", "gap", GPT, "--sort", "max_abs:desc", "--top", "3", "--format", "json")
    (table,) = valid(tops, "table")["data"]["tables"]
    place = [column["id"] for column in table["columns"]].index("max_abs")
    assert [row["values"][place] for row in table["rows"]] == sorted(known, reverse=True)[:3]


@pytest.mark.slow
def test_nodes_and_values_of_a_stepped_call_are_those_of_the_verb() -> None:
    net = DATA / "corpus/v1.5.1/convnet_xnnpack"
    verb = valid(run("step", net, "--call", "1", "--format", "json"), "step")["data"]
    frame = inspector.table(net, "step-nodes", of="1", dataframe=True)
    assert list(frame["kind"]) == [node["kind"] for node in verb["nodes"]]
    assert list(frame["recorded_node"]) == [" ".join(one["recorded"]) for one in verb["nodes"]]
    values = inspector.table(net, "step-values", of="1", dataframe=True)
    assert sorted(map(int, values["value"])) == sorted(one["value"] for one in verb["values"])
    with pytest.raises(QueryError, match="unknown delegate call 7: the run has 2"):
        build("step-nodes", load_session([str(net)]), of="7")


@pytest.mark.slow
def test_cases_of_a_bundle_are_those_of_the_verb() -> None:
    bundle = DATA / "extra/bundled_cases"
    (program,) = bundle.glob("*.bpte")
    verb = valid(run("verify", program, "--format", "json"), "verify")["data"]
    frame = inspector.table(bundle, "cases", dataframe=True)
    assert list(frame["verdict"]) == [case["verdict"] for case in verb["cases"]]


@pytest.mark.parametrize(
    ("name", "file", "words"),
    [
        ("planners", "run.etdp", "needs a program"),
        ("gap", "model.pte", "needs a program and the trace"),
        ("call-gaps", "run.etdp", "needs a program and the trace"),
        ("layer-losses", "model.pte", "needs a program and the trace"),
        ("step-nodes", "run.etdp", "needs a program"),
        ("backend-plan", "model.pte", "no recipe found"),
        ("cases", "model.pte", "need a bundled program"),
    ],
)
def test_what_is_missing_is_one_sentence(name: str, file: str, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        build(name, load_session([str(GPT / file)]))


def test_failure_of_the_worker_is_one_sentence(tmp_path: Path) -> None:
    program = tmp_path / "model.pte"
    program.write_bytes((GPT / "model.pte").read_bytes())
    session = load_session([str(program)])
    program.write_bytes(b"no program")
    with pytest.raises(QueryError, match=r"model\.pte"):
        build("planners", session)


def test_stages_of_a_compile_folder_are_a_table(tmp_path: Path) -> None:
    stages = [
        {"stage": "export", "method": "forward", "time_ms": 2.0, "nodes": 5},
        {"stage": "emit", "method": "", "time_ms": 0.5, "nodes": None},
    ]
    report = tmp_path / "compile.json"
    report.write_text(json.dumps({"stages": stages}), "utf-8")
    out = run("table", "compile-stages", tmp_path, "--sort", "time", "--format", "tsv").out
    assert out.splitlines() == [
        "stage\tmethod\ttime (ns)\tnodes",
        "emit\t\t500000\t",
        "export\tforward\t2000000\t5",
    ]
    report.write_text('{"stages": [{"stage": 1}]}', "utf-8")
    answer = run("table", "compile-stages", tmp_path)
    assert answer.code not in (0, 4)
    assert "report of a compile" in answer.err


def test_computed_tables_are_those_of_workers() -> None:
    assert {name for name, one in TABLES.items() if one.computed} == {
        "planners",
        "gap",
        "call-gaps",
        "cases",
        "backend-plan",
        "layer-losses",
        "step-nodes",
        "step-values",
    }
