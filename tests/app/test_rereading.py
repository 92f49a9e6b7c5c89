"""Files that are read again: nothing that was shown is lost, and no request is given up for it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton

from devtools_app.sample_data import SAMPLE
from devtools_app.shell.window import MainWindow
from inspector.files import load
from inspector.files.load import load_session
from tests.app.test_opening import Slow
from tests.app.window_views import RECORDER_VIEWS, open_sample

pytestmark = [pytest.mark.gui, pytest.mark.slow]
FILES = ("model.pte", "run.etdp", "model.etrecord")
ENDED = 20_000


@pytest.fixture
def folder(tmp_path) -> Path:
    copy = tmp_path / "run"
    shutil.copytree(SAMPLE, copy)
    return copy


@pytest.fixture
def window(make_window) -> MainWindow:
    return make_window(views=RECORDER_VIEWS)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _fill(path: Path) -> None:
    path.write_bytes(b"\xff" * 4096)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


DAMAGES = {"gone": Path.unlink, "cut": _cut, "rubbish": _fill, "empty": _empty}


def reload(window: MainWindow, qtbot) -> None:
    with qtbot.waitSignal(window.controller.opener.ended, timeout=ENDED):
        qtbot.keyClick(window, Qt.Key.Key_F5)


def ours(window: MainWindow) -> list[str]:
    session = window.store.state.session
    return [one.message for one in session.issues if "was read before" in one.message]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("how", ["file", "files", "folder"])
def test_reload_of_a_lost_program_keeps_the_session_and_says_so(window, qtbot, folder, damage, how):
    paths = {"file": FILES[:1], "files": FILES, "folder": ("",)}[how]
    open_sample(window, qtbot, tuple(str(folder / name) for name in paths))
    before = window.store.state.session
    DAMAGES[damage](folder / "model.pte")
    reload(window, qtbot)
    after = window.store.state.session
    assert after.program is before.program
    assert [file.path for file in after.files] == [file.path for file in before.files]
    assert len(ours(window)) == 1
    assert "model.pte" in window.strip.text
    reload(window, qtbot)
    assert len(ours(window)) == 1
    shutil.copy(SAMPLE / "model.pte", folder / "model.pte")
    reload(window, qtbot)
    assert ours(window) == []
    assert window.store.state.session.program is not before.program


def test_reload_can_go_on_with_the_files_that_are_left(window, qtbot, folder):
    open_sample(window, qtbot, tuple(str(folder / name) for name in FILES))
    (folder / "run.etdp").unlink()
    reload(window, qtbot)
    assert window.store.state.session.dumps
    offer = next(
        one
        for one in window.strip.findChildren(QPushButton)
        if one.text() == "Show the remaining files"
    )
    with qtbot.waitSignal(window.controller.opener.ended, timeout=ENDED):
        offer.click()
    session = window.store.state.session
    assert session.program is not None
    assert not session.dumps


def test_added_file_joins_and_a_lost_one_stays(window, qtbot, folder):
    open_sample(window, qtbot, (str(folder / "model.pte"),))
    with qtbot.waitSignal(window.controller.opener.ended, timeout=ENDED):
        window.controller.open_beside((str(folder / "run.etdp"),))
    assert window.store.state.session.dumps
    (folder / "model.pte").unlink()
    with qtbot.waitSignal(window.controller.opener.ended, timeout=ENDED):
        window.controller.open_beside((str(folder / "model.etrecord"),))
    assert window.store.state.session.program is not None
    assert len(ours(window)) == 1


def test_watched_file_of_two_sessions_reloads_both(window, qtbot, folder):
    path = str(folder / "model.pte")
    open_sample(window, qtbot, (path,))
    open_sample(window, qtbot, (path, str(folder / "run.etdp")))
    window.controller.watch_for_now()
    with qtbot.waitSignal(window.controller.opener.ended, timeout=ENDED):
        shutil.copy(SAMPLE / "model.pte", path)
    assert [one.revision for one in window.store.state.sessions] == [1, 1]


def test_watched_file_does_not_cancel_what_the_user_opens(make_window, qtbot, folder):
    slow = Slow()

    def load(paths, options=None, *, cancel=None, progress=None):
        if Path(paths[0]).name == "slow.pte":
            return slow(paths, options, cancel=cancel, progress=progress)
        return load_session(paths, options, cancel=cancel, progress=progress)

    window = make_window(views=RECORDER_VIEWS, load=load)
    open_sample(window, qtbot, (str(folder / "model.pte"),))
    window.controller.watch_for_now()
    window.controller.open(("slow.pte",))
    assert slow.begun.wait(60)
    shutil.copy(SAMPLE / "model.pte", folder / "model.pte")
    qtbot.wait(700)
    assert slow.cancelled == []
    slow.gate.set()
    qtbot.waitUntil(lambda: window.store.state.sessions[0].revision == 1, timeout=ENDED)
    assert [one.session.name for one in window.store.state.sessions][1] == "slow"


def test_workspace_keeps_notes_of_files_that_are_not_there(window, qtbot, folder, make_window):
    open_sample(window, qtbot, (str(folder / "model.pte"),))
    window.bound["bookmark"].trigger()
    open_sample(window, qtbot, (str(folder / "run.etdp"),))
    window.store.update(notes={"A": "about the program", "B": "about the run"})
    path = folder / "mine.etscope"
    assert window.controller.save_workspace(path, "")
    (folder / "model.pte").rename(folder / "elsewhere")
    other = make_window(views=RECORDER_VIEWS)
    with qtbot.waitSignal(other.controller.opener.ended, timeout=ENDED):
        other.controller.open((str(path),))
    assert "model.pte" in other.strip.text
    assert list(other.store.state.notes.values()) == ["about the run"]
    assert other.controller.save_workspace(path, "")
    (folder / "elsewhere").rename(folder / "model.pte")
    third = make_window(views=RECORDER_VIEWS)
    with qtbot.waitSignal(third.controller.opener.ended, timeout=ENDED):
        third.controller.open((str(path),))
    assert sorted(third.store.state.notes.values()) == ["about the program", "about the run"]
    (mark,) = third.store.state.bookmarks
    assert third.store.state.notes[mark.place.session] == "about the program"


def test_two_folders_with_programs_open_as_two_sessions(window, qtbot, folder, tmp_path):
    other, runs = tmp_path / "other", tmp_path / "runs"
    for place, names in ((other, ("model.pte",)), (runs, ("run.etdp", "run.debug"))):
        place.mkdir()
        for name in names:
            (place / name).write_bytes((folder / name).read_bytes())
    with qtbot.waitSignal(window.controller.opener.ended, timeout=ENDED):
        window.controller.open((str(folder), str(other), str(runs)))
    assert [one.paths for one in window.store.state.sessions] == [
        (str(folder),),
        (str(other), str(runs)),
    ]


def test_workspace_dropped_with_files_says_what_stayed_closed(window, qtbot, folder):
    open_sample(window, qtbot, (str(folder / "model.pte"),))
    path = folder / "mine.etscope"
    assert window.controller.save_workspace(path, "")
    with qtbot.waitSignal(window.controller.opener.ended, timeout=ENDED):
        window.controller.open((str(path), str(folder / "run.etdp")))
        assert "run.etdp stayed closed" in window.strip.text


@pytest.fixture
def mapped(monkeypatch) -> None:
    monkeypatch.setattr(load, "MAP_FROM_BYTES", 1)


@pytest.mark.usefixtures("mapped")
def test_mapped_file_written_to_while_open_is_said(window, qtbot, folder):
    path = folder / "model.pte"
    open_sample(window, qtbot, (str(path),))
    content = path.read_bytes()
    with qtbot.waitSignal(window.controller.noticed, timeout=ENDED), path.open("r+b") as stream:
        stream.write(content)  # cutting it would need the guard
    assert "written to while it is open" in window.strip.text
    (issue,) = window.store.state.session.issues
    assert issue.where == str(path)
    offer = next(one for one in window.strip.findChildren(QPushButton) if one.text() == "Reload")
    with qtbot.waitSignal(window.controller.opener.ended, timeout=ENDED):
        offer.click()
    assert window.store.state.session.issues == ()


@pytest.mark.usefixtures("mapped")
def test_mapped_file_replaced_while_open_is_no_matter(window, qtbot, folder):
    path = folder / "model.pte"
    open_sample(window, qtbot, (str(path),))
    shutil.copy(SAMPLE / "model.pte", folder / "new")
    with qtbot.assertNotEmitted(window.controller.noticed, wait=700):
        (folder / "new").replace(path)
    assert window.store.state.session.issues == ()


def test_recipe_is_that_of_the_program_that_was_read_again(window, qtbot, folder):
    source = folder / "net.py"
    source.write_text("def build():\n    pass\n", encoding="utf-8")
    job = {"source": {"path": str(source), "function": "build"}, "partitioners": ["xnnpack"]}
    beside = folder / "recipe.json"
    beside.write_text(json.dumps({"recipe": 1, "job": job}), encoding="utf-8")
    open_sample(window, qtbot, (str(folder / "model.pte"),))
    assert window.recipe_store.job.rules.min_nodes == 1
    beside.write_text(
        json.dumps({"recipe": 1, "job": job | {"rules": {"min_nodes": 7}}}), encoding="utf-8"
    )

    reload(window, qtbot)

    assert window.recipe_store.job.rules.min_nodes == 7
    assert not window.recipe_store.variant.changed
