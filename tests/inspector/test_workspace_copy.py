"""Anonymised workspaces: nothing of the models is left, names agree between sessions."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from inspector.check.session import check_session
from inspector.compare.alignment import align_graphs
from inspector.export.anonymise import anonymise, left_out
from inspector.export.workspace_copy import anonymous_workspace, write_copy
from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.files.workspace_file import workspace_sessions
from inspector.graph.model_graph import model_graph
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
