"""Steps common to bisections of both toolchains: removing nodes, trials, results."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from inspector.experiments.bisect.bound import Bound
from inspector.experiments.bisect.search import Ranges, Search
from inspector.experiments.bisect.summary import BisectFinding
from inspector.jobs.bisect_trials import CandidateNode, Trial, numbers_of
from inspector.recipes.compile_job import CompileJob
from inspector.worker.exporter import Say, sentence_of
from schema.objects.codec import from_json, to_json

Valued = tuple[float | None, str]


def searched(
    nodes: Sequence[CandidateNode],
    trial: Callable[[Ranges], Trial],
    notify: Say,
    how: Mapping[str, Any],
) -> dict[str, Any]:
    """Search the smallest set of nodes to remove; return the result of the job.

    Args:
        nodes: that may be removed
        trial: measures a program without some of them
        notify: called with messages
        how: ``candidates`` and ``trials`` of an earlier worker
    """
    notify("candidates", nodes=to_json(nodes))
    same = tuple(nodes) == from_json(how["candidates"], tuple[CandidateNode, ...], "candidates")
    known = from_json(how["trials"], tuple[Trial, ...], "trials") if same else ()
    computing = [at for at, node in enumerate(nodes) if not node.quantizes]
    answer = Search(len(nodes), trial, known, computing).run()
    out = tuple(nodes[number] for number in answer.removed)
    return to_json(BisectFinding(answer.result, out, answer.before, answer.after, len(nodes)))


def not_here(backends: Sequence[str], why: str = "") -> str:
    """Return why programs with payloads that do not run here are not bisected."""
    return (
        f"{', '.join(backends)} does not run here{f' ({why})' if why else ''}: no trial would load,"
        " and innocent nodes would be named; available: --device, or a bound on the program itself"
    )


def tried(
    removed: Ranges,
    bound: Bound,
    value: Callable[[], Valued],
    notify: Say,
    unhelpful: tuple[type[Exception], ...],
) -> Trial:
    """Return the trial of a program; one that fails in a known way does not meet the bound."""
    notify("trying", removed=removed)
    start = time.perf_counter()
    try:
        found, words = value()
    except unhelpful as error:
        found, words = None, sentence_of(error)
    spent = time.perf_counter() - start
    built = Trial(removed, found, bound.holds(found), words, spent)
    notify("tried", trial=to_json(built))
    return built


def without(job: CompileJob, nodes: Sequence[CandidateNode], removed: Ranges) -> CompileJob:
    """Return the compile job that excludes further nodes from delegates."""
    names = dict.fromkeys(nodes[number].name for number in numbers_of(removed))
    rules = replace(job.rules, deny_nodes=(*job.rules.deny_nodes, *names))
    return replace(job, rules=rules)
