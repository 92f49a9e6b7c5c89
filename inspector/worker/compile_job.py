"""One compile in the worker: programs from the source, files into a folder."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

import torch
from torch.export import ExportedProgram

from compiler.files import write_whole
from compiler.managers import EdgeProgramManager, ExecutorchProgramManager
from compiler.stages import StageEvent
from inspector.jobs.description import PROGRAM, RECORD, REPORT, CompileJob, SourceKind
from inspector.jobs.recipe import RECIPE, Recipe, recipe_of
from inspector.worker import exporter
from inspector.worker.exporter import AnswerError, Exported, Say, told
from inspector.worker.lowering import backend_config, lowered, rules_without_effect, verdict_counts
from inspector.worker.quantising import load_operators, quantised
from inspector.worker.recorded import recorded_programs
from schema.etrecord import sniff as is_record
from schema.formats import recognise
from schema.version import __version__

_HEAD, _ZIP = 4096, b"PK"


class ReportedError(Exception):
    """A failure that has been told already."""


class InterpreterError(Exception):
    """Another interpreter that did not do its part."""


class NotWrittenError(Exception):
    """A disk that refuses."""


class UnreadableError(Exception):
    """A source that is no file of its kind."""


@dataclass
class Heard:
    """Passes messages on and keeps what the report needs.

    Attributes:
        stages: stages that have ended
        warnings: what was warned of
    """

    say: Say
    stages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    warnings: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def __call__(self, kind: str, **content: Any) -> None:  # noqa: ANN401 - JSON
        """Take a message."""
        if kind == "stage" and content.get("seconds") is not None:
            self.stages.append(
                {
                    "stage": content["stage"],
                    "method": content.get("method", ""),
                    "time_ms": content["seconds"] * 1e3,
                    "nodes": content.get("nodes"),
                }
            )
        elif kind == "warning":
            self.warnings.append(content)
        self.say(kind, **content)

    def observe(self, event: StageEvent) -> None:
        """Take an event of the compiler's stages."""
        self(
            "stage",
            stage=event.stage,
            method=event.method,
            seconds=event.seconds,
            nodes=event.nodes,
        )


def compile_into(job: CompileJob, folder: Path, say: Say) -> dict[str, Any]:
    """Compile and write everything into a folder; return what ``compile.json`` says.

    Raises: whatever the user's code, torch or the compiler raises
    """
    heard = Heard(say)
    exporter.tell_what_is_said(heard)
    recipe = recipe_of(job, _versions())  # of the source as it is now, not when all is done
    source = _source(job, folder, heard)
    source = quantised(job.quantising, source, heard)
    edge = lowered(job, source.programs, source.constants, heard.observe)
    for text in rules_without_effect(job, source.programs, edge):
        heard("warning", text=text, file="", line=0)
    program = edge.to_executorch(backend_config(job), observer=heard.observe)
    with told(heard, "write"):
        _write(program, folder, recipe)
    report = _report(job, heard, edge, program, folder)
    text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    _save(folder / REPORT, lambda stream: stream.write(text.encode()))
    return report


def _source(job: CompileJob, folder: Path, heard: Heard) -> Exported:
    if job.source.kind is not SourceKind.PYTHON:
        with told(heard, "load"):
            return _stored(job.source.path, job.methods)
    if job.python:
        return _exported_elsewhere(job, folder, heard)
    return exporter.exported(job.source.path, job.source.function, job.methods, heard)


def _stored(path: str, methods: tuple[str, ...]) -> Exported:
    """Return the programs of a file, which its content says the kind of."""
    with open(path, "rb") as stream:
        head = stream.read(_HEAD)
    if is_record(head) or (head.startswith(_ZIP) and Path(path).suffix == ".etrecord"):
        try:
            return Exported(recorded_programs(path, methods), {})
        except KeyError as error:
            raise AnswerError(str(error.args[0])) from error
    if not head.startswith(_ZIP):
        known = recognise(memoryview(head))
        found = known.title if known is not None else "neither"
        raise UnreadableError(f"{path}: expected a .pt2 file or an ETRecord, found {found}")
    return export_of_file(path, methods)


def export_of_file(path: str, methods: tuple[str, ...]) -> Exported:
    """Return the program in a ``.pt2`` file.

    Raises: AnswerError for another method than forward; UnreadableError if torch cannot read it
    """
    other = [name for name in methods if name != exporter.FORWARD]
    if other:
        raise AnswerError(f"no method {other[0]!r}; there is {exporter.FORWARD}")
    return Exported({exporter.FORWARD: _read_exported(path)}, {})


