"""Channel of the worker: JSON lines on a private descriptor, so that prints cannot interfere."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any


class Channel:
    """Reserves the first three descriptors of the worker and replaces them for the user's code.

    The former standard output carries messages, the former standard input the job and, by
    its end, the exit of the parent. The user's code reads nothing and prints into the log.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._out = os.dup(1)
        self._in = os.dup(0)
        self._leave: Callable[[], object] = self._remove_unread
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._become_copy)
        os.dup2(2, 1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        sys.stdout = open(  # noqa: SIM115 - for as long as the process lives
            1, "w", encoding="utf-8", errors="replace", buffering=1, closefd=False
        )
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115

    def _become_copy(self) -> None:
        """Prevent a process forked by the user's code from sending messages or outliving this one.

        A forked copy that continued would compile and answer a second time.
        """
        for descriptor in (self._out, self._in):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._out = self._in = -1  # the descriptors may be reused for files of the user
        self._lock = threading.Lock()  # another thread may have held it

    def send(self, kind: str, **content: object) -> None:
        """Send a message; a forked copy prints warnings, and exits for any other message."""
        if self._out < 0:
            _print_in_fork(kind, content)
            return
        data = json.dumps({"type": kind, **content}).encode() + b"\n"
        with self._lock:
            try:
                while data:
                    data = data[os.write(self._out, data) :]
            except OSError:  # the parent has exited, or the user's code has closed it
                self._leave()
                os._exit(1)

    def _remove_unread(self) -> None:
        """Remove leftover job folders when the parent has exited."""
        data = b""
        with contextlib.suppress(OSError):
            while piece := os.read(self._in, 65536):
                data += piece
        for line in data.splitlines():
            with contextlib.suppress(ValueError):  # cut off
                remove_folder(json.loads(line))

    def receive(self) -> dict[str, Any]:
        """Return the job; exits if the parent exits before sending one."""
        data = bytearray()
        while not data.endswith(b"\n"):
            piece = os.read(self._in, 65536)
            if not piece:
                os._exit(0)
            data += piece
        return json.loads(data)

    def follow(self, take: Callable[[dict[str, Any]], None], leave: Callable[[], None]) -> None:
        """Pass on every further message of the parent; exit when it exits.

        Args:
            take: called with each message, on a separate thread
            leave: called before the exit
        """

        def listen() -> None:
            data = b""
            with contextlib.suppress(OSError):
                while piece := os.read(self._in, 65536):
                    *lines, data = (data + piece).split(b"\n")
                    for line in lines:
                        take(json.loads(line))
            leave()
            os._exit(0)

        self._leave = leave
        threading.Thread(target=listen, daemon=True).start()

    def leave_with_parent(self, working: str) -> None:
        """Exit and remove the folder when the parent exits."""

        def watch() -> None:
            with contextlib.suppress(OSError):  # the user's code may close what it did not open
                while os.read(self._in, 4096):
                    pass
                self._leave()
                os._exit(1)

        self._leave = lambda: shutil.rmtree(working, ignore_errors=True)
        threading.Thread(target=watch, daemon=True).start()


def remove_folder(request: Mapping[str, Any]) -> None:
    """Remove the folder that a job was given to write into, if it was."""
    if request.get("folder"):
        shutil.rmtree(request["folder"], ignore_errors=True)


def _print_in_fork(kind: str, content: Mapping[str, object]) -> None:
    """Print a warning of a forked copy; a copy that continues as the worker exits."""
    if kind not in ("warning", "log"):
        os._exit(1)
    with contextlib.suppress(OSError, ValueError):
        os.write(2, f"{content.get('text', '')}\n".encode("utf-8", "replace"))
