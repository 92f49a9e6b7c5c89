"""Asking for a path and writing to it; widgets only see a function, so tests need no dialog."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

AskSave = Callable[[QWidget, str, str, str], "Path | None"]


def ask_save(parent: QWidget, title: str, suggested: str, filters: str) -> Path | None:
    """Return where the user wants a file; the dialog asks before one is replaced."""
    name, _ = QFileDialog.getSaveFileName(parent, title, suggested, filters)
    return Path(name) if name else None


def write_text_file(path: Path, write: Callable[[TextIO], None]) -> None:
    """Write a file beside its place and move it there, so that half a file is never left.

    Raises: OSError
    """
    handle, name = tempfile.mkstemp(prefix=path.name, suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            write(stream)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def try_to_write(parent: QWidget, path: Path, write: Callable[[TextIO], None]) -> bool:
    """Write a file and say so when that fails; return whether it worked."""
    try:
        write_text_file(path, write)
    except OSError as error:
        QMessageBox.warning(parent, "Cannot write the file", f"{path}: {error.strerror}")
        return False
    return True
