"""A module that answers a line with a line, where the stock tool is loaded already."""

from __future__ import annotations

import contextlib
import io

from tests.tools.forked import ROOT, Forked, stock_forks


class LineServer:
    """A fork that runs a module; one that has ended is started anew at the next question."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._process: Forked | None = None
        self._answers: io.BufferedReader | None = None

    def ask(self, line: str) -> str:
        """Return the answer, nothing if the process ends instead."""
        process = self._process or self.start()
        assert self._answers is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(f"{line}\n".encode())
            return self._answers.readline().decode()
        return ""

    def start(self) -> Forked:
        """Start the process."""
        self._process = stock_forks().forked(["-m", self._module], ROOT, quiet=True)
        self._answers = io.BufferedReader(self._process.stdout)
        return self._process

    def close(self) -> int | None:
        """End the process and return its exit code."""
        process, self._process = self._process, None
        if process is None:
            return None
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()
        return process.wait(timeout=60)
