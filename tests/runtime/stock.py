"""Asks the stock runtime and Inspector in a child process."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.compiler.stock import Stock as Child

CRASHED = "the stock runtime's process ended"


class Stock(Child):
    """The stock tools in a child process, which is started anew when it has ended."""

    module = "tests.runtime.stock_server"

    def each(self, programs: Sequence[tuple[bytes, Sequence[Any]]]) -> list[list[Any] | str]:
        """Return the outputs of `forward` of each program, or the error's text.

        A program that takes the process down says so, and the next ones run in another process.
        """
        given, outputs = self._folder / "each.pickle", self._folder / "each.out"
        given.write_bytes(pickle.dumps([(buffer, list(inputs)) for buffer, inputs in programs]))
        outputs.unlink(missing_ok=True)
        found: list[list[Any] | str] = []
        while len(found) < len(programs):
            answer = self.ask("each", programs=str(given), outputs=str(outputs), start=len(found))
            found = _stream(outputs)
            if len(found) < len(programs):
                assert CRASHED in answer["error"], answer["error"]
                found.append(CRASHED)
                with outputs.open("ab") as file:
                    pickle.dump(CRASHED, file)
        return found

    def calls(
        self,
        program: Path,
        calls: Sequence[tuple[str, Sequence[Any]]],
        data: str = "",
        trace: str = "",
    ) -> list[list[Any]]:
        """Return the outputs of calls of one loaded program, traced if a place for it is given."""
        given, outputs = self._folder / "calls.pickle", self._folder / "calls.out"
        given.write_bytes(pickle.dumps([(name, list(inputs)) for name, inputs in calls]))
        answer = self.ask(
            "run",
            program=str(program),
            calls=str(given),
            outputs=str(outputs),
            data=data,
            trace=trace,
        )
        assert "error" not in answer, answer["error"]
        return pickle.loads(outputs.read_bytes())

    def inspect(self, trace: Path, record: Path | None) -> tuple[list[Any], list[list[Any]]]:
        """Return what the stock Inspector reads in a trace: events, and the tensors of each."""
        outputs = self._folder / "inspect.out"
        answer = self.ask(
            "inspect", trace=str(trace), record=str(record or ""), outputs=str(outputs)
        )
        assert "error" not in answer, answer["error"]
        return answer["rows"], pickle.loads(outputs.read_bytes())


def _stream(path: Path) -> list[Any]:
    found: list[Any] = []
    if path.exists():
        with path.open("rb") as file:
            while True:
                try:
                    found.append(pickle.load(file))
                except EOFError:
                    break
    return found