def _read_exported(path: str) -> ExportedProgram:
    try:
        return _with_operators(path)
    except OSError:
        raise
    except Exception as error:
        why = exporter.sentence_of(error)
        raise UnreadableError(f"{path}: torch cannot read this exported program: {why}") from error


def _with_operators(path: str) -> ExportedProgram:
    """Read a program; one that uses operators of quantisation needs their libraries loaded."""
    try:
        return torch.export.load(path)
    except (RuntimeError, ValueError):
        if not load_operators():
            raise
    return torch.export.load(path)


def _exported_elsewhere(job: CompileJob, folder: Path, heard: Heard) -> Exported:
    """Let another interpreter export; it needs torch and none of our packages."""
    handed = folder / "exported"
    handed.mkdir()
    script = str(Path(str(exporter.__file__)))
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
        reported = [_pass_on(line, heard) for line in process.stdout]
    if any(reported):
        raise ReportedError
    manifest = handed / exporter.MANIFEST
    if process.returncode or not manifest.is_file():
        raise InterpreterError(_why_ended(job.python, process.returncode))
    listed: Mapping[str, str] = json.loads(manifest.read_text("utf-8"))
    try:
        programs = {name: torch.export.load(handed / file) for name, file in listed.items()}
        constants = torch.load(handed / exporter.CONSTANTS, weights_only=True)
    except Exception as error:
        why = exporter.sentence_of(error)
        raise InterpreterError(
            f"what {job.python} has exported cannot be read by torch {torch.__version__}: {why}"
        ) from error
    for path in handed.iterdir():
        path.unlink()
    handed.rmdir()
    return Exported(programs, constants)


def _why_ended(python: str, code: int) -> str:
    if code < 0:
        return f"the interpreter {python} crashed (signal {-code}) while it exported"
    return f"the interpreter {python} ended with exit code {code} before it had exported"


def _pass_on(line: bytes, heard: Heard) -> bool:
    """Pass a message of the other interpreter on; return whether it is a failure."""
    try:
        message: dict[str, Any] = json.loads(line)
        kind = message.pop("type")
    except (ValueError, KeyError, TypeError, AttributeError):
        return False  # not one of ours
    heard(kind, **message)
    return kind == "failed"


def _versions() -> dict[str, str]:
    return {
        "etscope": __version__,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
    }


def _write(program: ExecutorchProgramManager, folder: Path, recipe: Recipe) -> None:
    _save(folder / PROGRAM, program.write_to_file)
    try:
        program.write_tensor_data_to_file(folder)
    except OSError as error:
        raise _not_written("the files of constants", error) from error
    text = recipe.text.encode()
    record = program.get_etrecord()
    record.update_recipe(text)
    _save(folder / RECORD, record.write_to_file)
    _save(folder / RECIPE, lambda stream: stream.write(text))


def _save(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file; a disk that refuses is named with the file.

    Raises: NotWrittenError
    """
    try:
        write_whole(path, lambda stream: _ignore(write(stream)))
    except OSError as error:
        raise _not_written(path.name, error) from error


def _not_written(name: str, error: OSError) -> NotWrittenError:
    return NotWrittenError(f"{name} cannot be written: {error.strerror or error}")


def _ignore(_result: object) -> None:
    """Take no notice of what a writer returns."""


def _report(
    job: CompileJob,
    heard: Heard,
    edge: EdgeProgramManager,
    program: ExecutorchProgramManager,
    folder: Path,
) -> dict[str, Any]:
    files = [{"path": path.name, "bytes": path.stat().st_size} for path in sorted(folder.iterdir())]
    return {
        "etscope": __version__,
        "source": str(job.source),
        "python": job.python or sys.executable,
        "torch": str(torch.__version__),
        "files": files,
        "methods": sorted(program.methods),
        "constant_methods": sorted(program.config_methods),
        "options": {
            "partitioners": list(job.partitioners),
            **asdict(job.rules),
            "memory_planner": job.memory_planner,
            "external_constants": job.external_constants,
            "quantising": asdict(job.quantising),
        },
        "memory": _memory(program),
        "verdicts": verdict_counts(edge),
        "stages": heard.stages,
        "total_ms": sum(stage["time_ms"] for stage in heard.stages),
        "warnings": heard.warnings,
    }


def _memory(program: ExecutorchProgramManager) -> dict[str, Any]:
    return {
        method: {
            "planner": plan.planner,
            "planned_bytes": plan.nbytes,
            "lower_bound_bytes": plan.lower_bound,
        }
        for method, plan in program.memory_plans.items()
    }
