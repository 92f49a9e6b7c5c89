"""The stock runtime in a child process, fed with what we compiled in this run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from tests.tools.line_server import LineServer

Call = tuple[str, tuple[Any, ...]]


class Stock:
    """Asks the stock tools; a process that ended is started anew at the next question."""

    module = "tests.compiler.stock_server"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server = LineServer(self.module)

    def run(
        self, buffer: bytes, calls: Sequence[Call], trace: str = "", data: str = ""
    ) -> list[list[Any]]:
        """Return the outputs of each call, made one after the other on one loaded program.

        `data` is the path of the file beside it, if there is one.
        """
        program, inputs, outputs = (self._folder / name for name in ("a.pte", "in.pt", "out.pt"))
        program.write_bytes(buffer)
        torch.save([(method, list(given)) for method, given in calls], inputs)
        answer = self.ask(
            "run",
            program=str(program),
            calls=str(inputs),
            outputs=str(outputs),
            trace=trace,
            data=data,
        )
        assert "error" not in answer, answer["error"]
        return torch.load(outputs)

    def run_each(self, programs: Sequence[tuple[bytes, Sequence[Any]]]) -> list[list[Any] | str]:
        """Return the outputs of `forward` of each program, or the error's text.

        A program that takes the process down does so alone.
        """
        given, outputs = self._folder / "each.pt", self._folder / "out.pt"
        torch.save([(buffer, list(inputs)) for buffer, inputs in programs], given)
        answer = self.ask("run_each", programs=str(given), outputs=str(outputs))
        if "error" not in answer:
            return torch.load(outputs)
        if len(programs) < 2:
            return [answer["error"] for _ in programs]
        return [found for program in programs for found in self.run_each([program])]

    def about(
        self, verb: str, exported: torch.export.ExportedProgram, **options: str | int
    ) -> dict[str, Any]:
        """Return an answer about an exported program, lowered by the stock compiler."""
        path = self._folder / "exported.pt2"
        torch.export.save(exported, path)
        answer = self.ask(verb, exported=str(path), **options)
        assert "error" not in answer, answer["error"]
        return answer

    def compiled(self, exported: torch.export.ExportedProgram, *, delegated: bool = False) -> bytes:
        """Return the program file of the stock compiler, portable or for XNNPACK."""
        program = self._folder / "stock.pte"
        self.about("compiled", exported, program=str(program), delegated=delegated)
        return program.read_bytes()

    def ask(self, verb: str, **arguments: str | int) -> dict[str, Any]:
        """Return the answer to one question, `{"error": …}` where the stock tool failed."""
        answer = self._server.ask(json.dumps({"verb": verb, **arguments}))
        if answer:
            return json.loads(answer)
        return {"error": f"the stock runtime's process ended with code {self.close()}"}

    def close(self) -> int | None:
        """End the child process and return its exit code."""
        return self._server.close()
