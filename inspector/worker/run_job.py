"""Runs of one method in the worker: outputs, traces and report into a folder."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch

from inspector.files.load import load_session
from inspector.files.machine import this_machine, usable_cores
from inspector.files.run_report import listed_files
from inspector.files.session import Session
from inspector.jobs.executing import REPORT, RunJob, StepJob
from inspector.memory.plan import state_values
from inspector.numerics.state_names import state_names
from inspector.recipes.compile_job import BUILT_IN
from inspector.recipes.data_source import GENERATED
from inspector.trace.run_times import run_times, statistics_json
from inspector.units import NS_PER_MS
from inspector.worker.contention import Others, busy_cores, oversubscribed
from inspector.worker.data_set import inputs_named
from inspector.worker.debug_filter import chosen_instructions
from inspector.worker.error_source import located_errors
from inspector.worker.exporter import Say, timed_stage
from inspector.worker.index_inputs import remedy_of_random
from inspector.worker.inputs import chosen_method, described, printed
from inspector.worker.missing_data import missing_data_named
from inspector.worker.passes import Kinds, Passes, run_passes
from inspector.worker.recording import NotWrittenError, Recording
from inspector.worker.resident import MemoryPhases, resident_bytes
from inspector.worker.sequence import SequencePass
from inspector.worker.tasks import Task
from runtime import DebugFilter, EventTracer, ExecutionError, Method, Program, Runtime
from runtime.program.loading import read
from runtime.verify import bundled_values, find_case
from schema import bundled, etrecord
from schema.objects.plural import plural
from schema.program import instructions
from schema.program import model as m
from schema.version import __version__


@dataclass
class _Measured:
    """Measurements of a run.

    Attributes:
        load_ms: loading the program
        init_ms: loading the method
        first_ms: the first inference
        passes: the runs after it
        idle_bytes: resident before loading the program
        loaded_bytes: resident after loading the method
        memory: peak of each phase, see ``MemoryPhases``
        prepared: methods that are loaded
    """

    load_ms: float = 0.0
    init_ms: float = 0.0
    first_ms: float = 0.0
    passes: Passes = field(default_factory=Passes)
    idle_bytes: int | None = None
    loaded_bytes: int | None = None
    memory: MemoryPhases = field(default_factory=MemoryPhases)
    prepared: set[str] = field(default_factory=set[str])


class _Runner:
    """Runs a method again and again, each time from the state it was loaded with.

    Inputs without planned memory are shared with the program, which may write to them.
    """

    def __init__(self, program: Program, method: Method, inputs: Sequence[Any]) -> None:
        self._method = method
        self._inputs = [one.clone() if isinstance(one, torch.Tensor) else one for one in inputs]
        pairs = zip(self._inputs, inputs, strict=True)
        self._given = [(own, one) for own, one in pairs if isinstance(one, torch.Tensor)]
        held = [method.value(index) for index in state_values(program.file, method.name)]
        self._state = [(one, one.clone()) for one in held if isinstance(one, torch.Tensor)]
        self._ran = False
        self.phases: MemoryPhases | None = None  # that wait for the peak of a steady run

    def once(self, tracer: EventTracer | None = None) -> float:
        """Run; return the time in ms."""
        method = self._method
        if self._ran:
            method.reset_delegates()
            for tensor, saved in self._state:
                tensor.copy_(saved)
        method.tracer = tracer
        method.set_inputs(self._inputs)
        watched = self.phases if tracer is None else None
        if watched is not None:
            watched.begin()
        start = time.perf_counter()
        method.run()
        spent = _since(start)
        if watched is not None:
            self.phases = None
            watched.end("steady_run")
        if not self._ran:  # what the first run has not written to is left alone
            self._state += [pair for pair in self._given if not _same_bytes(*pair)]
            self._ran = True
        return spent


def _same_bytes(one: torch.Tensor, two: torch.Tensor) -> bool:
    """Return whether tensors are equal with their NaNs."""
    first, second = (each.reshape(-1).view(torch.uint8) for each in (one, two))
    return torch.equal(first, second)


def run_into(job: RunJob, task: Task) -> dict[str, Any]:
    """Run and write all files into the folder of a task; return the content of ``run.json``.

    Raises: ExecutionError, AnswerError, ValuesError, NotWrittenError, OSError
    """
    if job.threads:
        torch.set_num_threads(job.threads)
    chosen = DebugFilter(operators=job.only or None, instructions=chosen_instructions(job))
    recording = Recording(task.folder, job, chosen)
    data = missing_data_named(job.program, job.data_files)
    with closing(recording), located_errors(job.record), data:
        return _run(job, task, recording)


def _run(job: RunJob, task: Task, recording: Recording) -> dict[str, Any]:
    notify = task.notify
    measured = _Measured(idle_bytes=resident_bytes())
    others = [Others()]
    program = _loaded_program(job, recording, measured, notify)
    if job.sequence:
        return _run_sequence(job, task, recording, measured, program)
    method = _loaded_method(job, program, chosen_method(program.file, job.method), measured, notify)
    inputs = inputs_of(job, program, method.name)
    if job.logs_values:
        recording.hold_inputs(inputs)
    for tracer in recording.tracers if job.case is not None else ():
        tracer.bundled_input_index = job.case or 0
    measured.loaded_bytes = resident_bytes()
    runner = _Runner(program, method, inputs)
    with timed_stage(notify, "run", method.name):
        measured.memory.begin()
        measured.first_ms = _first(job, program, runner, None if job.timed else recording.values)
        measured.memory.end("first_run")
    outputs = method.get_outputs()
    if job.timed:
        others.append(Others())
        measured.passes = _passes(job, runner, measured, recording.timed, task)
    busy = busy_cores(others)
    stopped = stopped_words(measured.passes, logs_values=job.logs_values)
    if stopped:
        recording.leave_out_values()
    elif job.timed and recording.values is not None:
        with timed_stage(notify, "log values", method.name):
            runner.once(recording.values)
    with timed_stage(notify, "write"):
        trace = recording.write(outputs)
        report = _report(job, method, (inputs, outputs), measured)
        report |= {"trace": {"recorded": job.traced, **trace}, "sizes": _sizes(program, method)}
        crowded = oversubscribed(torch.get_num_threads(), usable_cores(), busy)
        report["warnings"] = [*stopped, *filter(None, [crowded])]
        return _written_with_room(report, task.folder, recording)


def _written_with_room(
    report: dict[str, Any], folder: Path, recording: Recording
) -> dict[str, Any]:
    """Write the report; on a full disk other files make room for it, the outputs excepted.

    Raises: NotWrittenError
    """
    while True:
        try:
            return _written(report, folder)
        except NotWrittenError as error:
            report["trace"] |= recording.make_room(error)


def _first(job: RunJob, program: Program, runner: _Runner, tracer: EventTracer | None) -> float:
    """Run for the first time; return the time in ms.

    Raises: ExecutionError, which names random inputs that may be at fault
    """
    try:
        return runner.once(tracer)
    except ExecutionError as error:
        if job.case is None and job.inputs == GENERATED[0]:
            words = remedy_of_random(program.file.plan(error.method))
            error.remedy = " ".join(filter(None, [error.remedy, words]))
        raise


def _run_sequence(
    job: RunJob,
    task: Task,
    recording: Recording,
    measured: _Measured,
    program: Program,
) -> dict[str, Any]:
    """Run once with each of several inputs; the state goes from one call to the next."""

    def load(name: str) -> Method:
        return _loaded_method(job, program, name, measured, task.notify)

    source, loading = (job.sequence, job.method), (program.file, load)
    sequence = SequencePass(source, loading, task, keeps_inputs=job.logs_values)
    sequence.load_first()
    measured.loaded_bytes = resident_bytes()
    with timed_stage(task.notify, "run", sequence.method):
        measured.memory.begin()
        calls = sequence.run(recording.timed)
        measured.memory.end("first_run")
    sequence.state.name_with(_names_of(job))
    outputs, method = sequence.outputs(), load(sequence.method)
    first, *later = (one["ms"] for one in calls)
    measured.first_ms = first
    times, none = tuple(later), ()
    stopped = task.stop.is_asked()
    notes = [f"stopped after {plural(len(calls), 'call')}"] if stopped else []
    if stopped:
        recording.leave_out_values()
    elif recording.values is not None:
        with timed_stage(task.notify, "log values", method.name):
            notes += sequence.log(recording, task.folder)
    timed, bare = (times, none) if job.records_times else (none, times)
    measured.passes = Passes(timed=timed, bare=bare, stopped=stopped)
    with timed_stage(task.notify, "write"):
        trace = recording.write(outputs)
        report = _report(job, method, ([], outputs), measured)
        state = sequence.state.content()
        report |= {"inputs": calls[-1]["inputs"], "calls": calls, "state": state}
        report["trace"] = {"recorded": job.traced, **trace}
        report["warnings"] = notes
        return _written_with_room(report, task.folder, recording)


def _names_of(job: RunJob) -> Callable[[str], Mapping[int, str]]:
    """Return the function that names the state of a method by the record beside the program."""

    @cache
    def session() -> Session:
        return load_session([job.program, *filter(None, [job.record])])

    return lambda method: state_names(session(), method)


def _loaded_program(job: RunJob, recording: Recording, measured: _Measured, notify: Say) -> Program:
    phases = measured.memory
    with timed_stage(notify, "load"):
        phases.begin()
        start = time.perf_counter()
        program = Runtime.get().load_program(
            job.program, data_path=list(job.data_files), tracer=recording.timed or recording.values
        )
        measured.load_ms = _since(start)
        phases.end("load")
    return program


def _loaded_method(
    job: RunJob, program: Program, name: str, measured: _Measured, notify: Say
) -> Method:
    """Return a method, loaded once; what loading several took is added up."""
    if name in measured.prepared:
        return program.load_method(name)
    phases = None if measured.prepared else measured.memory  # a later one is loaded between calls
    with timed_stage(notify, "prepare", name):
        if phases is not None:
            phases.begin()
        start = time.perf_counter()
        method = program.load_method(name, engine=job.engine, emulate=record_of(job))
        measured.init_ms += _since(start)
        if phases is not None:
            phases.end("prepare")
    measured.prepared.add(name)
    return method


def _passes(
    job: RunJob, runner: _Runner, measured: _Measured, tracer: EventTracer | None, task: Task
) -> Passes:
    """Warm up, then run with and without a trace in turns."""
    waiting = [measured.memory]

    def bare() -> float:
        runner.phases = waiting.pop() if waiting else None
        return runner.once()

    def timed(into: EventTracer) -> float:
        runner.once(into)
        return into.last_ns / NS_PER_MS  # as the trace says, so that no two views disagree

    kinds = Kinds(runner.once, bare)
    if tracer is not None:
        kinds = Kinds(runner.once, bare, lambda: timed(tracer), lambda: timed(EventTracer()))
    counts = job.runs, job.warmup
    return run_passes(kinds, counts, measured.first_ms, task.notify, task.stop.is_asked)


def options_of(job: RunJob) -> dict[str, Any]:
    """Return the request of a run, as in ``run.json``."""
    return {
        "inputs": job.inputs if job.case is None else "bundled",
        "case": job.case,
        **({"sequence": job.sequence} if job.sequence else {}),
        "seed": job.seed,
        "runs": job.runs,
        "warmup": job.warmup,
        "timed": job.timed,
        "debug_level": job.debug_level,
        "debug_op": job.only,
        "debug_module": job.only_module,
        "debug_handles": list(job.only_handles),
        "engine": job.engine,
        "backend_options": list(job.backend_options),
        "record": job.record,
        "ptd": list(job.data_files),
        "libraries": list(job.libraries),
    }


def record_of(job: RunJob | StepJob) -> etrecord.RecordFile | None:
    """Return the record whose graphs run the delegates of backends that are not here."""
    if not job.record:
        return None
    return etrecord.decode(read(job.record)[0], file=job.record)


def _since(start: float) -> float:
    return (time.perf_counter() - start) * 1e3


def inputs_of(job: RunJob, program: Program, name: str) -> list[Any]:
    """Return the inputs of a job.

    Raises: ExecutionError, ValuesError, OSError
    """
    if job.case is not None:
        data, file = read(job.bundle or job.program)
        cases = bundled.decode(data, file=file)
        return bundled_values(find_case(cases, name, job.case).inputs)
    return inputs_named(job.inputs, job.seed, program.file.plan(name))


def _report(
    job: RunJob, method: Method, values: tuple[Sequence[Any], Sequence[Any]], measured: _Measured
) -> dict[str, Any]:
    inputs, outputs = values
    meta = method.metadata
    planned = [
        meta.memory_planned_buffer_size(at) for at in range(meta.num_memory_planned_buffers())
    ]
    return {
        "etscope": __version__,
        "toolchain": {"name": BUILT_IN, "version": __version__},
        "where": f"ETScope {__version__} on this machine",
        "program": job.program,
        "method": method.name,
        "torch": str(torch.__version__),
        "threads": torch.get_num_threads(),
        "backends": list(meta.backend_names()),
        "partitions": [asdict(one) for one in method.measurements],
        "machine": asdict(this_machine()),
        "options": options_of(job),
        "inputs": [described(value) for value in inputs],
        "outputs": [printed(value, job.print_output) for value in outputs],
        "load_ms": measured.load_ms,
        "init_ms": measured.init_ms,
        **times_of(measured.first_ms, measured.passes),
        "memory": {
            "planned_bytes": planned,
            "idle_bytes": measured.idle_bytes,
            "loaded_bytes": measured.loaded_bytes,
            "peak_bytes": measured.memory.largest(),
            **measured.memory.report(job.program, measured.idle_bytes, sum(planned)),
        },
    }


def _sizes(program: Program, method: Method) -> dict[str, list[int]]:
    """Return the sizes of dynamic tensors by their index; none where loops change them."""
    plan = program.file.plan(method.name)
    steps = (one.instr_args for _, _, one in instructions(plan))
    if any(isinstance(args, m.JumpFalseCall) for args in steps):
        return {}
    held = {
        index: method.value(index)
        for index, value in enumerate(plan.values)
        if isinstance(value.val, m.Tensor) and value.val.shape_dynamism
    }
    return {str(at): list(one.shape) for at, one in held.items() if isinstance(one, torch.Tensor)}


def times_of(first_ms: float | None, passes: Passes) -> dict[str, Any]:
    """Return the report of the times of all runs; the program's own are the bare ones."""
    cost = None
    timed, bare = run_times(passes.timed), run_times(passes.bare)
    if timed is not None and bare is not None and bare.mean > 0:
        cost = (timed.mean - bare.mean) / bare.mean
    return {
        "first_run_ms": first_ms,
        "warmup": {"runs": len(passes.warmup), "ms": sum(passes.warmup), "steady": passes.steady},
        "stopped": {"runs": len(passes.timed) + len(passes.bare), "of": passes.requested}
        if passes.stopped
        else None,
        "run_ms": list(passes.bare),
        "traced_run_ms": list(passes.timed),
        "latency_ms": statistics_json(bare),
        "traced_latency_ms": statistics_json(timed),
        "tracing_cost": cost,
    }


def stopped_words(passes: Passes, *, logs_values: bool) -> list[str]:
    """Return the sentence about runs that the user ended early, none for others."""
    if not passes.stopped:
        return []
    done = len(passes.timed) + len(passes.bare)
    of = (
        plural(done, "run")
        if passes.requested is None
        else f"{done:,} of {passes.requested:,} runs"
    )
    return [f"stopped after {of}{', before values were logged' if logs_values else ''}"]


def _written(report: dict[str, Any], folder: Path) -> dict[str, Any]:
    report["files"] = listed_files(folder)
    text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    try:
        (folder / REPORT).write_text(text, "utf-8")
    except OSError as error:
        (folder / REPORT).unlink(missing_ok=True)  # no part of it stays
        raise NotWrittenError(folder / REPORT, error, len(text)) from error
    return report
