"""The parent's side of the process in which the real kernels run."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import mmap
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import torch

from runtime.backends.xnnpack.native.child import NO_MEMORY
from runtime.errors import OF_PAYLOAD, ErrorCode, ExecutionError
from runtime.untyped import from_buffer

_CHILD = Path(__file__).with_name("child.py")
_LIBRARY = "libexecutorch_backend_xnnpack.so"
_THREADS = "libexecutorch_threadpool.so"
_PACKAGE = "executorch"
ALIGNMENT = 64  # XNN_ALLOCATION_ALIGNMENT
SPARE = 128  # XNN_EXTRA_BYTES
"""Bytes after every tensor, since kernels may read a little past the end."""


def library_folder() -> Path | None:
    """Return the folder of the installed library, None if not installed; nothing is imported."""
    found = importlib.util.find_spec(_PACKAGE)
    for place in (found.submodule_search_locations or ()) if found is not None else ():
        folder = Path(place) / "lib"
        if (folder / _LIBRARY).is_file() and (folder / _THREADS).is_file():
            return folder
    return None


class SharedRegion:
    """Memory shared by both processes.

    Args:
        number: id of the region in the child
        size: in bytes
    """

    def __init__(self, number: int, size: int) -> None:
        self.number = number
        self.size = max(size, 1)
        with contextlib.ExitStack() as stack:
            self.file = _shared_file(stack)
            os.ftruncate(self.file, self.size)
            self._map = mmap.mmap(self.file, self.size)
            stack.pop_all()

    def bytes_at(self, offset: int, size: int) -> memoryview:
        """Return a writable range of it."""
        return memoryview(self._map)[offset : offset + size]

    def tensor(self, dtype: torch.dtype, sizes: Sequence[int], offset: int) -> torch.Tensor:
        """Return a tensor over a range of it."""
        count = 1
        for size in sizes:
            count *= size
        if not count:
            return torch.empty(tuple(sizes), dtype=dtype)
        return from_buffer(self._map, dtype, count, offset).reshape(tuple(sizes))

    @property
    def memory(self) -> mmap.mmap:
        """Return its map."""
        return self._map

    def close_file(self) -> None:
        """Close the file; the memory stays mapped."""
        os.close(self.file)


def _shared_file(stack: contextlib.ExitStack) -> int:
    if hasattr(os, "memfd_create"):
        created = os.memfd_create("etscope")
    else:
        created, path = tempfile.mkstemp()
        Path(path).unlink()
    stack.callback(os.close, created)
    return created


class Kernels(Protocol):
    """The real kernels, in this process or a child."""

    @property
    def alive(self) -> bool:
        """Return whether they accept requests."""
        ...

    @property
    def direct(self) -> bool:
        """Return whether they can access all memory of this process."""
        ...

    def number(self) -> int:
        """Return an unused id."""
        ...

    def region(self, size: int) -> SharedRegion:
        """Return new memory that they can access."""
        ...

    def discard(self, handles: list[int], regions: list[int]) -> None:
        """Free runtimes and regions, at the latest before the next request."""
        ...

    def ask(self, verb: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """Return the reply to a request.

        Raises: LibraryRefusedError with the library's status; ExecutionError when they have ended
        """
        ...


class KernelProcess:
    """A child process that runs the native kernels.

    Args:
        folder: of the library
        threads: number of threads

    Raises: ExecutionError NotSupported if the process does not start
    """

    direct = False

    def __init__(self, folder: Path, threads: int) -> None:
        self._next = 0
        self._lock = threading.RLock()
        self._discarded: list[tuple[int, list[int]]] = []
        parent_socket, child_socket = socket.socketpair()
        self._link = parent_socket
        with child_socket:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_CHILD), str(child_socket.fileno())],
                pass_fds=[child_socket.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        self._end = weakref.finalize(self, _end, parent_socket, self._process)
        self.build = str(self.ask("hello", folder=str(folder), threads=threads)["build"])

    @property
    def alive(self) -> bool:
        """Return whether the process runs."""
        return self._process.poll() is None

    def number(self) -> int:
        """Return an unused id."""
        with self._lock:
            self._next += 1
            return self._next

    def region(self, size: int) -> SharedRegion:
        """Return new shared memory."""
        created = SharedRegion(self.number(), size)
        question = {"verb": "region", "id": created.number, "size": created.size}
        try:
            with self._lock:
                self._send(question, created.file)
                self._answer("region")
        finally:
            created.close_file()
        return created

    def discard(self, handles: list[int], regions: list[int]) -> None:
        """Free runtimes and regions before the next request; callable from finalizers."""
        self._discarded += [(0, handles), (1, regions)]

    def ask(self, verb: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """Return the reply to a request.

        Raises: ExecutionError with the library's status, or that the process has ended
        """
        with self._lock:
            self._tidy()
            self._send({"verb": verb, **arguments})
            return self._answer(verb)

    def _tidy(self) -> None:
        sides: tuple[list[int], list[int]] = ([], [])
        while self._discarded:
            side, ids = self._discarded.pop()
            sides[side].extend(ids)
        if any(sides):
            self._send({"verb": "delete", "handles": sides[0], "regions": sides[1]})
            self._answer("delete")

    def _send(self, question: dict[str, Any], file: int | None = None) -> None:
        data = json.dumps(question).encode()
        head = struct.pack("<I", len(data))
        try:
            if file is None:
                self._link.sendall(head + data)
            else:
                socket.send_fds(self._link, [head], [file])
                self._link.sendall(data)
        except OSError:
            raise self._ended(question["verb"]) from None

    def _answer(self, verb: str) -> dict[str, Any]:
        (size,) = struct.unpack("<I", self._read(4, verb))
        answer: dict[str, Any] = json.loads(self._read(size, verb))
        if "refused" in answer:
            raise LibraryRefusedError(str(answer["refused"]), answer.get("node"))
        return answer

    def _read(self, size: int, verb: str) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                more = self._link.recv(size - len(data))
            except OSError:
                more = b""
            if not more:
                raise self._ended(verb)
            data += more
        return bytes(data)

    def _ended(self, verb: str) -> ExecutionError:
        code = self._process.wait(timeout=60)
        how = f"signal {-code}" if code < 0 else f"code {code}"
        return ExecutionError(
            ErrorCode.Internal,
            f"the process of the real kernels ended with {how} at {verb!r}",
            remedy="Load the method with engine='torch'.",
        )

    def close(self) -> None:
        """End the process."""
        self._end()


def _end(link: socket.socket, process: subprocess.Popen[bytes]) -> None:
    link.close()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(timeout=60)


class LibraryRefusedError(ExecutionError):
    """A request that the library refused.

    Attributes:
        node: index of the node, None where it is unknown
    """

    def __init__(self, reason: str, node: int | None) -> None:
        if reason.endswith(NO_MEMORY):
            super().__init__(ErrorCode.DelegateMemoryAllocationFailed, reason)
        else:
            super().__init__(ErrorCode.DelegateInvalidCompatibility, reason, remedy=OF_PAYLOAD)
        self.node = node
