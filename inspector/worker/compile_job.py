"""One compile in the worker: programs from the source, files into a folder."""

from __future__ import annotations

import itertools
import json
import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch._export.verifier import SpecViolationError
from torch.export import ExportedProgram

from compiler.errors import UnboundedShapeError, UnsupportedError
from compiler.stages import StageEvent
from inspector.files.digest import sha256_of
from inspector.files.stage_log import STAGES
from inspector.jobs.guard import AUTO, FIX, OFF, GuardReport, repaired
from inspector.rebuild.serde_rewrite import RebuildError
from inspector.recipes.compile_job import PROGRAM, REPORT, CompileJob
from inspector.recipes.recipe import recipe_of
from inspector.recipes.source import SourceKind
from inspector.recipes.stored_source import holds_record, unlike_program
from inspector.toolchain.child import ReportedError
from inspector.toolchain.table import toolchain_named
from inspector.worker import exporter
from inspector.worker.exported_file import UnreadableExportError, read_exported
from inspector.worker.exporter import AnswerError, Exported, Say, timed_stage
from inspector.worker.flow_compile import compile_by_flow
from inspector.worker.guarding import MOST_ROUNDS, guard_file, is_checkable
from inspector.worker.job_result import (
    JobResult,
    report,
    save,
    with_own_state,
    write_program,
    write_record,
)
from inspector.worker.kernels import kernels_missing
from inspector.worker.libraries import lacking, load_libraries, unregistered
from inspector.worker.lowering import backend_config, check_files, check_names, rules_without_effect
from inspector.worker.recorded import recorded_programs
from inspector.worker.separate_states import separate_states
from inspector.worker.stage_tables import QUANTIZE, StageTables
from inspector.worker.tasks import Task
from inspector.worker.warm import Warm
from inspector.worker.weights_as_floats import weights_as_floats
from schema.errors import FormatError
from schema.vendors.names import flow_vendor
from schema.version import __version__


class InterpreterError(Exception):
    """An error of another interpreter."""


@dataclass
class MessageCollector:
    """Forwards messages and collects data for the report.

    Attributes:
        stages: completed stages
        warnings: received warnings
        tables: records the graph of each stage; None if not requested
    """

    notify: Say
    tables: StageTables | None = None
    stages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    warnings: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def __call__(self, kind: str, **content: Any) -> None:  # noqa: ANN401 - JSON
        """Handle a message."""
        if kind == "stage" and content.get("seconds") is not None:
            self.stages.append(
                {
                    "stage": content["stage"],
                    "method": content.get("method", ""),
                    "time_ms": content["seconds"] * 1e3,
                    "nodes": content.get("nodes"),
                }
            )
            if self.tables is not None:
                self.tables.plain(content["stage"], content.get("method", ""), content["seconds"])
        elif kind == "warning":
            self.warnings.append(content)
        self.notify(kind, **content)

    def warn(self, text: str) -> None:
        """Handle a warning without a line."""
        self("warning", text=text, file="", line=0)

    def observe(self, event: StageEvent) -> None:
        """Handle an event of the compiler's stages."""
        tables, self.tables = self.tables, None  # a step has its graph, or is noted below
        if tables is not None:
            tables.observe(event)
        self(
            "stage",
            stage=event.stage,
            method=event.method,
            seconds=event.seconds,
            nodes=event.nodes,
        )
        self.tables = tables


def work(job: CompileJob, task: Task) -> dict[str, Any]:
    """Compile into the folder of a task; return the content of ``compile.json``.

    Raises: whatever the user's code, torch or the compiler raises
    """
    return toolchain_named(job.toolchain).compile(job, task)


def compile_built_in(job: CompileJob, task: Task) -> dict[str, Any]:
    """Compile by the built-in toolchain; see ``work``."""
    vendor = next(filter(None, map(flow_vendor, job.partitioners)), None)
    if vendor is not None:
        return compile_by_flow(job, vendor, task)
    check_names(job)
    guard, stages = str(task.options.get("guard", OFF)), bool(task.options.get("stages"))
    return compile_into(job, task.folder, task.notify, guard, task.warm, stages=stages)


def failure(error: BaseException) -> dict[str, Any]:
    """Return an error as the content of a message."""
    found = exporter.failure(error)
    unreadable = isinstance(error, UnreadableExportError | FormatError)
    return {**found, "blame": "unreadable"} if unreadable else found


