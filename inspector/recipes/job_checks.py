"""Checks of a compile job before any work: the files and names in it, field by field.

Files of the user are parsed, not run.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from inspector.recipes.compile_job import (
    EXECUTORCH,
    MODULE_WORDS,
    OVERRIDES,
    PRECISIONS,
    CompileJob,
    Precision,
    Quantization,
    Rules,
)
from inspector.recipes.data_source import DataSourceError, data_source
from inspector.recipes.emission import check_passes, config_of, edge_config_of, file_of, in_file
from inspector.recipes.python_file import FileNames, missing_import, names_in
from inspector.recipes.source import SourceKind
from inspector.recipes.stored_source import unlike_program
from schema.dtypes.scalar_type import BY_NAME
from schema.recipe.assignments import parse_assignment
from schema.recipe.planners import PLANNERS
from schema.vendors.names import (
    flow_vendor,
    is_partitioner,
    quantizer_names,
    quantizer_vendor,
    unknown_partitioner,
)

_NO_SOURCE = "choose a Python file, a .pt2 file or an ETRecord"


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """A value that a compile cannot use.

    Attributes:
        path: of its field, as ``rules.deny_ops``
        sentence: why, without a full stop
    """

    path: str
    sentence: str


def job_problems(job: CompileJob) -> tuple[FieldProblem, ...]:
    """Return the values of a job that no compile could use, in the order of its fields.

    The source itself is not among them: its errors are those of the user's code.
    """
    here = job.toolchain != EXECUTORCH  # the names of the other toolchain are its own
    checks: tuple[tuple[str, Iterable[str]], ...] = (
        (
            "partitioners",
            _partitioner_problems(job.partitioners, here=here and not job.backend_python),
        ),
        *_count_checks(job.rules),
        ("rules.deny_dtypes", _dtype_problems(job.rules.deny_dtypes)),
        *_flow_rules(job),
        ("memory_planner", _planner_problems(job.memory_planner, here=here)),
        *_quantization_checks(job.quantising, here=here),
        *_precision_checks(job.precision),
        ("passes", _pass_problems(job.passes, here=here)),
        ("backend_config", _raised(config_of, job.backend_config)),
        ("edge_config", _raised(edge_config_of, job.edge_config)),
        ("libraries", _library_problems(job.libraries)),
    )
    return tuple(FieldProblem(path, text) for path, found in checks for text in found)


def source_problems(job: CompileJob) -> tuple[FieldProblem, ...]:
    """Return what is wrong with the source of a job, for a form."""
    path = job.source.path
    try:
        wrong = _file_problem(path)
        if not wrong and job.source.kind is SourceKind.PYTHON:
            return _function_problems(path, job.source.function)
        if not wrong and job.source.kind is not SourceKind.LLM:
            wrong = unlike_program(path)
    except OSError as error:
        wrong = f"{path}: {error.strerror or error}"
    return (FieldProblem("source.path", wrong),) if wrong else ()


def _file_problem(path: str) -> str:
    if not path:
        return _NO_SOURCE
    if os.path.isdir(path):
        return f"{path} is a folder: {_NO_SOURCE} in it"
    return "" if os.path.isfile(path) else f"{path}: file not found"


def _function_problems(path: str, function: str) -> tuple[FieldProblem, ...]:
    names, problem = _parsed(path)
    if names is None:
        return (FieldProblem("source.path", problem),)
    if not names.functions and not names.others and not names.may_define_more:
        words = f"{path} defines no function that could return the module and its inputs"
        return (FieldProblem("source.path", words),)
    if not function.isidentifier():
        words = "name the function that returns the module and its example inputs"
    elif not names.defines(function):
        words = f"{path} does not define {function!r}"
    elif function in names.needing:
        words = f"{function} takes arguments, but is called without any"
    else:
        return ()
    return (FieldProblem("source.function", words),)


def data_problem(text: str) -> str:
    """Return why a data set cannot be read, empty if it can; see ``DataSource``."""
    return next(iter(_data_problems(text, here=True)), "")


def function_problem(text: str) -> str:
    """Return why ``file.py:NAME`` cannot be used, empty if it can."""
    return next(iter(_file_problems(text, here=True)), "")


def first_problem(job: CompileJob) -> str:
    """Return the first problem as a sentence, empty if the job can be compiled."""
    return next((one.sentence for one in job_problems(job)), "")


def _partitioner_problems(names: Sequence[str], *, here: bool) -> Iterator[str]:
    flow = next(filter(None, map(flow_vendor, names)), None)
    if flow is not None and len(names) > 1:
        yield f"{flow.alias} compiles the whole program, so it is named alone"
    for text in names:
        if in_file(text):
            yield from _file_problems(text, here=here)
        elif here and not is_partitioner(text.partition(":")[0]):
            yield unknown_partitioner(text.partition(":")[0])


def _flow_rules(job: CompileJob) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield the rules of a job whose flow has no partitions that they could change."""
    flow = next(filter(None, map(flow_vendor, job.partitioners)), None)
    if flow is None:
        return
    plain = Rules()
    words = (
        f"{flow.alias} compiles the whole program by its passes: rules of partitions cannot apply"
    )
    for one in fields(job.rules):
        if getattr(job.rules, one.name) != getattr(plain, one.name):
            yield f"rules.{one.name}", [words]


