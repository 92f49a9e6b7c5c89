"""Graphs for Model Explorer: every node and edge of the model graph, bad members left out aloud."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inspector.export.model_explorer import model_explorer
from inspector.graph.model_graph import graph_names, model_graph
from schema.etrecord import decode, encode, replace_member
from tests.inspector.cli_runs import run, valid
from tests.inspector.sessions import DATA, folders, label, session


@pytest.mark.parametrize("folder", folders(), ids=label)
def test_collection_has_the_nodes_and_edges_of_every_graph(folder: Path) -> None:
    loaded = session(folder)
    found, issues = model_explorer(loaded, loaded.methods)
    assert issues == []
    by_title = {graph["id"]: graph["nodes"] for graph in found["graphs"]}
    for method in loaded.methods:
        for name in graph_names(loaded, method):
            graph = model_graph(loaded, method, name)
            if graph is None:
                continue
            nodes = by_title[f"{method} {name}"]
            assert [node["label"] for node in nodes] == [node.node.target for node in graph.nodes]
            edges = [
                (int(edge["sourceNodeId"]), index)
                for index, node in enumerate(nodes)
                for edge in node["incomingEdges"]
            ]
            assert sorted(edges) == sorted((edge.source, edge.target) for edge in graph.edges)
            for node in nodes:
                ports = [edge["targetNodeInputId"] for edge in node["incomingEdges"]]
                assert ports == [str(number) for number in range(len(ports))]
                for edge in node["incomingEdges"]:
                    outputs = nodes[int(edge["sourceNodeId"])]["outputsMetadata"]
                    assert int(edge["sourceNodeOutputId"]) < max(len(outputs), 1)
    assert json.loads(json.dumps(found)) == found


def test_unreadable_graph_is_said_and_the_others_are_there(tmp_path: Path) -> None:
    source = DATA / "corpus/special/xnnpack_two_delegates/model.etrecord"
    record = decode(source.read_bytes())
    damaged = replace_member(record, "aten/forward", bytes(record.read("aten/forward"))[:-40])
    path = tmp_path / "model.etrecord"
    path.write_bytes(encode(damaged))
    answer = run("export", path, "--format", "json")
    assert (answer.code, answer.err) == (0, "")
    tree = valid(answer, "export")
    assert [issue["where"] for issue in tree["issues"]] == ["forward aten/forward"]
    titles = [graph["id"] for graph in tree["data"]["graphs"]]
    assert "forward compiled" in titles
    assert "forward aten/forward" not in titles
