"""A workspace on another machine: its files are found below one folder, for all of it at once."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog

from devtools_app.sample_data import SAMPLE
from devtools_app.sessions.restoring import Restoring, restored_state
from devtools_app.state import requests
from devtools_app.state.relocation import missing_paths, relocated, session_paths
from devtools_app.state.state import State
from devtools_app.state.workspace import Workspace, load_workspace
from tests.app.test_variants import history
from tests.app.window_views import RECORDER_VIEWS, open_sample


def _files(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x")


def _workspace(*sessions: tuple[str, ...]) -> Workspace:
    return Workspace(tuple((f"S{number}", paths) for number, paths in enumerate(sessions)))


def test_files_keep_their_folders_below_the_chosen_one(tmp_path: Path) -> None:
    _files(tmp_path, "x/one/model.pte", "x/one/run.etdp", "x/two/model.pte", "x/two/run.etdp")
    old = _workspace(
        ("/home/a/one/model.pte", "/home/a/one/run.etdp"),
        ("/home/a/two/model.pte", "/home/a/two/run.etdp"),
    )
    place = tmp_path / "x"
    assert relocated(old, tmp_path).sessions == (
        ("S0", (str(place / "one/model.pte"), str(place / "one/run.etdp"))),
        ("S1", (str(place / "two/model.pte"), str(place / "two/run.etdp"))),
    )


def test_folder_that_has_most_of_the_files_is_taken(tmp_path: Path) -> None:
    _files(tmp_path, "a/model.pte", "b/model.pte", "b/model.etrecord")
    old = _workspace(("/gone/model.pte", "/gone/model.etrecord"))
    found = session_paths(relocated(old, tmp_path))
    assert found == (str(tmp_path / "b/model.pte"), str(tmp_path / "b/model.etrecord"))


def test_equally_likely_folders_are_not_guessed(tmp_path: Path) -> None:
    _files(tmp_path, "a/model.pte", "b/model.pte")
    old = _workspace(("/gone/model.pte",))
    assert relocated(old, tmp_path) == old


def test_files_that_are_there_and_folders_stay_or_move(tmp_path: Path) -> None:
    _files(tmp_path, "here/model.pte", "new/run_2/run.etdp", "new/other.pte")
    old = _workspace((str(tmp_path / "here/model.pte"), "/gone/run_2", "/gone/nowhere.ptd"))
    assert session_paths(relocated(old, tmp_path)) == (
        str(tmp_path / "here/model.pte"),
        str(tmp_path / "new/run_2"),
        "/gone/nowhere.ptd",
    )
    assert missing_paths(["/gone/x", str(tmp_path), "/gone/x"]) == ("/gone/x",)


@pytest.mark.parametrize("old", ["C:\\work\\net\\model.pte", "net\\model.pte"])
def test_paths_of_another_system_are_found_by_their_ends(tmp_path: Path, old: str) -> None:
    _files(tmp_path, "net/model.pte", "other/model.pte")
    stored = str(tmp_path / "ws" / old)  # as the reader of workspaces resolves it
    found = session_paths(relocated(_workspace((stored,)), tmp_path))
    assert found == (str(tmp_path / "net/model.pte"),)


def test_variants_are_there_once_and_their_files_move(tmp_path: Path) -> None:
    _files(tmp_path, "files/model.pte", "files/model.etrecord")
    workspace = Workspace((("A", ("/files/model.pte",)),), history=history())
    restoring = Restoring(workspace, tmp_path)
    first = restored_state(State(), restoring)
    assert [(one.session, one.files) for one in first.history.variants] == [
        ("", ("/files/model.pte", "/files/model.etrecord"))
    ]
    moved = replace(restoring, workspace=relocated(workspace, tmp_path), names={"A": "B"})
    second = restored_state(first, moved)
    place = tmp_path / "files"
    assert [(one.session, one.files) for one in second.history.variants] == [
        ("B", (str(place / "model.pte"), str(place / "model.etrecord")))
    ]


@pytest.mark.gui
@pytest.mark.slow
def test_one_question_brings_back_all_files_of_a_workspace(
    make_window, qtbot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two", "stays"):
        (tmp_path / "old" / name).mkdir(parents=True)
        shutil.copyfile(SAMPLE / "model.pte", tmp_path / "old" / name / "model.pte")
    path = tmp_path / "ws" / "w.etscope"
    path.parent.mkdir()
    first = make_window(views=RECORDER_VIEWS)
    for name in ("one", "two", "stays"):
        open_sample(first, qtbot, (str(tmp_path / "old" / name / "model.pte"),))
    for letter in "ABC":
        first.router(requests.SetNote(letter, f"note of {letter}"))
    assert first.controller.save_workspace(path, {})
    elsewhere = tmp_path / "new" / "deep"
    elsewhere.mkdir(parents=True)
    for name in ("one", "two"):
        (tmp_path / "old" / name).rename(elsewhere / name)
    window = make_window(views=RECORDER_VIEWS)
    with qtbot.waitSignal(window.controller.opener.ended):
        window.controller.open((str(path),))
    assert [one.id for one in window.store.state.sessions] == ["A"]
    assert "were not found: model.pte, model.pte." in window.strip.text
    window.router(requests.SetNote("A", "changed meanwhile"))
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_args: str(tmp_path / "ws"))
    window.router(requests.LocateFiles())
    qtbot.waitUntil(lambda: "None of the files was found there" in window.strip.text)
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_args: str(tmp_path / "new"))
    with qtbot.waitSignal(window.controller.opener.ended):
        window.router(requests.LocateFiles())
    qtbot.waitUntil(lambda: len(window.store.state.sessions) == 3)
    state = window.store.state
    assert [one.paths for one in state.sessions] == [
        (str(tmp_path / "old/stays/model.pte"),),
        (str(elsewhere / "one/model.pte"),),
        (str(elsewhere / "two/model.pte"),),
    ]
    assert state.notes == {"A": "changed meanwhile", "B": "note of A", "C": "note of B"}
    assert window.controller.save_workspace(path, {})
    assert len(load_workspace(path).sessions) == 3
    assert missing_paths(session_paths(load_workspace(path))) == ()
