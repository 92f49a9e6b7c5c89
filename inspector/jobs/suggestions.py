"""Suggested changes that reduce boundaries, each tried before it is offered; no torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from inspector.jobs.preview import MethodPreview, NodePreview, Preview
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.edits import EditTarget, TargetKind, edit_named, edit_that_takes
from inspector.roofline.call_costs import CallCosts
from inspector.units import format_bytes, format_time
from schema.etrecord.parts.verdicts import Verdict
from schema.objects.plural import plural

_MOST_NODES = 8  # limit of nodes added together
_SMALL = 2  # nodes of a partition that may be not worth its boundaries
_MOST_TRIED = 12  # each is a partition preview


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A change that reduces boundaries.

    Attributes:
        text: description with its effect
        method: of the boundaries
        edits: names of edits and their targets, in order
        job: with all of them applied
        boundaries: reduction in number
        saved_bytes: reduction of the bytes that cross boundaries; None if a size is unknown
        saved_ns: what calls and layout changes of a run cost less; None if their cost is unknown
        target: where that was measured, empty if unknown
    """

    text: str
    method: str
    edits: tuple[tuple[str, EditTarget], ...]
    job: CompileJob
    boundaries: int
    saved_bytes: int | None
    saved_ns: float | None = None
    target: str = ""


@dataclass(frozen=True, slots=True)
class Suggestions:
    """The result of a suggestion job.

    Attributes:
        suggestions: the best first
        tried: number of changes that were tried
    """

    suggestions: tuple[Suggestion, ...] = ()
    tried: int = 0

    @property
    def text(self) -> str:
        """Return the result in words."""
        if self.suggestions:
            return "Choose one to change the recipe."
        if self.tried:
            return f"{plural(self.tried, 'change')} tried: none saves boundaries and copies."
        return (
            "Nothing to try: the rules take in no node that is outside, and no partition is small."
        )


@dataclass(frozen=True, slots=True)
class _Candidate:
    words: str
    edits: tuple[tuple[str, EditTarget], ...]


def suggestions_of(
    job: CompileJob, preview: Callable[[CompileJob], Preview], costs: CallCosts | None = None
) -> Suggestions:
    """Return changes that reduce boundaries.

    Args:
        job: to change
        preview: returns the delegation of a job
        costs: of calls on the target; a change that costs more there is left out
    """
    base = preview(job)
    found: list[Suggestion] = []
    count = 0
    for method, shown in base.methods.items():
        for candidate in list(_candidates(job, shown))[:_MOST_TRIED]:
            changed = job
            for name, target in candidate.edits:
                changed = edit_named(name).apply(changed, target)
            if changed == job:
                continue
            count += 1
            new = preview(changed)
            tried = _tried(candidate, method, changed, base, new)
            if tried is not None and costs is not None:
                tried = _weighed(tried, shown, new.methods[method], costs)
            if tried is not None:
                found.append(tried)
    return Suggestions(tuple(sorted(found, key=_rank)), count)


def _rank(one: Suggestion) -> tuple[float, int, int]:
    return -(one.saved_ns or 0.0), -(one.saved_bytes or 0), -one.boundaries


def _weighed(
    one: Suggestion, old: MethodPreview, new: MethodPreview, costs: CallCosts
) -> Suggestion | None:
    """Return a suggestion with what it saves on a target, None if it saves nothing there."""
    saved = cost_of_calls(old, costs) - cost_of_calls(new, costs)
    if saved <= 0:
        return None
    text = f"{one.text}, {format_time(saved)} of calls and copies a run on the {costs.where}"
    return replace(one, text=text, saved_ns=saved, target=costs.where)


def cost_of_calls(shown: MethodPreview, costs: CallCosts) -> float:
    """Return what calls and layout changes of a run cost, in nanoseconds."""
    moved = [
        (value.nbytes or 0) * value.layout_copies
        for boundary in shown.boundaries
        for value in boundary.values
    ]
    outside = len(shown.nodes) - shown.delegated
    return costs.instruction * outside + costs.boundary(len(shown.partitions), sum(moved))


def _tried(
    candidate: _Candidate,
    method: str,
    changed: CompileJob,
    base: Preview,
    new: Preview,
) -> Suggestion | None:
    found = new.against(base)[method]
    saved = None if found.copied_bytes is None else -found.copied_bytes
    if found.boundaries >= 0 or (saved is not None and saved < 0):
        return None
    good = [f"{-found.boundaries:,} {'boundary' if found.boundaries == -1 else 'boundaries'}"]
    good += [f"{format_bytes(saved)} of copies"] if saved else []
    text = f"{candidate.words} removes {' and '.join(good)}"
    return Suggestion(text, method, candidate.edits, changed, -found.boundaries, saved)


def _candidates(job: CompileJob, shown: MethodPreview) -> Iterator[_Candidate]:
    yield from _taken_in(shown)
    yield from _joined(job)
    for partition in shown.partitions:
        if len(partition.nodes) <= _SMALL and len(shown.partitions) > 1:
            target = EditTarget(TargetKind.PARTITION, partition.name, partition.nodes)
            words = f"keeping {plural(len(partition.nodes), 'node')} of {partition.name} off"
            yield _Candidate(words, (("keep-off", target),))


def _taken_in(shown: MethodPreview) -> Iterator[_Candidate]:
    """Yield groups of nodes between partitions that could be delegated too."""
    verdicts: dict[str, Verdict] = {}
    for verdict in shown.verdicts:
        verdicts.setdefault(verdict.node, verdict)
    for group in _groups_outside(shown.nodes):
        edits = [
            edit_that_takes(node.name, verdicts.get(node.name), node.exported) for node in group
        ]
        if len(group) <= _MOST_NODES and all(edits):
            built = tuple(edit for edit in edits if edit is not None)
            which = "this node" if len(group) == 1 else f"these {len(group)} nodes"
            names = ", ".join(node.name for node in group)
            yield _Candidate(f"taking {which} in ({names})", built)


def _groups_outside(nodes: tuple[NodePreview, ...]) -> list[list[NodePreview]]:
    """Return nodes outside of partitions that read each other, in groups."""
    outside = {node.name: node for node in nodes if node.partition is None}
    group_of: dict[str, list[NodePreview]] = {}
    for node in outside.values():
        mine = [node]
        for name in node.reads:
            other = group_of.get(name)
            if other is not None and other is not mine:
                other += mine
                mine = other
        for each in mine:
            group_of[each.name] = mine
    return list({id(group): group for group in group_of.values()}.values())


def _joined(job: CompileJob) -> Iterator[_Candidate]:
    """Yield cuts of the user that could be removed."""
    rules = job.rules
    cut = dict.fromkeys((*rules.cut_before, *rules.cut_after, *rules.alone_nodes))
    for name in cut:
        yield _Candidate(f"not cutting at {name}", (("join", EditTarget(TargetKind.NODE, name)),))
    for name in rules.alone_ops:
        target = EditTarget(TargetKind.OPERATOR, name)
        yield _Candidate(f"not cutting around each {name}", (("join", target),))
