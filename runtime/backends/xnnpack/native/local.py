"""The real kernels in this very process, for processes that may end with them: workers."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from runtime.backends.xnnpack.native.child import Server
from runtime.backends.xnnpack.native.process import RefusedError, Region


class LocalKernels:
    """The library, opened in this process: no questions have to go anywhere, nothing is copied.

    Args:
        folder: where the library is
        threads: how many threads it may use

    Raises: RefusedError if it cannot be opened
    """

    alive = True
    direct = True

    def __init__(self, folder: Path, threads: int) -> None:
        self._server = Server()
        self._next = 0
        self._lock = threading.RLock()
        self._discarded: list[tuple[list[int], list[int]]] = []
        self.ask("hello", folder=str(folder), threads=threads)

    def number(self) -> int:
        """Return a number that nothing has yet."""
        with self._lock:
            self._next += 1
            return self._next

    def region(self, size: int) -> Region:
        """Return new memory."""
        made = Region(self.number(), size)
        made.close_file()
        self._server.regions[made.number] = made.memory
        return made

    def discard(self, handles: list[int], regions: list[int]) -> None:
        """Let go of runtimes and regions before the next question; safe from anywhere."""
        self._discarded.append((handles, regions))

    def ask(self, verb: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - as of JSON
        """Return the answer to a question.

        Raises: RefusedError with what the library said
        """
        with self._lock:
            while self._discarded:
                handles, regions = self._discarded.pop()
                self._server.answer("delete", {"handles": handles, "regions": regions}, None)
            answer = self._server.answer(verb, arguments, None)
        if "refused" in answer:
            raise RefusedError(str(answer["refused"]), answer.get("node"))
        return answer
