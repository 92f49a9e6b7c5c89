"""Programs measured side by side on the stock runtime: each has an interpreter of its own.

Its number of threads can be set only before anything is loaded, so programs that differ in it
cannot share a process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inspector.jobs.executing import WALL, MeasureJob, RunJob
from inspector.toolchain.child import Interpreter, ReportedError, Response, ToolchainError
from inspector.toolchain.interpreter import interpreter
from inspector.worker.block_turns import measure_in_turns
from inspector.worker.exporter import timed_stage
from inspector.worker.passes import SLOW_MS
from inspector.worker.tasks import Task
from inspector.worker.toolchain_run import (
    FEW_RUNS,
    GivenProgram,
    given_program,
    partitions_of,
    question_of,
)
from schema.version import __version__

_WARMUP = 3


@dataclass
class _StockBlocks:
    """The blocks of a program on the stock runtime.

    Attributes:
        job: the request
        given: the program and its inputs
        folder: with its inputs, for its outputs
        tool: its interpreter
        versions: of the packages in it, known after the first block
        found: what the last block has measured
    """

    job: RunJob
    given: GivenProgram
    folder: Path
    tool: Interpreter
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    found: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def block(self, runs: int, *, rehearsal: bool) -> list[float]:
        if self.given.has_state:  # nothing resets it between the runs of a block
            runs, warmup = min(runs, FEW_RUNS), 0 if rehearsal else 1
        else:
            slow = min(self.found.get("run_ms") or [0.0]) > SLOW_MS
            warmup = 0 if rehearsal or slow else _WARMUP
        question = question_of(self.job, self.given, self.folder)
        answer = self._answered(question | {"runs": runs, "warmup": warmup})
        self.versions, self.found = answer.versions, answer.result
        return list(self.found["run_ms"])

    def facts(self) -> dict[str, Any]:
        return {
            "method": self.given.plan.name,
            "threads": self.found["threads"],
            "clock": WALL,
            "backends": list(dict.fromkeys(one.id for one in self.given.plan.delegates)),
            "partitions": partitions_of(self.given, self.versions),
        }

    def recover(self) -> None:
        """Leave the other programs alone, which have other interpreters."""

    def _answered(self, question: Mapping[str, Any]) -> Response:
        blame = "failed"

        def listen(kind: str, **content: Any) -> None:  # noqa: ANN401 - JSON
            nonlocal blame
            if kind == "failed":
                blame = str(content.get("blame", blame))

        try:
            return self.tool.ask(question, listen)
        except ReportedError as error:
            raise ToolchainError(str(error), blame=blame) from error


def measure_with_executorch(job: MeasureJob, task: Task) -> dict[str, Any]:
    """Measure all programs on the stock runtime; each block is reported when it is done.

    Args:
        job: the request
        task: its context

    Raises: AnswerError, FormatError, ValuesError, ToolchainError, OSError
    """
    with tempfile.TemporaryDirectory() as home, ExitStack() as stack:
        programs: list[_StockBlocks] = []
        with timed_stage(task.notify, "load executorch"):
            for number, each in enumerate(job.programs):
                folder = Path(home, str(number))
                folder.mkdir()
                given = given_program(each, folder)
                tool = stack.enter_context(closing(Interpreter(interpreter(each.python))))
                programs.append(_StockBlocks(each, given, folder, tool))
        measure_in_turns(job, programs, task.notify, task.stop.is_asked)
        nothing: Mapping[str, str] = {}
        versions = next((one.versions for one in programs if one.versions), nothing)
    return {
        "etscope": __version__,
        "torch": versions.get("torch", ""),
        "executorch": versions.get("executorch", ""),
    }