def _count_checks(rules: Rules) -> Iterator[tuple[str, Iterable[str]]]:
    for name in ("min_nodes", "min_work", "max_partitions"):
        count = getattr(rules, name)
        if count is not None and count < 1:
            yield f"rules.{name}", [f"expected a number of at least 1, found {count}"]


def _dtype_problems(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        if name not in BY_NAME:
            yield f"unknown dtype {name!r}; available: {', '.join(sorted(BY_NAME))}"


def _planner_problems(name: str, *, here: bool) -> Iterator[str]:
    if in_file(name):
        yield from _file_problems(name, here=here)
    elif here and name and name not in PLANNERS:
        yield f"unknown memory planner {name!r}; available: {', '.join(PLANNERS)}, file.py:NAME"


def _pass_problems(names: Iterable[str], *, here: bool) -> Iterator[str]:
    yield from _raised(check_passes, names)
    for name in filter(in_file, names):
        yield from _file_problems(name, here=here)


def _library_problems(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        if not os.path.isfile(path):
            yield f"{path}: file not found"
        elif path.endswith(".py"):
            yield from filter(None, [_parsed(path)[1]])


def _quantization_checks(how: Quantization, *, here: bool) -> Iterator[tuple[str, Iterable[str]]]:
    part = "quantising"
    if how.requested and here and importlib.util.find_spec("torchao") is None:
        words = "quantization needs torchao, which is not installed: pip install torchao"
        yield f"{part}.{'mode' if how.mode else 'quantizer'}", (words,)
    yield f"{part}.calibration", _data_problems(how.calibration, here=here)
    if how.quantizer:
        yield f"{part}.quantizer", _quantizer_problems(how.quantizer, here=here)
    yield f"{part}.modules", _pair_problems(how.modules, "MODE", MODULE_WORDS)
    for name in ("operators", "nodes"):
        yield f"{part}.{name}", _pair_problems(getattr(how, name), "MODE", OVERRIDES)


def _quantizer_problems(text: str, *, here: bool) -> Iterable[str]:
    if in_file(text):
        return _file_problems(text, here=here)
    if quantizer_vendor(text) is not None:
        return ()
    there = ", ".join(quantizer_names())
    return (f"unknown quantizer {text!r}; available: file.py:NAME, {there}",)


def _precision_checks(typed: Precision) -> Iterator[tuple[str, Iterable[str]]]:
    for name in ("modules", "operators", "nodes"):
        yield f"precision.{name}", _pair_problems(getattr(typed, name), "TYPE", PRECISIONS)


def _pair_problems(texts: Iterable[str], what: str, values: tuple[str, ...]) -> Iterator[str]:
    for text in texts:
        yield from _raised(lambda one: parse_assignment(one, what, values), text)


def _data_problems(text: str, *, here: bool) -> Iterator[str]:
    if not text:
        return
    try:
        found = data_source(text)
    except DataSourceError as error:
        yield str(error)
        return
    if found.name:
        yield from _file_problems(f"{found.path}:{found.name}", here=here)
    elif found.path and not os.path.exists(found.path):
        yield f"{found.path}: file not found"


def _raised(check: Callable[[Any], object], value: object) -> list[str]:
    """Return the error that a check raises, as a list."""
    try:
        check(value)
    except ValueError as error:
        return [str(error)]
    return []


def _file_problems(text: str, *, here: bool) -> Iterator[str]:
    """Yield why ``file.py:NAME[:option=value…]`` cannot be used.

    Args:
        text: as in a recipe
        here: whether this interpreter will run it, so that its packages have to be here
    """
    path = file_of(text)
    name = text[len(path) + 1 :].partition(":")[0]
    if not os.path.isfile(path):
        yield f"{path}: file not found"
        return
    names, problem = _parsed(path)
    if names is None:
        yield problem
    elif here and (missing := missing_import(path, names)) is not None:
        package, line = missing
        yield f"{path}:{line}: ModuleNotFoundError: No module named {package!r}"
    elif not names.defines(name):
        yield f"{path} does not define {name!r}"


def _parsed(path: str) -> tuple[FileNames | None, str]:
    """Return the names in a Python file, or None and why it is not one."""
    try:
        return names_in(path), ""
    except SyntaxError as error:
        return None, f"{path}:{error.lineno or 1}: {type(error).__name__}: {error.msg}"
    except (OSError, ValueError) as error:
        return None, f"{path}: {error}"
