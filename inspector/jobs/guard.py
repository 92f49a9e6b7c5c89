"""The report of the guard: which partitions load on their engine, and which do not.

A partitioner may take nodes that the engine refuses when the program is loaded; then the
program cannot run at all. The guard test-loads each partition of a compile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from inspector.recipes.compile_job import CompileJob
from schema.etrecord.parts.guard import Refusal
from schema.objects.codec import to_json

AUTO, ON, FIX, OFF = "auto", "on", "fix", "off"
WAYS = (AUTO, ON, FIX, OFF)
LOADS, REFUSED, UNCHECKED = "loads", "refused", "not checked"


@dataclass(frozen=True, slots=True)
class Guarded:
    """One partition.

    Attributes:
        method: it belongs to
        delegate: its index among the delegates of the method
        backend: id of its backend
        verdict: ``loads``, ``refused`` or ``not checked``
        engine: description of the loading engine; may be empty
        reason: why it was not checked, else empty
        time_ms: duration of the check
    """

    method: str
    delegate: int
    backend: str
    verdict: str
    engine: str = ""
    reason: str = ""
    time_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class GuardReport:
    """The result of the guard for a program.

    Attributes:
        partitions: in order
        refusals: their causes, one for each node
        rounds: number of compiled programs; more than one if nodes were removed
        vetoed: nodes removed after a refusal
    """

    partitions: tuple[Guarded, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    rounds: int = 1
    vetoed: tuple[str, ...] = ()

    def content(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return to_json(self)


def repaired(job: CompileJob, refusals: Sequence[Refusal]) -> CompileJob:
    """Return a job that excludes refused nodes; the same job if none is known."""
    known = dict.fromkeys(one.exported or one.node for one in refusals if one.node)
    nodes = tuple(dict.fromkeys((*job.rules.deny_nodes, *known)))
    return replace(job, rules=replace(job.rules, deny_nodes=nodes))


def guard_lines(report: GuardReport) -> list[str]:
    """Return how many partitions load, and the excluded nodes; see ``refusal_line``."""
    lines: list[str] = []
    for verdict in (LOADS, REFUSED, UNCHECKED):
        found = [one for one in report.partitions if one.verdict == verdict]
        for engine in dict.fromkeys(one.engine for one in found):
            same = [one for one in found if one.engine == engine]
            lines.append(_line(verdict, engine, same, len(report.partitions)))
    for node in report.vetoed:
        lines.append(f"{node} was excluded from the delegate and the program compiled again")
    return lines


def _line(verdict: str, engine: str, found: Sequence[Guarded], total: int) -> str:
    head = f"{len(found):,} of {total:,} partitions"
    if verdict == UNCHECKED:
        reasons = "; ".join(dict.fromkeys(one.reason for one in found))
        return f"{head} not checked: {reasons}"
    word = "load" if verdict == LOADS else "refused"
    on = "on" if verdict == LOADS else "by"
    return f"{head} {word} {on} {engine}"


def refusal_line(refusal: Refusal) -> str:
    """Return a refusal as one sentence with its remedies."""
    if not refusal.remedies:
        return f"{refusal.sentence}; etscope bisect --bound loads finds the nodes to exclude"
    return f"{refusal.sentence}; {' or '.join(refusal.remedies)} keeps it out"
