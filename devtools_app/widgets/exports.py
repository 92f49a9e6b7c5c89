"""Tables are written in threads, which the program waits for at its end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QMessageBox, QWidget

from devtools_app.jobs.gui_thread import gui_thread
from devtools_app.widgets.files import Done, unreported, write_text_file
from inspector.render.delimited import TextFormat

Write = Callable[[TextIO], object]


def text_format(path: Path) -> TextFormat:
    """Return CSV for the suffix .csv, else TSV."""
    return TextFormat.CSV if path.suffix.lower() == ".csv" else TextFormat.TSV


class Exports(QObject):
    """Writes files for a widget; one that cannot be written is reported in a dialog."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._widget = parent
        self._running = 0
        self._gui = gui_thread()

    @property
    def busy(self) -> bool:
        """Return whether a file is being written."""
        return self._running > 0

    def start(self, path: Path, write: Write, done: Done = unreported) -> None:
        """Write a file.

        Args:
            path: of the file; it has its whole content or none
            write: writes the text; called in a thread
            done: called with the path once the file is there
        """
        self._running += 1
        arguments = (path, write, done)
        # no daemon: a file that was asked for is written although the window closes
        threading.Thread(target=self._run, args=arguments, name="export").start()

    def _run(self, path: Path, write: Write, done: Done) -> None:
        error: BaseException | None = None
        try:
            write_text_file(path, write)
        except Exception as caught:  # noqa: BLE001 - reported on the GUI thread
            error = caught
        self._gui.post(self, self._report, path, done, error)

    def _report(self, path: Path, done: Done, error: BaseException | None) -> None:
        self._running -= 1
        if error is None:
            done(path)
            return
        reason = error.strerror if isinstance(error, OSError) else None
        text = f"{path}: {reason or error}"
        QMessageBox.warning(self._widget, "Cannot write the file", text)
