"""Files of torch.export.save: recognised, read without torch, shown as graphs."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest

from inspector.cli.main import main
from inspector.files.load import load_session
from inspector.graph.model_graph import graph_names, model_graph
from inspector.tables.registry import build
from inspector.tables.table import Table
from schema.errors import FormatError
from schema.etrecord.exported import decode_exported, is_exported_file
from schema.graph import NodeKind

torch = pytest.importorskip("torch")


class Net(torch.nn.Module):
    """Two modules, one inside the other."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.rest = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())

    def forward(self, x):
        return self.rest(self.first(x)).sum(-1)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    program = torch.export.export(Net(), (torch.randn(2, 4),))
    path = tmp_path_factory.mktemp("exported") / "net.pt2"
    torch.export.save(program, path)
    return path, [node.name for node in program.graph.nodes if node.op == "call_function"]


def test_graph_has_the_calls_and_modules_of_the_program(saved: tuple[Path, list[str]]) -> None:
    path, calls = saved
    session = load_session([path])
    assert [file.kind for file in session.files] == ["pt2"]
    assert session.methods == ("forward",)
    assert graph_names(session, "forward") == ("exported_program",)
    graph = model_graph(session, "forward", "exported_program")
    assert graph is not None
    assert [node.name for node in graph.nodes if node.node.kind is NodeKind.CALL] == calls
    modules = {node.node.module_path for node in graph.nodes}
    assert {"first", "rest.0", "rest.1"} <= modules
    weights = [weight.name for node in graph.nodes for weight in node.weights]
    assert "first.weight" in weights


def test_command_line_reads_it(
    saved: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    path, calls = saved
    assert main(["graph", str(path), "--list"]) == 0
    assert "exported_program" in capsys.readouterr().out
    assert main(["graph", str(path)]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in calls)
    assert main(["summary", str(path)]) == 0
    assert "exported program" in capsys.readouterr().out
    found = build("graphs", load_session([path]))
    assert isinstance(found, Table)
    assert found.length == 1


def test_older_name_of_the_program_is_known(saved: tuple[Path, list[str]]) -> None:
    path, calls = saved
    with zipfile.ZipFile(path) as archive:
        text = archive.read("net/models/model.json")
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("serialized_exported_program.json", text)
        archive.writestr("version", "8.8")
    assert is_exported_file(data.getvalue())
    graph = decode_exported(data.getvalue()).exported_graph()
    assert graph is not None
    assert set(calls) <= {node.name for node in graph.nodes}


def test_a_folder_opens_without_the_exported_program_beside_it(
    saved: tuple[Path, list[str]], tmp_path: Path
) -> None:
    from tests.app.sessions import DATA

    model = DATA / "corpus/v1.5.1/convnet_xnnpack/model.pte"
    (tmp_path / "model.pte").write_bytes(model.read_bytes())
    (tmp_path / "model.pt2").write_bytes(saved[0].read_bytes())
    assert [file.kind for file in load_session([tmp_path]).files] == ["pte"]
    both = load_session([tmp_path / "model.pte", tmp_path / "model.pt2"])
    assert "exported_program" in graph_names(both, "forward")


@pytest.mark.parametrize("cut", [0.1, 0.5, 0.9])
def test_damaged_files_are_refused(saved: tuple[Path, list[str]], cut: float, tmp_path) -> None:
    data = saved[0].read_bytes()
    path = tmp_path / "cut.pt2"
    path.write_bytes(data[: int(len(data) * cut)])
    try:
        session = load_session([path])
    except FormatError:
        return
    for name in graph_names(session, "forward"):
        with pytest.raises(FormatError):
            model_graph(session, "forward", name)


def test_a_program_that_is_no_json_is_refused() -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("net/models/model.json", json.dumps({"nothing": 1}))
    record = decode_exported(data.getvalue())
    with pytest.raises(FormatError):
        record.exported_graph()