def compile_into(
    job: CompileJob,
    folder: Path,
    notify: Say,
    guarding: str = OFF,
    warm: Warm | None = None,
    *,
    stages: bool = False,
) -> dict[str, Any]:
    """Compile and write all files into a folder; return the content of ``compile.json``.

    Args:
        job: the request
        folder: for the files
        notify: called with messages
        guarding: when partitions are test-loaded, and how refused ones are handled
        warm: caches of earlier compiles of the same source
        stages: also write the graph after each stage

    Raises: errors of the user's code, torch or the compiler
    """
    listener, warm = MessageCollector(notify, StageTables() if stages else None), warm or Warm()
    exporter.redirect_logs(listener)
    recipe = recipe_of(job, _versions())  # of the source as it is now, not when all is done
    source = warm.source(job, lambda: source_of(job, folder, listener), listener)
    _note_exported(listener, ("export", "load"), source)
    exported, quantizes = source.programs, job.quantising.requested
    floats = with_own_state(source.programs) if quantizes else dict[str, ExportedProgram]()
    source = warm.quantize_source(job, source, listener)
    if quantizes:
        _note_exported(listener, (QUANTIZE,), source)
    if job.source.kind is SourceKind.LLM:
        from inspector.worker.language_model import mark_files

        settings, files = job.source.function, job.external_constants
        mark_files(job.source.path, settings, source.programs, files=files)
    try:
        done = _lower_and_write(job, source, folder, listener, guarding, warm)
    except (UnboundedShapeError, UnsupportedError, SpecViolationError) as error:
        exporter.point_to(error, source.asked)
        raise
    job = done.job
    noted = rules_without_effect(job, source.programs, done.edge)
    if quantizes:
        noted.append(weights_as_floats(source.programs, done.edge.verdicts))
    noted.append(separate_states(exported, done.edge.lowered_programs, job.backend_config))
    for text in filter(None, (*noted, kernels_missing(done.program))):
        listener("warning", text=text, file="", line=0)
    with timed_stage(listener, "record"):
        final = replace(recipe, job=replace(recipe.job, rules=job.rules))
        write_record(done, folder, final, floats)
    if listener.tables is not None:
        log = replace(listener.tables.log, program_sha256=sha256_of(str(folder / PROGRAM)))
        written = json.dumps(log.content(), ensure_ascii=False, separators=(",", ":"))
        save(folder / STAGES, lambda stream: stream.write(written.encode()))
    told_of = report(job, done, folder, listener.stages, listener.warnings)
    text = json.dumps(told_of, indent=1, ensure_ascii=False) + "\n"
    save(folder / REPORT, lambda stream: stream.write(text.encode()))
    return told_of


def _note_exported(listener: MessageCollector, stages: tuple[str, ...], source: Exported) -> None:
    for method, program in source.programs.items() if listener.tables is not None else ():
        assert listener.tables is not None
        listener.tables.attach(stages, method, program.graph_module)


def _lower_and_write(
    job: CompileJob,
    source: Exported,
    folder: Path,
    listener: MessageCollector,
    guarding: str,
    warm: Warm,
) -> JobResult:
    """Lower, write and guard; to exclude refused nodes, repeat until none is refused."""
    vetoed: list[str] = []
    for built in itertools.count(1):
        edge = warm.lowered(job, source, listener.observe)
        if listener.tables is not None:
            listener.tables.complete(edge)
        program = edge.to_executorch(backend_config(job), observer=listener.observe)
        with timed_stage(listener, "write"):
            write_program(program, folder)
        if guarding == OFF or not is_checkable(program.delegate_map):
            return JobResult(job, edge, program, _nothing_left(built, vetoed))
        with timed_stage(listener, "guard"):
            found = guard_file(folder, edge, program, always=guarding != AUTO)
        found = replace(found, rounds=built, vetoed=tuple(vetoed)) if found else None
        again = repaired(job, found.refusals) if found and guarding == FIX else job
        if again == job or built == MOST_ROUNDS:
            return JobResult(job, edge, program, found)
        vetoed += again.rules.deny_nodes[len(job.rules.deny_nodes) :]
        job = again
        if listener.tables is not None:
            listener.tables.begin_anew()
    raise AssertionError  # it counts without end


