"""Evaluates one metric of a compiled program, running it if necessary."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as _untyped_pytree

from compiler.pipeline.edge_manager import EdgeProgramManager
from compiler.pipeline.program_manager import ExecutorchProgramManager
from inspector.experiments.bisect.bound import Bound
from inspector.experiments.gates.evidence import Evidence, FoundValue, MissingError, static_value
from inspector.experiments.gates.gap_values import gap_value
from inspector.experiments.gates.requirement import GAP, Kind
from inspector.experiments.gates.times import noise_of_runs, time_of_runs
from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.jobs.bisect import BisectJob
from inspector.jobs.executing import BUFFER, OUTPUTS, VALUES, RunJob
from inspector.numerics.metrics import Distance, Metrics, Tolerance
from inspector.numerics.replay.analysis import Options, analyse_gap
from inspector.recipes.compile_job import PROGRAM, RECORD
from inspector.worker.exporter import Exported
from inspector.worker.guarding import guard_file
from inspector.worker.inputs import chosen_method, flat_values, generated_inputs, read_values
from inspector.worker.kernels import adopt_called
from inspector.worker.run_job import run_into
from inspector.worker.tasks import Task
from runtime import Runtime
from runtime.delegates.interface import PartitionEngine
from runtime.errors import ExecutionError
from schema import etrecord
from schema.objects.atomic_file import write_atomically
from schema.origins import ValueOrigin
from schema.program import ProgramFile
from schema.program import model as m

_pytree: Any = _untyped_pytree
_WARM_RUNS = 3
_INPUTS = "inputs.pt"
_THERE = "there"  # folder of the runs on a device


class ProbeError(Exception):
    """A metric that cannot be found out; one sentence."""


@dataclass(frozen=True, slots=True)
class _ProbeReference:
    """Inputs of a method and the outputs of the exported program."""

    inputs: list[Any]
    outputs: list[Any]


class Probe:
    """Evaluates a metric of consecutive programs.

    Args:
        job: with inputs, engine and runs
        bound: the metric
        source: the exported programs, whose outputs are the reference
        folder: for the files of a program, overwritten by the next

    Attributes:
        source: the exported programs
    """

    def __init__(self, job: BisectJob, bound: Bound, source: Exported, folder: Path) -> None:
        self.source = source
        self._job = job
        self._bound = bound
        self._folder = folder
        self._reference: _ProbeReference | None = None
        if job.threads:
            torch.set_num_threads(job.threads)

    def stand_in(self, program: ExecutorchProgramManager) -> PartitionEngine | None:
        """Return a partition whose record stands in for its payload, None if there is none.

        A program that cannot be loaded has none: its trial reports why.
        """
        self._write(program)
        try:
            loaded = self._loaded(program)
            method = self._loaded_method(loaded, chosen_method(loaded.file, self._job.method))
        except ExecutionError:
            return None
        first = _emulated(method.measurements)
        method.close()
        return first

    def value(
        self, edge: EdgeProgramManager, program: ExecutorchProgramManager
    ) -> tuple[float | None, str]:
        """Return the metric of a program, and its details as text.

        Raises: ProbeError, ExecutionError, FormatError
        """
        self._write(program)
        if self._bound.requirement is None:
            return self._refusals(edge, program)
        try:
            return self._metric(program)
        except MissingError as error:
            raise ProbeError(str(error)) from error

    def _write(self, program: ExecutorchProgramManager) -> None:
        write_atomically(self._folder / PROGRAM, lambda stream: program.write_to_file(stream))
        program.write_tensor_data_to_file(self._folder)
        write_atomically(self._folder / RECORD, program.get_etrecord().write_to_file)

    def _refusals(
        self, edge: EdgeProgramManager, program: ExecutorchProgramManager
    ) -> tuple[float, str]:
        """Count refusals: partitions by their engine, or else the entire program."""
        found = guard_file(self._folder, edge, program, always=True)
        refusals = found.refusals if found is not None else ()
        if refusals:
            return float(len(refusals)), refusals[0].sentence
        for method in program.methods:
            self._loaded(program).load_method(method, engine=self._job.engine, isolate=True)
        return 0.0, "all partitions load"

    def _metric(self, program: ExecutorchProgramManager) -> tuple[float | None, str]:
        requirement = self._bound.requirement
        assert requirement is not None
        if requirement.kind is Kind.PROGRAM:
            found = static_value(requirement.metric, self._evidence([PROGRAM, RECORD]))
            return value_and_text(found)
        if requirement.kind is Kind.TIME:
            times = self._times_there(program) if self._job.device else self._times(program)
            value, words = time_of_runs(requirement.metric, times)
            return value, words + noise_of_runs(times)
        if self._bound.outputs:
            return self._distance(program, requirement.metric.removeprefix(GAP))
        return self._gap(program, requirement.metric)

    def _evidence(self, names: Sequence[str]) -> Evidence:
        session = load_session([str(self._folder / name) for name in names])
        return Evidence(session, "the program", self._job.method)

    def _loaded(self, program: ExecutorchProgramManager) -> Any:  # noqa: ANN401 - a Program
        beside: list[Any] = [self._folder / name for name in program.tensor_data_files]
        adopt_called(program)
        return Runtime.get().load_program(self._folder / PROGRAM, data_path=beside)

    def _method(self, program: ExecutorchProgramManager) -> tuple[Any, list[Any], list[Any]]:
        """Return the loaded method, its inputs, and its expected outputs."""
        loaded = self._loaded(program)
        name = chosen_method(loaded.file, self._job.method)
        requested = self._probe_reference(loaded.file, name)
        method = self._loaded_method(loaded, name)
        found = _emulated(method.measurements)
        if found is not None:
            method.close()
            raise ProbeError(f"{found.backend} {found.note}")
        return method, requested.inputs, requested.outputs

    def _loaded_method(self, loaded: Any, name: str) -> Any:  # noqa: ANN401 - a Method
        record = self._folder / RECORD if _needs_record(loaded.file) else None
        kept = None if record is None else etrecord.decode(record.read_bytes(), file=RECORD)
        return loaded.load_method(name, engine=self._job.engine, isolate=True, emulate=kept)

    def _probe_reference(self, file: ProgramFile, name: str) -> _ProbeReference:
        if self._reference is None:
            exported = self.source.programs[name]
            inputs = self._inputs(exported, file.plan(name), name)
            self._reference = _ProbeReference(inputs, _outputs(exported, inputs))
        return self._reference

    def _inputs(self, exported: Any, plan: m.ExecutionPlan, name: str) -> list[Any]:  # noqa: ANN401
        if self._job.inputs:
            return read_values(self._job.inputs)
        given: Any = exported.example_inputs
        if given is None:
            return generated_inputs(plan, "random", 0)
        return list(flat_values(list(given), f"the example inputs of {name}"))

    def _on_device(self, program: ExecutorchProgramManager, **options: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of a RunJob
        """Run on the device of the job; return the report. Files are written into the folder.

        Raises: DeviceError
        """
        from inspector.worker.device_run import work

        loaded = self._loaded(program)
        name = chosen_method(loaded.file, self._job.method)
        torch.save(self._probe_reference(loaded.file, name).inputs, self._folder / _INPUTS)
        there = self._folder / _THERE
        there.mkdir(exist_ok=True)
        job = RunJob(
            str(self._folder / PROGRAM),
            method=name,
            inputs=str(self._folder / _INPUTS),
            data_files=tuple(str(self._folder / each) for each in program.tensor_data_files),
            threads=self._job.threads or 1,
            device=self._job.device,
            **options,
        )
        return work(job, Task(there, lambda *_, **__: None))

    def _times_there(self, program: ExecutorchProgramManager) -> list[float]:
        """Return the times of runs on the device.

        Units: ms
        """
        report = self._on_device(program, runs=self._job.runs, traced=False)
        if not report["run_ms"]:
            raise ProbeError(f"the runner of {self._job.device} prints no times")
        return list(report["run_ms"])

    def _times(self, program: ExecutorchProgramManager) -> list[float]:
        """Return the times of warm runs; the method is loaded again for each program.

        Units: ms
        """
        method, inputs, _ = self._method(program)
        times: list[float] = []
        for run in range(_WARM_RUNS + self._job.runs):
            method.set_inputs(inputs)
            start = time.perf_counter()
            method.run()
            if run >= _WARM_RUNS:
                times.append((time.perf_counter() - start) * 1e3)
        method.close()
        return times

    def _distance(self, program: ExecutorchProgramManager, metric: str) -> tuple[float, str]:
        """Return the largest difference between outputs and those of the exported program."""
        if self._job.device:
            self._on_device(program, timed=False, traced=False)
            found = torch.load(self._folder / _THERE / OUTPUTS, weights_only=True)
            loaded = self._loaded(program)
            name = chosen_method(loaded.file, self._job.method)
            return worst_distance(self._probe_reference(loaded.file, name).outputs, found, metric)
        method, inputs, requested = self._method(program)
        found = method.execute(inputs)
        method.close()
        return worst_distance(requested, found, metric)

    def _gap(self, program: ExecutorchProgramManager, metric: str) -> tuple[float | None, str]:
        """Return a metric of the numeric gap, as ``etscope gap`` finds it."""
        loaded = self._loaded(program)
        name = chosen_method(loaded.file, self._job.method)
        values = [VALUES, BUFFER]
        if self._job.device:
            self._on_device(program, debug_level="intermediate", timed=False)
            values = [f"{_THERE}/{each}" for each in values]
        else:
            self._run_with_values(program, name)
        evidence = self._evidence([PROGRAM, RECORD, *values])
        inputs: Any = self._probe_reference(loaded.file, name).inputs
        return gap_of(evidence.session, name, inputs, metric)

    def _run_with_values(self, program: ExecutorchProgramManager, name: str) -> None:
        loaded = self._loaded(program)
        torch.save(self._probe_reference(loaded.file, name).inputs, self._folder / _INPUTS)
        job = RunJob(
            str(self._folder / PROGRAM),
            method=name,
            inputs=str(self._folder / _INPUTS),
            debug_level="intermediate",
            timed=False,
            record=str(self._folder / RECORD) if _needs_record(loaded.file) else "",
            data_files=tuple(str(self._folder / each) for each in program.tensor_data_files),
            threads=self._job.threads,
            engine=self._job.engine,
            backend_options=self._job.backend_options,
        )
        report = run_into(job, Task(self._folder, lambda *_, **__: None))
        for one in report["partitions"]:
            if one["origin"] == ValueOrigin.EMULATED.value:
                raise ProbeError(f"{one['backend']} {one['note']}")


def _needs_record(file: ProgramFile) -> bool:
    """Return whether the record may have something that a payload needs to run."""
    registry = Runtime.get().backend_registry
    used = {one.id for plan in file.plans for one in plan.delegates}
    known = used & set(registry.registered_backend_names)
    return any(not registry.backend(one).payload_is_all for one in known)


def _emulated(partitions: Sequence[PartitionEngine]) -> PartitionEngine | None:
    """Return the first partition whose record stands in for its payload."""
    return next((one for one in partitions if one.origin is ValueOrigin.EMULATED), None)


def worst_distance(
    requested: Sequence[Any], found: Sequence[Any], metric: str
) -> tuple[float, str]:
    """Return the largest difference between outputs and expected ones, and a description.

    Raises: ProbeError if it cannot be determined
    """
    if len(requested) != len(found):
        raise ProbeError(f"{len(found)} outputs, where the exported program has {len(requested)}")
    pairs = [
        (reference, built)
        for reference, built in zip(requested, found, strict=True)
        if isinstance(reference, torch.Tensor)
    ]
    measured = [_metrics(reference, built) for reference, built in pairs]
    values = [getattr(one, metric) for one in measured]
    known: list[float] = [float(value) for value in values if value is not None]
    if not known:
        raise ProbeError(f"no output has its {metric}")
    if any((one.nan, one.inf) != (one.nan_reference, one.inf_reference) for one in measured):
        raise ProbeError("outputs have NaN or infinity where the exported program has not")
    worst = min(known) if metric in ("snr_db", "cosine") else max(known)
    return worst, f"worst of {len(known)} outputs"


def gap_of(
    session: Session, method: str, inputs: list[Any], metric: str
) -> tuple[float | None, str]:
    """Return a metric of the numeric gap of a recorded run, and its details as text."""
    report = analyse_gap(session, Options(method=method, inputs=inputs), _ignore_progress)
    return value_and_text(gap_value(metric, Evidence(session, "the program", method, gap=report)))


def _ignore_progress(done: int, total: int) -> None:
    """Ignore progress."""


def value_and_text(found: FoundValue) -> tuple[float | None, str]:
    """Return the value of an evaluated metric and its description."""
    if found.refused:
        return None, found.refused
    return found.value, found.words


def _outputs(exported: Any, inputs: Sequence[Any]) -> list[Any]:  # noqa: ANN401
    """Return the flat outputs of an exported program for flat inputs."""
    leaves, tree = _pytree.tree_flatten(exported.example_inputs)
    given = exported.example_inputs
    if given is not None and len(leaves) == len(inputs):
        args, kwargs = _pytree.tree_unflatten(list(inputs), tree)
    else:
        args, kwargs = tuple(inputs), {}
    with torch.no_grad():
        result = exported.module()(*args, **kwargs)
    return _pytree.tree_leaves(result)


def _metrics(reference: torch.Tensor, found: Any) -> Metrics:  # noqa: ANN401
    if not isinstance(found, torch.Tensor) or found.shape != reference.shape:
        raise ProbeError("the shape of an output differs from that of the exported program")
    dtype = str(reference.dtype).removeprefix("torch.")
    distance = Distance(dtype, Tolerance())
    pair = _numbers(reference), _numbers(found)
    distance.add(lambda: iter((pair,)))
    return distance.metrics()


def _numbers(tensor: torch.Tensor) -> Any:  # noqa: ANN401 - an array
    if tensor.dtype in (torch.bfloat16, torch.float16):
        tensor = tensor.float()
    return tensor.detach().contiguous().numpy().ravel()
