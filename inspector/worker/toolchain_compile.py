"""A compile by ``executorch``: the same files as one by our own compiler, in the worker."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, cast

from compiler.named import UnknownNameError, parse_named
from compiler.partition.named_partitioners import PartitionerNameError, parse_partitioner
from inspector.jobs.output_folder import unwritten
from inspector.recipes.compile_job import (
    EXECUTORCH,
    PROGRAM,
    RECORD,
    REPORT,
    CompileJob,
    reported_options,
)
from inspector.recipes.emission import WordError, config_of
from inspector.recipes.job_checks import first_problem
from inspector.recipes.recipe import RECIPE, Recipe, recipe_of
from inspector.recipes.source import Source
from inspector.toolchain.backend_python import interpreter_of_all
from inspector.toolchain.child import Interpreter, Response, Say, ToolchainError, ask
from inspector.toolchain.interpreter import interpreter
from inspector.worker.job_result import planned_memory
from inspector.worker.tasks import Task
from schema.backends import DEFAULT
from schema.etrecord.parts import origins as origins_member
from schema.etrecord.parts import recipe as recipe_member
from schema.etrecord.parts import verdicts as verdicts_member
from schema.vendors.names import flow_vendor, quantizer_vendor
from schema.version import __version__

_VERDICTS = "verdicts.json"  # written by the other interpreter
# Settings that the stock tool supports; others are reported as having no effect.
_HONOURED = {
    "rules": (
        "deny_ops",
        "allow_ops",
        "deny_nodes",
        "allow_nodes",
        "deny_modules",
        "allow_modules",
        "deny_dtypes",
        "min_nodes",
        "max_partitions",
    ),
    "quantising": ("mode", "calibration", "per_tensor", "modules", "operators"),
}
_ELSEWHERE = (
    *("source", "python", "methods", "partitioners", "memory_planner"),
    *("external_constants", "toolchain", "backend_config", "libraries"),
)


def work(job: CompileJob, task: Task) -> dict[str, Any]:
    """Compile into the folder of a task; see ``compile_with_executorch``."""
    try:
        return compile_with_executorch(job, task.folder, task.notify)
    except OSError as error:
        if not error.filename:
            raise
        sentence = f"{error.filename}: {error.strerror}"
        raise ToolchainError(sentence, blame="unreadable") from error


def compile_with_executorch(
    job: CompileJob, folder: Path, notify: Say, tool: Interpreter | None = None
) -> dict[str, Any]:
    """Compile and write all files into a folder; return the content of ``compile.json``.

    Args:
        job: the request
        folder: for the files
        notify: called with messages
        tool: a running interpreter; None starts the one of the job

    Raises: ReportedError if the other interpreter has reported why; ToolchainError; OSError
    """
    return compiled_elsewhere(job, folder, notify, tool).report


@dataclass(frozen=True, slots=True)
class Compiled:
    """The messages of a compile by the other toolchain.

    Attributes:
        report: content of ``compile.json``
        verdicts: by method, on each node
        origins: by method and node, its exported node; only for a continued session
    """

    report: dict[str, Any]
    verdicts: Mapping[str, list[dict[str, Any]]]
    origins: Mapping[str, Mapping[str, str]]


def compiled_elsewhere(
    job: CompileJob,
    folder: Path,
    notify: Say,
    tool: Interpreter | None = None,
    *,
    again: bool = False,
) -> Compiled:
    """Compile and write all files into a folder.

    Args:
        job: the request
        folder: for the files
        notify: called with messages
        tool: a running interpreter; None starts the one of the job
        again: whether to keep the exported programs there, for the next compile of the same source

    Raises: ReportedError if the other interpreter has reported why; ToolchainError; OSError
    """
    if problem := first_problem(job):
        raise ToolchainError(problem, blame="usage")
    listener = _MessageCollector(notify)
    vendors = (*job.partitioners, *filter(quantizer_vendor, (job.quantising.quantizer,)))
    python = interpreter(job.python or interpreter_of_all(vendors))
    recipe = recipe_of(job, {})  # of the source as it is now, not when all is done
    asked = stock_request(replace(recipe.job, python=python))
    for text in without_effect(job):
        listener("warning", text=text, file="", line=0)
    question = {"do": "compile", "job": asked, "folder": str(folder), "again": again}
    answer = ask(python, question, listener) if tool is None else tool.ask(question, listener)
    verdicts: dict[str, list[dict[str, Any]]] = json.loads((folder / _VERDICTS).read_text("utf-8"))
    (folder / _VERDICTS).unlink()
    recipe = replace(recipe, made_with=made_with(answer.versions))
    _record(recipe, verdicts, answer.result.get("values", {}), folder)
    report = _report(job, answer, verdicts, listener, folder)
    text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    _write(folder / REPORT, text)
    return Compiled(report, verdicts, answer.result.get("origins", {}))


class _MessageCollector:
    """Forwards messages and collects data for the report."""

    def __init__(self, notify: Say) -> None:
        self._notify = notify
        self.stages: list[dict[str, Any]] = []
        self.warnings: list[dict[str, Any]] = []

    def __call__(self, kind: str, **content: Any) -> None:  # noqa: ANN401 - JSON
        if kind == "stage" and content.get("seconds") is not None:
            stage = {
                "stage": content["stage"],
                "method": content.get("method", ""),
                "time_ms": content["seconds"] * 1e3,
                "nodes": content.get("nodes"),
            }
            self.stages.append(stage)
        elif kind == "warning":
            self.warnings.append(content)
        self._notify(kind, **content)


def stock_request(job: CompileJob) -> dict[str, Any]:
    """Return the job in the form for the other interpreter.

    Raises: ToolchainError for invalid options of a partitioner or of the backend config
    """
    try:
        config, planning = config_of(job.backend_config)
    except WordError as error:
        raise ToolchainError(str(error), blame="usage") from error
    partitioners: list[dict[str, Any]] = []
    for text in job.partitioners:
        try:
            asked = parse_partitioner(text)
        except PartitionerNameError as error:
            raise ToolchainError(str(error), blame="usage") from error
        partitioners.append({"name": asked.name, "options": dict(asked.options)})
    reported = {"partitioners": partitioners, "backend_config": config, "memory_planning": planning}
    return {
        **asdict(job),
        **reported,
        "stock_quantizer": DEFAULT.stock_quantizer,
        "vendor_quantizer": _vendor_quantizer(job.quantising.quantizer),
    }


def _vendor_quantizer(text: str) -> dict[str, Any] | None:
    """Return name and options of a vendor's quantizer, None for any other."""
    if quantizer_vendor(text) is None:
        return None
    try:
        asked = parse_named(text, "mode")
    except UnknownNameError as error:
        raise ToolchainError(str(error), blame="usage") from error
    return {"name": asked.name, "options": dict(asked.options)}


