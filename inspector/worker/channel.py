"""How the worker talks: JSON lines on a descriptor of its own, so that no print gets in between."""

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
    """Takes the worker's first three descriptors for itself and gives the user's code others.

    What was standard output carries messages, what was standard input carries the job and, by
    ending, shows that the parent is gone. The user's code reads nothing and prints into the log.
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
        """Let a process that the user's code has forked neither speak for this one nor outlive it.

        A copy that went on from where it was made would compile a second time and answer twice.
        """
        for descriptor in (self._out, self._in):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._out = self._in = -1  # the numbers may come to stand for files of the user
        self._lock = threading.Lock()  # another thread may have held it

    def send(self, kind: str, **content: object) -> None:
        """Send a message; a forked copy prints what it warns of, and ends at anything else."""
        if self._out < 0:
            _say_in_copy(kind, content)
            return
        data = json.dumps({"type": kind, **content}).encode() + b"\n"
        with self._lock:
            try:
                while data:
                    data = data[os.write(self._out, data) :]
            except OSError:  # the parent is gone, or the user's code has closed it
                self._leave()
                os._exit(1)

    def _remove_unread(self) -> None:
        """Remove the folders of jobs left over when the parent is gone."""
        data = b""
        with contextlib.suppress(OSError):
            while piece := os.read(self._in, 65536):
                data += piece
        for line in data.splitlines():
            with contextlib.suppress(ValueError):  # cut off
                _remove(json.loads(line))

    def receive(self) -> dict[str, Any]:
        """Return the job; ends the process if the parent is gone before there is one."""
        data = bytearray()
        while not data.endswith(b"\n"):
            piece = os.read(self._in, 65536)
            if not piece:
                os._exit(0)
            data += piece
        return json.loads(data)

    def follow(self, take: Callable[[dict[str, Any]], None], leave: Callable[[], None]) -> None:
        """Hand over every further message of the parent; end this process when it is gone.

        Args:
            take: given each message, on a thread of its own
            leave: called before the end
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
        """End this process and remove its folder when the parent is gone."""

        def watch() -> None:
            with contextlib.suppress(OSError):  # the user's code may close what it did not open
                while os.read(self._in, 4096):
                    pass
                self._leave()
                os._exit(1)

        self._leave = lambda: shutil.rmtree(working, ignore_errors=True)
        threading.Thread(target=watch, daemon=True).start()


def _remove(request: dict[str, Any]) -> None:
    """Remove the folder that a job was given to write into, if it was."""
    if request.get("folder"):
        shutil.rmtree(request["folder"], ignore_errors=True)


def _say_in_copy(kind: str, content: Mapping[str, object]) -> None:
    """Print a warning of a forked copy; one that went on as if it were the worker ends."""
    if kind not in ("warning", "log"):
        os._exit(1)
    with contextlib.suppress(OSError, ValueError):
        os.write(2, f"{content.get('text', '')}\n".encode("utf-8", "replace"))
