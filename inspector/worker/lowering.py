"""Turns the words of a compile job into the compiler's objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from torch.export import ExportedProgram

from compiler.config import ExecutorchBackendConfig
from compiler.managers import EdgeProgramManager, to_edge, to_edge_transform_and_lower
from compiler.memory.options import MemoryPlanningPass
from compiler.memory.planners import PLANNERS
from compiler.partition.rules import Granularity, PartitionRules, TensorRule
from compiler.partition.steered import SteeredPartitioner
from compiler.partition.unmatched import unmatched_rules
from compiler.partitioners import (
    PartitionerNameError,
    make_partitioner,
    parse_partitioner,
    partitioner_names,
)
from compiler.stages import Observer
from inspector.jobs.description import CompileJob, Rules
from inspector.worker.exporter import AnswerError


def known_names() -> dict[str, list[str]]:
    """Return the names a job may use."""
    return {"partitioners": list(partitioner_names()), "planners": list(PLANNERS)}


def check_words(job: CompileJob) -> None:
    """Raise AnswerError for a name that nobody knows, before the user's code runs."""
    if job.memory_planner and job.memory_planner not in PLANNERS:
        there = ", ".join(PLANNERS)
        raise AnswerError(f"no memory planner {job.memory_planner!r}; there is {there}")
    for text in job.partitioners:
        if ".py:" not in text:
            _partitioner(text)


def _partitioner(text: str) -> Any:  # noqa: ANN401
    try:
        return make_partitioner(parse_partitioner(text))
    except PartitionerNameError as error:
        raise AnswerError(str(error)) from error


def lowered(
    job: CompileJob,
    programs: Mapping[str, ExportedProgram],
    constants: Mapping[str, Any],
    observe: Observer,
) -> EdgeProgramManager:
    """Return edge programs, delegated as the job says.

    Raises: CompileError; AnswerError for partitioners that nobody knows
    """
    if not job.partitioners:
        return to_edge(programs, constants, generate_etrecord=True, observer=observe)
    rules = _rules(job.rules)
    found = [SteeredPartitioner(_partitioner(text), rules) for text in job.partitioners]
    return to_edge_transform_and_lower(
        programs,
        partitioner=found,
        constant_methods=constants,
        generate_etrecord=True,
        observer=observe,
    )


def _rules(rules: Rules) -> PartitionRules:
    dtypes = (TensorRule(dtypes=rules.deny_dtypes),) if rules.deny_dtypes else ()
    return PartitionRules(
        deny_ops=rules.deny_ops,
        allow_ops=rules.allow_ops,
        deny_nodes=rules.deny_nodes,
        allow_nodes=rules.allow_nodes,
        deny_modules=rules.deny_modules,
        allow_modules=rules.allow_modules,
        deny_tensors=dtypes,
        min_nodes=rules.min_nodes,
        max_partitions=rules.max_partitions,
        granularity=Granularity(rules.granularity),
    )


def rules_without_effect(
    job: CompileJob, programs: Mapping[str, ExportedProgram], edge: EdgeProgramManager
) -> list[str]:
    """Return a sentence for each rule of a job that fits nothing in its programs."""
    if not job.partitioners:
        return []
    every = [*programs.values(), *edge.lowered_programs.values()]
    return [
        f"--{rule.rstrip('s').replace('_', '-')} {name} fits nothing in the program"
        for rule, name in unmatched_rules(_rules(job.rules), every)
    ]


def backend_config(job: CompileJob) -> ExecutorchBackendConfig:
    """Return how the program is to be planned and emitted."""
    return ExecutorchBackendConfig(
        memory_planning_pass=MemoryPlanningPass(job.memory_planner or None),
        external_constants=job.external_constants,
    )


def verdict_counts(edge: EdgeProgramManager) -> dict[str, dict[str, int]]:
    """Return by method how many verdicts have each outcome; empty where nothing was partitioned."""
    return {
        method: dict(Counter(verdict.outcome.value for verdict in verdicts))
        for method, verdicts in edge.verdicts.items()
    }
