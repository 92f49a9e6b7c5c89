"""Imports modules in a thread: what is wanted now comes before what may be wanted later.

While a screen reader looks at the window they are imported on the GUI thread instead, one at a
time between events: it makes Qt ask Python about widgets at any moment, which ends the process
if a thread defines classes of widgets just then.
"""

from __future__ import annotations

import gc
import importlib
import linecache
import logging
import math
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.abc import MetaPathFinder
from types import ModuleType

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QAccessible
from shiboken6 import Shiboken, isValid
from typing_extensions import override

from devtools_app.jobs.gui_thread import gui_thread

_LOG = logging.getLogger(__name__)
_JOIN_SECONDS = 5.0  # how long closing the window may wait for the module being imported
_TURN = 0.002  # seconds of importing before the GUI thread is asked whether it is busy
_ROOM = 1500  # types that a thread may define; those of the views are 360
_WAIT = 0.1  # seconds that it is waited for, once: it may want the module that is half imported


@cache
def make_room_for_types() -> None:
    """Let the table of types of Qt for Python grow before a thread defines some.

    Before Python 3.12 the data of a type are in a hash table, which the GUI thread reads without
    the lock of the interpreter. While it grows for a type of another thread it has none of them,
    and the process ends by a segmentation fault. It never shrinks.
    """
    if sys.version_info >= (3, 12):
        return
    collects = gc.isenabled()
    gc.disable()  # all of them stay in the youngest generation
    types = [type("Room", (Shiboken.Object,), {}) for _ in range(_ROOM)]
    del types
    gc.collect(0)
    if collects:
        gc.enable()


def is_imported(name: str) -> bool:
    """Return whether a module is there with its content: it exists before that."""
    module = sys.modules.get(name)
    return module is not None and not getattr(module.__spec__, "_initializing", False)


def import_later(name: str) -> bool:
    """Return whether a module is there; else import it in a thread, to be asked for again."""
    if is_imported(name):
        return True
    if QAccessible.isActive():
        importlib.import_module(name)
        return True
    _import_in_thread(name)
    return False


class _Turns(MetaPathFinder):
    """Finds no module; before each one a thread that imports lets the GUI thread finish.

    Without it an event that took 50 to 70 ms of its own took 150 to 330 beside two such threads.
    """

    def __init__(self, thread: int) -> None:
        self._thread = thread
        self._turn_ends = 0.0
        self._answered: threading.Event | None = None
        self._gui = gui_thread()

    @override
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        if threading.get_ident() != self._thread or time.perf_counter() < self._turn_ends:
            return
        if self._answered is None or self._answered.is_set():
            self._answered = self._gui.ask()
            self._answered.wait(_WAIT)
        self._turn_ends = max(time.perf_counter() + _TURN, self._turn_ends)

    def hurry(self) -> None:
        """Wait no more: the GUI thread waits for the thread to end."""
        self._turn_ends = math.inf


@contextmanager
def _in_turns() -> Iterator[None]:
    """Import in turns with the GUI thread; in another thread."""
    turns = _Turns(threading.get_ident())
    sys.meta_path.insert(0, turns)
    try:
        yield
    finally:
        sys.meta_path.remove(turns)


@cache  # one that fails is reported once
def _import_in_thread(name: str) -> None:
    gui_thread()  # of the thread that calls it first, which is this one
    make_room_for_types()

    def imported() -> None:
        with _in_turns():
            importlib.import_module(name)

    threading.Thread(target=imported, name=f"importing {name}", daemon=True).start()


class Imports(QObject):
    """Modules that are imported off the GUI thread once it was started.

    Before that, and afterwards, whoever needs a module imports it himself.

    Signals:
        arrived(name): a module is there; sent on the GUI thread
    """

    arrived = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._lock = threading.Lock()
        self._queue: deque[str] = deque()
        self._failed: set[str] = set()
        self._thread: threading.Thread | None = None
        self._running = False
        self._slices = QTimer(self)
        self._slices.timeout.connect(self._import_next)
        self._gui = gui_thread()

    def start(self, modules: Iterable[str]) -> None:
        """Begin to import modules, in this order."""
        make_room_for_types()
        self._running = True
        self._add(modules, first=False)

    def stop(self) -> None:
        """Wait for the current module; skip the others."""
        with self._lock:
            self._running = False
            self._queue.clear()
            thread = self._thread
        self._slices.stop()
        for one in sys.meta_path:
            if isinstance(one, _Turns):
                one.hurry()
        if thread is not None:
            thread.join(_JOIN_SECONDS)

    def ready(self, module: str) -> bool:
        """Return whether a module can be used without a wait; else it is imported next.

        A module that cannot be imported is ready: who imports it reports why.
        """
        if not self._running or is_imported(module) or module in self._failed:
            return True
        self._add((module,), first=True)
        return False

    def _add(self, modules: Iterable[str], *, first: bool) -> None:
        with self._lock:
            for module in modules:
                if first and module in self._queue:
                    self._queue.remove(module)
                (self._queue.appendleft if first else self._queue.append)(module)
            if self._thread is not None or not self._running:
                return
            if QAccessible.isActive():
                self._slices.start()
            else:
                self._thread = threading.Thread(target=self._run, name="importing", daemon=True)
                self._thread.start()

    def _next(self) -> str | None:
        with self._lock:
            if self._queue:
                return self._queue.popleft()
            self._thread = None
        linecache.clearcache()  # Qt for Python has read the source of each module: 10 MiB
        return None

    def _run(self) -> None:
        with _in_turns():
            while not QAccessible.isActive():
                name = self._next()
                if name is None or not self._import(name):
                    return
        with self._lock:
            self._thread = None
        self._gui.post(self, self._slices.start)  # a screen reader looks

    def _import_next(self) -> None:
        """Import one module on the GUI thread."""
        name = self._next()
        if name is None:
            self._slices.stop()
        else:
            self._import(name)

    def _import(self, name: str) -> bool:
        """Import a module; return whether anyone is left to hear of it."""
        try:
            importlib.import_module(name)
        except Exception:  # noqa: BLE001 - the view that needs the module reports it
            _LOG.exception("%s cannot be imported", name)
            self._failed.add(name)
        self._gui.post(self, self.arrived.emit, name)
        return isValid(self)
