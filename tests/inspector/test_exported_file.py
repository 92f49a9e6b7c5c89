"""Files of torch.export.save: recognised, read without torch, shown as graphs."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from devtools_app.viewmodels.node_facts import node_facts
from devtools_app.viewmodels.selected_tensors import may_have_tensors, selected_tensors
from inspector.cli.main import main
from inspector.files.load import load_session
from inspector.graph.model_graph import graph_names, model_graph
from inspector.tables.registry import build
from inspector.tables.selection import AUTOMATIC, Selection, node_selection
from inspector.tables.size import parts
from inspector.tables.table import Table
from inspector.tensors.sources import session_tensors
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


def test_weights_have_their_names_and_the_values_that_torch_loads(
    saved: tuple[Path, list[str]],
) -> None:
    session = load_session([saved[0]])
    expected = torch.export.load(saved[0]).state_dict
    found = {one.name: one for one in session_tensors(session)}
    assert set(found) == set(expected)
    assert session.record is not None
    for name, tensor in session.record.state_dict("exported_program").items():
        assert np.array_equal(tensor.to_numpy(), expected[name].detach().numpy())
    table = parts(session, AUTOMATIC)
    named = {table.text(row, 0): table.key(row) for row in range(table.length)}
    assert set(expected) <= set(named)
    (inside,) = selected_tensors(session, "forward", named["first.weight"])
    assert inside.name == "first.weight"


def test_a_node_has_its_weights_tensors_schema_and_source(saved: tuple[Path, list[str]]) -> None:
    session = load_session([saved[0]])
    graph = model_graph(session, "forward", "exported_program")
    assert graph is not None
    node = next(one for one in graph.nodes if one.node.module_path == "rest.0")
    chosen = node_selection(node, "forward", "exported_program")
    assert may_have_tensors(session, chosen)
    names = [one.name for one in selected_tensors(session, "forward", chosen)]
    assert names == ["rest.0.weight", "rest.0.bias"]
    sheet = node_facts(session, "forward", chosen, AUTOMATIC)
    assert (sheet.title, sheet.subtitle) == ("aten.linear", "rest.0")
    titles = [group.title for group in sheet.groups]
    assert {"Tensors", "Values", "Weights", "Schema", "Source"} <= set(titles)
    links = [fact.link for group in sheet.groups for fact in group.facts if fact.label == "in 0"]
    assert [link.graph for link in links if isinstance(link, Selection)] == ["exported_program"]


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ({"path_name": "elsewhere"}, None),
        ({"path_name": 3}, False),
        ({"use_pickle": True}, False),
        ({"tensor_meta": {"dtype": [], "sizes": [], "strides": []}}, False),
        ({"tensor_meta": {"dtype": 7, "sizes": [{"as_int": -1}], "strides": [1]}}, False),
        ({"tensor_meta": {"dtype": 7, "sizes": [2**40, 2], "strides": [0, 0]}}, False),
        ({"tensor_meta": {"dtype": 7, "sizes": [4096], "strides": [1]}}, None),
    ],
)
def test_a_weight_that_cannot_be_read_is_missing_and_no_other(
    saved: tuple[Path, list[str]], change: dict[str, object], left: bool | None
) -> None:
    config = "net/data/weights/model_weights_config.json"
    data = io.BytesIO()
    with zipfile.ZipFile(saved[0]) as old, zipfile.ZipFile(data, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == config:
                tree = json.loads(content)
                tree["config"]["first.weight"] |= change
                content = json.dumps(tree).encode()
            new.writestr(name, content)
    found = decode_exported(data.getvalue()).state_dict("exported_program")
    assert len(found) == (4 if left is None else 3)
    assert found["first.bias"].data is not None
    if left is None:
        assert found["first.weight"].data is None


class Scaled(torch.nn.Module):
    """A weight, two that share their elements, a buffer that is not in the state, a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = torch.nn.Linear(3, 3)
        self.tied = self.mix
        self.register_buffer("steps", torch.arange(3.0), persistent=False)

    def forward(self, x):
        return self.tied(self.mix(x) + self.steps) * torch.tensor([2.0, 3.0, 5.0])


