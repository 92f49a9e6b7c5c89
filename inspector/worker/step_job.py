"""Runs one delegate call node by node: its values, and effects of replacing them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch

from inspector.jobs.executing import StepJob
from inspector.jobs.output_file import MADE
from inspector.worker.backend_options import set_backend_options
from inspector.worker.data_set import inputs_named
from inspector.worker.error_source import located_errors
from inspector.worker.exporter import AnswerError, Say, timed_stage
from inspector.worker.inputs import (
    ValuesError,
    chosen_method,
    described,
    read_values,
)
from inspector.worker.missing_data import missing_data_named
from inspector.worker.run_job import record_of
from runtime import DelegateSteps, ErrorCode, ExecutionError, Program, Runtime
from runtime.delegates.stepping import InnerNode
from runtime.program.loading import read
from runtime.verify import bundled_values, find_case
from schema import bundled
from schema.program import instructions
from schema.program import model as m
from schema.version import __version__

_FILLS = ("zeros", "ones")
_NO_CALLS = "the run calls no delegate; a run that logs values has those of each instruction"


def step_through(job: StepJob, folder: Path, notify: Say) -> dict[str, Any]:
    """Run one delegate call node by node and the rest as usual; return the report.

    With replaced values, a run without replacements comes first, to report the differences.

    Raises: ExecutionError, AnswerError, ValuesError, OSError
    """
    with located_errors(job.record), missing_data_named(job.program, job.data_files):
        return _step_through(job, folder, notify)


def _step_through(job: StepJob, folder: Path, notify: Say) -> dict[str, Any]:
    with timed_stage(notify, "load"):
        subject = subject_of(job)
        requested = {value: filling(what) for value, what in job.replacements}
    before: list[Any] = []
    with timed_stage(notify, "run", subject.name):
        if requested:
            before = StepRun(subject, {}).run()
        walk = StepRun(subject, requested)
        outputs = walk.run()
    if job.save:
        with timed_stage(notify, "write"):
            torch.save(walk.tensors, folder / MADE)
    return answer(walk, outputs, before)


@dataclass(frozen=True)
class StepSubject:
    """The subject of stepping.

    Attributes:
        job: the request
        program: loaded program
        name: of the method
        inputs: of the method
    """

    job: StepJob
    program: Program
    name: str
    inputs: Sequence[Any]


def subject_of(job: StepJob) -> StepSubject:
    """Return the subject of a job; from now on kernels run in this process.

    Raises: ExecutionError, AnswerError, ValuesError, OSError
    """
    if job.threads:
        torch.set_num_threads(job.threads)
    set_backend_options(job.backend_options)
    program = Runtime.get().load_program(job.program, data_path=list(job.data_files))
    name = chosen_method(program.file, job.method)
    return StepSubject(job, program, name, _inputs(job, program.file.plan(name)))


def answer(walk: StepRun, outputs: Sequence[Any], before: Sequence[Any]) -> dict[str, Any]:
    """Return the report at the end.

    Args:
        walk: a finished walk
        outputs: of the method
        before: those without replacements, empty if nothing was replaced
    """
    job = walk.subject.job
    return {
        "etscope": __version__,
        "program": job.program,
        "method": walk.subject.name,
        "inputs": job.inputs if job.case is None else "bundled",
        **walk.report(),
        "outputs": [_output(place, outputs, before) for place in range(len(outputs))],
    }


def _inputs(job: StepJob, plan: Any) -> list[Any]:  # noqa: ANN401
    if job.case is not None:
        data, file = read(job.program)
        return bundled_values(
            find_case(bundled.decode(data, file=file), plan.name, job.case).inputs
        )
    return inputs_named(job.inputs, job.seed, plan)


def filling(what: str) -> torch.Tensor | float:
    """Return the replacement of a value: a scalar for all elements, or a tensor."""
    if what in _FILLS:
        return float(what == "ones")
    try:
        return float(what)
    except ValueError:
        pass
    found = read_values(what)
    if len(found) != 1 or not isinstance(found[0], torch.Tensor):
        raise ValuesError(f"{what}: expected one tensor, found {len(found)} values")
    return found[0]


class StepRun:
    """A run that goes through one delegate call node by node.

    Attributes:
        subject: of the run
        nodes: facts of each
        values: facts of recorded values, by id
        tensors: requested values
    """

    def __init__(
        self,
        subject: StepSubject,
        requested: Mapping[int, torch.Tensor | float],
    ) -> None:
        self.subject = subject
        self._job, self._wanted = subject.job, dict(requested)
        job, load = subject.job, subject.program.load_method
        self._method = load(subject.name, engine=job.engine, emulate=record_of(job))
        self._calls = 0
        self._instruction = 0
        self.nodes: list[dict[str, Any]] = []
        self.values: dict[int, dict[str, Any]] = {}
        self.tensors: dict[int, torch.Tensor] = {}

    def run(self) -> list[Any]:
        """Run everything; return the outputs.

        Raises: AnswerError for an unknown call, node or value
        """
        method = self._method
        method.set_inputs(self.subject.inputs)
        try:
            while True:
                if method.at_delegate:
                    if self._calls == self._job.call:
                        self._instruction = method.next_instruction
                        self.through(method.step_into())
                        self._calls += 1
                        continue
                    self._calls += 1
                method.step()
        except ExecutionError as error:
            if error.code != ErrorCode.EndOfMethod:
                raise
        method.reset_execution()
        if not self._calls:
            raise AnswerError(_NO_CALLS)
        if self._calls <= self._job.call:
            raise AnswerError(f"unknown delegate call {self._job.call}: the run has {self._calls}")
        return method.get_outputs()

    def through(self, steps: DelegateSteps) -> None:
        """Run the nodes of the call as commanded."""
        self._check(steps)
        self.begin(steps)
        stop = len(steps.nodes) if self._job.stop is None else self._job.stop
        for node in steps.nodes:
            steps.step()
            if node.index < stop:
                self.passed(steps, node)
            else:
                self._replace(steps, node.outputs)
        steps.finish()

    def begin(self, steps: DelegateSteps) -> None:
        """Note the nodes and the values that are given to the call."""
        built = {value for node in steps.nodes for value in node.outputs}
        given = dict.fromkeys(
            value for node in steps.nodes for value in node.inputs if value not in built
        )
        for value in given:
            self.arrived(steps, value, None)
        self.nodes = [
            {
                "node": node.index,
                "kind": node.kind,
                "inputs": list(node.inputs),
                "outputs": list(node.outputs),
                "debug_handle": node.debug_handle,
                "ran": False,
            }
            for node in steps.nodes
        ]

    def passed(self, steps: DelegateSteps, node: InnerNode) -> None:
        """Record the results of a node that has just run."""
        for value in node.outputs:
            self.arrived(steps, value, node.index)
        self.nodes[node.index]["ran"] = True

    def _check(self, steps: DelegateSteps) -> None:
        known = {value for node in steps.nodes for value in (*node.inputs, *node.outputs)}
        for value in (*self._wanted, *self._job.values):
            if value not in known:
                raise AnswerError(f"no node of the delegate call reads or computes value {value}")
        stop = self._job.stop
        if stop is not None and stop > len(steps.nodes):
            raise AnswerError(f"unknown node {stop}: the call has {len(steps.nodes)}")

    def _replace(self, steps: DelegateSteps, values: Sequence[int]) -> None:
        for value in values:
            filling = self._wanted.get(value)
            if filling is None:
                continue
            if not isinstance(filling, torch.Tensor):
                filling = torch.full_like(steps.value(value), cast("Any", filling))
            steps.replace(value, filling)

    def arrived(self, steps: DelegateSteps, value: int, node: int | None) -> None:
        """Replace a new value if requested, and record it."""
        self._replace(steps, (value,))
        tensor = steps.value(value)
        self.values[value] = {
            "value": value,
            "made_by": node,
            "replaced": value in self._wanted,
            **statistics(tensor),
            "real": _real(steps.real(value)),
        }
        asked = self._job.values
        if self._job.save and (value in asked or not asked):
            self.tensors[value] = tensor

    def _delegate(self) -> int:
        """Return the index of the delegate that was called."""
        plan = self.subject.program.file.plan(self.subject.name)
        args = instructions(plan)[self._instruction][2].instr_args
        assert isinstance(args, m.DelegateCall)
        return args.delegate_index

    def report(self) -> dict[str, Any]:
        """Return the report about the inside of the call."""
        asked = self._job.values
        values = [each for ident, each in self.values.items() if not asked or ident in asked]
        partition = self._method.measurements[self._delegate()]
        return {
            "call": self._job.call,
            "calls": self._calls,
            "instruction": self._instruction,
            "backend": partition.backend,
            "engine": partition.engine or None,
            "source": partition.source,
            "note": partition.note,
            "stopped_at": self._job.stop,
            "nodes": self.nodes,
            "values": values,
        }


def _real(tensor: torch.Tensor | None) -> dict[str, Any] | None:
    """Return the real range of a quantized value, None for other values."""
    if tensor is None:
        return None
    return {name: statistics(tensor)[name] for name in ("min", "mean", "max")}


def statistics(tensor: torch.Tensor) -> dict[str, Any]:
    """Return type, shape and range of a tensor; non-finite values are counted."""
    wide = tensor.detach().to(torch.float64)
    finite = wide[wide.isfinite()]
    known = finite.numel() > 0
    return {
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "shape": list(tensor.shape),
        "min": float(finite.min()) if known else None,
        "mean": float(finite.mean()) if known else None,
        "max": float(finite.max()) if known else None,
        "nan": int(wide.isnan().sum()),
        "inf": int(wide.isinf().sum()),
    }


def _output(place: int, outputs: Sequence[Any], before: Sequence[Any]) -> dict[str, Any]:
    """Return an output, and its difference from the run without replacements."""
    value = outputs[place]
    if not isinstance(value, torch.Tensor):
        return {**described(value), "difference": None}
    apart = None
    if before and isinstance(before[place], torch.Tensor):
        other = before[place]
        if other.shape == value.shape:
            gap = (value.to(torch.float64) - other.to(torch.float64)).abs().nan_to_num(0.0)
            apart = float(gap.max()) if gap.numel() else 0.0
    return {"kind": "tensor", **statistics(value), "difference": apart}
