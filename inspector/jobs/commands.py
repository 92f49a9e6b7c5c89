"""The shell command that does the same as a job of the window."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any

from inspector.jobs.backend_plan import BackendPlanJob
from inspector.jobs.bisect import BisectJob
from inspector.jobs.calibrate import CalibrateJob
from inspector.jobs.evaluate import EvalJob
from inspector.jobs.executing import BundleJob, MeasureJob, RunJob, StepJob, VerifyJob
from inspector.jobs.gap import GapJob
from inspector.jobs.generating import GenerateJob
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.options import option_of
from inspector.recipes.recipe import Recipe

_END = "END_OF_RECIPE"
_RECIPE = "job-recipe.json"  # no compile writes a file of this name, so that none is replaced
_BY_RECIPE = (BisectJob, BackendPlanJob)
_REPLACED = (CompileJob, RunJob, BundleJob)  # files of the former job; other jobs resume
_Flag = tuple[str, object]


def command_of(job: object, target: str = "") -> str:
    """Return the command of a job, empty if the command line has none for it.

    Args:
        job: a request of the table of jobs
        target: folder or file for its files
    """
    words = _WORDS.get(type(job))
    if words is None:
        return ""
    found = words(job)
    if not found:
        return ""
    if target and isinstance(job, (*_REPLACED, BisectJob, EvalJob)):
        found += [*(["--force"] if isinstance(job, _REPLACED) else []), "-o", target]
    command = f"{shlex.join(['etscope', *found])}\n"
    return f"{_recipe_lines(job.compile)}{command}" if isinstance(job, _BY_RECIPE) else command


def _recipe_lines(job: CompileJob) -> str:
    """Return the command that writes the recipe of a compile into a file."""
    return f"cat > {_RECIPE} <<'{_END}'\n{Recipe(job).text}{_END}\n"


def _flags(values: Iterable[_Flag]) -> list[str]:
    """Return flags with their values; empty strings, False and None are left out, 0 is a value."""
    found: list[str] = []
    for name, value in values:
        if value is True:
            found.append(f"--{name}")
        elif isinstance(value, tuple):
            for one in value:  # pyright: ignore[reportUnknownVariableType]
                found.append(f"--{name}={one}")
        elif value is not None and value is not False and value != "":
            found.append(f"--{name}={value}")
    return found


def _unless(value: object, default: object) -> object:
    return None if value == default else value


def _threads(number: int) -> int | None:
    """Return the threads of torch, None for the one that verbs use by themselves."""
    return number if number > 1 else None


def _compile(job: CompileJob) -> list[str]:
    found: list[str] = []
    for part in (job, job.rules, job.quantising, job.precision):
        for one in fields(part):
            known = option_of(one)
            value = getattr(part, one.name)
            if known is not None and known.flag and value != one.default:
                found += _flags([(known.flag, value)])
    more = _flags([("toolchain", job.toolchain), ("library", job.libraries)])
    if job.toolchain and job.python:  # the interpreter is that of the toolchain
        found = [word for word in found if not word.startswith("--python=")]
        more.append(f"--toolchain-python={job.python}")
    return ["compile", str(job.source), *found, *more]


def _program(job: RunJob | VerifyJob | StepJob) -> list[_Flag]:
    return [
        ("method", job.method),
        ("record", job.record),
        ("ptd", job.data_files),
        ("library", job.libraries),
        ("engine", _unless(job.engine, "auto")),
        ("backend-option", job.backend_options),
    ]


def _inputs(job: RunJob | StepJob) -> list[_Flag]:
    own = "" if job.case is not None else _unless(job.inputs, RunJob("").inputs)
    return [("inputs", own), ("seed", job.seed or None)]


def _run(job: RunJob) -> list[str]:
    usual = RunJob("")
    return [
        "run",
        job.program,
        *_flags(
            [
                *_program(job),
                *_inputs(job),
                ("bundled", job.bundle),
                ("case", job.case),
                ("runs", job.runs),
                ("warmup", job.warmup),
                ("debug-level", _unless(job.debug_level, usual.debug_level)),
                ("debug-op", job.only),
                ("debug-module", job.only_module),
                ("debug-handle", job.only_handles),
                ("no-trace", not job.traced),
                ("threads", "sweep" if job.sweep_threads else _threads(job.threads)),
                ("toolchain", job.toolchain),
                ("toolchain-python", job.python if job.toolchain else ""),
                ("print-output", _unless(job.print_output, usual.print_output)),
                ("device", job.device),
                ("tidy", job.tidy),
                ("sequence", job.sequence),
            ]
        ),
    ]


def _verify(job: VerifyJob) -> list[str]:
    usual = VerifyJob("")
    own = [
        ("rtol", _unless(job.rtol, usual.rtol)),
        ("atol", _unless(job.atol, usual.atol)),
        ("threads", _threads(job.threads)),
    ]
    return ["verify", job.program, *_flags([*_program(job), *own])]


def _step(job: StepJob) -> list[str]:
    own = [
        ("call", job.call or None),
        ("case", job.case),
        ("to", job.stop),
        ("threads", _threads(job.threads)),
    ]
    return ["step", job.program, *_flags([*_program(job), *_inputs(job), *own])]


def _bundle(job: BundleJob) -> list[str]:
    own = [("method", job.method), ("module", job.module), ("inputs", job.inputs)]
    more = [("expected", job.expected), ("library", job.libraries)]
    return ["bundle", job.source, *_flags([*own, *more])]


def _gap(job: GapJob) -> list[str]:
    own = [
        ("method", job.method),
        ("reference", job.reference),
        ("inputs", job.inputs),
        ("rtol", job.relative),
        ("atol", job.absolute or None),
        ("library", job.libraries),
    ]
    return ["gap", *job.files, *_flags(own)]


def _generate(job: GenerateJob) -> list[str]:
    usual = GenerateJob("")
    parts = [("prompt" if kind == "text" else kind, value) for kind, value in job.parts]
    own = [
        *parts,
        ("prompt", job.prompt),
        ("tokenizer", job.tokenizer),
        ("chat", job.chat),
        ("system", job.system),
        ("max-new-tokens", _unless(job.max_new_tokens, usual.max_new_tokens)),
        ("temperature", job.temperature or None),
        ("top-p", _unless(job.top_p, usual.top_p)),
        ("seed", job.seed or None),
        ("num-bos", job.num_bos or None),
        ("ignore-eos", job.ignore_eos),
        ("warmup", job.warmup),
        ("stop", job.stop),
        ("ptd", job.data_files),
        ("threads", _threads(job.threads)),
        ("engine", _unless(job.engine, usual.engine)),
        ("library", job.libraries),
    ]
    return ["llm", "run", job.program, *_flags(own)]


def _bisect(job: BisectJob) -> list[str]:
    usual = BisectJob(job.compile, job.bound)
    own = [
        ("bound", job.bound),
        ("method", job.method),
        ("inputs", job.inputs),
        ("engine", _unless(job.engine, usual.engine)),
        ("runs", _unless(job.runs, usual.runs)),
        ("threads", job.threads or None),
        ("device", job.device),
        ("backend-option", job.backend_options),
    ]
    return ["bisect", _RECIPE, *_flags(own)]


def _side(job: RunJob) -> str:
    return ",".join(one for one in (job.program, job.record, *job.data_files) if one)


def _reference(job: EvalJob) -> str:
    """Return the word for what the outputs of an evaluation are compared with."""
    source = job.reference.source
    if source is None:
        return "first"
    is_recorded = source.path == job.variants[0].record and not source.function
    return "recorded" if is_recorded else "float"


def _evaluate(job: EvalJob) -> list[str]:
    first = job.variants[0]
    own = [
        ("data", job.data),
        ("reference", _reference(job)),
        ("metric", job.metric),
        ("samples", job.samples),
        ("ranges", job.ranges),
        ("method", first.method),
        ("library", first.libraries),
        ("threads", _threads(first.threads)),
        ("engine", _unless(first.engine, "auto")),
        ("backend-option", first.backend_options),
    ]
    return ["eval", *map(_side, job.variants), *_flags(own)]


def _measure(job: MeasureJob) -> list[str]:
    first = job.programs[0]
    if first.case is not None or first.toolchain:  # which the verb has no words for
        return []
    own = [
        ("measure", job.blocks),
        *_inputs(first),
        ("threads", _threads(first.threads)),
        ("engine", _unless(first.engine, "auto")),
        ("device", first.device),
        ("method", first.method),
        ("library", first.libraries),
        ("backend-option", first.backend_options),
    ]
    return ["compare", *map(_side, job.programs), *_flags(own), "--no-gap"]


def _calibrate(_job: CalibrateJob) -> list[str]:
    return ["roofline", ".", "--calibrate"]


def _plan_backends(job: BackendPlanJob) -> list[str]:
    return ["backends", "plan", _RECIPE, *_flags([("backend", job.backends)])]


_WORDS: Mapping[type, Callable[[Any], list[str]]] = {
    CompileJob: _compile,
    RunJob: _run,
    VerifyJob: _verify,
    StepJob: _step,
    BundleJob: _bundle,
    GapJob: _gap,
    GenerateJob: _generate,
    BisectJob: _bisect,
    EvalJob: _evaluate,
    MeasureJob: _measure,
    CalibrateJob: _calibrate,
    BackendPlanJob: _plan_backends,
}
