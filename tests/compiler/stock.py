"""The stock runtime in a child process, fed with what we compiled in this run."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[2]
Call = tuple[str, tuple[Any, ...]]


class Stock:
    """Asks the stock tools; a process that ended is started anew at the next question."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None

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
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"verb": verb, **arguments}) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        if answer:
            return json.loads(answer)
        return {"error": f"the stock runtime's process ended with code {self.close()}"}

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "tests.compiler.stock_server"]

    def _start(self) -> subprocess.Popen[str]:
        self._process = subprocess.Popen(
            self._command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            cwd=ROOT,
            env={**os.environ, "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"},
        )
        return self._process

    def close(self) -> int | None:
        """End the child process and return its exit code."""
        process, self._process = self._process, None
        if process is None:
            return None
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(BrokenPipeError):
                if stream is not None:
                    stream.close()
        return process.wait(timeout=60)
