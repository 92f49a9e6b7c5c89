"""A run on a device, by a runner there: with the same files as a run on this machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from inspector.devices.device import Device, device_named
from inspector.devices.errors import DeviceError
from inspector.devices.lock import locked
from inspector.devices.remote import Finished, RemoteFolder
from inspector.devices.runner import RunnerTimes, has_placeholder, printed_times
from inspector.devices.transport import transport_of
from inspector.jobs.executing import BUFFER, INPUTS, OUTPUTS, TRACE, VALUES, RunJob
from inspector.recipes.compile_job import EXECUTORCH
from inspector.worker.exporter import AnswerError, Say, timed_stage
from inspector.worker.inputs import described, printed
from inspector.worker.passes import SLOW_MS, Passes
from inspector.worker.run_job import options_of, stopped_words, times_of
from inspector.worker.tasks import Task
from inspector.worker.toolchain_run import (
    GivenProgram,
    debug_bytes,
    given_program,
    report_written,
)
from inspector.worker.toolchain_trace import EXECUTE, cut_buffer, measured_only
from runtime.memory.slots import dtype_of
from schema import etdump
from schema.dtypes.scalar_type import tensor_nbytes
from schema.origins import ValueOrigin
from schema.program import model as m
from schema.version import __version__

_OUT = "output"
_LEFT_BEHIND = "model.etdump"  # of a runner that traces without being asked to
_BLOCKS, _BLOCK_MS = 5, 200.0
_LEAST_RUNS, _MOST_RUNS = 2, 40  # of a block
_SLOW_BLOCKS = _STATE_RUNS = 3
_WARMUP, _SLOW_WARMUP = 3, 1
_NO_TRACING = "writes no trace: build it with event tracing (EXECUTORCH_ENABLE_EVENT_TRACER=ON)"


@dataclass
class DeviceProgram:
    """A program that was pushed with its data and inputs, and how it is run.

    Attributes:
        remote: the folder on the device
        job: the request
        given: the program and its inputs
        places: values of the placeholders that are the same in all passes
        warnings: about its runs
        peak_bytes: the largest resident size of the runner, None if unknown
    """

    remote: RemoteFolder
    job: RunJob
    given: GivenProgram
    places: dict[str, str | None]
    warnings: list[str] = field(default_factory=list[str])
    peak_bytes: int | None = None

    def run(
        self, runs: int, warmup: int, *, watch_memory: bool = False, **places: str | None
    ) -> tuple[Finished, RunnerTimes]:
        """Run a pass; additional runs replace a warm-up that the runner does not support.

        Units: ms
        """
        counts = (runs, warmup) if self.warms_up else (runs + warmup, None)
        values = dict(zip(("runs", "warmup"), (_text(one) for one in counts), strict=True))
        known = {**self.places, **values, **places}
        finished = self.remote.run(known, watch_memory=watch_memory)
        if watch_memory:
            self.peak_bytes = finished.peak_bytes
        return finished, printed_times(finished.output)

    @property
    def warms_up(self) -> bool:
        """Return whether the runner has runs that it does not count."""
        return has_placeholder(self.remote.device.runner, "warmup")

    def times(self, found: RunnerTimes, runs: int, warmup: int) -> list[float]:
        """Return the times of a pass: of each run, else one mean of all of them.

        Units: ms
        """
        if found.each:
            return list(found.each[-runs:])
        if found.total is None or not found.runs:
            return []
        if warmup and not self.warms_up:
            self.warn("the runner prints one time for all runs, the first ones included")
        else:
            self.warn("the runner prints one time for all runs: each time is the mean of a block")
        return [found.total / found.runs]

    def warn(self, sentence: str) -> None:
        """Add a warning once."""
        if sentence not in self.warnings:
            self.warnings.append(sentence)


def work(job: RunJob, task: Task) -> dict[str, Any]:
    """Run into the folder of a task; return the content of ``run.json``.

    Raises: DeviceError, AnswerError, FormatError, ValuesError, ToolchainError, OSError
    """
    device = device_named(job.device)
    _check(job, device)

    def waiting(sentence: str) -> None:
        task.notify("warning", text=sentence, file="", line=0)
        task.notify("stage", stage=f"wait for {device.name}", method="")

    with locked(device, waiting):
        return _run(job, device, task)


def _check(job: RunJob, device: Device) -> None:
    """Raise DeviceError for a request that the runner has no placeholder for."""
    requested = {
        "debug_buffer": (job.logs_values, "values are logged with --debug-level"),
        "etdump": (job.traced, "a trace is written (--no-trace goes without)"),
        "output": (True, "outputs are written"),
        "data": (bool(job.data_files), "the program has a .ptd"),
    }
    for name, (needed, what) in requested.items():
        if needed and not has_placeholder(device.runner, name):
            words = f"the runner of {device.name} has no {{{name}}}, but {what}"
            raise DeviceError(f"{words}: etscope device edit {device.name} --runner", "usage")


def _run(job: RunJob, device: Device, task: Task) -> dict[str, Any]:
    folder, notify = task.folder, task.notify
    remote = RemoteFolder(device, transport_of(device))
    with timed_stage(notify, "connect"):
        remote.open()
    program = pushed(remote, job, folder, notify)
    with timed_stage(notify, "run", program.given.plan.name):
        finished, first = program.run(1, 0, watch_memory=True, output=_OUT)
    first_ms = next(iter(program.times(first, 1, 0)), None)
    outputs = _outputs(program, finished, folder)
    passes, timed = Passes(), etdump.dump(())
    if job.timed:
        passes, timed = _passes(program, first_ms, task)
    for sentence in stopped_words(passes, logs_values=job.logs_values):
        program.warn(sentence)
    logged = etdump.dump(())
    failure = ""
    if job.logs_values and not passes.stopped:
        with timed_stage(notify, "log values", program.given.plan.name):
            logged, failure = _logged(program, folder)
        with timed_stage(notify, "write"):
            torch.save(program.given.inputs, folder / INPUTS)
    remote.close(keep=not job.tidy)
    trace = {
        "recorded": bool(timed.run_data or logged.run_data),
        "events": sum(len(run.events) for run in (timed.run_data or logged.run_data)),
        "debug_bytes": _size(folder / BUFFER),
        "failure": failure,
    }
    report = _report(program, first_ms, passes, (outputs, trace)) | {"load_ms": first.loaded}
    return report_written(report, folder)


def pushed(remote: RemoteFolder, job: RunJob, folder: Path, notify: Say) -> DeviceProgram:
    """Push a program with its data and inputs, unless they are there, and return it.

    Raises: DeviceError, AnswerError, FormatError, ValuesError, ToolchainError, OSError
    """
    given = given_program(job, folder)
    (folder / INPUTS).unlink(missing_ok=True)
    first = given.plan.name == given.method_names[0]
    places: dict[str, str | None] = {
        "method": None if first else given.plan.name,
        "threads": str(job.threads or 1),
    }
    with timed_stage(notify, "push"):
        places["program"] = remote.put(Path(given.path), ".pte")
        data = [remote.put(Path(one), ".ptd") for one in job.data_files]
        places["data"] = ",".join(data) or None
        names: list[str] = []
        for value in given.inputs:
            if not isinstance(value, torch.Tensor):
                kind = type(value).__name__
                raise AnswerError(f"runners take tensors only, but input {len(names)} is {kind}")
            raw = folder / "input.bin"
            raw.write_bytes(_bytes(value))
            names.append(remote.put(raw, ".bin"))
            raw.unlink()
        places["inputs"] = ",".join(names) or None
    if given.path != job.program:
        Path(given.path).unlink()
    return DeviceProgram(remote, job, given, places)


def _bytes(value: torch.Tensor) -> bytes:
    flat = value.detach().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


# -- passes -----------------------------------------------------------------


def _passes(
    program: DeviceProgram, first_ms: float | None, task: Task
) -> tuple[Passes, etdump.ETDump]:
    """Run blocks with and without a trace in turns; each is a process on the device."""
    sizes, warmup = _plan(program, first_ms)
    kinds = [False, True] if program.job.records_times else [False]
    turns = [
        (number, runs, traced)
        for number, runs in enumerate(sizes)
        for traced in (kinds if number % 2 == 0 else kinds[::-1])
    ]
    if first_ms is not None and first_ms > SLOW_MS:
        _tell(first_ms, turns, warmup, task.notify)
    times: dict[bool, list[float]] = {False: [], True: []}
    dumps: list[etdump.ETDump] = []
    tried: list[bool] = []
    with timed_stage(task.notify, "measure"):
        for number, runs, traced in turns:
            if task.stop.is_asked():
                break
            tried.append(traced)
            if traced and number and not dumps:
                continue  # no trace came from the first block
            finished, found = program.run(runs, warmup, etdump=TRACE if traced else None)
            times[traced] += program.times(found, runs, warmup)
            if traced:
                dumps += _dump(program, finished, (runs, warmup), task.folder)
            elif _LEFT_BEHIND in finished.sizes:
                program.warn("the runner traces every run: no time is without a trace")
            program.remote.empty()
            task.notify("counted", done=len(tried), total=len(turns))
    if True in tried and not dumps:
        program.warn(f"the runner of {program.remote.device.name} {_NO_TRACING}")
        times[True] = []
    whole = _joined(dumps)
    if dumps:
        (task.folder / TRACE).write_bytes(etdump.encode(whole))
    if False in tried and not times[False]:
        program.warn("the runner prints no times: those of its trace are shown")
    runs_of = tuple(times[True]), tuple(times[False])
    early, requested = len(tried) < len(turns), sum(sizes) * len(kinds)
    return Passes((), None, *runs_of, stopped=early, requested=requested), whole


def _tell(run_ms: float, turns: Sequence[tuple[int, int, bool]], warmup: int, notify: Say) -> None:
    """Report the expected duration for a slow program."""
    timed = sum(runs for _, runs, traced in turns if traced)
    bare = sum(runs for _, runs, traced in turns if not traced)
    seconds = run_ms * (timed + bare + warmup * len(turns)) / 1e3
    notify("expected", run_ms=run_ms, timed=timed, bare=bare, seconds=seconds)


def _plan(program: DeviceProgram, first_ms: float | None) -> tuple[list[int], int]:
    """Return the runs of each block, and the runs before each."""
    job = program.job
    slow = first_ms is not None and first_ms > SLOW_MS
    warmup = job.warmup if job.warmup is not None else _SLOW_WARMUP if slow else _WARMUP
    if job.runs is None and program.given.has_state:  # nothing resets its state between runs
        return [1] * _STATE_RUNS, 0
    if job.runs is not None:
        blocks = min(_BLOCKS, math.ceil(job.runs / _LEAST_RUNS))
        return [len(range(at, job.runs, blocks)) for at in range(blocks)], warmup
    if slow:
        return [1] * _SLOW_BLOCKS, warmup
    requested = math.ceil(_BLOCK_MS / first_ms) if first_ms else _MOST_RUNS
    return [max(_LEAST_RUNS, min(requested, _MOST_RUNS))] * _BLOCKS, warmup


def _dump(
    program: DeviceProgram, finished: Finished, counts: tuple[int, int], folder: Path
) -> list[etdump.ETDump]:
    """Return the trace of a block without its warm-up, or nothing."""
    path = folder / TRACE
    if not program.remote.get(finished, TRACE, path):
        return []
    dump = etdump.decode(path.read_bytes(), file=path.name)
    path.unlink()
    if not dump.run_data:
        return []
    kept = measured_only(dump, counts[1], counts[0])
    if kept is None and measured_only(dump, 0, counts[0]) is None:
        program.warn("the trace holds the runs before the measured ones as well")
    return [dump if kept is None else kept]


def _joined(dumps: Sequence[etdump.ETDump]) -> etdump.ETDump:
    """Return one trace: loading of the first, runs of all."""
    if not dumps:
        return etdump.dump(())
    first, *others = dumps
    later = (run for dump in others for run in dump.run_data if run.name == EXECUTE)
    return etdump.dump([*first.run_data, *later])


def _logged(program: DeviceProgram, folder: Path) -> tuple[etdump.ETDump, str]:
    """Return the trace of one run that logs values, and why there is none."""
    size = debug_bytes(program.job, program.given.plan)
    finished, _ = program.run(
        1, 0, etdump=VALUES, debug_buffer=BUFFER, debug_bytes=str(size) if size else None
    )
    remote, trace, buffer = program.remote, folder / VALUES, folder / BUFFER
    if not remote.get(finished, VALUES, trace):
        return etdump.dump(()), f"the runner of {remote.device.name} {_NO_TRACING}"
    dump = etdump.decode(trace.read_bytes(), file=VALUES)
    if not remote.get(finished, BUFFER, buffer):
        return dump, f"the runner of {remote.device.name} writes no debug buffer"
    cut = cut_buffer(dump, buffer)
    trace.write_bytes(etdump.encode(cut))
    return cut, ""


def _outputs(program: DeviceProgram, finished: Finished, folder: Path) -> list[Any]:
    """Pull the outputs of the first inference; return them as they are stored."""
    found: list[Any] = []
    plan = program.given.plan
    for number, place in enumerate(plan.outputs):
        value = plan.values[place].val
        if not isinstance(value, m.Tensor):
            program.warn(f"output {number} is not a tensor: runners do not write it")
            found.append(None)
            continue
        raw = folder / "output.bin"
        if not program.remote.get(finished, f"{_OUT}-{number}.bin", raw):
            if tensor_nbytes(value.scalar_type, value.sizes):
                program.warn(f"the runner wrote no output {number}")
            found.append(None)
            continue
        found.append(_tensor(value, raw.read_bytes(), number, program.warn))
        raw.unlink()
    torch.save(found, folder / OUTPUTS)
    return found


def _tensor(
    value: m.Tensor, data: bytes, number: int, warn: Callable[[str], object]
) -> torch.Tensor:
    dtype = dtype_of(value.scalar_type)
    whole = len(data) - len(data) % dtype.itemsize
    tensor = torch.frombuffer(bytearray(data[:whole]), dtype=dtype)
    if len(data) == tensor_nbytes(value.scalar_type, value.sizes):
        return tensor.reshape(value.sizes)
    warn(f"output {number} is smaller than its largest size: its shape is not known")
    return tensor


# -- report -----------------------------------------------------------------


def _report(
    program: DeviceProgram,
    first_ms: float | None,
    passes: Passes,
    found: tuple[Sequence[Any], dict[str, Any]],
) -> dict[str, Any]:
    outputs, trace = found
    job, plan, device = program.job, program.given.plan, program.remote.device
    where = program.remote.transport.describe()
    knows_threads = has_placeholder(device.runner, "threads")
    return {
        "etscope": __version__,
        "toolchain": {"name": EXECUTORCH, "version": "unknown"},
        "where": f"ExecuTorch on {device.name}",
        "device": {
            "name": device.name,
            "transport": where,
            "clock": device.clock,
            "facts": program.remote.facts,
            "pushed": program.remote.pushed,
        },
        "clock": device.clock,
        "program": job.program,
        "method": plan.name,
        "torch": "",
        "threads": job.threads or 1 if knows_threads else None,
        "backends": list(dict.fromkeys(one.id for one in plan.delegates)),
        "partitions": partitions_of(program),
        "options": options_of(job),
        "inputs": [described(value) for value in program.given.inputs],
        "outputs": [printed(value, job.print_output) for value in outputs],
        "load_ms": None,
        "init_ms": None,
        **times_of(first_ms, passes),
        "memory": {
            "planned_bytes": list(plan.non_const_buffer_sizes[1:]),
            "idle_bytes": None,
            "loaded_bytes": None,
            "peak_bytes": program.peak_bytes,
        },
        "trace": trace,
        "warnings": program.warnings,
    }


def partitions_of(program: DeviceProgram) -> list[dict[str, str]]:
    """Return the engine of each delegate of the method."""
    source = f"ExecuTorch on {program.remote.device.name}"
    ran = {"engine": "", "source": source, "note": "", "origin": ValueOrigin.DEVICE.value}
    return [{"backend": one.id, **ran} for one in program.given.plan.delegates]


def _text(value: int | None) -> str | None:
    return None if value is None else str(value)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
