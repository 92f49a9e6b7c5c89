"""Values of nodes from JSON and CSV files: what is read, what matches, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.cli.main import main
from inspector.export.model_explorer import explorer_graph
from inspector.files.load import load_session
from inspector.files.node_data import decode_node_data, is_node_data
from inspector.graph.model_graph import ModelGraph, model_graph
from inspector.graph.node_values import node_values
from inspector.tables.registry import build
from inspector.tables.table import Table
from schema.errors import FormatError
from tests.app.sessions import DATA, opened

MODEL = DATA / "corpus/v1.5.1/convnet_xnnpack"


def graph() -> ModelGraph:
    found = model_graph(opened(str(MODEL)), "forward")
    assert found is not None
    return found


def read(content: str, name: str = "energy.json") -> list[tuple[str, dict[str, float]]]:
    found = decode_node_data(memoryview(content.encode()), name)
    return [(one.title, dict(one.values)) for one in found.sets]


@pytest.mark.parametrize(
    "content",
    [
        '{"a": 1, "b": 2.5}',
        '{"a": {"value": 1}, "b": {"value": 2.5, "bgColor": "#fff"}}',
        '[{"node": "a", "value": 1}, {"node": "b", "value": 2.5}]',
        '{"main": {"results": {"a": {"value": 1}, "b": {"value": 2.5}}, "gradient": []}}',
        '{"results": {"a": 1, "b": "2.5"}}',
        '{"graphsData": {"main": {"results": {"a": {"value": 1}, "b": {"value": 2.5}}}}}',
        "node,value\na,1\nb,2.5\n",
        "a,1\nb,2.5\n",
        "a\t1\nb\t2.5",
        "a;1\r\nb;2.5\r\n",
        '\ufeffvalue,node\n1,"a"\n2.5,b\n',
    ],
)
def test_each_form_is_read_alike(content: str) -> None:
    assert read(content) == [("energy", {"a": 1.0, "b": 2.5})]


def test_columns_and_graphs_are_sets_with_their_names() -> None:
    assert read("node,mJ,cycles\na,1,10\nb,2,\n", "x.csv") == [
        ("mJ", {"a": 1.0, "b": 2.0}),
        ("cycles", {"a": 10.0}),
    ]
    rows = '[{"name": "a", "mJ": 1, "cycles": 2}]'
    assert read(rows) == [("mJ", {"a": 1.0}), ("cycles", {"a": 2.0})]
    graphs = {"one": {"results": {"a": 1}}, "two": {"results": {"b": 2}}}
    assert read(json.dumps(graphs)) == [("energy · one", {"a": 1.0}), ("energy · two", {"b": 2.0})]


def test_what_is_not_a_finite_number_is_an_issue_and_missing_is_not() -> None:
    data = memoryview(b'{"a": 1, "b": "fast", "c": NaN, "d": null, "e": true}')
    found = decode_node_data(data, "x.json")
    assert dict(found.sets[0].values) == {"a": 1.0}
    assert [issue.message for issue in found.issues] == ["not a finite number: b and 2 more"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"one word",
        b"{",
        b"{}",
        b"[1, 2]",
        b'[{"value": 1}]',
        b'{"a": "b"}',
        b'{"version": 0, "execution_plan": []}',
        b'{"version": 0, "more": {"a": 1}}',
        b"a,b\nc,d\n",
        b"\xff\xfe,1",
        b"[" * 100_000,
        b"PK\x03\x04\0\0",
    ],
)
def test_other_content_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    assert not is_node_data(str(path))
    with pytest.raises(FormatError):
        load_session([path])


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.json", '{"x": 3', "text that is not JSON"),
        ("a.json", '{"x": {"y": 1}}', "an object of something else than numbers"),
        ("a.csv", "node\nx\n", "a table with one column"),
        ("a.csv", "node,watts\nx,hot\n", "no number that belongs to a node"),
        ("a.TSV", "node\té\nx\t1\n".encode("latin-1"), "bytes that are not UTF-8"),
    ],
)
def test_a_file_that_is_named_as_values_says_what_is_wrong_with_it(
    name: str, content: str | bytes, why: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    found = load_session([MODEL / "model.pte", path])
    (issue,) = [one for one in found.issues if one.where == str(path)]
    assert f"read as values of nodes: {why}" in issue.message


def test_names_are_of_nodes_outputs_and_positions() -> None:
    nodes = graph().nodes
    inner = next(node for node in nodes if node.node.outputs and node.id > 3)
    content = {inner.node.outputs[0]: 3.0, "nothing_like_it": 1.0}
    found = node_values(graph(), decode_node_data(_json(content), "x").sets[0])
    assert found.values[inner.id] == 3.0
    assert found.unmatched == ("nothing_like_it",)
    assert found.missing == len(nodes) - 1

    explorer = explorer_graph("forward", graph())
    values = {"main": {"results": {node["id"]: {"value": 7} for node in explorer["nodes"]}}}
    found = node_values(graph(), decode_node_data(_json(values), "x").sets[0])
    assert np.array_equal(found.values, np.full(len(nodes), 7.0))
    assert not found.unmatched


def _json(content: object) -> memoryview:
    return memoryview(json.dumps(content).encode())


def values_file(folder: Path, content: dict[str, Any]) -> Path:
    path = folder / "energy.json"
    path.write_text(json.dumps(content))
    return path


def test_values_join_a_session_and_are_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = graph().nodes[4].name
    path = values_file(tmp_path, {name: 12.5, "gone": 1})
    session = load_session([MODEL, path])
    assert [one.title for one in session.node_data] == ["energy"]
    assert session.files[-1].kind == "node_data"
    assert main(["table", "node-data", str(MODEL), str(path), "--format", "tsv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(name in line and "12.5" in line for line in lines)
    assert any("gone" in line and "no node of this name" in line for line in lines)
    assert sum("no value" in line for line in lines) == len(graph().nodes) - 1


def test_values_without_a_program_are_not_a_session(tmp_path: Path) -> None:
    path = values_file(tmp_path, {"a": 1})
    assert is_node_data(str(path))
    with pytest.raises(FormatError, match="expected a program"):
        load_session([path])


def test_values_are_taken_only_where_they_are_named(tmp_path: Path) -> None:
    (tmp_path / "model.pte").write_bytes((MODEL / "model.pte").read_bytes())
    values_file(tmp_path, {"a": 1})
    assert [file.kind for file in load_session([tmp_path]).files] == ["pte"]


def test_table_without_values_is_empty() -> None:
    table = build("node-data", opened(str(MODEL)), "forward")
    assert isinstance(table, Table)
    assert table.length == 0
    assert [column.title for column in table.columns][:2] == ["values", "node"]


def test_edges_are_a_table_with_bytes_and_boundaries() -> None:
    table = build("edges", opened(str(MODEL)), "forward")
    assert isinstance(table, Table)
    assert table.length == len(graph().edges)
    columns = {column.title: column.values for column in table.columns}
    known = [edge.nbytes for edge in graph().edges]
    assert list(columns["bytes"]) == known
    crossing = [
        graph().nodes[e.source].delegate != graph().nodes[e.target].delegate for e in graph().edges
    ]
    assert [bool(text) for text in columns["boundary"]] == crossing
