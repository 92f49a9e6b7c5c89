"""etscope --watch FOLDER: new runs and programs are read, half-written files waited for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import QPointF

from devtools_app.sample_data import LOOP, SAMPLE
from devtools_app.sessions.watched_tree import listing
from devtools_app.shell.window import MainWindow
from devtools_app.views import VIEWS
from inspector.files.load import load_session
from tests.app.window_views import RECORDER_VIEWS, open_sample

pytestmark = [pytest.mark.gui, pytest.mark.slow]


@pytest.fixture
def folder(tmp_path) -> Path:
    """A program without a run."""
    place = tmp_path / "net"
    place.mkdir()
    for name in ("model.pte", "model.etrecord"):
        shutil.copy(SAMPLE / name, place)
    return place


@pytest.fixture
def window(make_window, qtbot, folder) -> MainWindow:
    found = make_window(views=RECORDER_VIEWS)
    found.controller.watch_for_now()
    open_sample(found, qtbot, (str(folder),))
    return found


def test_run_that_is_written_into_the_folder_joins_the_session(
    make_window, qtbot, tmp_path
) -> None:
    folder = tmp_path / "net"
    folder.mkdir()
    shutil.copy(Path(LOOP[0]) / "model.pte", folder)
    window = make_window(views=RECORDER_VIEWS)
    window.controller.watch_for_now()
    open_sample(window, qtbot, (str(folder),))
    assert not window.store.state.session.dumps
    run = folder / "model_run"
    run.mkdir()
    qtbot.wait(100)
    for name in ("run.etdp", "run.json"):
        shutil.copy(Path(LOOP[0]) / name, run)
    qtbot.waitUntil(lambda: bool(window.store.state.session.dumps))
    assert len(window.store.state.sessions) == 1


def test_trace_beside_the_program_joins_once_it_is_complete(window, qtbot, folder) -> None:
    data = (SAMPLE / "run.etdp").read_bytes()
    notices = []
    window.controller.noticed.connect(notices.append)
    with (folder / "run.etdp").open("wb", buffering=0) as file:
        for start in range(0, len(data), len(data) // 6 + 1):
            file.write(data[start : start + len(data) // 6 + 1])
            qtbot.wait(150)
    qtbot.waitUntil(lambda: bool(window.store.state.session.dumps))
    assert not notices
    assert not window.store.state.session.issues


def test_program_that_is_half_written_for_a_while_is_read_without_a_message(
    window, qtbot, folder
) -> None:
    notices = []
    window.controller.noticed.connect(notices.append)
    whole = (folder / "model.pte").read_bytes()
    (folder / "model.pte").write_bytes(whole[: len(whole) // 2])
    qtbot.wait(900)  # it was read in that state
    (folder / "model.pte").write_bytes(whole)
    qtbot.waitUntil(lambda: window.store.state.sessions[0].revision > 0)
    qtbot.wait(1000)
    assert not notices
    assert not window.store.state.session.issues


def test_program_that_stays_broken_is_told_and_the_former_one_stays(window, qtbot, folder) -> None:
    notices = []
    window.controller.noticed.connect(notices.append)
    whole = (folder / "model.pte").read_bytes()
    (folder / "model.pte").write_bytes(whole[: len(whole) // 2])
    qtbot.waitUntil(lambda: bool(notices))
    assert "model.pte" in notices[0].text
    assert window.store.state.session.program is not None
    assert len(notices) == 1


def test_file_that_is_deleted_is_told_and_the_session_stays(window, qtbot, folder) -> None:
    window.controller._watcher._patience.setInterval(50)
    (folder / "model.etrecord").unlink()
    qtbot.waitUntil(lambda: bool(window.store.state.session.issues))
    assert "model.etrecord" in window.store.state.session.issues[0].where
    assert window.store.state.session.record is not None


def test_what_the_user_looks_at_stays(make_window, qtbot, folder) -> None:
    shutil.copy(SAMPLE / "run.etdp", folder)
    window = make_window(views=VIEWS)
    window.resize(1280, 800)
    window.controller.watch_for_now()
    open_sample(window, qtbot, (str(folder),))
    window.show_view("graph")
    graph = next(host.view for host in window.hosts if host.spec.name == "graph")
    qtbot.waitUntil(lambda: graph.canvas.placed is not None)
    graph.canvas.zoom(2.0)
    name = graph.canvas.placed.scene.names[int(graph.canvas.placed.nodes[1])]
    graph.canvas.set_selected(name)
    graph.canvas.selected.emit(name)
    qtbot.wait(50)
    before = window.store.state
    seen = _place_in_window(graph.canvas, window)
    shutil.copy(SAMPLE / "model.pte", folder / "model.pte")
    qtbot.waitUntil(lambda: window.store.state.sessions[0].revision > 0)
    qtbot.wait(500)
    after = window.store.state
    assert (after.view, after.selection, after.method) == (
        before.view,
        before.selection,
        before.method,
    )
    assert _place_in_window(graph.canvas, window) == pytest.approx(seen, abs=1)


def _place_in_window(canvas, window) -> tuple[float, float, float]:
    """Return where the corner of the graph is on the window, in pixels, and its scale."""
    at = canvas.mapTo(window, QPointF(*canvas.camera.to_screen(0, 0)))
    return at.x(), at.y(), canvas.camera.sx


def test_listing_is_bounded_and_leaves_out_hidden_files(tmp_path) -> None:
    for number in range(600):
        (tmp_path / f"{number}.bin").write_bytes(b"x")
    assert len(listing(str(tmp_path))[0]) < 600
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    (deep / "x").write_bytes(b"x")
    (tmp_path / "a" / ".hidden").write_bytes(b"x")
    files, folders = listing(str(tmp_path / "a"))
    assert files == {str(deep / "x"): files[str(deep / "x")]}
    assert len(folders) == 3
    assert listing(str(tmp_path / "none")) == ({}, (str(tmp_path / "none"),))


def test_folder_without_files_opens_once_it_has_some(make_window, qtbot, tmp_path) -> None:
    """As where a compile writes to; files that are none of ours open nothing."""
    folder = tmp_path / "build"
    folder.mkdir()
    window = make_window(views=RECORDER_VIEWS)
    notices = []
    window.controller.noticed.connect(notices.append)
    window.controller.watch_for_now()
    window.controller.open((str(folder),))
    qtbot.waitUntil(lambda: bool(notices))
    assert (notices[0].tone, "build" in notices[0].text) == ("info", True)
    (folder / "notes.txt").write_text("not a program")
    qtbot.waitUntil(lambda: len(notices) == 2)  # looked at, and waited for further
    assert not window.store.state.sessions
    shutil.copy(SAMPLE / "model.pte", folder)
    qtbot.waitUntil(lambda: bool(window.store.state.sessions))
    assert window.store.state.session.program is not None
    shutil.copy(SAMPLE / "model.etrecord", folder)
    qtbot.waitUntil(lambda: window.store.state.session.record is not None)
    assert len(window.store.state.sessions) == 1
    assert {one.tone for one in notices} == {"info"}


def test_file_that_comes_while_an_empty_folder_is_read_is_opened(
    make_window, qtbot, tmp_path
) -> None:
    """As of a compile that runs while the window starts."""
    folder = tmp_path / "build"
    folder.mkdir()

    def read_late(paths, *arguments, **options):
        try:
            return load_session(paths, *arguments, **options)
        finally:
            if not list(folder.iterdir()):
                shutil.copy(SAMPLE / "model.pte", folder)

    window = make_window(views=RECORDER_VIEWS, load=read_late)
    window.controller.watch_for_now()
    window.controller.open((str(folder),))
    qtbot.waitUntil(lambda: bool(window.store.state.sessions))
    assert window.store.state.session.program is not None


def test_folder_that_a_build_deletes_and_makes_again_is_followed(window, qtbot, folder) -> None:
    shutil.rmtree(folder)
    qtbot.waitUntil(lambda: str(folder.parent) in window.controller._watcher._watcher.directories())
    assert window.store.state.session.record is not None  # what was read stays
    folder.mkdir()
    other = next(Path(LOOP[0]).glob("*.pte"))
    shutil.copy(other, folder / "model.pte")
    shutil.copy(LOOP[1], folder / "model.etrecord")
    size = other.stat().st_size
    assert size != (SAMPLE / "model.pte").stat().st_size
    qtbot.waitUntil(lambda: window.store.state.session.files[0].size == size)
    place = folder.parent
    qtbot.waitUntil(
        lambda: str(place) not in window.controller._watcher._watcher.directories()
    )  # only while it is needed


def test_folder_of_other_files_is_looked_at_once_more(make_window, qtbot, tmp_path) -> None:
    (tmp_path / "notes.txt").write_text("not a program")
    window = make_window(views=RECORDER_VIEWS)
    notices = []
    window.controller.noticed.connect(notices.append)
    window.controller.watch_for_now()
    window.controller.open((str(tmp_path),))
    qtbot.waitUntil(lambda: len(notices) == 2)
    qtbot.wait(1200)  # three times as long as a folder is given to settle
    assert len(notices) == 2


def test_folder_with_a_damaged_program_says_so(make_window, qtbot, tmp_path) -> None:
    (tmp_path / "model.pte").write_bytes(bytes(4) + b"ET12" + bytes(2))
    window = make_window(views=RECORDER_VIEWS)
    notices = []
    window.controller.noticed.connect(notices.append)
    window.controller.watch_for_now()
    window.controller.open((str(tmp_path),))
    qtbot.waitUntil(lambda: bool(notices))
    assert notices[0].tone == "error"
