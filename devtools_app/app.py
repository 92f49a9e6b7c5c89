"""Creates the application and the window; reports uncaught exceptions instead of exiting."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence, Set
from types import FrameType, TracebackType

from PySide6.QtCore import QObject, QTimer, Signal, qInstallMessageHandler
from PySide6.QtWidgets import QApplication

from devtools_app.appearance.icon_set import app_icon
from devtools_app.appearance.theme import Theme
from devtools_app.jobs.imports import make_room_for_types
from devtools_app.shell.cyclic_gc import GarbageCollector
from devtools_app.shell.first_size import fit_to_screen
from devtools_app.shell.memory_pool import share_free_memory
from devtools_app.shell.warm_imports import Warming
from devtools_app.shell.window import MainWindow
from devtools_app.state.requests import Notice
from devtools_app.state.settings import SettingsFile
from devtools_app.state.state import State
from devtools_app.widgets.log_panel import LogStore, log_qt_message

_LOG = logging.getLogger(__name__)
# Qt's functions release the interpreter: while a thread computes, each call of a paint event would
# wait for Python's own 5 ms to have it again. 40 ms of events took 900 ms with 5 ms, 216 with 0.5
# and 60 with this, which costs three threads that compute a tenth of their speed.
_SWITCH_SECONDS = 0.0001
_JOIN_SECONDS = 10.0  # how long the end may wait for all threads together


class ExceptionHook(QObject):
    """Reports uncaught exceptions of any thread in the log and the window.

    Signals:
        happened(text, details): message and traceback; on the GUI thread
    """

    happened = Signal(str, str)

    def install(self) -> Callable[[], None]:
        """Install the exception hooks; return a function that restores the old ones."""
        old, old_thread = sys.excepthook, threading.excepthook
        sys.excepthook = self.take
        threading.excepthook = self._take_thread

        def restore() -> None:
            sys.excepthook, threading.excepthook = old, old_thread

        return restore

    def take(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        """Log and report an exception; a keyboard interrupt ends the program."""
        if issubclass(kind, KeyboardInterrupt):
            QApplication.exit(130)
            return
        _LOG.error("unexpected error", exc_info=(kind, error, trace))
        details = "".join(traceback.format_exception(kind, error, trace))
        text = f"Something went wrong: {kind.__name__}: {error}. This is a bug in ETScope."
        self.happened.emit(text, details)

    def _take_thread(self, args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            self.take(args.exc_type, args.exc_value, args.exc_traceback)


def create_application(arguments: Sequence[str] = ()) -> QApplication:
    """Return the application, named and with its icon."""
    existing = QApplication.instance()
    app = existing if isinstance(existing, QApplication) else QApplication(["etscope", *arguments])
    app.setApplicationName("etscope")
    app.setApplicationDisplayName("ETScope")
    app.setOrganizationName("etscope")
    app.setDesktopFileName("etscope")
    app.setWindowIcon(app_icon())
    make_room_for_types()  # before a window is seen
    return app


def make_window(
    app: QApplication, settings_file: SettingsFile | None = None, log: LogStore | None = None
) -> MainWindow:
    """Return a window that remembers its settings in the usual place."""
    file = SettingsFile() if settings_file is None else settings_file
    settings = file.load()
    theme = Theme(app, settings.theme, settings.font_size)
    return MainWindow(theme, file, log=log)


def _end(number: int, _frame: FrameType | None) -> None:
    QApplication.exit(128 + number)


def _join(threads: set[threading.Thread]) -> bool:
    """Wait for threads to end; return whether all did.

    None may be running while Qt is taken down, nor when Python collects garbage in any thread
    again: it could use an object of Qt, or destroy one, beside the GUI thread.
    """
    end = time.monotonic() + _JOIN_SECONDS
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    return not any(thread.is_alive() for thread in threads)


def leave(code: int, others: Set[threading.Thread]) -> int:
    """Return the exit code; end the process here if threads still run, which Qt's end could crash.

    A thread that ignores its token, as one that waits for a slow disk, is not waited for twice.

    Args:
        code: of the program
        others: threads of whoever opened the window, which do not matter here
    """
    alive = [one.name for one in threading.enumerate() if one not in others]
    if alive:
        _LOG.warning("ended while threads were running: %s", ", ".join(alive))
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def run(paths: Sequence[str], *, watch: bool = False, tick: str = "") -> int:
    """Show the window with some files open and return when it is closed.

    Args:
        paths: files and folders that belong together, or a workspace
        watch: reload files when they change, for this run
        tick: unit of the ticks of traces, for this run; empty uses the preferences
    """
    others = set(threading.enumerate())
    share_free_memory()
    qInstallMessageHandler(log_qt_message)
    sys.setswitchinterval(_SWITCH_SECONDS)
    app = create_application()
    garbage = GarbageCollector()
    log = LogStore()
    log.attach()
    hook = ExceptionHook()
    restore = hook.install()
    old_end = signal.signal(signal.SIGTERM, _end)
    window = make_window(app, log=log)
    Warming(window.context.imports, window).start_after_first_paint()

    def show_error(text: str, details: str) -> None:
        window.notice(Notice(text, "error", details))

    def thaw(old: State, new: State) -> None:
        if len(new.sessions) < len(old.sessions):
            garbage.thaw()

    hook.happened.connect(show_error)
    window.store.changed.connect(thaw)
    fit_to_screen(window)
    window.show()
    from inspector.files.mapped import guard  # not before: the window is on the screen sooner

    release = guard()
    if watch:
        window.controller.watch_for_now()
    if tick:
        window.controller.take_tick_for_now(tick)
    if paths:
        window.controller.open(tuple(paths))
    # lets Python look at signals such as Ctrl+C while Qt waits for events
    wake = QTimer(window)
    wake.start(500)
    wake.timeout.connect(lambda: None)
    try:
        return app.exec()
    finally:
        if window.isVisible():  # ended by a signal: what a close keeps is kept all the same
            window.close()
        restore()
        release()
        signal.signal(signal.SIGTERM, old_end)
        log.detach()
        if _join(set(threading.enumerate()) - others):
            garbage.stop()
        qInstallMessageHandler(None)
