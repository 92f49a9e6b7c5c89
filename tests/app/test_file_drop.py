"""Dragging over the window: a frame says what a drop would do, and what is refused why."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDragMoveEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QLineEdit

from devtools_app.sessions.open_kind import FileContent, Opens, content_of, opens_as
from devtools_app.shell import file_drop
from devtools_app.shell.drop_words import drop_words, opening_words
from devtools_app.shell.window import MainWindow
from devtools_app.state.state import State
from tests.app.window_views import RECORDER_VIEWS, SAMPLE_FILES, open_sample

pytestmark = [pytest.mark.gui, pytest.mark.slow]
VALUES = json.dumps({"forward": {"results": {"conv": {"value": 1.0}}}})


@pytest.fixture
def opened(make_window, qtbot) -> MainWindow:
    window = make_window(views=RECORDER_VIEWS)
    open_sample(window, qtbot)
    return window


def files(*paths: object) -> QMimeData:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    return data


def text_of(text: str) -> QMimeData:
    data = QMimeData()
    data.setText(text)
    return data


def address(text: str) -> QMimeData:
    data = QMimeData()
    data.setUrls([QUrl(text)])
    return data


def send(window: MainWindow, kind: type[QDropEvent], data: QMimeData, at: QPoint) -> bool:
    place = QPointF(at) if kind is QDropEvent else at
    button, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    event = kind(place, Qt.DropAction.CopyAction, data, button, none)
    event.ignore()
    QApplication.sendEvent(window.windowHandle(), event)
    return event.isAccepted()


def drag_over(window: MainWindow, data: QMimeData, at: QPoint) -> bool:
    send(window, QDragEnterEvent, data, at)
    return send(window, QDragMoveEvent, data, at)


def leave(window: MainWindow) -> None:
    QApplication.sendEvent(window.windowHandle(), QDragLeaveEvent())


def middle(window: MainWindow) -> QPoint:
    return window.rect().center()


def test_a_drag_of_files_covers_the_window_until_it_leaves(opened):
    cover = opened._dropping.cover
    assert cover.text == ""
    assert drag_over(opened, files(*SAMPLE_FILES[:2]), middle(opened))
    assert cover.isVisible()
    assert cover.geometry() == opened.rect()
    assert cover.text.startswith("Open ")
    assert all(Path(path).name in cover.text for path in SAMPLE_FILES[:2])
    opened.resize(opened.width() - 100, opened.height() - 50)
    assert cover.geometry() == opened.rect()
    leave(opened)
    assert cover.isHidden()


def test_a_drop_takes_the_cover_away_and_opens(opened, qtbot):
    at = middle(opened)
    assert drag_over(opened, files(*SAMPLE_FILES), at)
    with qtbot.waitSignal(opened.controller.opener.ended):
        assert send(opened, QDropEvent, files(*SAMPLE_FILES), at)
        assert opened._dropping.cover.isHidden()
    assert len(opened.store.state.sessions) == 2


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (address("https://github.com/model.pte"), "address"),
        (text_of("hello"), "Only files"),
        (QMimeData(), "Only files"),
        (files("/nowhere/model.pte"), "model.pte does not exist"),
        (files("/nowhere/a.pte", "/nowhere/b.etdp"), "a.pte and b.etdp do not exist"),
        (files(os.devnull), "neither a file nor a folder"),
    ],
)
def test_what_cannot_be_opened_is_refused_in_words(opened, data, words):
    at = middle(opened)
    assert not drag_over(opened, data, at)
    assert words in opened._dropping.cover.text
    assert not send(opened, QDropEvent, data, at)
    assert opened._dropping.cover.isHidden()
    assert len(opened.store.state.sessions) == 1


def test_text_may_be_dropped_on_a_field(opened):
    field = QLineEdit(opened)
    field.setGeometry(opened.rect())
    field.show()
    data = text_of("conv")
    assert drag_over(opened, data, middle(opened))
    assert opened._dropping.cover.isHidden()
    assert send(opened, QDropEvent, data, middle(opened))
    assert field.text() == "conv"


def test_each_kind_of_file_is_announced_as_it_opens(opened, tmp_path):
    state = opened.store.state
    name = state.session.name
    workspace, values, program = tmp_path / "w.etscope", tmp_path / "v.json", tmp_path / "m.pte"
    workspace.write_text("{}")
    program.write_bytes(b"")
    values.write_text(VALUES)
    many = [tmp_path / f"{number}.pte" for number in range(5)]
    for path in many:
        path.write_bytes(b"")
    for paths, kind, said in [
        ((workspace,), Opens.WORKSPACE, "Open the workspace w.etscope. "),
        (
            (values,),
            Opens.PERHAPS_VALUES,
            f"Open v.json. Values of nodes colour the graph of {name}",
        ),
        ((program,), Opens.SESSIONS, f"Open m.pte. It opens as a new session. {name} stays open."),
        ((tmp_path,), Opens.SESSIONS, "Each program found there becomes a session."),
        (many, Opens.SESSIONS, "Open 5 files. They open as a new session."),
    ]:
        assert opens_as(tuple(map(str, paths)), state) is kind
        words = drop_words(files(*paths), state)
        assert said in f"{words.title}. {words.text}"
        assert words.paths == tuple(map(str, paths))
        assert words.unread is (kind is not Opens.WORKSPACE)
    read = opening_words((str(values),), state, FileContent.VALUES)
    assert f"{read.title}. {read.text}".startswith(f"Add v.json to {name}. Its values")
    read = opening_words((str(values),), state, FileContent.SESSION)
    assert read.text == f"It opens as a new session. {name} stays open."
    assert opens_as((), state) is Opens.NOTHING
    assert opens_as((str(values),), State()) is Opens.SESSIONS  # no session takes them


@pytest.fixture
def readers(monkeypatch) -> list[str]:
    """Return the names of the threads that read whole files to tell whether they are values."""
    from inspector.files import node_data

    threads: list[str] = []
    decode = node_data.decode_node_data

    def decoded(data: memoryview, file: str = "") -> node_data.NodeDataFile:
        threads.append(threading.current_thread().name)
        return decode(data, file)

    monkeypatch.setattr(node_data, "decode_node_data", decoded)
    return threads


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (VALUES, "Add dragged.json to "),
        ('{"forward": ["no value"]}', "dragged.json is not an ExecuTorch file. Nothing is opened."),
    ],
)
def test_dragged_values_are_read_in_a_thread_and_then_announced(
    opened, qtbot, tmp_path, readers, content, said
):
    path = tmp_path / "dragged.json"
    path.write_text(content)
    cover = opened._dropping.cover
    assert drag_over(opened, files(path), middle(opened))
    assert cover.text.startswith("Open dragged.json. Values of nodes colour")
    qtbot.waitUntil(lambda: cover.text.startswith(said))
    leave(opened)
    assert readers
    assert threading.main_thread().name not in readers


@pytest.mark.parametrize("names", [("todo.txt",), ("todo.txt", "two.pte"), ("empty",)])
def test_what_reading_shows_to_be_no_file_of_executorch_is_refused_before_the_drop(
    opened, qtbot, tmp_path, names
):
    (tmp_path / "empty").mkdir()
    for name in ("todo.txt", "two.pte"):
        (tmp_path / name).write_text("buy, milk\n")
    data, at = files(*(tmp_path / name for name in names)), middle(opened)
    cover = opened._dropping.cover
    assert drag_over(opened, data, at)
    qtbot.waitUntil(lambda: "Nothing is opened" in cover.text)
    assert cover.text.startswith(
        ("todo.txt is not an Exec", "No ExecuTorch file is among todo", "No ExecuTorch file lies")
    )
    assert not send(opened, QDropEvent, data, at)
    assert len(opened.store.state.sessions) == 1
    assert not opened.controller.opener.busy


def test_one_known_file_among_others_opens(tmp_path):
    other = tmp_path / "todo.txt"
    other.write_text("buy milk\n")
    assert content_of((str(other), *map(str, SAMPLE_FILES)), lambda: None) is FileContent.SESSION


def test_values_without_a_session_are_refused_with_what_they_need(tmp_path):
    path = tmp_path / "v.json"
    path.write_text(VALUES)
    words = opening_words((str(path),), State(), content_of((str(path),), lambda: None))
    assert not words.paths
    assert "Open the program of these nodes first" in words.text


def test_source_is_refused_with_what_makes_a_program_of_it(tmp_path):
    path = tmp_path / "net.py"
    path.write_text("import torch\n")
    words = opening_words((str(path),), State(), content_of((str(path),), lambda: None))
    assert not words.paths
    assert "File > Compile…" in words.text


@pytest.mark.parametrize(("content", "titles"), [(VALUES, ["dropped"]), ('{"forward": [1]}', [])])
def test_dropped_values_are_read_in_a_thread(opened, qtbot, tmp_path, readers, content, titles):
    path = tmp_path / "dropped.json"
    path.write_text(content)
    with qtbot.waitSignal(opened.controller.opener.ended):
        assert send(opened, QDropEvent, files(path), middle(opened))
        assert not opened.store.state.session.node_data
    state = opened.store.state
    assert len(state.sessions) == 1
    assert [one.title for one in state.session.node_data] == titles
    assert readers
    assert threading.main_thread().name not in readers


def test_a_drop_does_not_wait_for_the_words(opened, qtbot, tmp_path, monkeypatch):
    path = tmp_path / "slow.json"
    path.write_text(VALUES)
    reading, may_end = threading.Event(), threading.Event()

    def content_of(paths: tuple[str, ...], check) -> FileContent:
        reading.set()
        may_end.wait(10)
        check()
        return FileContent.VALUES

    monkeypatch.setattr(file_drop, "content_of", content_of)
    assert drag_over(opened, files(path), middle(opened))
    assert reading.wait(10)
    with qtbot.waitSignal(opened.controller.opener.ended):
        assert send(opened, QDropEvent, files(path), middle(opened))
    may_end.set()
    assert len(opened.store.state.sessions) == 1
    assert opened._dropping.cover.isHidden()
