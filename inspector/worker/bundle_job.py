"""Creates bundled programs in the worker: a program, inputs and expected outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch.export import ExportedProgram
from torch.utils import _pytree as _untyped_pytree

from inspector.jobs.executing import MADE_INPUTS, BundleJob
from inspector.jobs.output_file import MADE
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.source import SourceKind, parse_source
from inspector.worker.exporter import AnswerError, Say, exported, timed_stage
from inspector.worker.inputs import chosen_method, described, generated_inputs, read_cases
from inspector.worker.recording import NotWrittenError
from inspector.worker.source_program import ProgramRunner
from runtime.bundled import (
    BundledProgram,
    MethodTestCase,
    MethodTestSuite,
    serialize_from_bundled_program_to_flatbuffer,
)
from runtime.memory.slots import dtype_of
from runtime.program.loading import decode_program, read
from schema import bundled
from schema.program import ProgramFile
from schema.program import model as m
from schema.version import __version__

_pytree: Any = _untyped_pytree


@dataclass(frozen=True)
class _Case:
    """A case of a method; None without expected outputs."""

    inputs: list[Any]
    expected: list[Any] | None


@dataclass(frozen=True)
class _Holder:
    """A program in the form expected for bundling."""

    buffer: bytes


def bundle_into(job: BundleJob, folder: Path, notify: Say) -> dict[str, Any]:
    """Create a bundled program in a folder; return its contents.

    Raises: AnswerError for cases that do not fit the program; ExecutionError, FormatError,
        ValuesError, OSError for files that cannot be read; errors of the user's code
    """
    buffer, modules = _sources(job, notify)
    file = decode_program(memoryview(buffer), job.source)
    suites: dict[str, list[_Case]] = {}
    with timed_stage(notify, "cases"):
        for name in _methods(job, file, modules):
            suites[name] = _cases(job, file.plan(name), modules.get(name))
            for number, case in enumerate(suites[name]):
                _check(file.plan(name), number, case)
    if any(case.expected is None for cases in suites.values() for case in cases):
        notify("warning", text="no expected outputs are known: cases are run, not compared")
    with timed_stage(notify, "write"):
        data = _bundle(buffer, suites)
        try:
            (folder / MADE).write_bytes(data)
        except OSError as error:
            raise NotWrittenError(folder / MADE, error, len(data)) from error
    return _report(job, suites, len(data))


def _sources(job: BundleJob, notify: Say) -> tuple[bytes, Mapping[str, ExportedProgram]]:
    """Return the bytes of the program, and the source of expected outputs."""
    if _is_module(job.source):
        programs, constants = _exported(job.source, job, notify)
        return _compiled(job.source, programs, constants, notify), programs
    with timed_stage(notify, "load"):
        data, file = read(job.source)
        if bundled.sniff(bytes(data[:8])):
            data = bundled.decode(data, file=file).program
        buffer = bytes(data)
    return buffer, _exported(job.module, job, notify)[0] if job.module else {}


def _is_module(text: str) -> bool:
    path, _, _ = text.rpartition(".py:")
    return bool(path) or text.endswith((".py", ".pt2"))


def _exported(
    text: str, job: BundleJob, notify: Say
) -> tuple[Mapping[str, ExportedProgram], Mapping[str, Any]]:
    from inspector.worker.compile_job import export_of_file

    source = parse_source(text)
    methods = (job.method,) if job.method else ()
    if source.kind is SourceKind.PYTHON:
        found = exported(source.path, source.function, methods, notify)
    elif source.kind is SourceKind.EXPORTED:
        with timed_stage(notify, "load"):
            found = export_of_file(source.path, methods)
    else:
        raise AnswerError(f"{text} names nothing to run; expected file.py:function or a .pt2 file")
    return found.programs, found.constants


def _compiled(
    text: str, programs: Mapping[str, ExportedProgram], constants: Mapping[str, Any], notify: Say
) -> bytes:
    from inspector.worker.compile_job import MessageCollector
    from inspector.worker.lowering import backend_config, lowered

    job, listener = CompileJob(parse_source(text)), MessageCollector(notify)
    edge = lowered(job, programs, constants, listener.observe)
    return bytes(edge.to_executorch(backend_config(job), observer=listener.observe).buffer)


def _methods(
    job: BundleJob, file: ProgramFile, modules: Mapping[str, ExportedProgram]
) -> list[str]:
    """Return the methods that get cases."""
    if job.method or job.inputs or job.expected or not modules:
        return [chosen_method(file, job.method)]
    names = [plan.name for plan in file.plans if plan.name in modules]
    if not names:
        there = ", ".join(plan.name for plan in file.plans)
        raise AnswerError(f"the module has none of the methods of the program: {there}")
    return names


def _cases(job: BundleJob, plan: m.ExecutionPlan, module: ExportedProgram | None) -> list[_Case]:
    if not job.inputs and module is None:
        raise AnswerError("no inputs: set them with --inputs for each case")
    if job.expected and len(job.expected) != max(1, len(job.inputs)):
        raise AnswerError(
            f"{len(job.expected)} files of outputs for {max(1, len(job.inputs))} of inputs"
        )
    cases: list[_Case] = []
    runner = None if module is None else ProgramRunner(module)
    for place, text in enumerate(job.inputs or ("",)):
        given = _given(plan, text, len(cases), module)
        expected = job.expected[place] if job.expected else ""
        outputs = read_cases(expected, len(plan.outputs)) if expected else None
        if outputs is not None and len(outputs) != len(given):
            raise AnswerError(
                f"{expected} has the outputs of {len(outputs)} cases, {text} has the inputs of "
                f"{len(given)}"
            )
        for at, values in enumerate(given):
            asked = None if runner is None or outputs is not None else runner.outputs(values)
            cases.append(_Case(values, asked if outputs is None else outputs[at]))
    return cases


def _given(
    plan: m.ExecutionPlan, text: str, number: int, module: ExportedProgram | None
) -> list[list[Any]]:
    """Return the inputs of each case in a file, or generated inputs of one case."""
    if text in MADE_INPUTS:
        return [generated_inputs(plan, text, number)]
    if text or module is None:
        return read_cases(text, len(plan.inputs))
    return [_pytree.tree_flatten(module.example_inputs)[0]]


def _check(plan: m.ExecutionPlan, number: int, case: _Case) -> None:
    """Raise AnswerError where a case does not fit its method."""
    for what, places, values in (
        ("inputs", plan.inputs, case.inputs),
        ("outputs", plan.outputs, case.expected),
    ):
        if values is None:
            continue
        if len(values) != len(places):
            raise AnswerError(
                f"case {number} has {len(values)} {what}, method {plan.name!r} has {len(places)}"
            )
        for at, (place, value) in enumerate(zip(places, values, strict=True)):
            requested = _kind_of(plan.values[place].val)
            about = described(value)
            found = about.get("dtype", about["kind"])
            if found != requested:
                raise AnswerError(
                    f"case {number} of method {plan.name!r}: {what[:-1]} {at} is {found}, "
                    f"the program has {requested}"
                )


def _kind_of(held: m.KernelType) -> str:
    """Return the dtype of a tensor of a program, or the kind of another value."""
    if isinstance(held, m.Tensor):
        return str(dtype_of(held.scalar_type)).removeprefix("torch.")
    kinds = ((m.Int, "int"), (m.Double, "float"), (m.Bool, "bool"))
    return next((name for kind, name in kinds if isinstance(held, kind)), "no part of a bundle")


def _bundle(buffer: bytes, suites: Mapping[str, Sequence[_Case]]) -> bytes:
    built = [
        MethodTestSuite(name, [MethodTestCase(case.inputs, case.expected) for case in cases])
        for name, cases in suites.items()
    ]
    try:
        return serialize_from_bundled_program_to_flatbuffer(BundledProgram(_Holder(buffer), built))
    except AssertionError as error:
        raise AnswerError(str(error).splitlines()[0]) from error


def _report(job: BundleJob, suites: Mapping[str, Sequence[_Case]], size: int) -> dict[str, Any]:
    return {
        "etscope": __version__,
        "source": job.source,
        "module": job.module,
        "bytes": size,
        "cases": [
            {
                "method": name,
                "case": number,
                "inputs": [described(value) for value in case.inputs],
                "expected": (
                    None if case.expected is None else [described(value) for value in case.expected]
                ),
            }
            for name, cases in suites.items()
            for number, case in enumerate(cases)
        ],
    }
