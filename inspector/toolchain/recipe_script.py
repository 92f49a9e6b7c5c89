"""Converts a recipe to a Python script that builds the same program with documented names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import cast

from inspector.recipes.compile_job import (
    MODULE_WORDS,
    NOT_QUANTIZED,
    PROGRAM,
    CompileJob,
    Precision,
    Quantization,
    Rules,
    settings_of,
)
from inspector.recipes.emission import edge_config_of, in_file
from inspector.recipes.source import Source, SourceKind
from inspector.toolchain.table import toolchain_named
from schema.recipe.assignments import parse_assignment, split_pair

_HEAD = '''"""Compiles a program by its recipe: the same one, byte for byte.

Run it in an environment that has ETScope installed; files are written to the current folder.
"""
'''
_SOURCES = {
    SourceKind.PYTHON: (
        "from inspector.worker.exporter import exported",
        "# runs the function and exports what it returns",
        "source = exported({path!r}, {function!r}, {methods!r}, lambda *_, **__: None)",
        "programs, constants = source.programs, source.constants",
    ),
    SourceKind.EXPORTED: (
        "import torch",
        "programs, constants = {{'forward': torch.export.load({path!r})}}, {{}}",
    ),
    SourceKind.LLM: (
        "from inspector.worker.language_model import exported_config",
        "# a language model by its configuration",
        "source = exported_config({path!r}, {function!r}, {methods!r}, lambda *_, **__: None)",
        "programs, constants = source.programs, source.constants",
    ),
    SourceKind.RECORD: (
        "from inspector.worker.recorded import recorded_programs",
        "programs, constants = recorded_programs({path!r}, {methods!r}), {{}}",
    ),
}


def python_script(job: CompileJob) -> str:
    """Return a script that compiles like a job.

    Settings with default values are omitted, and ``python`` as well: the script runs in any
    interpreter.
    """
    return toolchain_named(job.toolchain).script(job)


def built_in_script(job: CompileJob) -> str:
    """Return a script that compiles by the built-in toolchain; see ``python_script``."""
    source = _source(job)
    imported, loading = source[0], source[1:]
    libraries = [f"load_libraries({job.libraries!r})"] if job.libraries else []
    lines = [_HEAD, *_imports(job, imported), "", *libraries, *loading]
    lines += _quantization_lines(job.quantising)
    lines += _files(job)
    lines += _precision(job.precision)
    lines += _delegation(job)
    lines += list(_emission(job))
    return "\n".join(lines) + "\n"


def _source(job: CompileJob) -> list[str]:
    source: Source = job.source
    words = {"path": source.path, "function": source.function, "methods": job.methods}
    return [line.format(**words) for line in _SOURCES[source.kind]]


def _marks_files(job: CompileJob) -> bool:
    return job.source.kind is SourceKind.LLM and job.external_constants


def _files(job: CompileJob) -> Iterator[str]:
    if _marks_files(job):
        yield "from compiler.interface.external_weights import mark_behind"
        yield "from inspector.worker.language_model import mark_files"
        yield f"mark_files({job.source.path!r}, {job.source.function!r}, programs)"


def _imports(job: CompileJob, source: str) -> Iterator[str]:
    names = {"ExecutorchBackendConfig", *(["EdgeCompileConfig"] if job.edge_config else [])}
    table: list[str] = []
    if _planning(job) == "named_planning":
        table.append("from compiler.memory.options import named_planning")
    else:
        names.add("MemoryPlanningPass")
    lower = _lower(job)
    table += ["from compiler.passes.table import named_pass"] if job.passes else []
    if job.libraries:
        table.append("from inspector.worker.libraries import load_libraries")
    if not job.partitioners:
        yield f"from compiler import {', '.join(sorted({*names, lower}))}"
        yield from (*table, source)
        return
    names |= {"PartitionRules", "SteeredPartitioner", lower}
    names |= {"TensorRule"} if job.rules.deny_dtypes else set()
    names |= {"Granularity"} if job.rules.granularity != Rules().granularity else set()
    yield from ("from compiler import (", *(f"    {name}," for name in sorted(names)), ")")
    yield "from compiler.partition.named_partitioners import create_partitioner, parse_partitioner"
    yield from (*table, source)


def _planning(job: CompileJob) -> str:
    return "named_planning" if in_file(job.memory_planner) else "MemoryPlanningPass"


def _lower(job: CompileJob) -> str:
    plain = not job.partitioners and job.precision == Precision() and not job.passes
    return "to_edge" if plain else "to_edge_transform_and_lower"


def _quantization_lines(how: Quantization) -> Iterator[str]:
    if not how.requested:
        return
    plain = how.calibration and not in_file(how.calibration) and Path(how.calibration).suffix
    calls = "None"
    yield ""
    if plain:
        yield "from compiler.quantize.calibration import inputs_from_file"
        calls = f"inputs_from_file({how.calibration!r}, method)"
    elif how.calibration:
        yield "from inspector.worker.data_set import calibration_calls"
        calls = f"calibration_calls({how.calibration!r}, method, program)"
    if how.quantizer:
        yield "from compiler.quantize.program import named_quantizer, quantize_program"
        yield "programs = {"
        yield f"    method: quantize_program(program, named_quantizer({how.quantizer!r}), {calls})"
        yield from ("    for method, program in programs.items()", "}")
        return
    if how.by_weights:
        yield "from compiler.quantize.weights import WeightModes, quantize_weights"
        yield "from compiler.quantize.weights import weight_modes_by_method"
        modules = dict(parse_assignment(text, "MODE", MODULE_WORDS) for text in how.modules)
        words = f"{how.mode or NOT_QUANTIZED!r}, {how.embedding!r}, {modules!r}"
        yield f"how = weight_modes_by_method(programs, WeightModes({words}))"
        yield "programs = {"
        yield "    method: quantize_weights(program, how[method])"
        yield from ("    for method, program in programs.items()", "}")
        return
    yield "from compiler.quantize.program import QuantizationModes, modes_by_method"
    yield "from compiler.quantize.program import quantize_program"
    yield "how = QuantizationModes("
    yield f"    {how.mode!r},"
    if how.per_tensor:
        yield "    per_tensor=True,"
    parts = (("modules", how.modules), ("operators", how.operators), ("nodes", how.nodes))
    for name, words in parts:
        if words:
            yield f"    {name}={dict(map(_pair, words))!r},"
    yield from (")", "by_method = modes_by_method(programs, how)", "programs = {")
    yield f"    method: quantize_program(program, by_method[method], {calls})"
    yield from ("    for method, program in programs.items()", "}")


def _pair(text: str) -> tuple[str, str]:
    """Return name and value of a setting that may be malformed: scripts exist for any recipe."""
    return split_pair(text, last=True)


def _precision(how: Precision) -> Iterator[str]:
    if how == Precision():
        return
    yield from ("", "from compiler.pipeline.precision import Precisions", "types = Precisions(")
    parts = (("modules", how.modules), ("operators", how.operators), ("nodes", how.nodes))
    for name, words in parts:
        if words:
            yield f"    {name}={dict(map(_pair, words))!r},"
    yield ")"


def _delegation(job: CompileJob) -> Iterator[str]:
    yield from _edge_config(job)
    given = "compile_config=EdgeCompileConfig(**edge_config)" if job.edge_config else ""
    if _lower(job) == "to_edge":
        yield f"edge = to_edge(programs, constants{', ' if given else ''}{given})"
        return
    options = ["constant_methods=constants", *([given] if given else [])]
    passes = [f"named_pass({name!r})" for name in job.passes]
    passes += ["*types.passes()"] if job.precision != Precision() else []
    if passes:
        options.insert(0, f"transform_passes=[{', '.join(passes)}]")
    if job.partitioners:
        options.insert(0, "partitioner=partitioner")
        rules = [f"    {name}={value}," for name, value in _rules(job.rules)]
        begin, end = ("rules = PartitionRules(", ")") if rules else ("rules = PartitionRules()", "")
        yield from ("", begin, *rules, end, "partitioner = [")
        for text in job.partitioners:
            yield f"    SteeredPartitioner(create_partitioner(parse_partitioner({text!r})), rules),"
        yield "]"
    yield "edge = to_edge_transform_and_lower("
    yield f"    programs, {', '.join(options)}"
    yield ")"


def _edge_config(job: CompileJob) -> Iterator[str]:
    if not job.edge_config:
        return
    yield from ("", "import torch", "edge_config = {")
    for name, value in edge_config_of(job.edge_config).items():
        if isinstance(value, tuple):
            names = cast("tuple[str, ...]", value)
            value = f"[{', '.join(f'torch.ops.{one}' for one in names)}]"
        yield f"    {name!r}: {value},"
    yield "}"


def _rules(rules: Rules) -> Iterator[tuple[str, str]]:
    for one in fields(rules):
        value = getattr(rules, one.name)
        if value == one.default:
            continue
        if one.name == "deny_dtypes":
            yield "deny_tensors", f"(TensorRule(dtypes={value!r}),)"
        elif one.name == "granularity":
            yield one.name, f"Granularity({value!r})"
        else:
            yield one.name, repr(value)


def _emission(job: CompileJob) -> Iterator[str]:
    config, planning = settings_of(job)
    given = [repr(job.memory_planner)] if job.memory_planner else []
    given += [f"{name}={value!r}" for name, value in planning.items()]
    planner = _planning(job)
    yield from ("", "config = ExecutorchBackendConfig(")
    yield f"    memory_planning_pass={planner}({', '.join(given)}),"
    yield from (f"    {name}={value!r}," for name, value in config.items())
    if job.external_constants:
        yield f"    external_constants={'mark_behind' if _marks_files(job) else True},"
    yield from (")", "program = edge.to_executorch(config)")
    yield f"program.save({PROGRAM!r})"
    if job.external_constants:
        yield "program.write_tensor_data_to_file('.')"