@pytest.mark.parametrize("release", ["2.7", "2.8"])
def test_weights_in_one_member_as_earlier_releases_saved_them_have_their_values(
    release: str, tmp_path: Path
) -> None:
    program = torch.export.export(Scaled(), (torch.randn(2, 3),))
    torch.export.save(program, tmp_path / "now.pt2")
    path = tmp_path / "net.pt2"
    constants = {
        name: one for name, one in program.constants.items() if isinstance(one, torch.Tensor)
    }
    kept = (("state_dict", dict(program.state_dict)), ("constants", constants))
    with zipfile.ZipFile(tmp_path / "now.pt2") as now, zipfile.ZipFile(path, "w") as old:
        text = now.read("now/models/model.json")
        if release == "2.7":
            old.writestr("serialized_exported_program.json", text)
        else:
            for name in now.namelist():
                if "/data/weights/" not in name and "/data/constants/" not in name:
                    old.writestr(name, now.read(name))
        for kind, tensors in kept:
            member = f"now/data/{kind.replace('state_dict', 'weights')}/model.pt"
            data = io.BytesIO()
            torch.save(tensors, data)
            named = f"serialized_{kind}.pt" if release == "2.7" else member
            old.writestr(named, data.getvalue())
    if release == "2.8":
        assert set(torch.export.load(path).state_dict) == set(program.state_dict)
    session = load_session([path])
    assert session.record is not None
    assert not session.record.check()
    for kind, expected in kept:
        found = getattr(session.record, kind)("exported_program")
        assert set(found) == set(expected)
        for name, tensor in found.items():
            assert np.array_equal(tensor.to_numpy(), expected[name].detach().numpy())
    listed = {one.name: one for one in session_tensors(session)}
    assert set(listed) == {*program.state_dict, *constants}
    assert not any(one.missing for one in listed.values())
    graph = model_graph(session, "forward", "exported_program")
    assert graph is not None
    node = next(one for one in graph.nodes if "linear" in one.name)
    chosen = node_selection(node, "forward", "exported_program")
    names = {one.name for one in selected_tensors(session, "forward", chosen)}
    assert "mix.weight" in names or "tied.weight" in names


def _changed(path: Path, change: Callable[[str, bytes], bytes | None]) -> bytes:
    """Return an archive with the content of its members changed, None for a member left out."""
    data = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(data, "w") as new:
        for name in old.namelist():
            content = change(name, old.read(name))
            if content is not None:
                new.writestr(name, content)
    return data.getvalue()


def _in_one_member(path: Path, kinds: Mapping[str, object]) -> bytes:
    """Return a file of release 2.8: all weights in one member, all constants in another."""
    data = io.BytesIO(_changed(path, lambda name, old: None if "/data/" in name else old))
    with zipfile.ZipFile(data, "a") as archive:
        for kind, tensors in kinds.items():
            member = io.BytesIO()
            torch.save(tensors, member)
            archive.writestr(f"net/data/{kind}/model.pt", member.getvalue())
    return data.getvalue()


@pytest.mark.parametrize("kind", ["weights", "constants"])
@pytest.mark.parametrize("cut", [0.0, 0.3, 0.9])
def test_a_damaged_member_of_all_tensors_is_an_issue_that_names_file_member_and_cause(
    saved: tuple[Path, list[str]],
    cut: float,
    kind: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kinds = {"weights": {"first.bias": torch.ones(4)}, "constants": {"lifted": torch.ones(2)}}
    path = tmp_path / "net.pt2"
    path.write_bytes(_in_one_member(saved[0], kinds))
    assert not load_session([path]).all_issues()
    member = f"net/data/{kind}/model.pt"
    damaged = _changed(
        path, lambda name, old: b"PK" + old[2 : 2 + int(len(old) * cut)] if name == member else old
    )
    path.write_bytes(damaged)
    (issue,) = load_session([path]).all_issues()
    assert issue.where == str(path)
    assert member in issue.message
    assert "expected" in issue.message or "not loaded" in issue.message
    assert main(["tensors", str(path)]) == 0
    out = "".join(capsys.readouterr())
    assert member in out
    assert ("lifted" in out) is (kind == "weights")
    assert ("first.bias" in out) is (kind == "constants")


@pytest.mark.parametrize("damage", ["gone", "short", "configuration"])
def test_a_damaged_member_of_one_weight_is_an_issue_that_names_both(
    saved: tuple[Path, list[str]], damage: str, tmp_path: Path
) -> None:
    folder = "net/data/weights/"
    listed = f"{folder}model_weights_config.json"
    with zipfile.ZipFile(saved[0]) as archive:
        config = json.loads(archive.read(listed))["config"]
    member = listed if damage == "configuration" else folder + config["rest.0.bias"]["path_name"]
    left = {"gone": None, "short": b"123", "configuration": b"{"}[damage]
    path = tmp_path / "net.pt2"
    path.write_bytes(_changed(saved[0], lambda name, old: left if name == member else old))
    (issue,) = load_session([path]).all_issues()
    assert issue.where == str(path)
    assert member in issue.message
    assert "missing" in issue.message
    if damage != "configuration":
        assert "expected 32 bytes" in issue.message
        assert "rest.0.bias" in issue.message


def test_command_line_lists_the_weights_of_a_file_without_a_program(
    saved: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tensors", str(saved[0]), "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["data"]["stored"]
    expected = torch.export.load(saved[0]).state_dict
    assert {row["name"] for row in rows} == set(expected)
    for row in rows:
        assert row["role"] == "recorded"
        assert row["statistics"]["mean"] == pytest.approx(expected[row["name"]].mean().item())
    assert main(["tensors", str(saved[0]), "--no-values", "--format", "json"]) == 0
    plain = json.loads(capsys.readouterr().out)["data"]["stored"]
    assert [row["statistics"] for row in plain] == [None] * len(expected)


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
