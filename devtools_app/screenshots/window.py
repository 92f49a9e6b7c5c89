"""Screenshots of the real window without a display: for the verb, the demo and the docs."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import (
    QBuffer,
    QByteArray,
    QEventLoop,
    QIODevice,
    QPoint,
    qInstallMessageHandler,
)
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QApplication

from devtools_app.app import create_application, make_window
from devtools_app.appearance.look import ThemeMode
from devtools_app.appearance.slices import Slices
from devtools_app.jobs.latest import Latest
from devtools_app.shell.cyclic_gc import GarbageCollector
from devtools_app.shell.window import MainWindow
from devtools_app.state.requests import Notice
from devtools_app.state.settings import SettingsFile
from devtools_app.views import VIEWS
from devtools_app.views.spec import Area
from devtools_app.widgets.log_panel import log_qt_message
from devtools_app.widgets.plot import Plot
from inspector.cli.output import write_bytes
from inspector.tables.selection import NOTHING, Selection
from inspector.units import format_elapsed

SECONDS = 60.0
_TURN_SECONDS = 0.06  # an idle turn of the event loop ends after 0.02 s
_QUIET_SECONDS = 0.25  # views ask for their data one turn of the event loop after they are shown


class NotReadyError(Exception):
    """Files could not be opened, or a view took too long."""


@dataclass(frozen=True, slots=True)
class Shot:
    """One screenshot to take.

    Attributes:
        view: name of a view; a panel is captured in front
        size: of the window in pixels at scale 1
        dark: which palette
        scale: pixels of the image per pixel of the window
        selection: the selection in it
    """

    view: str
    size: tuple[int, int] = (1280, 800)
    dark: bool = False
    scale: float = 1.0
    selection: Selection = NOTHING


def view_names() -> tuple[str, ...]:
    """Return the views that can be taken, in the order of their tabs."""
    return tuple(spec.name for spec in VIEWS if spec.area is Area.CENTRE)


def panel_names() -> tuple[str, ...]:
    """Return the panels around the views, which can be captured as well."""
    return tuple(spec.name for spec in VIEWS if spec.area is not Area.CENTRE)


def use_no_screen() -> None:
    """Use the offscreen platform unless one is set; call before creating the application."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")


@contextmanager
def open_window(paths: Sequence[str]) -> Generator[MainWindow, None, None]:
    """Show a window with separate settings and these files open; closes it afterwards.

    Raises: NotReadyError if they cannot be opened
    """
    qInstallMessageHandler(log_qt_message)
    app = create_application()
    garbage = GarbageCollector()
    with tempfile.TemporaryDirectory() as folder:
        window = make_window(app, SettingsFile(Path(folder) / "settings.json"))
        notices: list[str] = []

        def note(notice: Notice) -> None:
            notices.append(notice.text)

        window.controller.noticed.connect(note)
        window.show()
        try:
            if paths:
                window.controller.open(tuple(paths))
                settle(window)
            if paths and window.store.state.session is None:
                raise NotReadyError(notices[0] if notices else "nothing could be opened")
            yield window
        finally:
            window.close()
            window.deleteLater()
            app.processEvents()
            garbage.stop()
            qInstallMessageHandler(None)


def settle(window: MainWindow, seconds: float = SECONDS) -> None:
    """Run the event loop until no work has been running for a moment.

    Raises: NotReadyError after a timeout
    """
    end = time.monotonic() + seconds
    quiet_since = time.monotonic()
    while True:
        began = time.monotonic()
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 20)
        now = time.monotonic()
        jobs = (*window.findChildren(Latest), *window.findChildren(Slices))
        busy = window.theme.busy or any(job.busy for job in jobs)
        drawing = any(plot.waiting for plot in window.findChildren(Plot))
        worked = now - began > _TURN_SECONDS  # laying out and painting may post more of it
        if window.controller.opener.busy or busy or drawing or worked:
            quiet_since = now
        elif now - quiet_since > _QUIET_SECONDS:
            return
        if now > end:
            raise NotReadyError(f"the window was still busy after {format_elapsed(seconds)}")
        time.sleep(0.005)


def take(window: MainWindow, shot: Shot) -> QPixmap:
    """Return a screenshot of the window."""
    window.theme.set_mode(ThemeMode.DARK if shot.dark else ThemeMode.LIGHT)
    window.resize(*shot.size)
    window.show_view(shot.view)
    window.store.update(selection=shot.selection)
    settle(window)
    pixmap = QPixmap(window.size() * shot.scale)
    pixmap.setDevicePixelRatio(shot.scale)
    window.render(pixmap, QPoint())
    return pixmap


def write(window: MainWindow, shot: Shot, path: Path, *, force: bool = True) -> None:
    """Write a screenshot of the window as PNG, atomically.

    Raises: CommandError if it cannot be written, or exists and must not be replaced
    """
    save(take(window, shot), path, force=force)


def save(pixmap: QPixmap, path: Path, *, force: bool = True) -> None:
    """Write an image as PNG, atomically.

    Raises: CommandError if it cannot be written, or exists and must not be replaced
    """
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    if not pixmap.save(buffer, "PNG"):
        raise NotReadyError(f"no image of {pixmap.width()}x{pixmap.height()} can be created")
    write_bytes(path, bytes(data.data()), force=force)


def print_line(text: str) -> None:
    """Print one line."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
