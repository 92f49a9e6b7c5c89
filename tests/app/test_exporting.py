"""Pictures and tables as files: whole or not at all, with the ending the user chose."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog, QLabel, QMessageBox

from devtools_app.shell.window import MainWindow
from devtools_app.widgets.files import ask_save, write_binary_file, write_text_file
from devtools_app.widgets.graph_canvas import GraphCanvas
from devtools_app.widgets.image import save_image
from tests.app.window_views import RECORDER_VIEWS, open_sample

pytestmark = pytest.mark.gui
FULL = OSError(errno.ENOSPC, "No space left on device")
PICTURES = "PNG image (*.png);;SVG image (*.svg)"


class _FullDisk:
    """Stands in for a stream on a disk without room."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __enter__(self) -> _FullDisk:
        return self

    def __exit__(self, *_error: object) -> None:
        os.close(self._handle)

    def write(self, _data: object) -> None:
        raise FULL


@pytest.fixture
def full_disk(monkeypatch) -> None:
    monkeypatch.setattr(os, "fdopen", lambda handle, *_more, **_words: _FullDisk(handle))


def _picture(path: Path, theme) -> None:
    save_image(QLabel("words"), path)


def _canvas(path: Path, theme) -> None:
    canvas = GraphCanvas(theme.canvas)
    canvas.write_image(path, 1.0, canvas.size(), extras=True)


def _text(path: Path, theme) -> None:
    write_text_file(path, lambda stream: stream.write("words"))


WRITERS = {"picture.png": _picture, "picture.svg": _picture, "canvas.png": _canvas}
WRITERS |= {"canvas.svg": _canvas, "table.tsv": _text}


@pytest.mark.parametrize("name", WRITERS)
def test_export_replaces_a_file_and_leaves_nothing_beside_it(qapp, theme, tmp_path, name):
    path = tmp_path / name
    path.write_text("old")
    WRITERS[name](path, theme)
    assert path.read_bytes() != b"old"
    assert path.stat().st_size > 3
    assert [one.name for one in tmp_path.iterdir()] == [name]


@pytest.mark.usefixtures("full_disk")
@pytest.mark.parametrize("name", WRITERS)
def test_export_to_a_full_disk_leaves_the_old_file(qapp, theme, tmp_path, name):
    path = tmp_path / name
    path.write_text("old")
    with pytest.raises(OSError, match="No space left") as caught:
        WRITERS[name](path, theme)
    assert caught.value.filename == str(path)
    assert [one.read_text() for one in tmp_path.iterdir()] == ["old"]


@pytest.mark.parametrize("name", ["x" * 300 + ".png", "nowhere/x.png"])
def test_export_to_an_impossible_name_is_an_error_with_that_name(tmp_path, name):
    with pytest.raises(OSError, match=r"x\.png"):
        write_binary_file(tmp_path / name, b"")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("typed", "kind", "found"),
    [
        ("view", "SVG image (*.svg)", "view.svg"),
        ("view", "", "view.png"),
        ("view.svg", "PNG image (*.png)", "view.svg"),
        ("v1.0 of it.png", "", "v1.0 of it.png"),
    ],
)
def test_saved_file_gets_the_ending_that_was_chosen(
    qtbot, monkeypatch, tmp_path, typed, kind, found
):
    chosen = (str(tmp_path / typed), kind)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_args: chosen)
    assert ask_save(QLabel(), "Export", "x", PICTURES) == tmp_path / found


@pytest.mark.parametrize("answer", ["Yes", "No"])
def test_saved_file_that_exists_under_the_full_name_is_asked_for(
    qtbot, monkeypatch, tmp_path, answer
):
    (tmp_path / "view.png").write_text("old")
    chosen = (str(tmp_path / "view"), "PNG image (*.png)")
    button = getattr(QMessageBox.StandardButton, answer)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_args: chosen)
    monkeypatch.setattr(QMessageBox, "question", lambda *_args: button)
    found = ask_save(QLabel(), "Export", "x", PICTURES)
    assert (found is not None) is (answer == "Yes")


@pytest.mark.slow
def test_window_says_that_a_picture_cannot_be_written(make_window, qtbot, monkeypatch, tmp_path):
    window: MainWindow = make_window(views=RECORDER_VIEWS)
    open_sample(window, qtbot)
    path = tmp_path / "nowhere" / "x.png"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_args: (str(path), ""))
    window.bound["export_image"].trigger()
    assert window.strip.text == (f"The image cannot be written. {path}: No such file or directory")
