"""The result of a bisection, as text and as a recipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from inspector.experiments.bisect.bound import Bound
from inspector.experiments.bisect.search import Result
from inspector.jobs.bisect_trials import CandidateNode, Trial
from inspector.recipes.compile_job import CompileJob
from schema.objects.plural import plural

_SHOWN = 40


@dataclass(frozen=True, slots=True)
class BisectFinding:
    """The result of a bisection.

    Attributes:
        result: kind of end
        nodes: to remove, empty unless found
        before: with everything delegated
        after: without those nodes; without any when they were not found
        candidates: number of candidate nodes
    """

    result: Result
    nodes: tuple[CandidateNode, ...]
    before: Trial
    after: Trial
    candidates: int


def sentence_of(found: BisectFinding, bound: Bound) -> str:
    """Return the result as one sentence."""
    before, after = value_of(found.before, bound), value_of(found.after, bound)
    if found.result is Result.FINE:
        return f"nothing needs to be excluded: {before}"
    if found.result is Result.ELSEWHERE:
        return f"it is not due to delegation: {before}, and with nothing delegated {after}"
    nodes = found.nodes
    names = [f"{one.name} ({one.operator})" for one in nodes[:_SHOWN]]
    more = f" and {len(nodes) - _SHOWN:,} more" if len(nodes) > _SHOWN else ""
    count = plural(len(nodes), "node has", "nodes have")
    return (
        f"{count} to be taken out of the delegate: {', '.join(names)}{more}; that takes"
        f" {before} to {after}"
    )


def value_of(trial: Trial, bound: Bound) -> str:
    """Return the value of a trial as text, or why it is missing."""
    return bound.shown(trial.value) if trial.value is not None else trial.words


def kept_out(job: CompileJob, nodes: Sequence[CandidateNode]) -> CompileJob:
    """Return a recipe that excludes nodes from delegates."""
    names = tuple(dict.fromkeys((*job.rules.deny_nodes, *(node.name for node in nodes))))
    return replace(job, rules=replace(job.rules, deny_nodes=names))
