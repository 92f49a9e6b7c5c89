"""Evidence for the metrics of requirements, and their computation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from inspector.experiments.evaluate.report import VariantFigures
from inspector.files.run_report import run_report
from inspector.files.session import Session
from inspector.graph.delegation import MethodDelegation, analyse_delegation
from inspector.memory.plan import analyse_memory
from inspector.numerics.report import GapReport
from inspector.roofline.call_costs import THIS
from schema.objects.plural import plural
from schema.program import ProgramFile

MEASURED = ("pte", "ptd", "bpte")
Blocks = Sequence[Sequence[float]]


class MissingError(Exception):
    """A metric for which a file is missing; one sentence that names it."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Facts about a program.

    Units: times in ms

    Attributes:
        session: its files
        what: their name in sentences
        method: only this one is judged; empty for all
        times: of each method, blocks of runs that were measured here; None for those of the trace
        gap: the numeric gap, None while it is not asked for
        evaluation: figures on a data set, None while they are not asked for
        ran: target that measured ``times``
    """

    session: Session
    what: str
    method: str = ""
    times: Mapping[str, Blocks] | None = None
    gap: GapReport | None = None
    evaluation: VariantFigures | None = None
    ran: str = THIS

    def methods(self) -> tuple[str, ...]:
        """Return the methods that are judged."""
        return tuple(name for name in self.session.methods if self.method in ("", name))

    def judged(self) -> str:
        """Return a description of the judged methods."""
        names = self.methods()
        if len(names) > 1:
            return f"all methods: {', '.join(names)}"
        return f"method {names[0]}" if names else ""


@dataclass(frozen=True, slots=True)
class FoundValue:
    """The value of a metric.

    Attributes:
        value: in the base unit of the metric; None if missing, which meets no bound
        words: its details
        judged: methods or files it applies to
        least: why the value is only a lower bound, or empty
        refused: why no bound on it can be met, or empty
    """

    value: float | None
    words: str
    judged: str = ""
    least: str = ""
    refused: str = ""


def static_value(metric: str, evidence: Evidence) -> FoundValue:
    """Return a metric of the files alone.

    Raises: MissingError
    """
    return _STATIC[metric](evidence)


def _delegation(metric: str, evidence: Evidence) -> list[MethodDelegation]:
    found = [
        entry
        for entry in analyse_delegation(evidence.session)
        if evidence.method in ("", entry.method)
    ]
    session = evidence.session
    if session.program is None and session.record is None:
        raise MissingError(f"{metric} needs a program (.pte) or its ETRecord; {_has(evidence)}")
    return found


def _delegated(evidence: Evidence) -> FoundValue:
    entries = _delegation("delegated", evidence)
    inside = sum(entry.compute_delegated for entry in entries)
    total = inside + sum(entry.compute_non_delegated for entry in entries)
    judged = evidence.judged()
    if not total:
        return FoundValue(None, "no node of it computes", judged)
    ways = ", ".join(sorted({entry.counting for entry in entries}))
    words = f"{inside:,} of {total:,} nodes that compute, counted by {ways}"
    return FoundValue(100 * inside / total, words, judged, _unread(entries))


def _unread(entries: Sequence[MethodDelegation]) -> str:
    """Return the payloads whose nodes are unknown, empty when there are none."""
    unread = {delegate.backend_id for entry in entries for delegate in entry.unread}
    if not unread:
        return ""
    return f"the nodes in payloads of {', '.join(sorted(unread))} are known from the ETRecord only"


def _delegates(evidence: Evidence) -> FoundValue:
    entries = _delegation("delegates", evidence)
    total = sum(entry.num_delegated_subgraphs for entry in entries)
    parts = [f"{entry.num_delegated_subgraphs:,} in {entry.method}" for entry in entries]
    words = ", ".join(parts) if len(parts) > 1 else ""
    return FoundValue(float(total), words, evidence.judged())


def _program(metric: str, evidence: Evidence) -> ProgramFile:
    program = evidence.session.program
    if program is None:
        raise MissingError(f"{metric} needs the program (.pte); {_has(evidence)}")
    return program


def _arena(evidence: Evidence) -> FoundValue:
    program = _program("arena", evidence)
    planned = {
        method: [arena.planned_bytes for arena in analyse_memory(program, method).arenas]
        for method in evidence.methods()
    }
    count = sum(map(len, planned.values()))
    total = sum(map(sum, planned.values()))
    words = plural(count, "arena")
    return FoundValue(float(total), words, evidence.judged())


def _size(evidence: Evidence) -> FoundValue:
    files = [file for file in evidence.session.files if file.kind in MEASURED]
    if not any(file.kind != "ptd" for file in files):
        raise MissingError(f"size needs the program (.pte); {_has(evidence)}")
    total = sum(file.size for file in files)
    return FoundValue(float(total), "", ", ".join(file.path for file in files))


def _rss(evidence: Evidence) -> FoundValue:
    """Return the peak of a steady run as increase over the idle worker, as its report has it."""
    peaks = {
        report.only_method: report.memory.increase.get("steady_run")
        for report in filter(None, map(run_report, evidence.session.timed_dumps))
        if report.only_method and evidence.method in ("", report.only_method)
    }
    known = {method: peak for method, peak in peaks.items() if peak is not None}
    if not known:
        words = "rss needs the trace of a run that measured it, with its run.json"
        raise MissingError(f"{words}; {_has(evidence)}")
    worst = max(known, key=lambda method: known[method])
    words = "peak of a steady run beyond the idle worker"
    return FoundValue(float(known[worst]), words, f"method {worst}")


def _has(evidence: Evidence) -> str:
    kinds = [f"{file.path} ({file.kind})" for file in evidence.session.files]
    return f"available: {', '.join(kinds)}"


_STATIC = {
    "delegated": _delegated,
    "arena": _arena,
    "size": _size,
    "delegates": _delegates,
    "rss": _rss,
}
