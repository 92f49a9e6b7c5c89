"""A run on the runtime of ``executorch``: with the same files as a run on our runtime."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from inspector.files.machine import this_machine, usable_cores
from inspector.files.run_report import listed_files
from inspector.jobs.executing import (
    BUFFER,
    INPUTS,
    OUTPUTS,
    REPORT,
    TRACE,
    VALUES,
    RunJob,
)
from inspector.jobs.output_folder import unwritten
from inspector.memory.plan import state_values
from inspector.recipes.compile_job import EXECUTORCH
from inspector.toolchain.child import Interpreter, Response, Say, ToolchainError, ask
from inspector.toolchain.interpreter import interpreter
from inspector.worker.contention import oversubscribed
from inspector.worker.data_set import inputs_named
from inspector.worker.exporter import AnswerError
from inspector.worker.inputs import chosen_method, described, printed
from inspector.worker.interrupting import StopSignal
from inspector.worker.passes import Passes
from inspector.worker.run_job import options_of, stopped_words, times_of
from inspector.worker.tasks import Task
from inspector.worker.toolchain_trace import cut_buffer, executed_ms, measured_only
from runtime.program.loading import read
from runtime.tracing.sinks import ALIGNMENT
from runtime.verify import bundled_values, find_case
from schema import bundled, etdump, program
from schema.dtypes.scalar_type import tensor_nbytes
from schema.origins import ValueOrigin
from schema.program import model as m
from schema.version import __version__

_INPUTS, _EXTRACTED = INPUTS, "program.pte"  # passed on; the program is released afterwards
_STOP = ".stop"  # appears when the runs are to end; the other interpreter looks for it
_MOST_LOGGED = 1 << 31  # bytes
_SPARE = 1 << 20  # headers and alignment of the debug buffer beside the tensors
FEW_RUNS = 3  # of a method with state: a cache may have no room for more


@dataclass(frozen=True, slots=True)
class GivenProgram:
    """A program and its inputs.

    Attributes:
        path: of a ``.pte``
        plan: the method
        inputs: its inputs
        has_state: whether it carries values from run to run, which nothing resets here
        method_names: of the program, in its order
    """

    path: str
    plan: m.ExecutionPlan
    inputs: list[Any]
    has_state: bool
    method_names: tuple[str, ...]


def work(job: RunJob, task: Task) -> dict[str, Any]:
    """Run into the folder of a task; see ``run_with_executorch``."""
    return run_with_executorch(job, task.folder, task.notify, stop=task.stop)


def run_with_executorch(
    job: RunJob,
    folder: Path,
    notify: Say,
    tool: Interpreter | None = None,
    stop: StopSignal | None = None,
) -> dict[str, Any]:
    """Run and write all files into a folder; return the content of ``run.json``.

    Args:
        job: the request
        folder: for the files
        notify: called with messages
        tool: a running interpreter; None starts the one of the job
        stop: asks for an early end

    Raises: ReportedError if the other interpreter has reported why it failed; ToolchainError,
        AnswerError, FormatError, ValuesError, OSError
    """
    given = given_program(job, folder)
    ignored = _without_effect(job)
    few = job.runs is None and given.has_state
    question = question_of(job, given, folder) | {
        "runs": FEW_RUNS if few else job.runs,
        "warmup": 1 if few and job.warmup is None else job.warmup,
        "timed": job.timed,
        "traced": job.records_times,
        "debug_bytes": debug_bytes(job, given.plan),
        "stop": str(folder / _STOP),
    }
    if stop is not None:
        stop.when_asked((folder / _STOP).touch)
    for text in ignored:
        notify("warning", text=text, file="", line=0)
    python = interpreter(job.python)
    answer = ask(python, question, notify) if tool is None else tool.ask(question, notify)
    if stop is not None:
        stop.when_asked(None)
    for name in (_STOP, _EXTRACTED, *(() if job.logs_values else (_INPUTS,))):
        (folder / name).unlink(missing_ok=True)
    return report_written(_report(job, given, answer, folder, ignored), folder)


def question_of(job: RunJob, given: GivenProgram, folder: Path) -> dict[str, Any]:
    """Return the request of one bare run.

    Args:
        job: the request
        given: its program
        folder: with the inputs, for the outputs

    Raises: ToolchainError for several ``.ptd`` files
    """
    return {
        "do": "run",
        "program": given.path,
        "method": given.plan.name,
        "data": _data(job),
        "libraries": list(job.libraries),
        "inputs": str(folder / _INPUTS),
        "runs": 1,
        "warmup": 0,
        "timed": True,
        "traced": False,
        "debug_bytes": 0,
        "threads": job.threads,
        "folder": str(folder),
        "planned": sum(given.plan.non_const_buffer_sizes[1:]),
    }


def given_program(job: RunJob, folder: Path) -> GivenProgram:
    """Return the program of a job with its inputs, which are written into a folder as well.

    Raises: AnswerError, ToolchainError, FormatError, ValuesError, OSError
    """
    data, file = read(job.program)
    path, buffer = job.program, data
    cases: bundled.BundledFile | None = None
    if bundled.sniff(bytes(data[:64])):
        cases = bundled.decode(data, file=file)
        buffer, path = cases.program, str(folder / _EXTRACTED)
        _save(Path(path), bytes(buffer))
    decoded = program.decode(buffer, file=file)
    plan = decoded.plan(chosen_method(decoded, job.method))
    if job.case is not None:
        if job.bundle:
            cases = bundled.decode(read(job.bundle)[0], file=job.bundle)
        if cases is None:
            raise AnswerError(f"{job.program} has no cases: it is not a bundled program")
        inputs = bundled_values(find_case(cases, plan.name, job.case).inputs)
    else:
        inputs = inputs_named(job.inputs, job.seed, plan)
    _save_values(folder / _INPUTS, inputs)
    names = tuple(one.name for one in decoded.plans)
    return GivenProgram(path, plan, inputs, bool(state_values(decoded, plan.name)), names)


def _save(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise _not_written(path, error, len(data)) from error


def _save_values(path: Path, values: list[Any]) -> None:
    stream = io.BytesIO()  # torch tells of a full disk without its name
    torch.save(values, stream)
    _save(path, stream.getvalue())


def _not_written(path: Path, error: OSError, nbytes: int | None = None) -> ToolchainError:
    return ToolchainError(unwritten(path, error, nbytes))


def _data(job: RunJob) -> str:
    if len(job.data_files) > 1:
        words = "the stock runtime accepts one .ptd file from Python"
        raise ToolchainError(f"{words}, found {len(job.data_files)}", blame="usage")
    return job.data_files[0] if job.data_files else ""


def _without_effect(job: RunJob) -> list[str]:
    """Return a sentence for each part of a job that the stock runtime has no option for."""
    found: list[str] = []
    if job.debug_level == "outputs":
        found.append("the stock runtime records the values of all instructions, not only outputs")
    if job.only:
        found.append("--debug-op has no effect: the stock runtime records every operator")
    if job.only_module or job.only_handles:
        found.append("--debug-module and --debug-handle have no effect, for the same reason")
    if job.engine != RunJob("").engine:
        found.append("--engine has no effect: the stock runtime has its own kernels")
    if job.backend_options:
        found.append(
            "--backend-option has no effect: the stock runtime passes none to its backends"
        )
    if job.record:
        found.append("--record has no effect: the stock runtime runs no recorded graphs")
    return found


def debug_bytes(job: RunJob, plan: m.ExecutionPlan) -> int:
    """Return an upper bound of the debug buffer size; the stock runtime aborts when it is full.

    Raises: ToolchainError if it exceeds the limit
    """
    if not job.logs_values or os.name == "nt":
        return 0
    requested = sum(_logged_bytes(plan)) + _SPARE
    if requested > _MOST_LOGGED:
        words = f"the values of a run may take {requested:,} bytes"
        raise ToolchainError(f"{words}, more than the {_MOST_LOGGED:,} there may be", blame="usage")
    return requested


def _logged_bytes(plan: m.ExecutionPlan) -> Iterator[int]:
    """Yield the bytes of all tensors that each instruction reads or writes."""
    for chain in plan.chains:
        for instruction in chain.instructions:
            call = instruction.instr_args
            if isinstance(call, m.KernelCall | m.DelegateCall):
                yield sum(_nbytes(plan, place) for place in call.args)


def _nbytes(plan: m.ExecutionPlan, place: int) -> int:
    value = plan.values[place].val if 0 <= place < len(plan.values) else None
    if isinstance(value, m.Tensor):
        return tensor_nbytes(value.scalar_type, value.sizes) + ALIGNMENT
    if isinstance(value, m.TensorList):
        return sum(_nbytes(plan, one) for one in value.items)
    return 0


# -- results ----------------------------------------------------------------


def _report(
    job: RunJob, given: GivenProgram, answer: Response, folder: Path, ignored: Sequence[str]
) -> dict[str, Any]:
    found = answer.result
    version, here = answer.versions.get(EXECUTORCH, "unknown"), _place(answer.versions)
    outputs: list[Any] = torch.load(folder / OUTPUTS, weights_only=True)
    trace = _trace(job, found, folder, here)
    plan, passes = given.plan, _passes(found, trace.pop("executed_ms", ()))
    return {
        "etscope": __version__,
        "toolchain": {"name": EXECUTORCH, "version": version},
        "where": here,
        "program": job.program,
        "method": plan.name,
        "torch": answer.versions.get("torch", "unknown"),
        "python": answer.versions.get("executable", job.python),
        "threads": found["threads"],
        "backends": list(dict.fromkeys(one.id for one in plan.delegates)),
        "partitions": partitions_of(given, answer.versions),
        "machine": asdict(this_machine()),
        "options": options_of(job),
        "inputs": [described(value) for value in given.inputs],
        "outputs": [printed(value, job.print_output) for value in outputs],
        "load_ms": found["load_ms"],
        "init_ms": found["init_ms"],
        **times_of(found["first_run_ms"], passes),
        "memory": {
            "planned_bytes": list(plan.non_const_buffer_sizes[1:]),
            "idle_bytes": found["idle_bytes"],
            "loaded_bytes": found["loaded_bytes"],
            "peak_bytes": found["peak_bytes"],
            **found["memory"],
        },
        "trace": trace,
        "ignored": list(ignored),
        "warnings": [
            *stopped_words(passes, logs_values=job.logs_values),
            *trace.pop("warnings"),
            *filter(None, [oversubscribed(found["threads"], usable_cores(), None)]),
        ],
    }


def partitions_of(given: GivenProgram, versions: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the engine of each delegate of a program."""
    where = {
        "engine": "",
        "source": _place(versions),
        "note": "",
        "origin": ValueOrigin.MEASURED.value,
    }
    return [{"backend": one.id, **where} for one in given.plan.delegates]


