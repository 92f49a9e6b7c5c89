"""The result of a compile, and writing it: programs, records, reports."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import torch
from torch.export import ExportedProgram

from compiler.pipeline.edge_manager import EdgeProgramManager, ExecutorchProgramManager
from inspector.files.mapped import map_file
from inspector.jobs.guard import GuardReport
from inspector.jobs.output_folder import unwritten
from inspector.memory.plan import plan_memory
from inspector.recipes.compile_job import BUILT_IN, PROGRAM, RECORD, CompileJob, reported_options
from inspector.recipes.float_program import FLOAT_PROGRAM
from inspector.recipes.recipe import RECIPE, Recipe
from inspector.worker.lowering import verdict_counts
from schema.objects.atomic_file import write_atomically
from schema.program import decode
from schema.version import __version__

# bytes of the weights of float programs in a record; larger ones are made again by the recipe
LARGEST_FLOATS = 64 << 20


class RecordNotWrittenError(Exception):
    """A disk that refuses."""


@dataclass(frozen=True)
class JobResult:
    """The result of a job.

    Attributes:
        job: as finally run
        edge: delegated
        program: as written
        guard: report about its partitions, None if not checked
    """

    job: CompileJob
    edge: EdgeProgramManager
    program: ExecutorchProgramManager
    guard: GuardReport | None


def write_program(program: ExecutorchProgramManager, folder: Path) -> None:
    """Write a program and the files with its constants.

    Raises: NotWrittenError
    """
    save(folder / PROGRAM, program.write_to_file)
    try:
        program.write_tensor_data_to_file(folder)
    except OSError as error:
        raise _not_written(folder / "the files of constants", error) from error


def write_record(
    built: JobResult, folder: Path, recipe: Recipe, floats: Mapping[str, ExportedProgram]
) -> None:
    """Write the record of a program, and its recipe.

    Args:
        built: the program
        folder: for the files
        recipe: that it was made by
        floats: programs before they were quantized, by method; kept in the record if small

    Raises: NotWrittenError
    """
    text = recipe.text.encode()
    record = built.program.get_etrecord()
    if sum(map(_weight_bytes, floats.values())) <= LARGEST_FLOATS:
        kept = {f"{FLOAT_PROGRAM}/{method}": program for method, program in floats.items()}
        record.graph_map = {**(record.graph_map or {}), **kept}
    record.update_recipe(text)
    if built.guard is not None and built.guard.refusals:
        record.update_refusals(built.guard.refusals)
    save(folder / RECORD, record.write_to_file)
    save(folder / RECIPE, lambda stream: stream.write(text))


def with_own_state(programs: Mapping[str, ExportedProgram]) -> dict[str, ExportedProgram]:
    """Return programs whose state stays as it is when calibration calls the given ones."""
    return {method: _with_own_state(program) for method, program in programs.items()}


def _with_own_state(program: ExportedProgram) -> ExportedProgram:
    buffers = set(program.graph_signature.buffers)  # which are written, is known once lowered
    own: Any = copy.copy(program)
    for held in ("_state_dict", "_constants"):
        values: dict[str, Any] = getattr(program, held)
        setattr(own, held, {k: v.clone() if k in buffers else v for k, v in values.items()})
    return own


def _weight_bytes(program: ExportedProgram) -> int:
    held: list[Any] = [*program.state_dict.values(), *program.constants.values()]
    return sum(one.nbytes for one in held if isinstance(one, torch.Tensor))


def save(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file; a disk that refuses is named with the file.

    Raises: NotWrittenError
    """
    try:
        write_atomically(path, lambda stream: _ignore(write(stream)))
    except OSError as error:
        raise _not_written(path, error) from error


def _not_written(path: Path, error: OSError) -> RecordNotWrittenError:
    return RecordNotWrittenError(unwritten(path, error))


def _ignore(_result: object) -> None:
    """Ignore the result of a writer."""


def report(
    job: CompileJob,
    built: JobResult,
    folder: Path,
    stages: Sequence[Mapping[str, Any]],
    warnings: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the content of ``compile.json``.

    Args:
        job: as finally run
        built: its result
        folder: with the other files
        stages: completed stages
        warnings: received warnings
    """
    edge, program = built.edge, built.program
    files = [{"path": path.name, "bytes": path.stat().st_size} for path in sorted(folder.iterdir())]
    return {
        "etscope": __version__,
        "toolchain": {"name": BUILT_IN, "version": __version__},
        "source": str(job.source),
        "python": job.python or sys.executable,
        "torch": str(torch.__version__),
        "files": files,
        "methods": sorted(program.methods),
        "constant_methods": sorted(program.config_methods),
        "options": reported_options(job),
        "memory": planned_memory(
            folder / PROGRAM, {name: plan.planner for name, plan in program.memory_plans.items()}
        ),
        "verdicts": verdict_counts(edge),
        "guard": None if built.guard is None else built.guard.content(),
        "stages": stages,
        "total_ms": sum(stage["time_ms"] for stage in stages),
        "warnings": warnings,
    }


def planned_memory(path: Path, planners: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return planned and needed memory of the methods of a written program.

    Args:
        path: the program
        planners: planner of each method
    """
    with path.open("rb") as stream:  # mapped: it may be as large as the model
        program = decode(map_file(stream, str(path)), file=path.name)
    plans = {plan.name: plan for plan in program.plans}
    found: dict[str, dict[str, Any]] = {}
    for method, planner in planners.items():
        others = [plan for name, plan in plans.items() if name != method]
        memory = plan_memory(plans[method], others)
        found[method] = {
            "planner": planner,
            "planned_bytes": memory.planned_bytes,
            "peak_bytes": memory.peak_bytes,
            "lower_bound_bytes": memory.lower_bound_bytes,
        }
    return found
