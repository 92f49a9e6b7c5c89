"""Converts the settings of a compile job to objects of the compiler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, cast

import torch
from torch.export import ExportedProgram

from compiler.edge.cache import EdgeCache
from compiler.edge.config import EdgeCompileConfig
from compiler.emit.config import ExecutorchBackendConfig
from compiler.interface.external_weights import mark_behind
from compiler.memory.options import named_planning
from compiler.memory.planners import PLANNERS
from compiler.named import UnknownNameError
from compiler.partition.forced_nodes import NOT_FORCED
from compiler.partition.named_partitioners import (
    PartitionerNameError,
    create_partitioner,
    parse_partitioner,
    partitioner_names,
)
from compiler.partition.rules import Granularity, PartitionRules, TensorRule, fits_any
from compiler.partition.steered import DENIED_AS, SteeredPartitioner
from compiler.partition.unmatched_rules import unmatched_rules
from compiler.passes.table import named_pass
from compiler.pipeline.edge_manager import EdgeProgramManager, to_edge_transform_and_lower
from compiler.pipeline.precision import TYPES, Precisions
from compiler.stages import Observer
from inspector.recipes.compile_job import CompileJob, Precision, Rules, settings_of
from inspector.recipes.edits import means
from inspector.recipes.emission import edge_config_of, in_file
from inspector.recipes.job_checks import first_problem
from inspector.recipes.source import SourceKind
from inspector.toolchain.backend_python import NoEnvironmentError, interpreter_of
from inspector.toolchain.child import ToolchainError
from inspector.worker.backend_python import partitioner_of
from inspector.worker.exporter import AnswerError
from schema.etrecord.parts.verdicts import NodeOutcome, Verdict
from schema.recipe.assignments import AssignmentError, parse_assignment, split_pair


def known_names() -> dict[str, list[str]]:
    """Return the names a job may use."""
    return {"partitioners": list(partitioner_names()), "planners": list(PLANNERS)}


def check_names(job: CompileJob) -> None:
    """Raise AnswerError for an unknown name or a file without it, before the user's code runs."""
    if problem := first_problem(job):
        raise AnswerError(problem)
    try:
        if not in_file(job.memory_planner):
            backend_config(job)
    except ValueError as error:
        raise AnswerError(str(error)) from error
    for text in job.partitioners:
        if in_file(text):
            continue
        if not _elsewhere(job, text):
            _partitioner(job, text)
        elif ":" in text:  # its interpreter starts before the source does, to check the options
            _partitioner(replace(job, libraries=()), text)


def check_files(job: CompileJob) -> None:
    """Execute the files that a job names, before an export that may take minutes.

    Raises: AnswerError for a name without what is requested; errors of the files
    """
    passes_of(job)
    for text in filter(in_file, job.partitioners):
        _partitioner(job, text)
    if in_file(job.memory_planner):
        backend_config(job)


def _partitioner(job: CompileJob, text: str) -> Any:  # noqa: ANN401
    try:
        asked = parse_partitioner(text)
        python = _elsewhere(job, text)
        if python:
            return partitioner_of(python, asked, job.libraries)
        return create_partitioner(asked)
    except (PartitionerNameError, ToolchainError) as error:
        raise AnswerError(str(error)) from error


def _elsewhere(job: CompileJob, text: str) -> str:
    """Return the interpreter of a partitioner that is not ours, empty for this one."""
    try:
        return interpreter_of(job.backend_python, text)
    except NoEnvironmentError as error:
        raise AnswerError(str(error)) from error


def lowered(
    job: CompileJob,
    programs: Mapping[str, ExportedProgram],
    constants: Mapping[str, Any],
    observe: Observer,
    kept: EdgeCache | None = None,
) -> EdgeProgramManager:
    """Return edge programs, delegated by the job.

    Args:
        job: the request
        programs: exported, by method
        constants: values by the name of the method that returns them
        observe: called with each stage
        kept: edge programs of earlier jobs with these programs

    Raises: CompileError; AnswerError for unknown partitioners
    """
    return to_edge_transform_and_lower(
        programs,
        transform_passes=passes_of(job) or None,
        partitioner=partitioners_of(job) or None,
        constant_methods=constants,
        compile_config=edge_config(job),
        generate_etrecord=True,
        observer=observe,
        kept=kept,
    )


def passes_of(job: CompileJob) -> list[Any]:
    """Return the passes of a job, to run before partitioning."""
    typed = precisions_of(job).passes() if job.precision != Precision() else []
    try:
        return [*map(named_pass, job.passes), *typed]
    except UnknownNameError as error:
        raise AnswerError(str(error)) from error


def edge_config(job: CompileJob) -> EdgeCompileConfig:
    """Return the edge configuration of a job.

    Raises: AnswerError naming an operator unknown to torch
    """
    given = edge_config_of(job.edge_config)
    for name, value in given.items():
        if isinstance(value, tuple):
            given[name] = [_overload(word) for word in cast("tuple[str, ...]", value)]
    try:
        return EdgeCompileConfig(**given)
    except ValueError as error:
        raise AnswerError(str(error)) from error


