"""Asking for a path and writing to it; widgets only see a function, so tests need no dialog."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

AskSave = Callable[[QWidget, str, str, str], "Path | None"]
_ENDING = re.compile(r"\*(\.\w+)")  # in "PNG picture (*.png)"
_YES = QMessageBox.StandardButton.Yes


def ask_save(parent: QWidget, title: str, suggested: str, filters: str) -> Path | None:
    """Return where the user wants a file; asks before one is replaced.

    A name without an ending gets that of the chosen kind of file.
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


def write_text_file(path: Path, write: Callable[[TextIO], None]) -> None:
    """Write a file beside its place and move it there, so that half a file is never left.

    Raises: OSError
    """
    with _beside(path) as handle, os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
        write(stream)


def write_binary_file(path: Path, data: bytes | bytearray | memoryview) -> None:
    """Write bytes beside their place and move them there.

    Raises: OSError
    """
    with _beside(path) as handle, os.fdopen(handle, "wb") as stream:
        stream.write(data)


@contextmanager
def _beside(path: Path) -> Iterator[int]:
    """Open a file that takes the place of another one when nothing went wrong."""
    name = ""
    try:
        handle, name = tempfile.mkstemp(prefix=path.name[:40], suffix=".part", dir=path.parent)
        yield handle
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except OSError as error:  # the user named another file than the one that failed
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        if name:
            Path(name).unlink(missing_ok=True)


def try_to_write(parent: QWidget, path: Path, write: Callable[[TextIO], None]) -> bool:
    """Write a file and say so when that fails; return whether it worked."""
    try:
        write_text_file(path, write)
    except OSError as error:
        QMessageBox.warning(parent, "Cannot write the file", f"{path}: {error.strerror}")
        return False
    return True
