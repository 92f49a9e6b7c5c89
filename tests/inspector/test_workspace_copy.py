"""Anonymised workspaces: nothing of the models is left, names agree between sessions."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from inspector.check.session import check_session
from inspector.compare.alignment import align_graphs
from inspector.export.anonymise import anonymise, left_out
from inspector.export.anonymise_names import Names
from inspector.export.anonymise_record import anonymous_record
from inspector.export.workspace_copy import anonymous_workspace, write_copy
from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.files.workspace_file import workspace_sessions
from inspector.graph.model_graph import model_graph
from schema import etdump
from schema.etdump import ProfileEvent
from schema.etrecord import decode, replace_member
from schema.etrecord.members import DELEGATES
from tests.inspector.cli_runs import run, valid
from tests.inspector.sessions import DATA, session

pytestmark = pytest.mark.slow

PORTABLE, XNNPACK = (DATA / f"corpus/v1.5.1/convnet_{kind}" for kind in ("portable", "xnnpack"))
SECRET = "the client's secret"


def _written(path: Path, *sessions: tuple[str, Path]) -> Path:
    """Return a workspace of sessions with words of the user in all of its parts."""
    parts = [{"id": name, "paths": [str(folder)]} for name, folder in sessions]
    content = {
        "etscope_workspace": 1,
        "sessions": parts,
        "place": {"session": "B", "method": "forward", "selection": {"node": SECRET}},
        "view": "compare",
        "overlay": SECRET,
        "filter": SECRET,
        "notes": {"A": SECRET},
        "bookmarks": [{"slot": 1, "title": SECRET}],
        "variants": [{"id": 0, "recipe": {"source": SECRET}}],
        "layouts": {},
    }
    path.write_text(json.dumps(content), "utf-8")
    return path


def _opened(folder: Path) -> dict[str, Session]:
    found = workspace_sessions(folder / "workspace.etscope")
    return {name: load_session(paths) for name, paths in found}


def test_copy_of_a_workspace_opens_elsewhere_and_has_no_words_of_the_user(tmp_path: Path) -> None:
    original = _written(tmp_path / "w.etscope", ("A", PORTABLE), ("B", XNNPACK))
    answer = run(
        "export", original, "--as", "anonymised", "--to", tmp_path / "copy", "--format", "json"
    )
    data = valid(answer, "export")["data"]
    assert [one["verdict"] for one in data["sessions"]] == ["belong", "belong"]
    shutil.move(tmp_path / "copy", tmp_path / "elsewhere")
    told = b"".join(
        one.read_bytes() for one in (tmp_path / "elsewhere").rglob("*") if one.is_file()
    )
    for secret in (SECRET, str(PORTABLE), "zoo/models.py", "stem.0", "w.etscope"):
        assert secret.encode() not in told, secret
    found = _opened(tmp_path / "elsewhere")
    assert list(found) == ["A", "B"]
    assert all(check_session(one).verdict == "belong" for one in found.values())
    content = json.loads((tmp_path / "elsewhere/workspace.etscope").read_text("utf-8"))
    assert content["view"] == "compare"
    assert content["place"] == {"session": "B", "method": "forward"}
    assert set(content) == {"etscope_workspace", "sessions", "view", "layouts", "place"}


def test_names_are_replaced_alike_in_all_sessions(tmp_path: Path) -> None:
    originals = {"A": session(PORTABLE), "B": session(XNNPACK)}
    write_copy(anonymous_workspace({}, originals.items()), tmp_path)
    copies = _opened_without_format(tmp_path)
    aligned = [_pairs(one["A"], one["B"]) for one in (originals, copies)]
    assert aligned[0] == aligned[1]
    modules = [_modules(one) for one in copies.values()]
    assert modules[0]
    assert modules[0] == modules[1]
    assert not modules[0] & _modules(originals["A"]) - {""}


def _opened_without_format(folder: Path) -> dict[str, Session]:
    parts = json.loads((folder / "workspace.etscope").read_text("utf-8"))["sessions"]
    return {one["id"]: load_session([folder / name for name in one["paths"]]) for one in parts}


def _pairs(one: Session, two: Session) -> list[tuple[int, int]]:
    graphs = [model_graph(each, "forward") for each in (one, two)]
    assert graphs[0] is not None
    assert graphs[1] is not None
    return [(pair.old, pair.new) for pair in align_graphs(graphs[0], graphs[1]).pairs]


def _modules(one: Session) -> set[str]:
    graph = model_graph(one, "forward")
    assert graph is not None
    return {node.node.module_path for node in graph.nodes if not node.node.module_path.isdecimal()}


def test_files_without_a_copy_are_named(tmp_path: Path) -> None:
    values = tmp_path / "values.json"
    values.write_text(json.dumps({"aten_relu": {"mine": 1.0}}), "utf-8")
    one = load_session([PORTABLE / "model.pte", values])
    assert left_out(one) == (str(values),)
    assert [file.kind for file in anonymise(one)] == ["pte"]
    target = tmp_path / "copy"
    answer = run(
        "export",
        PORTABLE / "model.pte",
        values,
        "--as",
        "anonymised",
        "--to",
        target,
        "--format",
        "json",
    )
    assert valid(answer, "export")["data"]["left_out"] == [str(values)]


def test_a_workspace_is_copied_alone(tmp_path: Path) -> None:
    original = _written(tmp_path / "w.etscope", ("A", PORTABLE))
    answer = run("export", original, PORTABLE, "--as", "anonymised", "--to", tmp_path / "copy")
    assert answer.code == 2
    assert "alone" in answer.err
    assert not (tmp_path / "copy").exists()


def _tensor_name(one: Session) -> str:
    """Return a qualified name of a weight of the model."""
    assert one.record is not None
    weights = one.record.state_dict(one.record.program_names[0])
    return next(name for name in weights if "." in name and name[0].isalpha())


def test_a_lone_trace_before_the_program_whose_names_it_has(tmp_path: Path) -> None:
    program = session(PORTABLE)
    secret = _tensor_name(program)
    event = ProfileEvent(f"kernel of {secret}", 0, 0, 1, 2, -1, None, b"")
    (tmp_path / "lone.etdp").write_bytes(
        etdump.encode(etdump.dump([etdump.run("Execute", [event])]))
    )
    lone = load_session([tmp_path / "lone.etdp"])
    copy = anonymous_workspace({}, [("A", lone), ("B", program)])
    assert [one.folder for one in copy.sessions] == ["session_1", "session_2"]
    told = {path.as_posix(): data for path, _, data in copy.files}
    assert b"kernel of " in told["session_1/run.etdp"]
    for path, data in told.items():
        assert secret.encode() not in data, path


def test_maps_of_a_record_have_no_names_of_modules() -> None:
    path = XNNPACK / "model.etrecord"
    record = decode(path.read_bytes(), file=str(path))
    names = Names()
    names.qualified("secret.layer")
    told = {"forward": {"1": {"name": "B", "delegate_map": {"p_secret_layer": [1]}}}}
    changed = replace_member(record, DELEGATES, json.dumps(told).encode())
    found = decode(anonymous_record(changed, names))
    assert found.delegate_map is not None
    (label,) = found.delegate_map["forward"][1].handles
    assert label.startswith("p_")
    assert len(label) == len("p_secret_layer")
    assert "secret" not in label