def _place(versions: Mapping[str, str]) -> str:
    return f"ExecuTorch {versions.get(EXECUTORCH, 'unknown')} on this machine"


def _passes(found: Mapping[str, Any], executed_ms: tuple[float, ...]) -> Passes:
    return Passes(
        tuple(found["warmup_ms"]),
        found["steady"],
        timed=executed_ms or tuple(found["traced_run_ms"]),  # as the trace says, where it does
        bare=tuple(found["run_ms"]),
        rehearsed=found["traced_warmup"],
        stopped=found["stopped"],
        requested=found["wanted"],
    )


def _trace(job: RunJob, found: Mapping[str, Any], folder: Path, here: str) -> dict[str, Any]:
    """Return the recorded trace; the debug buffer is truncated to its used part."""
    state: dict[str, Any] = {"recorded": bool(found["recorded"]), "events": 0, "debug_bytes": 0}
    state |= {"failure": str(found["failure"]), "warnings": []}
    if not found["recorded"]:
        if job.traced and not state["failure"]:
            state["warnings"].append(f"{here} was built without tracing: no {TRACE} is written")
        return state
    if (folder / TRACE).is_file():
        dump = _cut_warm_up(found, folder / TRACE, state["warnings"])
        state["events"] = sum(len(run.events) for run in dump.run_data)
        state["executed_ms"] = executed_ms(dump, len(found["traced_run_ms"]))
    if (folder / VALUES).is_file():
        dump = etdump.decode((folder / VALUES).read_bytes(), file=VALUES)
        buffer = folder / BUFFER
        if buffer.is_file() and buffer.stat().st_size:
            _save(folder / VALUES, etdump.encode(cut_buffer(dump, buffer)))
            state["debug_bytes"] = buffer.stat().st_size
        if not state["debug_bytes"]:
            buffer.unlink(missing_ok=True)
        state["events"] = state["events"] or sum(len(run.events) for run in dump.run_data)
    return state


def _cut_warm_up(found: Mapping[str, Any], path: Path, warnings: list[str]) -> etdump.ETDump:
    """Remove the first runs from a trace; return the remaining ones."""
    dump = etdump.decode(path.read_bytes(), file=path.name)
    kept = measured_only(dump, found["traced_warmup"], len(found["traced_run_ms"]))
    if kept is None:
        warnings.append("the trace holds the runs before the measured ones as well")
        kept = dump
    if kept is not dump:
        _save(path, etdump.encode(kept))
    return kept


def report_written(report: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Write the report of a run with the list of its files, and return it.

    Raises: ToolchainError if it cannot be written
    """
    report["files"] = listed_files(folder)
    text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    try:
        (folder / REPORT).write_text(text, "utf-8")
    except OSError as error:
        raise _not_written(folder / REPORT, error, len(text)) from error
    return report
