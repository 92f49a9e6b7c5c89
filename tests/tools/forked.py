"""Processes of tests as forks of one that has loaded torch: each one costs seconds less.

`inspector.jobs.process` starts a worker with `started`; a session of tests puts `Forks.started` in
its place. Tests about processes themselves use the fixture `real_workers`. Scripts that import the
stock tool are run by `run_stock`.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import functools
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = Path(__file__).with_name("forking.py")
ALONE = {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
WORKER = ("exporter", "lowering", "compile_job", "executing", "gap_job", "bisect_job", "__main__")
STOCK = (
    "executorch.exir",
    "executorch.devtools",
    "executorch.runtime",
    "executorch.backends.xnnpack.partition.xnnpack_partitioner",
    "tests.tools.stock_patterns",
)
# What a process that runs already does not look at again.
_READ_AT_START = ("PYTHON", "LD_", "OMP_", "MKL_", "KMP_", "TORCH", "OPENBLAS")


class Forked:
    """A process as ``subprocess.Popen`` would show it."""

    def __init__(self, pid: int, streams: list[int], answer: socket.socket) -> None:
        self.pid = pid
        self.args: list[str] = []
        self.returncode: int | None = None
        self.stdin = io.FileIO(streams[0], "w")
        self.stdout = io.FileIO(streams[1], "r")
        self.stderr = io.FileIO(streams[2], "r")
        self._ended = threading.Event()
        threading.Thread(target=self._listen, args=(answer,), daemon=True).start()

    def _listen(self, answer: socket.socket) -> None:
        with answer, answer.makefile("rb") as lines:
            said = lines.readline()
        self.returncode = int(said) if said else -9  # the template is gone, and its forks with it
        self._ended.set()

    def poll(self) -> int | None:
        """Return the exit code, None while it runs."""
        return self.returncode

    def kill(self) -> None:
        """End it now."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code as soon as there is one."""
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        assert self.returncode is not None
        return self.returncode


class Forks:
    """Starts the template when the first process is wanted."""

    def __init__(self, real: Callable[..., Any], modules: Sequence[str], **env: str) -> None:
        """Take what starts a real process, what the template imports, and its environment."""
        self._real = real
        self._modules = modules
        self._env = env
        self._lock = threading.Lock()
        self._door: socket.socket | None = None
        self._template: subprocess.Popen[bytes] | None = None
        self._seen: dict[str, str] = {}

    def started(self, command: list[str], env: dict[str, str] | None) -> Any:
        """Start a command: a fork, or a process where its environment is one of its own."""
        with self._lock:
            if env is not None or (self._door and self._seen != _read_at_start()):
                return self._real(command, env)
            return self.forked(command[1:])

    def _open(self) -> None:
        self._seen = _read_at_start()
        self._door, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            source = TEMPLATE.read_text("utf-8")  # frames without a file: they are not the user's
            self._template = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    source,
                    str(other.fileno()),
                    str(ROOT),
                    json.dumps(self._modules),
                ],
                env=os.environ | self._env,
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def forked(
        self, command: Sequence[str], cwd: Path | None = None, *, quiet: bool = False, **env: str
    ) -> Forked:
        """Start a fork that runs what ``python COMMAND…`` runs; a quiet one drops its errors."""
        if self._door is None:
            self._open()
        assert self._door is not None
        pipes = [os.pipe() for _ in range(3)]
        if quiet:
            os.close(pipes[2][1])
            pipes[2] = (pipes[2][0], os.open(os.devnull, os.O_WRONLY))
        theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
        ours = [pipes[0][1], pipes[1][0], pipes[2][0]]
        answer, other = socket.socketpair()
        request = {
            "command": [str(word) for word in command],
            "cwd": str(cwd or Path.cwd()),
            "env": os.environ | env,
        }
        with other:
            numbers = array.array("i", [*theirs, other.fileno()])
            parts = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)]
            self._door.sendmsg([json.dumps(request).encode()], parts)
        for number in theirs:
            os.close(number)
        return Forked(_number(answer), ours, answer)

    def close(self) -> None:
        """End the template."""
        if self._door is not None:
            self._door.close()
        if self._template is not None:
            self._template.wait(10)


def run_stock(
    arguments: Sequence[object], *, cwd: Path = ROOT, check: bool = True, timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run ``python ARGUMENTS…`` where the stock tool is loaded already, to the end."""
    words = [str(word) for word in arguments]
    process = stock_forks().forked(words, cwd)
    process.stdin.close()
    with process.stdout, process.stderr, ThreadPoolExecutor(2) as readers:
        output, errors = (readers.submit(one.read) for one in (process.stdout, process.stderr))
        code = process.wait(timeout)
        texts = [part.result(timeout).decode(errors="replace") for part in (output, errors)]
    if code < 0 and check:  # a signal: a fork may inherit a lock that stock's library holds
        return subprocess.run(
            [sys.executable, *words],
            cwd=cwd,
            env=os.environ | ALONE,
            text=True,
            capture_output=True,
            check=True,
            timeout=timeout,
        )
    assert code == 0 or not check, texts[1][-4000:]
    return subprocess.CompletedProcess(words, code, *texts)


@functools.cache
def stock_forks() -> Forks:
    """Return what starts forks of a process that has loaded the stock tool."""
    forks = Forks(subprocess.Popen, STOCK, **ALONE)
    atexit.register(forks.close)
    return forks


def _number(answer: socket.socket) -> int:
    """Return the number of the first line that comes, byte by byte: the rest is read later."""
    data = b""
    while not data.endswith(b"\n"):
        piece = answer.recv(1)
        if not piece:
            raise OSError("the process that workers are forked from has ended")
        data += piece
    return int(data)


def _read_at_start() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key.startswith(_READ_AT_START)}
