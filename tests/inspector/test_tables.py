"""Tables by name: golden text, one function behind three doors, queries as in the window."""

from __future__ import annotations

import csv
import io
import json
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import torch

import inspector
import inspector.tables
from compiler import to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.graph.model_graph import ModelGraph
from inspector.jobs.bisect_trials import BisectState, CandidateNode, Trial
from inspector.jobs.run_folder import kept_method, run_folder
from inspector.profile.methods import analyse_profile
from inspector.profile.node_times import NodeTimes, node_times
from inspector.tables import source_lines
from inspector.tables.filter import FilterError
from inspector.tables.query import Query, QueryError, select
from inspector.tables.registry import TABLES, TableEntry, TableSubject, build
from inspector.tables.table import Table
from inspector.tables.tree import Tree
from tests.inspector.cli_runs import SCHEMAS, SESSIONS, run, valid
from tests.inspector.golden_tables import (
    GOLDEN,
    MADE_BY_TESTS,
    files_for,
    golden_files,
    sample,
    text_of,
)
from tests.inspector.sessions import DATA, label

SAMPLE = "corpus/v1.5.1/convnet_xnnpack"
FOLDER = DATA / SAMPLE
GOLD = golden_files()


@pytest.mark.parametrize("path", GOLD, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_text_is_the_golden_one(path: Path) -> None:
    table, names = GOLD[path]
    assert text_of(table, tuple(sample(name) for name in names)) == path.read_text("utf-8")


@pytest.mark.parametrize("name", ["events", "operators", "partitions", "range"])
def test_share_of_a_time_that_is_only_bounded_is_bounded(name: str) -> None:
    made = build(name, sample("runs/convnet_xnnpack"), "forward")
    table = made.rows if isinstance(made, Tree) else made
    shares = [column for column in table.columns if column.title.startswith("share of")]
    times = [column for column in table.columns if column.unit in ("µs", "ms", "ns")]
    cells = [(times[0].cell(row), shares[0].cell(row)) for row in range(table.length)]
    bounded = [share for time, share in cells if time.startswith("<")]
    assert len(bounded) > 3
    assert all(share.startswith("<") for share in bounded), cells


def test_shares_of_lines_are_bounded_where_every_time_is_below_a_tick(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def below(session: Session, method: str, graph: ModelGraph) -> NodeTimes | None:
        found = node_times(session, method, graph)
        assert found is not None
        none, tick = np.zeros(len(found.node_ns)), np.full(len(found.node_ns), 1000.0)
        return replace(found, node_ns=none, tick_ns=tick, method_ns=20_000.0)

    monkeypatch.setattr(source_lines, "node_times", below)
    made = build("source", sample("runs/convnet_xnnpack"), "forward")
    assert isinstance(made, Tree)
    by_title = {column.title: column for column in made.rows.columns}
    times, shares = by_title["time"], by_title["share of method"]
    cells = [(times.cell(row), shares.cell(row)) for row in range(made.rows.length)]
    assert cells
    assert all(time.startswith("<") and share.startswith("<") for time, share in cells), cells
    assert ("< 10 µs", "< 50 %") in cells  # ten nodes of a line


def test_no_golden_text_is_left_over() -> None:
    assert {*GOLDEN.rglob("*.txt")} == {*GOLD}


@pytest.mark.slow
@pytest.mark.parametrize("path", SESSIONS, ids=label)
def test_tables_of_any_session_are_made_or_refused_in_a_sentence(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = cache(lambda names, reading, strict: load_session(names, reading, strict=strict))
    monkeypatch.setattr(  # files are read once, not for each table
        "inspector.cli.options.load_session",
        lambda names, reading, *, strict: once(tuple(names), reading, strict),
    )
    for name, entry in TABLES.items():
        if entry.computed:  # in a worker, see below
            continue
        files = (path, FOLDER) if entry.subject is TableSubject.SESSIONS else (path,)
        answer = run("table", name, *files, "--top", "20", "--format", "json")
        assert answer.code in (0, 2), answer.err
        tree = valid(answer, "table")
        for table in tree["data"].get("tables", ()):
            ids = [column["id"] for column in table["columns"]]
            assert len(ids) == len({*ids}), name
            assert {len(row["values"]) for row in table["rows"]} <= {len(ids)}


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, entry in TABLES.items()
        if entry.subject is TableSubject.METHOD and name not in MADE_BY_TESTS
    ],
)
def test_command_line_and_python_give_the_same_table(name: str) -> None:
    files = files_for(name, SAMPLE)
    query = ("--top", "5", "--sort", f"{build(name, load_session(files)).columns[0].id}:desc")
    (table,) = run("table", name, *files, *query, "--format", "json").json["data"]["tables"]
    found = inspector.table(files, name, top=5, sort=query[-1])
    frame = found.dataframe()
    assert [column["id"] for column in table["columns"]] == [c for c in frame if c != "depth"]
    assert [row["values"][0] for row in table["rows"]] == list(
        frame.iloc[:, -len(table["columns"])]
    )
    assert run("table", name, *files, *query).out == f"{found}\n"
    units = {column["id"]: column["unit"] for column in table["columns"] if column["unit"]}
    assert frame.attrs["units"] == units
    assert found._repr_html_().startswith("<")


def _operators(**query: object) -> list[str]:
    found = inspector.table(FOLDER, "operators", columns="operator", **query)
    return list(found.dataframe()["operator"])


def test_queries_do_what_the_window_does() -> None:
    everything = _operators()
    assert _operators(filter="transpose") == [name for name in everything if "Transpose" in name]
    assert _operators(filter=r"/^aten\./") == ["aten.mean.out", "aten._log_softmax.out"]
    assert _operators(filter="mean>1.2µs xnnpack", sort="mean:desc")[:2] == [
        "delegate overhead",
        "Convolution (NHWC, F32) IGEMM #1",
    ]
    assert _operators(sort="mean:desc", top=1) == ["delegate overhead"]
    assert _operators(sort=["operator"])[0] == "Add (ND) #1"


def test_groups_hold_the_sum_of_their_rows() -> None:
    """Operators without a delegate stand beside those that are delegated."""
    clean = DATA / "runs/convnet_xnnpack"
    frame = inspector.table(clean, "operators", group_by="delegate", dataframe=True)
    tops = frame[frame["depth"] == 0]
    named = {"aten.mean.out", "aten._log_softmax.out", "unattributed", "cost of tracing"}
    assert set(tops["operator"]) == {"XNNPACK 0  (7)", "XNNPACK 1  (1)", *named}
    below = frame[frame["depth"] == 1]["mean"].sum()
    assert below == pytest.approx(tops[tops["operator"].str.startswith("XNNPACK")]["mean"].sum())
    assert tops["share_of_method"].sum() == pytest.approx(1.0)
    (time,) = analyse_profile(load_session([str(clean)])).methods
    assert tops["mean"].sum() == pytest.approx(time.latency_ms * 1e6)


def test_tree_rows_keep_those_above_them() -> None:
    frame = inspector.table(FOLDER, "partitions", filter="hardtanh", dataframe=True)
    assert list(frame["depth"]) == [0, 1]
    assert list(frame["partition"]) == ["XNNPACK · delegate 0", "aten.hardtanh"]


def test_tsv_and_csv_hold_base_units(tmp_path: Path) -> None:
    out = run("table", "memory", FOLDER, "--format", "csv", "--columns", "value,size,made_by").out
    rows = list(csv.reader(io.StringIO(out)))
    assert rows[0] == ["value", "size (B)", "producer"]
    assert rows[1] == ["aten_relu_default", "16384", "XNNPACK 0"]
    assert run("table", "memory", FOLDER, "--format", "tsv").out.splitlines()[0].count("\t") > 8


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing", FOLDER), "unknown table 'nothing'; available: operators, kernels, events"),
        (("operators", FOLDER, "--sort", "bogus"), "unknown column 'bogus'; available: operator"),
        (("operators", FOLDER, "--columns", "p"), "ambiguous column 'p'"),
        (("operators", FOLDER, "--group-by", "p50"), "column 'p50' is not text; available:"),
        (("partitions", FOLDER, "--group-by", "backend"), "rows of this table form a tree"),
        (("operators", FOLDER, "--filter", "/(/"), "not a regular expression"),
        (("operators", FOLDER, "--top", "-1"), "invalid --top -1"),
        (("compare", FOLDER), "compares two sessions or more, found 1"),
        (("memory", FOLDER / "run.etdp"), "the memory plan needs a program"),
        (("stages", FOLDER), "no compile stages"),
        (("sweep", FOLDER), "results.json is missing"),
        (("trials", FOLDER), "holds no bisection: bisect.json is missing"),
        (("run-times", FOLDER), "run.json is missing"),
        (("sweep", FOLDER, FOLDER), "expects one folder"),
        (("elements", FOLDER), "unknown tensor ''; available: stem.1.num_batches_tracked"),
        (("elements", FOLDER, "--of", "fc.bias"), "2 tensors are called 'fc.bias'; their keys:"),
        (("elements", FOLDER, "--of", "aten_mean_dim[0, 16]"), "index 16 is outside of [1, 16]"),
        (("elements", FOLDER, "--of", "aten_mean_dim[0, 1, 2]"), "expected at most 2 indices"),
        (("gates", FOLDER), "needs a file of requirements: --of gates.txt"),
        (("tensors", FOLDER, "--of", "x"), "is not of 'x'; available: step-nodes, step-values"),
        (("step-nodes", FOLDER, "--of", "x"), "expected the index of a delegate call, found 'x'"),
        (("cases", FOLDER), "cases need a bundled program"),
    ],
)
def test_what_does_not_fit_is_one_sentence(arguments: tuple[object, ...], words: str) -> None:
    answer = run("table", *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert words in answer.err


def test_folders_of_jobs_have_tables(tmp_path: Path) -> None:
    times = {"median": 2.0, "mean": 2.5}
    report = {"load_ms": 1.5, "init_ms": 0.5, "run_ms": [2.0, 3.0], "latency_ms": times}
    (tmp_path / "run.json").write_text(json.dumps(report), "utf-8")
    out = run("table", "run-times", tmp_path, "--format", "tsv").out
    assert out.splitlines()[:3] == [
        "what\ttime (ns)",
        "load the program\t1500000",
        "load the method\t500000",
    ]
    trial = Trial(((0, 2),), 0.5, holds=True, words="well", seconds=1.5)
    state = BisectState(
        "key", tuple(CandidateNode("forward", f"n{n}", "mul") for n in range(3)), (trial,)
    )
    (tmp_path / "bisect.json").write_text(state.text, "utf-8")
    frame = inspector.table(tmp_path, "trials", dataframe=True)
    assert frame.to_dict("records") == [
        {
            "trial": 1,
            "kept_off": "2 of 3",
            "verdict": "holds",
            "value": 0.5,
            "time": 1_500_000_000.0,
            "note": "well",
        }
    ]
    excluded = run("table", "bisect-nodes", tmp_path, "--format", "tsv").out.splitlines()
    assert [line.split("\t")[:2] for line in excluded[1:]] == [["n0", "mul"], ["n1", "mul"]]
    (tmp_path / "bisect.json").write_text("{}", "utf-8")
    answer = run("table", "trials", tmp_path)
    assert answer.code == 2
    assert "of version 1" in answer.err


@pytest.mark.parametrize(
    "report",
    [
        "[]",
        "1",
        '"run_ms"',
        *(f'{{"run_ms": {x}, "latency_ms": {x}}}' for x in ("1", "null", "[[]]")),
    ],
)
@pytest.mark.parametrize("table", ["run-times", "thread-times", "calls"])
def test_a_report_of_other_content_is_one_sentence(table: str, report: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(report, "utf-8")
    answer = run("table", table, tmp_path)
    assert " failed: " not in answer.err
    assert (answer.code == 0) == (table != "run-times" and report.startswith("{")), answer.err
    assert answer.code == 0 or str(tmp_path / "run.json") in answer.err


@pytest.mark.parametrize("number", ["Infinity", "NaN", "null", "[]", "[" * 30_000])
def test_a_point_without_a_number_is_named_by_its_folder(number: str, tmp_path: Path) -> None:
    folder = tmp_path / "sweep" / "points" / "abc"
    folder.mkdir(parents=True)
    shutil.copy(FOLDER / "model.pte", folder)
    (folder / "point.json").write_text(f'{{"number": {number}}}', "utf-8")
    assert load_session([folder / "model.pte"]).name == "abc"


def test_a_table_is_one_file_and_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "toy_lengths.py").write_text(_TOY, "utf-8")
    monkeypatch.setattr(inspector.tables, "__path__", [*inspector.tables.__path__, str(tmp_path)])
    line = TableEntry("lengths", "a method", "toy_lengths:lengths", TableSubject.SESSION)
    monkeypatch.setitem(TABLES, line.name, line)
    assert run("table", "lengths", FOLDER).out == "method   letters\nforward        7\n"
    assert inspector.table(FOLDER, "lengths", dataframe=True)["letters"].tolist() == [7]
    (shown,) = run("table", "lengths", FOLDER, "--format", "json").json["data"]["tables"]
    assert shown["rows"][0]["values"] == ["forward", 7]


_TOY = """
from inspector.tables.rows import RowField, row_table
from inspector.units import Quantity


def lengths(session, units):
    rows = [(name, len(name)) for name in session.methods]
    return row_table((RowField("method"), RowField("letters", Quantity.COUNT)), rows, "methods")
"""


def test_elements_of_a_slice_are_those_of_the_tensor() -> None:
    everything, row, one = (
        inspector.table(FOLDER, "elements", of=f"aten_linear_default{part}", dataframe=True)
        for part in ("", "[0, :]", "[:, 3]")
    )
    assert list(everything) == ["d0", "d1", "value"]
    assert everything.equals(row)
    assert everything["value"].nunique() == 10
    assert one.to_numpy().tolist() == everything.iloc[3:4].to_numpy().tolist()


def test_structure_has_every_line_below_what_holds_it() -> None:
    frame = inspector.table(FOLDER, "structure", filter="magic", dataframe=True)
    assert list(frame["name"])[:3] == ["model.pte", "header", "magic"]
    assert list(frame["depth"])[:3] == [0, 1, 2]
    assert (frame["value"][2], frame["offset"][2], frame["bytes"][2]) == ("eh00", 8, 4)


def test_python_raises_value_errors() -> None:
    for query in ({"name": "nothing"}, {"name": "operators", "sort": "bogus"}):
        with pytest.raises(ValueError, match="unknown"):
            inspector.table(FOLDER, **query)
    with pytest.raises(FilterError):
        inspector.table(FOLDER, "operators", filter="/(/")


def test_empty_table_is_shown_with_its_columns() -> None:
    table = build("issues", sample(SAMPLE))
    assert isinstance(table, Table)
    assert len(select(table, Query(sort=("severity:desc",))).rows) == 0
    with pytest.raises(QueryError, match="unknown column ''"):
        select(table, Query(sort=(":desc",)))


def test_schema_refuses_other_values() -> None:
    tree = run("table", "files", FOLDER, "--format", "json").json
    data = json.loads((SCHEMAS / "table.json").read_text("utf-8"))["properties"]["data"]
    validator = jsonschema.Draft202012Validator(data)
    assert validator.is_valid(tree["data"])
    tree["data"]["tables"][0]["rows"][0]["values"].append([])
    assert not validator.is_valid(tree["data"])


@pytest.mark.parametrize("report", ["[]", "1", '{"method": 1}', "[" * 30_000, "\xff"])
def test_a_method_of_a_report_of_other_content_is_unknown(report: str, tmp_path: Path) -> None:
    for name in ("model.pte", "run.etdp", "run.debug"):
        shutil.copy(FOLDER / name, tmp_path)
    (tmp_path / "run.json").write_bytes(report.encode("latin-1"))
    session = load_session([tmp_path])
    assert run_folder(session) == tmp_path
    assert kept_method(session) == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n, e in TABLES.items() if e.subject is TableSubject.METHOD])
def test_methods_that_return_constants_leave_the_tables_of_others(
    name: str, with_constants: tuple[Path, Path]
) -> None:
    alone, beside = (run("table", name, one, "--format", "json") for one in with_constants)
    assert alone.code == beside.code, beside.err
    if alone.code:
        return  # no data of it in this program
    wanted, found = (json.loads(one.out)["data"] for one in (alone, beside))
    tables = {one["method"]: one for one in found["tables"]}
    assert set(tables) <= {"forward", "vocabulary", "name"}
    assert tables["forward"] == wanted["tables"][0]


@pytest.fixture(scope="module")
def with_constants(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a delegated program, and it with methods that return constants."""
    x = torch.ones(2, 4)
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Softmax(1))
    exported = torch.export.export(net, (x,))
    home, found = tmp_path_factory.mktemp("constants"), list[Path]()
    for place, constants in enumerate((None, {"vocabulary": 5, "name": "a net"})):
        edge = to_edge_transform_and_lower(
            exported, partitioner=[XnnpackPartitioner()], constant_methods=constants
        )
        found.append(home / f"{place}.pte")
        found[-1].write_bytes(edge.to_executorch().buffer)
    return found[0], found[1]
