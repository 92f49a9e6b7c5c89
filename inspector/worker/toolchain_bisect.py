"""A bisection by the other toolchain, which compiles and runs each program in one warm interpreter.

Its runtime may abort the process for an invalid program; that program then does not meet the bound,
and
another interpreter continues.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from compiler.errors import CompileError
from inspector.experiments.bisect.bound import Bound, parse_bound
from inspector.experiments.bisect.search import Ranges
from inspector.experiments.gates.evidence import Evidence, MissingError, static_value
from inspector.experiments.gates.requirement import GAP, Kind
from inspector.experiments.gates.times import noise_of_runs, time_of_runs
from inspector.files.load import load_session
from inspector.jobs.bisect import BisectJob
from inspector.jobs.bisect_trials import CandidateNode, Trial
from inspector.jobs.executing import BUFFER, OUTPUTS, VALUES, RunJob
from inspector.recipes.compile_job import EXECUTORCH, PROGRAM, RECORD, CompileJob
from inspector.toolchain.child import (
    Interpreter,
    ReportedError,
    Say,
    ToolchainError,
    ignore_message,
)
from inspector.toolchain.interpreter import interpreter
from inspector.worker.bisect_search import Valued, not_here, searched, tried, without
from inspector.worker.exporter import AnswerError
from inspector.worker.inputs import chosen_method
from inspector.worker.probing import ProbeError, gap_of, value_and_text, worst_distance
from inspector.worker.tasks import Task
from inspector.worker.toolchain_compile import Compiled, compiled_elsewhere, stock_request
from inspector.worker.toolchain_run import run_with_executorch
from runtime.errors import ExecutionError
from runtime.program.loading import decode_program
from schema.errors import FormatError

_WARM_RUNS = 3
_INPUTS, _WANTED = "bisect_inputs.pt", "bisect_wanted.pt"
_NOT_HELPFUL = (
    *(ReportedError, ToolchainError, ProbeError, CompileError),
    *(ExecutionError, FormatError, MissingError, MemoryError),
)


def work(job: BisectJob, task: Task) -> dict[str, Any]:
    """Bisect in the folder of a task; see ``bisect_with_executorch``."""
    return bisect_with_executorch(job, task.folder, task.notify, task.options)


def bisect_with_executorch(
    job: BisectJob, folder: Path, notify: Say, how: Mapping[str, Any]
) -> dict[str, Any]:
    """Search the smallest set of nodes to remove; return the result.

    Args:
        job: the request
        folder: for the programs of trials
        notify: called with messages
        how: ``candidates`` and ``trials`` of an earlier worker

    Raises: AnswerError, RequirementError, ToolchainError; ReportedError if the other interpreter
        has reported why the first program or its reference failed
    """
    if not job.compile.partitioners:
        raise AnswerError("the recipe names no partitioner to take nodes from")
    bound = parse_bound(job.bound)
    if job.engine != BisectJob(job.compile, "").engine:
        text = "--engine has no effect: the stock runtime has its own kernels"
        notify("warning", text=text, file="", line=0)
    with contextlib.closing(_Tool(interpreter(job.compile.python))) as tool:
        trying = _ToolchainTrials(job, bound, tool, folder, notify)
        nodes = trying.candidates()
        return searched(nodes, trying.trial, notify, how)


class _Tool:
    """A running interpreter for the next request, restarted after a crash."""

    def __init__(self, python: str) -> None:
        self._python = python
        self._running: Interpreter | None = None

    @contextlib.contextmanager
    def running(self) -> Generator[Interpreter]:
        """Lend the interpreter; one that failed without a reason is not used again."""
        if self._running is None:
            self._running = Interpreter(self._python)
        try:
            yield self._running
        except ToolchainError:
            self.close()
            raise

    def close(self) -> None:
        """End it."""
        if self._running is not None:
            self._running.close()
        self._running = None


@dataclass(frozen=True, slots=True)
class _Program:
    """A compiled program.

    Attributes:
        folder: of its files
        methods: names
        method: to run, may be empty
    """

    folder: Path
    methods: tuple[str, ...]
    method: str

    @property
    def path(self) -> str:
        """Return the path of the program."""
        return str(self.folder / PROGRAM)

    @property
    def data(self) -> tuple[str, ...]:
        """Return the paths of its data files."""
        return tuple(str(path) for path in sorted(self.folder.glob("*.ptd")))


class _ToolchainTrials:
    """Builds and evaluates trial programs."""

    def __init__(
        self, job: BisectJob, bound: Bound, tool: _Tool, folder: Path, notify: Say
    ) -> None:
        self._job = job
        self._bound = bound
        self._tool = tool
        self._folder = folder
        self._report = notify
        self._nodes: list[CandidateNode] = []
        self._wanted: list[Any] | None = None

    def candidates(self) -> list[CandidateNode]:
        """Return the exported nodes that are at least partly delegated, in the order of the graph.

        Raises: AnswerError for an unknown method; as ``bisect_with_executorch``
        """
        built, reported = self._made(self._job.compile, self._report)
        self._check_backends(built)
        self._nodes = [
            node
            for method, verdicts in reported.verdicts.items()
            if self._job.method in ("", method)
            for node in _taken(method, verdicts, reported.origins.get(method, {}))
        ]
        if built.method:
            self._refer(built.method)
        return self._nodes

    def _check_backends(self, built: _Program) -> None:
        """Raise AnswerError if the runtime of the package has not the backends of a program."""
        if self._bound.kind is Kind.PROGRAM:
            return
        with self._tool.running() as tool:
            known = set(tool.ask({"do": "backends"}, ignore_message).result["backends"])
        file = decode_program(memoryview((built.folder / PROGRAM).read_bytes()), file=PROGRAM)
        used = {one.id for plan in file.plans for one in plan.delegates}
        if known and used - known:
            raise AnswerError(not_here(sorted(used - known)))

    def trial(self, removed: Ranges) -> Trial:
        """Return the trial of a program without some of its delegated nodes."""
        return tried(
            removed, self._bound, lambda: self._without(removed), self._report, _NOT_HELPFUL
        )

    def _without(self, removed: Ranges) -> Valued:
        built, _ = self._made(without(self._job.compile, self._nodes, removed), ignore_message)
        return self._value(built)

    def _made(self, job: CompileJob, notify: Say) -> tuple[_Program, Compiled]:
        folder = self._folder / "trial"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        with self._tool.running() as tool:
            reported = compiled_elsewhere(job, folder, notify, tool, again=True)
        file = decode_program(memoryview((folder / PROGRAM).read_bytes()), file=PROGRAM)
        methods = tuple(plan.name for plan in file.plans)
        runs = self._bound.kind in (Kind.GAP, Kind.TIME)
        method = chosen_method(file, self._job.method) if runs else ""
        return _Program(folder, methods, method), reported

    def _refer(self, method: str) -> None:
        """Compute the expected outputs with the exported program.

        Raises: ReportedError, ToolchainError
        """
        question = {
            "do": "refer",
            "job": stock_request(self._job.compile),
            "method": method,
            "inputs": self._job.inputs,
            "kept_inputs": str(self._folder / _INPUTS),
            "outputs": str(self._folder / _WANTED),
        }
        with self._tool.running() as tool:
            tool.ask(question, self._report)

    # -- evaluation of a program --------------------------------------------------------------

    def _value(self, built: _Program) -> tuple[float | None, str]:
        requirement = self._bound.requirement
        if requirement is None:
            return self._refusals(built)
        if requirement.kind is Kind.PROGRAM:
            return value_and_text(static_value(requirement.metric, self._evidence(built)))
        if requirement.kind is Kind.TIME:
            times = self._ran(built, built.method, self._job.runs, _WARM_RUNS)["run_ms"]
            value, words = time_of_runs(requirement.metric, times)
            return value, words + noise_of_runs(times)
        if self._bound.outputs:
            self._ran(built, built.method, 1)
            found = torch.load(built.folder / OUTPUTS, weights_only=True)
            return worst_distance(self._outputs(), found, requirement.metric.removeprefix(GAP))
        return self._gap(built, requirement.metric)

    def _evidence(self, built: _Program) -> Evidence:
        session = load_session([built.path, str(built.folder / RECORD)])
        return Evidence(session, "the program", self._job.method)

    def _refusals(self, built: _Program) -> tuple[float, str]:
        """Count the methods that the stock runtime refuses to load."""
        refused: list[str] = []
        for method in built.methods:
            try:
                self._ran(built, method, 0)
            except (ReportedError, ToolchainError) as error:
                refused.append(f"{method}: {error}")
        return float(len(refused)), refused[0] if refused else "all methods load"

    def _ran(self, built: _Program, method: str, runs: int, warmup: int = 0) -> Mapping[str, Any]:
        """Run without a trace; return the measurements. The outputs are in a file."""
        if len(built.data) > 1:
            raise ProbeError(f"the stock runtime accepts one .ptd file, found {len(built.data)}")
        inputs = self._folder / _INPUTS
        if not inputs.exists():  # only loaded, never read
            torch.save([], inputs)
        question = {
            "do": "run",
            "program": built.path,
            "method": method,
            "data": "".join(built.data),
            "libraries": list(self._job.compile.libraries),
            "inputs": str(inputs),
            "runs": runs,
            "warmup": warmup,
            "timed": runs > 0,
            "traced": False,
            "debug_bytes": 0,
            "threads": self._job.threads,
            "folder": str(built.folder),
        }
        with self._tool.running() as tool:
            return tool.ask(question, ignore_message).result

    def _outputs(self) -> list[Any]:
        if self._wanted is None:
            self._wanted = torch.load(self._folder / _WANTED, weights_only=True)
        assert self._wanted is not None
        return self._wanted

    def _gap(self, built: _Program, metric: str) -> tuple[float | None, str]:
        """Return a metric of the numeric gap of a run on the stock runtime."""
        job = RunJob(
            built.path,
            method=built.method,
            inputs=str(self._folder / _INPUTS),
            debug_level="intermediate",
            timed=False,
            data_files=built.data,
            threads=self._job.threads,
            toolchain=EXECUTORCH,
        )
        with self._tool.running() as tool:
            run_with_executorch(job, built.folder, ignore_message, tool)
        names = (PROGRAM, RECORD, VALUES, BUFFER)
        session = load_session([str(built.folder / name) for name in names])
        inputs: list[Any] = torch.load(self._folder / _INPUTS, weights_only=True)
        return gap_of(session, built.method, inputs, metric)


def _taken(
    method: str, verdicts: Sequence[Mapping[str, Any]], origins: Mapping[str, str]
) -> list[CandidateNode]:
    """Return the exported nodes that are at least partly delegated, in the order of the graph.

    Partitioners of the package may process a graph several times; the last time counts.
    """
    order = {node: place for place, node in enumerate(origins)}
    found: dict[str, CandidateNode] = {}
    delegated = [one for one in verdicts if one["outcome"] == "delegated"]
    for one in sorted(delegated, key=lambda one: order.get(one["node"], len(order))):
        if one["operator"] == "getitem":  # is delegated with its source
            continue
        name = origins.get(one["node"], one["node"])
        known = (one["operator"], one["rule"], one["partitioner"], one["source"])
        found.setdefault(name, CandidateNode(method, name, *known))
    return list(found.values())