def _overload(name: str) -> Any:  # noqa: ANN401 - an operator of torch
    found: Any = torch.ops
    for part in name.split("."):
        found = getattr(found, part, None)
    if not hasattr(found, "_schema"):
        raise AnswerError(f"unknown operator {name!r}; expected a name as aten.linear.default")
    return found


def partitioners_of(job: CompileJob) -> list[SteeredPartitioner]:
    """Return the partitioners of a job under its rules.

    Raises: AnswerError for an unknown one; any error of its file
    """
    rules = rules_of(job.rules)
    return [SteeredPartitioner(_partitioner(job, text), rules) for text in job.partitioners]


def precisions_of(job: CompileJob) -> Precisions:
    """Return the dtypes that a job requests for nodes.

    Raises: AnswerError for settings other than ``NAME=TYPE``
    """
    requested = job.precision
    try:
        tables = [
            dict(parse_assignment(text, "TYPE", tuple(TYPES)) for text in words)
            for words in (requested.modules, requested.operators, requested.nodes)
        ]
    except AssignmentError as error:
        raise AnswerError(str(error)) from error
    return Precisions(*tables)


def rules_of(rules: Rules) -> PartitionRules:
    """Return the rules of a job as those of the compiler."""
    given = {one.name: getattr(rules, one.name) for one in fields(rules)}
    dtypes = given.pop("deny_dtypes")
    given["granularity"] = Granularity(rules.granularity)
    given["deny_tensors"] = (TensorRule(dtypes=dtypes),) if dtypes else ()
    return PartitionRules(**given)


def rules_without_effect(
    job: CompileJob, programs: Mapping[str, ExportedProgram], edge: EdgeProgramManager
) -> list[str]:
    """Return a sentence for each rule of a job that matches nothing in its programs, or failed."""
    every = [*programs.values(), *edge.lowered_programs.values()]
    verdicts = [verdict for found in edge.verdicts.values() for verdict in found]
    return sentences_of_rules(job, every, verdicts)


def sentences_of_rules(
    job: CompileJob, programs: Sequence[ExportedProgram], verdicts: Sequence[Verdict]
) -> list[str]:
    """Return warnings on the rules of a job.

    Args:
        job: whose rules
        programs: exported and lowered
        verdicts: on all nodes
    """
    unmatched = precisions_of(job).unmatched(programs)
    found = [f"{name} does not match any of the {kind} of the program" for kind, name in unmatched]
    if not job.partitioners:
        return found
    parts = [v.reason.partition(DENIED_AS)[2] for v in verdicts if DENIED_AS in v.reason]
    found += [
        f"--{rule.rstrip('s').replace('_', '-')} {name} matches nothing in the program"
        for rule, name in unmatched_rules(rules_of(job.rules), programs)
        if not (rule == "deny_nodes" and fits_any(parts, name))  # it was decomposed
    ]
    for text in job.rules.force_nodes:
        node, partitioner = split_pair(text)
        if partitioner and not any(means(one, partitioner) for one in job.partitioners):
            found.append(
                f"--force-node {text}: unknown partitioner {partitioner}, so {node} is not forced"
            )
    off = {v.rule for v in verdicts if v.outcome is NodeOutcome.VETOED}
    found += [
        f"--deny-rule {name} matches no rule"
        for name in job.rules.deny_rules
        if not fits_any(off, name)
    ]
    taken = {v.node for v in verdicts if v.outcome is NodeOutcome.DELEGATED}
    refused = {v.node: v.reason for v in verdicts if v.reason.startswith(NOT_FORCED)}
    return found + [f"{node}: {why}" for node, why in refused.items() if node not in taken]


def backend_config(job: CompileJob) -> ExecutorchBackendConfig:
    """Return the configuration of planning and emission.

    Raises: ValueError for unknown or contradictory settings; AnswerError for a
        planner that cannot be found or used
    """
    config, planning = settings_of(job)
    try:
        memory = named_planning(job.memory_planner, **planning)
    except UnknownNameError as error:
        raise AnswerError(str(error)) from error
    return ExecutorchBackendConfig(
        memory_planning_pass=memory,
        external_constants=job.external_constants and _tagging(job),
        **config,
    )


def _tagging(job: CompileJob) -> Any:  # noqa: ANN401 - True or a function
    """Return how constants are moved; a language model's configuration marks its weights."""
    return mark_behind if job.source.kind is SourceKind.LLM else True


def verdict_counts(edge: EdgeProgramManager) -> dict[str, dict[str, int]]:
    """Return by method how many verdicts have each outcome; empty if nothing was partitioned."""
    return {
        method: dict(Counter(verdict.outcome.value for verdict in verdicts))
        for method, verdicts in edge.verdicts.items()
    }
