"""Run a pure function off the GUI thread; only the newest request reports."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from PySide6.QtCore import QObject, Signal

from devtools_app.jobs.gui_thread import gui_thread

_LOG = logging.getLogger(__name__)
_WAIT = 0.1  # seconds that work lets the GUI thread finish what asked for it
_TURN = 0.1  # seconds of work before other work begins beside it
_JOIN_SECONDS = 2.0  # how long closing the window may wait for work that ignores its token
Result = TypeVar("Result")


class Cancelled(Exception):  # noqa: N818 - an outcome, not an error
    """Raised inside the work by ``Token.check`` when a newer request exists."""


class Token(threading.Event):
    """Cancellation token of a computation."""

    def check(self) -> None:
        """Raise Cancelled if the computation was cancelled."""
        if self.is_set():
            raise Cancelled


Work = Callable[[Token], object]


class _ShortFirst:
    """Lets short pieces of work run one after the other.

    Threads share one interpreter: three at a time are not faster, but leave the GUI thread a
    quarter of it instead of half.
    """

    def __init__(self) -> None:
        self._free = threading.Condition()
        self._holder: Token | None = None
        self._ends = 0.0

    def begin(self, token: Token) -> None:
        """Wait until other work is done or takes long."""
        with self._free:
            while (left := self._ends - time.perf_counter()) > 0 and not token.is_set():
                self._free.wait(left)
            self._holder, self._ends = token, time.perf_counter() + _TURN

    def end(self, token: Token) -> None:
        """Let the next work begin."""
        with self._free:
            if self._holder is token:
                self._holder, self._ends = None, 0.0
                self._free.notify_all()


_SHORT_FIRST = _ShortFirst()


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    work: Work
    token: Token


class Latest(QObject):
    """One slot for work in a separate thread: a new request cancels the running one.

    The thread ends when idle, so an idle runner has no cost and leaves
    no thread at exit. Results are delivered on the GUI thread, where this object has to live.

    Signals:
        started(): a request was accepted
        ready(result): the newest request has finished
        failed(error): the newest request raised
        ended(): the newest request has ended in any way; not sent for replaced ones
    """

    started = Signal()
    ready = Signal(object)
    failed = Signal(object)
    ended = Signal()

    def __init__(self, name: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._name = name
        self._lock = threading.Lock()
        self._newest: _Job | None = None
        self._waiting: _Job | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        self._gui = gui_thread()

    @property
    def busy(self) -> bool:
        """Return whether a result is pending."""
        return self._newest is not None

    def submit(self, work: Work) -> Token:
        """Replace the former request; return the token of the new one."""
        job = _Job(work, Token())
        with self._lock:
            if self._closed:
                job.token.set()
                return job.token
            if self._newest is not None:
                self._newest.token.set()
            self._newest = self._waiting = job
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
        self.started.emit()
        return job.token

    def cancel(self) -> None:
        """Drop the newest request; only ``ended`` is emitted for it."""
        with self._lock:
            job, self._newest, self._waiting = self._newest, None, None
        if job is not None:
            job.token.set()
            self.ended.emit()

    def close(self) -> None:
        """Cancel all requests and wait shortly for the thread to end."""
        with self._lock:
            self._closed = True
            thread = self._thread
        self.cancel()
        if thread is not None:
            thread.join(_JOIN_SECONDS)
            if thread.is_alive():
                _LOG.warning("%s did not stop in time", self._name)

    def _take(self) -> _Job | None:
        with self._lock:
            job, self._waiting = self._waiting, None
            if job is None:
                self._thread = None
            return job

    def _run(self) -> None:
        while (job := self._take()) is not None:
            result: object = None
            error: BaseException | None = None
            self._gui.ask().wait(_WAIT)
            _SHORT_FIRST.begin(job.token)
            try:
                job.token.check()
                result = job.work(job.token)
            except BaseException as caught:  # noqa: BLE001 - reported on the GUI thread
                error = caught
            finally:
                _SHORT_FIRST.end(job.token)
            self._hand_over(job, result, error)

    def _hand_over(self, job: _Job, result: object, error: BaseException | None) -> None:
        if job.token.is_set() or self._closed:
            return
        self._gui.post(self, self._deliver, job, result, error)

    def _deliver(self, job: _Job, result: object, error: BaseException | None) -> None:
        if job is not self._newest or job.token.is_set():
            return
        self._newest = None
        if error is None:
            self.ready.emit(result)
        elif not isinstance(error, Cancelled):
            self.failed.emit(error)
        self.ended.emit()
