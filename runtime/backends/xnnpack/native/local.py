"""The real kernels in this process, which may crash with them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from runtime.backends.xnnpack.native.child import KernelModel, Server
from runtime.backends.xnnpack.native.process import LibraryRefusedError, SharedRegion


class LocalKernels:
    """The library opened in this process: no messages, no copies.

    Args:
        folder: of the library
        threads: how many threads it may use

    Raises: LibraryRefusedError if it cannot be opened
    """

    alive = True
    direct = True

    def __init__(self, folder: Path, threads: int) -> None:
        self._server = Server()
        self._next = 0
        self.lock = threading.RLock()
        """Held while the library works: runtimes share its workspace."""
        self._discarded: list[tuple[list[int], list[int]]] = []
        self.ask("hello", folder=str(folder), threads=threads)

    def model(self, handle: int) -> KernelModel:
        """Return a runtime."""
        return self._server.model(handle)

    def number(self) -> int:
        """Return an unused id."""
        with self.lock:
            self._next += 1
            return self._next

    def region(self, size: int) -> SharedRegion:
        """Return new memory."""
        region = SharedRegion(self.number(), size)
        region.close_file()
        self._server.regions[region.number] = region.memory
        return region

    def discard(self, handles: list[int], regions: list[int]) -> None:
        """Free runtimes and regions before the next request; callable from finalizers."""
        self._discarded.append((handles, regions))

    def ask(self, verb: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - as of JSON
        """Return the reply to a request.

        Raises: LibraryRefusedError with the library's status
        """
        with self.lock:
            while self._discarded:
                handles, regions = self._discarded.pop()
                self._server.answer("delete", {"handles": handles, "regions": regions}, None)
            answer = self._server.answer(verb, arguments, None)
        if "refused" in answer:
            raise LibraryRefusedError(str(answer["refused"]), answer.get("node"))
        return answer