def _nothing_left(rounds: int, vetoed: list[str]) -> GuardReport | None:
    """Return the guard report without partitions: with a note if all were removed."""
    return GuardReport(rounds=rounds, vetoed=tuple(vetoed)) if vetoed else None


def source_of(job: CompileJob, folder: Path, listener: MessageCollector) -> Exported:
    """Return the programs of a job before any change.

    Raises: whatever the user's code raises; AnswerError, UnreadableError, InterpreterError
    """
    load_libraries(job.libraries)
    if job.source.kind is SourceKind.LLM:
        from inspector.worker.language_model import exported_config

        return exported_config(job.source.path, job.source.function, job.methods, listener)
    if job.source.kind is not SourceKind.PYTHON:
        with timed_stage(listener, "load"):
            return _stored(job.source.path, job.methods, listener)
    if job.python:
        check_files(job)
        return _exported_elsewhere(job, folder, listener)
    source, check = job.source, partial(check_files, job)
    return exporter.exported(source.path, source.function, job.methods, listener, check)


def _stored(path: str, methods: tuple[str, ...], listener: MessageCollector) -> Exported:
    """Return the programs of a file, of the kind that its content has."""
    if holds_record(path):
        try:
            return Exported(recorded_programs(path, methods, listener.warn), {})
        except KeyError as error:
            raise AnswerError(str(error.args[0])) from error
        except RebuildError as error:
            raise UnreadableExportError(f"{path}: {error}") from error
    if wrong := unlike_program(path):
        raise UnreadableExportError(wrong)
    return export_of_file(path, methods)


def export_of_file(path: str, methods: tuple[str, ...]) -> Exported:
    """Return the program in a ``.pt2`` file.

    Raises: AnswerError for a method other than forward; UnreadableError if torch cannot read it
    """
    other = [name for name in methods if name != exporter.FORWARD]
    if other:
        raise AnswerError(f"unknown method {other[0]!r}; available: {exporter.FORWARD}")
    return Exported({exporter.FORWARD: read_exported(path)}, {})


def _exported_elsewhere(job: CompileJob, folder: Path, listener: MessageCollector) -> Exported:
    """Export in another interpreter, which needs torch but none of our packages."""
    handed = folder / "exported"
    handed.mkdir()
    script = str(Path(__file__).with_name("export_script.py"))
    command = [job.python, script, job.source.path, job.source.function, str(handed), *job.methods]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    except OSError as error:
        raise AnswerError(f"{job.python} cannot be started: {error.strerror or error}") from error
    with process:
        assert process.stdout is not None
        reported = [_pass_on(line, listener) for line in process.stdout]
    if any(reported):
        raise ReportedError("the export in the other interpreter failed")
    manifest = handed / exporter.MANIFEST
    if process.returncode or not manifest.is_file():
        raise InterpreterError(_why_ended(job.python, process.returncode))
    listed: Mapping[str, Any] = json.loads(manifest.read_text("utf-8"))
    file, line = listed["asked"]
    try:
        programs = {name: torch.export.load(handed / at) for name, at in listed["programs"].items()}
        constants = torch.load(handed / exporter.CONSTANTS, weights_only=True)
    except Exception as error:
        missing = sorted(
            {one for at in listed["programs"].values() for one in unregistered(handed / at)}
        )
        why = lacking(missing) if missing else exporter.sentence_of(error)
        raise InterpreterError(
            f"the export of {job.python} cannot be read by torch {torch.__version__}: {why}"
        ) from error
    for path in handed.iterdir():
        path.unlink()
    handed.rmdir()
    return Exported(programs, constants, (file, line))


def _why_ended(python: str, code: int) -> str:
    if code < 0:
        return f"the interpreter {python} crashed (signal {-code}) while it exported"
    return f"the interpreter {python} ended with exit code {code} before it had exported"


def _pass_on(line: bytes, listener: MessageCollector) -> bool:
    """Pass a message of the other interpreter on; return whether it is a failure."""
    try:
        message: dict[str, Any] = json.loads(line)
        kind = message.pop("type")
    except (ValueError, KeyError, TypeError, AttributeError):
        return False  # not one of ours
    listener(kind, **message)
    return kind == "failed"


def _versions() -> dict[str, str]:
    return {
        "etscope": __version__,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
    }
