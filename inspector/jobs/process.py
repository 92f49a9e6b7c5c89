"""The worker as a child process: started, listened to, stopped, and survived."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from inspector.jobs.import_noise import is_import_noise
from inspector.jobs.messages import Ended, Log, Message, Outcome, Ready, StageProgress, message_from
from inspector.jobs.table import COMPILES

WORKER = Path(__file__).parents[1] / "worker" / "__main__.py"
GRACE_SECONDS = 2.0  # between requesting a worker to end and killing it
_KEPT_LINES = 2_000  # limit for unread output of the user's code
_KEPT_EVENTS = 10_000  # unread messages: a flood from user code must not fill memory
_READ = 64 * 1024  # bytes at once
_LONGEST_LINE = 1 << 20  # bytes of the user's output; a longer one is cut
LONGEST_MESSAGE = 256 << 20  # bytes: a result may have a row for each token of a text
_AFTERWARDS = 1.0  # seconds to wait for output of a worker that has ended
_FRAME = re.compile(r'File "(?P<file>[^"<][^"]*)", line (?P<line>\d+)')
_LIBRARY = ("site-packages", f"{os.sep}torch{os.sep}", f"{os.sep}lib{os.sep}python")


class Worker:
    """A process that imports the libraries of its kind of job and then runs one.

    It can be started ahead of the job, since importing torch takes seconds. Threads read its
    messages
    into a bounded queue; ``take`` returns them, on any thread.
    """

    def __init__(self, kind: str = COMPILES, *, threads: int = 0) -> None:
        """Start the process.

        Args:
            kind: of the worker, such as ``COMPILES``
            threads: of the computing libraries, 0 for their default

        Raises: OSError if it cannot be started
        """
        self._process = started([sys.executable, str(WORKER), kind], _with_threads(threads))
        self.ready: Ready | None = None
        self._lock = threading.Condition()
        self._events: deque[Message] = deque(maxlen=_KEPT_EVENTS)
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._dropped = 0
        self._tail: deque[str] = deque(maxlen=200)
        self._stage = "start"
        self._reported: Outcome | None = None
        self._outcome: Outcome | None = None
        self._stopping: Ended | None = None
        self._threads = [
            threading.Thread(target=self._read_messages, name="worker messages", daemon=True),
            threading.Thread(target=self._read_log, name="worker log", daemon=True),
            threading.Thread(target=self._end_group, name="worker group", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def outcome(self) -> Outcome | None:
        """Return the outcome, None while the job runs."""
        return self._outcome

    @property
    def pid(self) -> int:
        """Return the id of the process."""
        return self._process.pid

    def send(self, request: dict[str, Any]) -> None:
        """Hand over the job; a worker that has ended has its outcome."""
        data = json.dumps(request).encode() + b"\n"
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            while data:  # a pipe may accept a part only
                data = data[self._process.stdin.write(data) or 0 :]

    def take(self, timeout: float = 0.0) -> list[Message]:
        """Return the messages since the last call, waiting for the first one.

        Args:
            timeout: longest wait in seconds
        """
        with self._lock:
            if not self._events and not self._lines and self._outcome is None:
                self._lock.wait(timeout)
            found: list[Message] = list(self._events)
            if self._dropped:
                found.append(Log(f"({self._dropped:,} lines omitted)"))
            found += [Log(line, library=is_import_noise(line)) for line in self._lines]
            self._events.clear()
            self._lines.clear()
            self._dropped = 0
            return found

    def stop(self, ended: Ended = Ended.CANCELLED) -> None:
        """Request the process to end and kill it if it does not; returns immediately.

        Args:
            ended: of the outcome
        """
        with self._lock:
            if self._outcome is not None or self._stopping is not None:
                return
            self._stopping = ended
        _signal(self._process, hard=False)
        threading.Thread(target=self._end, name="worker end", daemon=True).start()

    def kill(self) -> None:
        """End the process now."""
        with self._lock:
            self._stopping = self._stopping or Ended.CANCELLED
        _signal(self._process, hard=True)

    def wait(self, timeout: float | None = None) -> Outcome | None:
        """Return the outcome, None after a timeout."""
        until = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            while self._outcome is None:
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    break
                self._lock.wait(left)
            return self._outcome

    def close(self) -> None:
        """End the process if it runs and release everything."""
        if self._outcome is None:
            self.kill()
            self.wait(GRACE_SECONDS)
        for thread in self._threads:
            thread.join(_AFTERWARDS)

    def when_released(self, action: Callable[[], object]) -> None:
        """Call back when the folder of the job is no longer written: here immediately."""
        action()

    def _end(self) -> None:
        try:
            self._process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            _signal(self._process, hard=True)

    # -- threads ---------------------------------------------------------------------------

    def _read_messages(self) -> None:
        with _pipe(self._process.stdout) as stream:
            for line in lines_of(stream, LONGEST_MESSAGE):
                self._take_message(line)
        self._over()

    def _take_message(self, line: str) -> None:
        try:
            found = message_from(json.loads(line))
        except (ValueError, RecursionError):
            return  # written to the channel by the user's code: ignored
        with self._lock:
            if isinstance(found, Outcome):
                self._reported = found
            elif found is not None:
                if isinstance(found, Ready):
                    self.ready = found
                if isinstance(found, StageProgress) and found.seconds is None:
                    self._stage = found.stage
                self._events.append(found)
                self._lock.notify_all()

    def _read_log(self) -> None:
        with _pipe(self._process.stderr) as stream:
            for line in lines_of(stream, _LONGEST_LINE):
                with self._lock:
                    self._dropped += len(self._lines) == _KEPT_LINES
                    self._lines.append(line)
                    self._tail.append(line)
                    self._lock.notify_all()
                self._take_line(line)

    def _take_line(self, line: str) -> None:
        """Handle a printed line."""

    def _end_group(self) -> None:
        """End processes that the user's code started: they may keep the channel open."""
        self._process.wait()
        _signal_group(self._process.pid)

    def _over(self) -> None:
        """Determine the outcome of the process, which has closed its channel."""
        try:
            code = self._process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            _signal(self._process, hard=True)
            code = self._process.wait()
        self._threads[2].join(_AFTERWARDS)
        self._threads[1].join(_AFTERWARDS)
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        with self._lock:
            self._outcome = self._judged(code)
            self._lock.notify_all()

    def _judged(self, code: int) -> Outcome:
        finished = self._reported is not None and self._reported.ended is Ended.FINISHED
        if self._stopping is not None and not finished:
            words = "cancelled" if self._stopping is Ended.CANCELLED else "stopped: timed out"
            return Outcome(self._stopping, f"{words} in stage {self._stage}")
        file, line = _crash_place(list(self._tail))
        if self._reported is not None:
            if finished or self._reported.file or not file:
                return self._reported
            reported = f"{file}:{line}: {self._reported.sentence}"
            return replace(self._reported, sentence=reported, file=file, line=line)
        place = f"{file}:{line}: " if file else ""
        sentence = f"{place}{_crash_text(code)} in stage {self._stage}"
        details = "\n".join(self._tail)
        return Outcome(Ended.CRASHED, sentence, file=file, line=line, details=details)


