"""Changes of a recipe that a click can make: on a node, a partition, an operator and so on.

Every one is a pure function from a job to a job. Undoing one is going back to the job before, so
there are no inverse functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum

from inspector.recipes.compile_job import (
    PRECISIONS,
    QUANTISING_MODES,
    CompileJob,
    Precision,
    Quantization,
    Rules,
)
from schema.backends import partitioners

_DEFAULTS = {one.name: one.default for one in fields(Rules)}


class TargetKind(str, Enum):
    """What can be clicked."""

    NODE = "node"
    PARTITION = "partition"
    OPERATOR = "operator"
    RULE = "rule"
    MODULE = "module"
    PARTITIONER = "partitioner"


@dataclass(frozen=True, slots=True)
class Target:
    """What was clicked.

    Attributes:
        kind: what it is
        name: of a node in the edge graph, of a partition, an operator as ``aten.mm.default``, the
            rule of a verdict, the path of a module, a partitioner as verdicts name it
        nodes: names of the nodes in it, for a partition; in the order of the graph
        exported: name of the exported node a node comes from, empty when unknown
        partitioner: whose rule it is, or who is to take a node; empty for any
    """

    kind: TargetKind
    name: str
    nodes: tuple[str, ...] = ()
    exported: str = ""
    partitioner: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """One change.

    Attributes:
        name: identifier
        label: in words, as in a menu
        kinds: what it can be made on
        change: returns the changed job
        words: what it does to a target, with ``{0}`` for its name
        choice: what is chosen with it, as ``float16``; empty for nothing
    """

    name: str
    label: str
    kinds: tuple[TargetKind, ...]
    change: Callable[[CompileJob, Target], CompileJob]
    words: str
    choice: str = ""

    def applies(self, job: CompileJob, target: Target) -> bool:
        """Return whether it can be made on a target and changes anything."""
        return target.kind in self.kinds and self.apply(job, target) != job

    def apply(self, job: CompileJob, target: Target) -> CompileJob:
        """Return the changed job; the given one where there is nothing to change.

        Raises: ValueError if it cannot be made on such a target
        """
        if target.kind not in self.kinds:
            raise ValueError(f"{self.label!r} is nothing that a {target.kind.value} can have")
        return self.change(job, target)

    def describe(self, target: Target) -> str:
        """Return in words what it does."""
        return self.words.format(target.name)


def moved_up(partitioners: Sequence[str], name: str) -> tuple[str, ...]:
    """Return partitioners with one moved a place forward.

    Args:
        partitioners: as a job has them
        name: one of them, with or without its options

    Raises: KeyError if it is not there
    """
    found = list(partitioners)
    place = next((at for at, text in enumerate(found) if means(text, name)), None)
    if place is None:
        there = ", ".join(found) or "none"
        raise KeyError(f"unknown partitioner {name!r} to move up; there is {there}")
    if place:
        found[place - 1], found[place] = found[place], found[place - 1]
    return tuple(found)


def class_of(partitioner: str) -> str:
    """Return the class of a partitioner as a job names it, as verdicts have it."""
    name = partitioner.rpartition(".py:")[2].partition(":")[0]
    return next((one.class_name for one in partitioners() if one.alias == name), name)


def means(text: str, name: str) -> bool:
    """Return whether a name means a partitioner of a job."""
    return name in (text, text.partition(":")[0]) or class_of(text) == class_of(name)


def edits_for(job: CompileJob, target: Target) -> tuple[Edit, ...]:
    """Return the changes that can be made on a target and would change the job."""
    return tuple(edit for edit in EDITS if edit.applies(job, target))


def edit_named(name: str) -> Edit:
    """Return a change by its identifier.

    Raises: KeyError naming those there are
    """
    for edit in EDITS:
        if edit.name == name:
            return edit
    raise KeyError(f"no edit {name!r}; there is {', '.join(edit.name for edit in EDITS)}")


def _ruled(job: CompileJob, **changes: object) -> CompileJob:
    return replace(job, rules=replace(job.rules, **changes))


def _with(given: Sequence[str], more: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*given, *more)))


def _without(given: Sequence[str], less: Sequence[str]) -> tuple[str, ...]:
    return tuple(one for one in given if one.partition("=")[0] not in less)


def _nodes(target: Target) -> tuple[str, ...]:
    return target.nodes if target.kind is TargetKind.PARTITION else (target.name,)


def _names(target: Target) -> tuple[str, ...]:
    """Return all names a rule may have for a target."""
    return (*_nodes(target), *((target.exported,) if target.exported else ()))


def _keep_off(job: CompileJob, target: Target) -> CompileJob:
    rules = job.rules
    if target.kind is TargetKind.OPERATOR:
        return _ruled(job, deny_ops=_with(rules.deny_ops, [target.name]))
    if target.kind is TargetKind.MODULE:
        return _ruled(job, deny_modules=_with(rules.deny_modules, [target.name]))
    return _ruled(
        job,
        deny_nodes=_with(rules.deny_nodes, _nodes(target)),
        force_nodes=_without(rules.force_nodes, _names(target)),
    )


def _let_in(job: CompileJob, target: Target) -> CompileJob:
    rules, names = job.rules, _names(target)
    return _ruled(
        job,
        deny_nodes=_without(rules.deny_nodes, names),
        deny_ops=_without(rules.deny_ops, names),
        deny_modules=_without(rules.deny_modules, names),
    )


def _force(job: CompileJob, target: Target) -> CompileJob:
    rules, names = job.rules, _names(target)
    to = f"={target.partitioner}" if target.partitioner else ""
    forced = _with(_without(rules.force_nodes, names), [f"{name}{to}" for name in _nodes(target)])
    return _ruled(job, deny_nodes=_without(rules.deny_nodes, names), force_nodes=forced)


def _cut_before(job: CompileJob, target: Target) -> CompileJob:
    return _ruled(job, cut_before=_with(job.rules.cut_before, _nodes(target)[:1]))


def _cut_after(job: CompileJob, target: Target) -> CompileJob:
    return _ruled(job, cut_after=_with(job.rules.cut_after, _nodes(target)[-1:]))


def _join(job: CompileJob, target: Target) -> CompileJob:
    rules, names = job.rules, _names(target)
    return _ruled(
        job,
        cut_before=_without(rules.cut_before, names),
        cut_after=_without(rules.cut_after, names),
        alone_nodes=_without(rules.alone_nodes, names),
        alone_ops=_without(rules.alone_ops, names),
    )


def _alone(job: CompileJob, target: Target) -> CompileJob:
    if target.kind is TargetKind.OPERATOR:
        return _ruled(job, alone_ops=_with(job.rules.alone_ops, [target.name]))
    return _ruled(job, alone_nodes=_with(job.rules.alone_nodes, _nodes(target)))


def _rule_off(job: CompileJob, target: Target) -> CompileJob:
    name = {"deny_tensors": "deny_dtypes"}.get(target.name, target.name)
    if name in _DEFAULTS:  # one of the user's own rules
        return _ruled(job, **{name: _DEFAULTS[name]})
    return _ruled(job, deny_rules=_with(job.rules.deny_rules, [name]))


def _rule_on(job: CompileJob, target: Target) -> CompileJob:
    return _ruled(job, deny_rules=_without(job.rules.deny_rules, [target.name]))


def _move_up(job: CompileJob, target: Target) -> CompileJob:
    try:
        return replace(job, partitioners=moved_up(job.partitioners, target.name))
    except KeyError:
        return job


def _compute_in(word: str) -> Callable[[CompileJob, Target], CompileJob]:
    def change(job: CompileJob, target: Target) -> CompileJob:
        known = {one.name: getattr(job.precision, one.name) for one in fields(Precision)}
        known[_part(target)] = _chosen(known[_part(target)], _nodes(target), word)
        return replace(job, precision=Precision(**known))

    return change


def _quantise_as(word: str) -> Callable[[CompileJob, Target], CompileJob]:
    def change(job: CompileJob, target: Target) -> CompileJob:
        how = job.quantising
        if not how.mode and word in ("none", ""):
            return job
        part = _part(target)
        names = _nodes(target)
        if target.kind is TargetKind.NODE:
            names = (target.exported or target.name,)
        if target.kind is TargetKind.OPERATOR:
            names = (".".join(target.name.split(".")[:2]),)  # torchao goes by packets
        known = {one: getattr(how, one) for one in ("modules", "operators", "nodes")}
        known[part] = _chosen(known[part], names, word)
        mode = how.mode or "none"
        return replace(job, quantising=Quantization(mode, how.calibration, how.per_tensor, **known))

    return change


def _part(target: Target) -> str:
    kinds = {TargetKind.MODULE: "modules", TargetKind.OPERATOR: "operators"}
    return kinds.get(target.kind, "nodes")


def _chosen(given: Sequence[str], names: Sequence[str], word: str) -> tuple[str, ...]:
    kept = [text for text in given if text.rpartition("=")[0] not in names]
    return (*kept, *(f"{name}={word}" for name in names)) if word else tuple(kept)


_IN_GRAPH = (TargetKind.NODE, TargetKind.PARTITION)
_COMPUTING = (TargetKind.NODE, TargetKind.PARTITION, TargetKind.OPERATOR, TargetKind.MODULE)
_OF_ONE = (TargetKind.NODE, TargetKind.OPERATOR, TargetKind.MODULE)

EDITS: tuple[Edit, ...] = (
    Edit("keep-off", "Keep off the delegate", _COMPUTING, _keep_off, "{0} runs outside"),
    Edit("let-in", "Do not keep off any more", _COMPUTING, _let_in, "{0} may be delegated again"),
    Edit("force", "Force into the delegate", _IN_GRAPH, _force, "{0} is taken if a rule can"),
    Edit("cut-before", "Cut before", _IN_GRAPH, _cut_before, "a partition begins at {0}"),
    Edit("cut-after", "Cut after", _IN_GRAPH, _cut_after, "a partition ends at {0}"),
    Edit(
        "alone",
        "A partition of its own",
        (TargetKind.NODE, TargetKind.PARTITION, TargetKind.OPERATOR),
        _alone,
        "{0} shares a partition with no other node",
    ),
    Edit(
        "join",
        "Do not cut here any more",
        (TargetKind.NODE, TargetKind.PARTITION, TargetKind.OPERATOR),
        _join,
        "{0} may share a partition again",
    ),
    Edit("rule-off", "Turn the rule off", (TargetKind.RULE,), _rule_off, "{0} decides nothing"),
    Edit("rule-on", "Turn the rule on again", (TargetKind.RULE,), _rule_on, "{0} decides again"),
    Edit(
        "move-up",
        "Choose earlier",
        (TargetKind.PARTITIONER,),
        _move_up,
        "{0} chooses one place earlier",
    ),
    *(
        Edit(
            f"compute-{word}",
            f"Compute in {word}",
            _COMPUTING,
            _compute_in(word),
            f"{{0}} is computed in {word}",
            word,
        )
        for word in PRECISIONS
    ),
    Edit("compute-own", "Compute in its own type", _COMPUTING, _compute_in(""), "{0} is as it was"),
    *(
        Edit(
            f"quantise-{word}",
            f"Quantise: {word}",
            _OF_ONE,
            _quantise_as(word),
            f"{{0}} is quantized: {word}",
            word,
        )
        for word in (*QUANTISING_MODES, "none")
    ),
    Edit(
        "quantise-as-rest",
        "Quantize as the rest",
        _OF_ONE,
        _quantise_as(""),
        "{0} is quantized as everything",
    ),
)