def without_effect(job: CompileJob) -> list[str]:
    """Return a sentence for each part of a recipe that the stock tool has no option for."""
    by_flow = any(map(flow_vendor, job.partitioners))
    found: list[str] = []
    for name, value in _set_fields(job):
        if is_dataclass(value) and not isinstance(value, type | Source):
            known = _HONOURED.get(name, ())
            unknown = [one for one, _ in _set_fields(value) if one not in known]
            if quantizer_vendor(getattr(value, "quantizer", "")) is not None:
                unknown.remove("quantizer")
            if name == "rules" and "granularity" in unknown and job.rules.granularity == "operator":
                unknown.remove("granularity")
            found += [f"{name}.{one}" for one in unknown]
        elif name not in _ELSEWHERE and not (name == "backend_python" and by_flow):
            found.append(name)
    return [f"{name} of the recipe has no effect: executorch does not support it" for name in found]


def _set_fields(value: Any) -> list[tuple[str, Any]]:  # noqa: ANN401 - a dataclass
    """Return the fields of a dataclass that differ from their defaults."""
    found: list[tuple[str, Any]] = []
    for one in fields(value):
        content = getattr(value, one.name)
        if is_dataclass(content) or content != one.default:
            found.append((one.name, content))
    return found


def made_with(versions: Mapping[str, str]) -> dict[str, str]:
    """Return the versions a recipe records."""
    reported = {
        name: versions[name] for name in (EXECUTORCH, "torch", "python") if name in versions
    }
    return {"etscope": __version__, **reported}


def _record(
    recipe: Recipe,
    verdicts: Mapping[str, Any],
    values: Mapping[str, Mapping[str, str]],
    folder: Path,
) -> None:
    """Write the recipe, and add it, the verdicts and the nodes of instructions to the record.

    Args:
        recipe: of the program
        verdicts: by method
        values: by method and instruction, the recorded node whose value it has
        folder: with the record
    """
    text = recipe.text
    _write(folder / RECIPE, text)
    record = folder / RECORD
    if not record.is_file():
        return
    try:
        with zipfile.ZipFile(record, "a") as archive:
            _add(archive, recipe_member.MEMBER, text)
            if any(verdicts.values()):
                content = {"version": verdicts_member.VERSION, "methods": verdicts}
                _add(archive, verdicts_member.MEMBER, json.dumps(content))
            if any(values.values()):
                known = {
                    method: origins_member.Origins({int(step): name for step, name in each.items()})
                    for method, each in values.items()
                }
                _add(archive, origins_member.MEMBER, origins_member.encode_origins(known).decode())
    except OSError as error:
        raise _not_written(folder / RECORD, error) from error


def _add(archive: zipfile.ZipFile, name: str, text: str) -> None:
    archive.writestr(zipfile.ZipInfo(name), text.encode())  # a timestamp would change the bytes


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise _not_written(path, error) from error


def _not_written(path: Path, error: OSError) -> ToolchainError:
    return ToolchainError(unwritten(path, error))


def _report(
    job: CompileJob,
    answer: Response,
    verdicts: Mapping[str, list[dict[str, Any]]],
    listener: _MessageCollector,
    folder: Path,
) -> dict[str, Any]:
    result = answer.result
    files = [{"path": path.name, "bytes": path.stat().st_size} for path in sorted(folder.iterdir())]
    counts = {
        method: dict(Counter(cast("str", one["outcome"]) for one in found))
        for method, found in verdicts.items()
        if found
    }
    return {
        "etscope": __version__,
        "toolchain": {"name": EXECUTORCH, "version": answer.versions.get(EXECUTORCH, "unknown")},
        "source": str(job.source),
        "python": answer.versions.get("executable", job.python),
        "torch": answer.versions.get("torch", "unknown"),
        "files": files,
        "methods": result["methods"],
        "constant_methods": result["constant_methods"],
        "options": reported_options(job),
        "memory": planned_memory(folder / PROGRAM, result["planners"]),
        "verdicts": counts,
        "reasons": [
            {"method": method, **one}
            for method, found in verdicts.items()
            for one in found
            if one["outcome"] != "delegated"
        ],
        "guard": None,
        "stages": listener.stages,
        "total_ms": sum(stage["time_ms"] for stage in listener.stages),
        "warnings": listener.warnings,
    }
