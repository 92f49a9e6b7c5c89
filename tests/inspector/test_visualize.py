"""Programs shown as graphs: the files that the window opens, and those of Model Explorer."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from compiler import to_edge  # noqa: E402
from compiler.backends.xnnpack import XnnpackPartitioner  # noqa: E402
from inspector.compat import visualization  # noqa: E402
from inspector.compat.visualization import visualize, visualize_with_clusters  # noqa: E402
from inspector.files.load import load_session  # noqa: E402
from inspector.graph.model_graph import model_graph  # noqa: E402

pytestmark = pytest.mark.slow
STAGES = ("exported", "edge", "edge program", "delegated", "executorch", "bare")
DELEGATED = ("delegated", "executorch")


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return torch.sin(torch.relu(self.linear(x)) + 1)


def _stages() -> dict[str, Any]:
    exported = torch.export.export(Model(), (torch.rand(2, 4),))
    edge = to_edge(exported, generate_etrecord=True)
    delegated = edge.to_backend(XnnpackPartitioner())
    program, bare = delegated.to_executorch(), to_edge(exported).to_executorch()
    made = (exported, edge, edge.exported_program(), delegated, program, bare)
    return dict(zip(STAGES, made, strict=True))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    commands: list[list[str]] = []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # a window would keep its files
    monkeypatch.setattr(
        visualization.subprocess, "Popen", lambda command, **_: commands.append(command)
    )
    return commands


@pytest.mark.parametrize("stage", STAGES)
def test_window_opens_on_files_of_each_stage(stage: str, opened: list[list[str]]) -> None:
    pytest.importorskip("PySide6")
    visualize(_stages()[stage])
    (command,) = opened
    assert command[:4] == [sys.executable, "-m", "devtools_app", "open"]
    session = load_session([Path(path) for path in command[4:]])
    assert not [file.error for file in session.files if file.error]
    graph = model_graph(session, "forward")
    assert graph is not None
    targets = " ".join(node.node.target for node in graph.nodes)
    assert {"sin", "relu"} <= {name for name in ("sin", "relu") if name in targets.lower()}
    assert bool({node.backend for node in graph.nodes} - {""}) == (stage in DELEGATED)


def test_files_only_are_named(capsys: pytest.CaptureFixture[str], opened: list[list[str]]) -> None:
    visualize(_stages()["exported"], no_open_in_browser=True)
    command, path = capsys.readouterr().out.split()
    assert command == "etscope"
    session = load_session([Path(path)])
    graph = model_graph(session, "forward")
    assert graph is not None
    assert all(node.node.debug_handle is None for node in graph.nodes)
    assert opened == []


def test_what_is_no_program_is_refused(opened: list[list[str]]) -> None:
    with pytest.raises(RuntimeError, match="Cannot get ExportedProgram from 7"):
        visualize(7)
    with pytest.raises(RuntimeError, match="Cannot get ExportedProgram from 7"):
        visualize_with_clusters(7)
    assert opened == []


@pytest.mark.parametrize("given", ["default", "functions"])
def test_partitions_and_clusters_are_namespaces(given: str, tmp_path: Path) -> None:
    program = _stages()["edge program"]
    before = {node.name: dict(node.meta) for node in program.graph.nodes}
    tags = {"aten_relu_default": ("a/b", None), "aten_sin_default": ("tag.1", "q[0]")}
    path = tmp_path / "graph.json"
    if given == "default":
        for node in program.graph.nodes:
            tag, cluster = tags.get(node.name, (None, None))
            node.meta["delegation_tag"], node.meta["cluster"] = tag, cluster
        visualize_with_clusters(program, str(path))
    else:
        visualize_with_clusters(
            program,
            str(path),
            get_node_partition_name=lambda node: tags.get(node.name, (None, None))[0],
            get_node_qdq_cluster_name=lambda node: tags.get(node.name, (None, None))[1],
        )
        assert {node.name: dict(node.meta) for node in program.graph.nodes} == before
    document = json.loads(path.read_text())
    (graph,) = document["graphs"]
    assert document["graphsWithLevel"] == [{"graph": graph, "level": 0}]
    assert (document["label"], graph["collectionLabel"]) == ("Executorch", "Executorch")
    spaces = {
        node["label"].split(".")[-2]: node["namespace"]
        for node in graph["nodes"]
        if "." in node["label"]
    }
    assert spaces["relu"] == "partition 0 (a:b)"
    assert spaces["sin"] == "partition 1 (tag:1)/cluster (q:0:)"
    assert spaces["add"] == ""
    ids = {node["id"] for node in graph["nodes"]}
    edges = [edge for node in graph["nodes"] for edge in node["incomingEdges"]]
    assert edges
    assert all(edge["sourceNodeId"] in ids for edge in edges)


def test_options_of_model_explorer_are_taken_with_a_warning(opened: list[list[str]]) -> None:
    pytest.importorskip("PySide6")
    with pytest.warns(UserWarning, match="port: options of Model Explorer have no effect"):
        visualize(_stages()["exported"], reuse_server=False, port=8080)
    assert len(opened) == 1
