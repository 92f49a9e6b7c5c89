"""Choosing a path and writing to it; widgets receive a function, so tests need no dialog."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from schema.objects.atomic_file import write_atomically

AskSave = Callable[[QWidget, str, str, str], "Path | None"]
Done = Callable[[Path], object]  # called once a file is there, on the GUI thread
_ENDING = re.compile(r"\*(\.\w+)")  # in "PNG image (*.png)"
_YES = QMessageBox.StandardButton.Yes


def unreported(_path: Path) -> None:
    """Report nothing of an export."""


def ask_save(parent: QWidget, title: str, suggested: str, filters: str) -> Path | None:
    """Ask for a path to save to; confirm before a file is replaced.

    A name without a suffix gets the suffix of the chosen kind of file.
    """
    name, kind = QFileDialog.getSaveFileName(parent, title, suggested, filters)
    if not name:
        return None
    path = Path(name)
    ending = _ENDING.search(kind or filters)
    if path.suffix or ending is None:
        return path
    path = path.with_name(path.name + ending[1])
    # the dialog knew of the name without the ending only
    return path if not path.exists() or _may_replace(parent, path) else None


def _may_replace(parent: QWidget, path: Path) -> bool:
    question = f"{path.name} exists already. Replace it?"
    return QMessageBox.question(parent, "Replace the file", question) == _YES


class PathChooser:
    """Asks for paths; replaced in tests.

    Args:
        folder: returns the initial folder, empty for the folder of the last dialog
    """

    def __init__(self, folder: Callable[[], str] = str) -> None:
        self._folder = folder

    def open_files(self, parent: QWidget, title: str, filters: str) -> tuple[str, ...]:
        """Return chosen files, empty if the user cancels."""
        return tuple(QFileDialog.getOpenFileNames(parent, title, self._folder(), filters)[0])

    def open_file(self, parent: QWidget, title: str, filters: str) -> str:
        """Return one chosen file, or empty."""
        return next(iter(self.open_files(parent, title, filters)), "")

    def open_folder(self, parent: QWidget, title: str) -> str:
        """Return a chosen folder, or empty."""
        return QFileDialog.getExistingDirectory(parent, title, self._folder())

    def save_file(self, parent: QWidget, title: str, suggested: str, filters: str) -> str:
        """Return a path to write, or empty; confirm before a file is replaced."""
        path = ask_save(parent, title, os.path.join(self._folder(), suggested), filters)
        return "" if path is None else str(path)


def write_text_file(path: Path, write: Callable[[TextIO], object]) -> None:
    """Write a file to a temporary path and move it, so that no partial file remains.

    Raises: OSError
    """

    def encoded(stream: BinaryIO) -> None:
        write(cast("TextIO", codecs.getwriter("utf-8")(stream)))

    write_atomically(path, encoded)


def write_binary_file(path: Path, data: bytes | bytearray | memoryview) -> None:
    """Write bytes to a temporary path and move the file.

    Raises: OSError
    """
    write_atomically(path, lambda stream: stream.write(data))
