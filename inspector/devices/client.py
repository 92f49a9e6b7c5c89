"""Programs of this machine that reach a device (ssh, adb), with limits on time and output."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from inspector.devices.errors import DeviceError

_PIECE = 1 << 16
_KEPT = 1 << 14  # bytes of the end of standard error
_INSTALL = {
    "ssh": "install the OpenSSH client",
    "adb": "install Android's platform tools (Debian: apt-get install adb)",
}


@dataclass(frozen=True, slots=True)
class Called:
    """How a program ended.

    Attributes:
        code: exit code, negative for a signal
        error: end of its standard error
        timed_out: whether it was ended because it took too long
        too_much: whether it was ended because it printed too much
    """

    code: int
    error: str
    timed_out: bool = False
    too_much: bool = False


def call(
    command: Sequence[str],
    take: Callable[[bytes], object],
    *,
    timeout: float,
    limit: int,
    feed: Path | None = None,
) -> Called:
    """Run a program to its end.

    Args:
        command: its words; no shell is involved
        take: called with pieces of its standard output
        timeout: seconds
        limit: largest number of bytes of its output
        feed: file for its standard input, which otherwise stays open until it ends

    Raises: DeviceError if it is not installed; OSError for a file that cannot be read
    """
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(feed.open("rb")) if feed is not None else subprocess.PIPE
        try:
            process = subprocess.Popen(
                command, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except OSError as error:
            name = Path(command[0]).name
            words = _INSTALL.get(name, "check the command of the device")
            raise DeviceError(f"{name} cannot be started ({error.strerror}): {words}") from error
        return _followed(process, take, timeout, limit)


def _followed(
    process: subprocess.Popen[bytes], take: Callable[[bytes], object], timeout: float, limit: int
) -> Called:
    assert process.stdout is not None
    assert process.stderr is not None
    tail = bytearray()
    count = 0
    too_much = False

    def keep(data: bytes) -> None:
        tail.extend(data)
        del tail[:-_KEPT]

    def took(data: bytes) -> None:
        nonlocal count, too_much
        count += len(data)
        if count > limit:
            too_much = True
            process.kill()
        elif not too_much:
            take(data)

    readers = [
        threading.Thread(target=_read, args=(stream, to), daemon=True)
        for stream, to in ((process.stdout, took), (process.stderr, keep))
    ]
    for reader in readers:
        reader.start()
    timed_out = False
    try:
        process.wait(timeout)
    except subprocess.TimeoutExpired:
        timed_out = True
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        for reader in readers:
            reader.join(1.0)
    return Called(process.returncode, tail.decode("utf-8", "replace"), timed_out, too_much)


def _read(stream: IO[bytes], take: Callable[[bytes], object]) -> None:
    with stream:
        while data := os.read(stream.fileno(), _PIECE):
            take(data)