def started(command: list[str], env: dict[str, str] | None) -> subprocess.Popen[bytes]:
    """Start a process in a new process group, with a pipe for each standard stream."""
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        start_new_session=os.name == "posix",  # Ctrl+C is for the parent; a group can be ended
        env=env,
    )


def _with_threads(threads: int) -> dict[str, str] | None:
    """Return the environment for a number of threads, None to inherit it."""
    if not threads:
        return None
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return {**os.environ, **dict.fromkeys(names, str(threads))}


def _crash_text(code: int) -> str:
    if code >= 0:
        return f"the process was ended from inside (exit code {code})"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    if name == "SIGKILL":
        return "the process was killed (SIGKILL), most likely because memory ran out,"
    return f"the process crashed ({name})"


def _crash_place(lines: list[str]) -> tuple[str, int]:
    """Return the innermost line of the user's code in the stack of a crash."""
    starts = [at for at, line in enumerate(lines) if line.startswith("Fatal Python error")]
    own = str(WORKER.parents[1])
    for line in lines[starts[-1] :] if starts else ():
        found = _FRAME.search(line)
        if found is None or found["file"].startswith(own):
            continue
        if not any(part in found["file"] for part in _LIBRARY):
            return found["file"], int(found["line"])
    return "", 0


@contextlib.contextmanager
def _pipe(stream: IO[bytes] | None) -> Any:  # noqa: ANN401 - a context of the stream
    assert stream is not None
    try:
        yield stream
    finally:
        stream.close()


def lines_of(stream: IO[bytes], longest: int) -> Any:  # noqa: ANN401 - an iterator of text
    """Yield lines as they arrive; one beyond some bytes comes in pieces."""
    parts: list[bytes] = []
    size = 0
    while True:
        try:
            data = os.read(stream.fileno(), _READ)
        except OSError:
            data = b""
        if not data:
            break
        *whole, rest = data.split(b"\n")
        for line in whole:
            yield b"".join((*parts, line)).decode("utf-8", "replace")
            parts, size = [], 0
        parts.append(rest)
        size += len(rest)
        if size > longest:
            yield b"".join(parts).decode("utf-8", "replace")
            parts, size = [], 0
    if size:
        yield b"".join(parts).decode("utf-8", "replace")


def _signal(process: subprocess.Popen[bytes], *, hard: bool) -> None:
    if process.poll() is not None:
        return
    if os.name != "posix":
        process.kill()
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL if hard else signal.SIGTERM)


def _signal_group(group: int) -> None:
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
