"""Runs of one method in the worker: outputs, trace and report into a folder."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from inspector.jobs.executing import MADE_INPUTS, REPORT, RunJob
from inspector.recipes.compile_job import BUILT_IN
from inspector.worker.blaming import told_lines
from inspector.worker.contention import Others, busy_cores, oversubscribed, usable_cores
from inspector.worker.debug_filter import chosen_instructions
from inspector.worker.exporter import Say, told
from inspector.worker.inputs import chosen_method, described, made_inputs, printed, read_values
from inspector.worker.recording import NotWrittenError, Recording
from inspector.worker.resident import forget_peak, peak_bytes, resident_bytes
from runtime import DebugFilter, Method, Program, Runtime
from runtime.backends import run_native_kernels_here
from runtime.program.loading import read
from runtime.verify import bundled_values, find_case
from schema import bundled, etrecord
from schema.version import __version__

_SAY_EVERY = 0.1  # seconds between two progress messages


@dataclass
class _Measured:
    """Measurements of a run.

    Attributes:
        load_ms: loading the program
        init_ms: loading the method
        run_ms: each run
        idle_bytes: resident before loading the program
        loaded_bytes: resident after loading the method
    """

    load_ms: float = 0.0
    init_ms: float = 0.0
    run_ms: Sequence[float] = ()
    idle_bytes: int | None = None
    loaded_bytes: int | None = None


def run_into(job: RunJob, folder: Path, notify: Say) -> dict[str, Any]:
    """Run and write all files into a folder; return the content of ``run.json``.

    Raises: ExecutionError, AnswerError, ValuesError, NotWrittenError, OSError
    """
    if job.threads:
        torch.set_num_threads(job.threads)
    chosen = DebugFilter(operators=job.only or None, instructions=chosen_instructions(job))
    recording = Recording(folder, job.debug_level, chosen, traced=job.traced)
    with closing(recording), told_lines(job.record):
        return _run(job, folder, recording, notify)


def _run(job: RunJob, folder: Path, recording: Recording, notify: Say) -> dict[str, Any]:
    measured = _Measured(idle_bytes=resident_bytes())
    others = [Others()]
    forget_peak()
    run_native_kernels_here()  # a worker may crash, and requests to another process take time
    with told(notify, "load"):
        start = time.perf_counter()
        program = Runtime.get().load_program(
            job.program, data_path=list(job.data_files), tracer=recording.tracer
        )
        measured.load_ms = _since(start)
    name = chosen_method(program.file, job.method)
    with told(notify, "prepare", name):
        start = time.perf_counter()
        method = program.load_method(name, engine=job.engine, emulate=record_of(job))
        measured.init_ms = _since(start)
    inputs = inputs_of(job, program, name)
    if job.keeps_inputs:
        recording.hold_inputs(inputs)
    if recording.tracer is not None and job.case is not None:
        recording.tracer.bundled_input_index = job.case
    measured.loaded_bytes = resident_bytes()
    _warm_up(method, inputs, job.warmup, notify)
    others.append(Others())
    measured.run_ms = _runs(method, inputs, job.runs, notify)
    outputs = method.get_outputs()
    busy = busy_cores(others)
    with told(notify, "write"):
        trace = recording.write(outputs)
        report = _report(job, method, (inputs, outputs), measured)
        report["trace"] = {"recorded": job.traced, **trace}
        if sentence := oversubscribed(torch.get_num_threads(), usable_cores(), busy):
            report["warnings"] = [sentence]
        try:
            return _written(report, folder)
        except NotWrittenError as error:
            if not job.traced:
                raise
            report["trace"] |= recording.drop_trace(error.reason)
            return _written(report, folder)


def options_of(job: RunJob) -> dict[str, Any]:
    """Return the request of a run, as in ``run.json``."""
    return {
        "inputs": job.inputs if job.case is None else "bundled",
        "case": job.case,
        "seed": job.seed,
        "runs": job.runs,
        "warmup": job.warmup,
        "debug_level": job.debug_level,
        "debug_op": job.only,
        "debug_module": job.only_module,
        "debug_handles": list(job.only_handles),
        "engine": job.engine,
        "record": job.record,
        "ptd": list(job.data_files),
        "libraries": list(job.libraries),
    }


def record_of(job: RunJob) -> etrecord.ETRecord | None:
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
    if job.inputs in MADE_INPUTS:
        return made_inputs(program.file.plan(name), job.inputs, job.seed)
    return read_values(job.inputs)


def _warm_up(method: Method, inputs: Sequence[Any], count: int, notify: Say) -> None:
    """Run without recording."""
    if not count:
        return
    tracer, method.tracer = method.tracer, None
    with told(notify, "warm up", method.name):
        for number in range(count):
            method.set_inputs(inputs)
            method.run()
            notify("counted", done=number + 1, total=count)
    method.tracer = tracer


def _runs(method: Method, inputs: Sequence[Any], count: int, notify: Say) -> list[float]:
    times: list[float] = []
    with told(notify, "run", method.name):
        said = time.monotonic()
        for number in range(count):
            method.set_inputs(inputs)
            start = time.perf_counter()
            method.run()
            times.append(_since(start))
            if time.monotonic() - said > _SAY_EVERY or number + 1 == count:
                said = time.monotonic()
                notify("counted", done=number + 1, total=count)
    return times


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
        "options": options_of(job),
        "inputs": [described(value) for value in inputs],
        "outputs": [printed(value, job.print_output) for value in outputs],
        "load_ms": measured.load_ms,
        "init_ms": measured.init_ms,
        "run_ms": list(measured.run_ms),
        "latency_ms": statistics_of(measured.run_ms),
        "memory": {
            "planned_bytes": planned,
            "idle_bytes": measured.idle_bytes,
            "loaded_bytes": measured.loaded_bytes,
            "peak_bytes": peak_bytes(),
        },
    }


def statistics_of(times: Sequence[float]) -> dict[str, float | None]:
    """Return the report of the times of runs."""
    ordered = sorted(times)
    return {
        "min": ordered[0],
        "median": statistics.median(ordered),
        "mean": statistics.fmean(ordered),
        "p90": ordered[-(-9 * len(ordered) // 10) - 1],
        "max": ordered[-1],
        "stdev": statistics.stdev(ordered) if len(ordered) > 1 else None,
    }


def _written(report: dict[str, Any], folder: Path) -> dict[str, Any]:
    files = [{"path": path.name, "bytes": path.stat().st_size} for path in sorted(folder.iterdir())]
    report["files"] = files
    text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    try:
        (folder / REPORT).write_text(text, "utf-8")
    except OSError as error:
        raise NotWrittenError(REPORT, error) from error
    return report
