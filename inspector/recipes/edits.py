"""Edits of a recipe offered on a node, a partition, an operator and so on.

Every edit is a pure function from a job to a job. Undo restores the previous job, so
edits need no inverse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum

from inspector.recipes.compile_job import (
    BUILT_IN,
    PRECISIONS,
    QUANTIZING_MODES,
    WEIGHT_KINDS,
    CompileJob,
    Precision,
    Rules,
)
from schema.backends import BACKENDS
from schema.etrecord.parts.verdicts import NodeOutcome, Verdict
from schema.objects.plural import plural
from schema.recipe.assignments import split_pair
from schema.vendors.names import partitioner_class

SMALLEST_PLAN = "the smallest of all plans"  # the planner of recipes that name none
_DEFAULTS = {one.name: one.default for one in fields(Rules)}


class TargetKind(str, Enum):
    """Kinds of objects with edits."""

    NODE = "node"
    PARTITION = "partition"
    OPERATOR = "operator"
    RULE = "rule"
    MODULE = "module"
    PARTITIONER = "partitioner"
    PLANNER = "planner"
    TOOLCHAIN = "toolchain"


@dataclass(frozen=True, slots=True)
class EditTarget:
    """The object of an edit.

    Attributes:
        kind: of the object
        name: of a node in the edge graph, of a partition, an operator as ``aten.mm.default``, the
            rule of a verdict, the path of a module, a partitioner by its name in verdicts, a memory
            planner or a toolchain as recipes name them
        nodes: names of the nodes of a partition, in the order of the graph
        exported: name of the exported node of a node, empty if unknown
        partitioner: of a rule, or to take a node; empty for any
    """

    kind: TargetKind
    name: str
    nodes: tuple[str, ...] = ()
    exported: str = ""
    partitioner: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit.

    Attributes:
        name: identifier
        label: for menus, with ``{0}`` for the target and ``{1}`` for the backends of a job
        kinds: of targets
        change: returns the changed job
        words: describes it for a target, with ``{0}`` for its name
        choice: parameter of the edit, as ``float16``; may be empty
        family: label of those that differ in their choice only; may be empty
    """

    name: str
    label: str
    kinds: tuple[TargetKind, ...]
    change: Callable[[CompileJob, EditTarget], CompileJob]
    words: str
    choice: str = ""
    family: str = ""

    def applies(self, job: CompileJob, target: EditTarget) -> bool:
        """Return whether it applies to a target and changes anything."""
        return target.kind in self.kinds and self.apply(job, target) != job

    def apply(self, job: CompileJob, target: EditTarget) -> CompileJob:
        """Return the changed job; the given one if nothing changes.

        Raises: ValueError if it does not apply to such a target
        """
        if target.kind not in self.kinds:
            raise ValueError(f"{self.name!r} does not apply to a {target.kind.value}")
        return self.change(job, target)

    def describe(self, target: EditTarget) -> str:
        """Return a description of it."""
        return self.words.format(target.name)


def called(target: EditTarget) -> str:
    """Return how menus name a target: a node as the user's code has it."""
    name = target.name
    if target.kind is TargetKind.NODE:
        return target.exported or name
    if target.kind is TargetKind.PARTITION:
        return f"the {plural(len(target.nodes), 'node')} of {name}"
    if target.kind is TargetKind.OPERATOR:
        return f"every {name.removesuffix('.default')}"
    kinds = (TargetKind.MODULE, TargetKind.RULE)
    return f"{target.kind.value} {name}" if target.kind in kinds else name


def backends_of(job: CompileJob) -> str:
    """Return the backends that the partitioners of a job delegate to, for menus."""
    owners = {one.class_name: each.name for each in BACKENDS.values() for one in each.partitioners}
    classes = [class_of(text) for text in job.partitioners]
    names = dict.fromkeys(owners.get(one) or one.removesuffix("Partitioner") for one in classes)
    return " and ".join(names) if 0 < len(names) < 3 else "delegates"


def moved_up(partitioners: Sequence[str], name: str) -> tuple[str, ...]:
    """Return partitioners with one moved one position forward.

    Args:
        partitioners: of a job
        name: one of them, with or without its options

    Raises: KeyError if not found
    """
    found = list(partitioners)
    place = next((at for at, text in enumerate(found) if means(text, name)), None)
    if place is None:
        there = ", ".join(found) or "none"
        raise KeyError(f"unknown partitioner {name!r} to move up; available: {there}")
    if place:
        found[place - 1], found[place] = found[place], found[place - 1]
    return tuple(found)


def class_of(partitioner: str) -> str:
    """Return the class name of a partitioner, as in verdicts, by its name in a job."""
    name = partitioner.rpartition(".py:")[2].partition(":")[0]
    return partitioner_class(name)


def means(text: str, name: str) -> bool:
    """Return whether a name means a partitioner of a job."""
    return name in (text, text.partition(":")[0]) or class_of(text) == class_of(name)


def edits_for(job: CompileJob, target: EditTarget) -> tuple[Edit, ...]:
    """Return the edits that apply to a target and would change the job."""
    return tuple(edit for edit in EDITS if edit.applies(job, target))


def edit_that_takes(
    node: str, verdict: Verdict | None, exported: str = ""
) -> tuple[str, EditTarget] | None:
    """Return the edit by which a partitioner may take a node, None where none helps.

    Args:
        node: outside of partitions
        verdict: of the first partitioner on it, None if unknown
        exported: name of the exported node, empty if unknown
    """
    if verdict is None:
        return None
    if verdict.outcome in _DROPPED or verdict.rule in _OF_USERS:
        return "force", EditTarget(TargetKind.NODE, node, exported=exported)
    if verdict.outcome is NodeOutcome.VETOED:
        return "rule-on", EditTarget(TargetKind.RULE, verdict.rule)
    return None


_DROPPED = (NodeOutcome.TOO_SMALL, NodeOutcome.CYCLE)
_OF_USERS = frozenset(
    f"{way}_{kind}"
    for way in ("deny", "allow")
    for kind in ("ops", "nodes", "modules", "tensors", "handles")
) | {"max_partitions", "min_nodes"}


def edit_named(name: str) -> Edit:
    """Return an edit by its identifier.

    Raises: KeyError listing the available ones
    """
    for edit in EDITS:
        if edit.name == name:
            return edit
    raise KeyError(f"unknown edit {name!r}; available: {', '.join(edit.name for edit in EDITS)}")


def _ruled(job: CompileJob, **changes: object) -> CompileJob:
    return replace(job, rules=replace(job.rules, **changes))


def _with(given: Sequence[str], more: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*given, *more)))


def _without(given: Sequence[str], less: Sequence[str]) -> tuple[str, ...]:
    return tuple(one for one in given if split_pair(one)[0] not in less)


def _nodes(target: EditTarget) -> tuple[str, ...]:
    return target.nodes if target.kind is TargetKind.PARTITION else (target.name,)


def _names(target: EditTarget) -> tuple[str, ...]:
    """Return all names a rule may have for a target."""
    return (*_nodes(target), *((target.exported,) if target.exported else ()))


def _keep_off(job: CompileJob, target: EditTarget) -> CompileJob:
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


def _let_in(job: CompileJob, target: EditTarget) -> CompileJob:
    rules, names = job.rules, _names(target)
    return _ruled(
        job,
        deny_nodes=_without(rules.deny_nodes, names),
        deny_ops=_without(rules.deny_ops, names),
        deny_modules=_without(rules.deny_modules, names),
    )


def _force(job: CompileJob, target: EditTarget) -> CompileJob:
    rules, names = job.rules, _names(target)
    to = f"={target.partitioner}" if target.partitioner else ""
    forced = _with(_without(rules.force_nodes, names), [f"{name}{to}" for name in _nodes(target)])
    return _ruled(job, deny_nodes=_without(rules.deny_nodes, names), force_nodes=forced)


def _cut_before(job: CompileJob, target: EditTarget) -> CompileJob:
    return _ruled(job, cut_before=_with(job.rules.cut_before, _nodes(target)[:1]))


def _cut_after(job: CompileJob, target: EditTarget) -> CompileJob:
    return _ruled(job, cut_after=_with(job.rules.cut_after, _nodes(target)[-1:]))


def _join(job: CompileJob, target: EditTarget) -> CompileJob:
    rules, names = job.rules, _names(target)
    return _ruled(
        job,
        cut_before=_without(rules.cut_before, names),
        cut_after=_without(rules.cut_after, names),
        alone_nodes=_without(rules.alone_nodes, names),
        alone_ops=_without(rules.alone_ops, names),
    )


def _alone(job: CompileJob, target: EditTarget) -> CompileJob:
    if target.kind is TargetKind.OPERATOR:
        return _ruled(job, alone_ops=_with(job.rules.alone_ops, [target.name]))
    return _ruled(job, alone_nodes=_with(job.rules.alone_nodes, _nodes(target)))


def _rule_off(job: CompileJob, target: EditTarget) -> CompileJob:
    name = {"deny_tensors": "deny_dtypes"}.get(target.name, target.name)
    if name in _DEFAULTS:  # one of the rules of the user
        return _ruled(job, **{name: _DEFAULTS[name]})
    return _ruled(job, deny_rules=_with(job.rules.deny_rules, [name]))


def _rule_on(job: CompileJob, target: EditTarget) -> CompileJob:
    return _ruled(job, deny_rules=_without(job.rules.deny_rules, [target.name]))


def _move_up(job: CompileJob, target: EditTarget) -> CompileJob:
    try:
        return replace(job, partitioners=moved_up(job.partitioners, target.name))
    except KeyError:
        return job


def _add_partitioner(job: CompileJob, target: EditTarget) -> CompileJob:
    if any(means(text, target.name) for text in job.partitioners):
        return job
    return replace(job, partitioners=(*job.partitioners, target.name))


def _plan_with(job: CompileJob, target: EditTarget) -> CompileJob:
    return replace(job, memory_planner="" if target.name == SMALLEST_PLAN else target.name)


def _compile_with(job: CompileJob, target: EditTarget) -> CompileJob:
    current = job.toolchain or BUILT_IN
    return job if current == target.name else replace(job, toolchain=target.name)


def _compute_in(word: str) -> Callable[[CompileJob, EditTarget], CompileJob]:
    def change(job: CompileJob, target: EditTarget) -> CompileJob:
        known = {one.name: getattr(job.precision, one.name) for one in fields(Precision)}
        known[_part(target)] = _chosen(known[_part(target)], _nodes(target), word)
        return replace(job, precision=Precision(**known))

    return change


def _quantize_as(word: str) -> Callable[[CompileJob, EditTarget], CompileJob]:
    def change(job: CompileJob, target: EditTarget) -> CompileJob:
        how = job.quantising
        if how.by_weights:  # of modules only, and in no mode that observes calls
            if target.kind is not TargetKind.MODULE or word in QUANTIZING_MODES:
                return job
        elif word in WEIGHT_KINDS or (word in ("none", "") and not how.mode):
            return job
        part = _part(target)
        names = _nodes(target)
        if target.kind is TargetKind.NODE:
            names = (target.exported or target.name,)
        if target.kind is TargetKind.OPERATOR:
            names = (".".join(target.name.split(".")[:2]),)  # torchao uses overload packets
        known = {one: getattr(how, one) for one in ("modules", "operators", "nodes")}
        known[part] = _chosen(known[part], names, word)
        mode = how.mode or ("" if how.embedding else "none")
        return replace(job, quantising=replace(how, mode=mode, quantizer="", **known))

    return change


def _part(target: EditTarget) -> str:
    kinds = {TargetKind.MODULE: "modules", TargetKind.OPERATOR: "operators"}
    return kinds.get(target.kind, "nodes")


def _chosen(given: Sequence[str], names: Sequence[str], word: str) -> tuple[str, ...]:
    kept = [text for text in given if split_pair(text, last=True)[0] not in names]
    return (*kept, *(f"{name}={word}" for name in names)) if word else tuple(kept)


_IN_GRAPH = (TargetKind.NODE, TargetKind.PARTITION)
_COMPUTING = (TargetKind.NODE, TargetKind.PARTITION, TargetKind.OPERATOR, TargetKind.MODULE)
_OF_ONE = (TargetKind.NODE, TargetKind.OPERATOR, TargetKind.MODULE)

EDITS: tuple[Edit, ...] = (
    Edit("keep-off", "Keep {0} off {1}", _COMPUTING, _keep_off, "{0} runs outside"),
    Edit("let-in", "Allow {0} on {1} again", _COMPUTING, _let_in, "{0} may be delegated again"),
    Edit(
        "force",
        "Force {0} into {1}",
        _IN_GRAPH,
        _force,
        "{0} is delegated if a rule supports it",
    ),
    Edit(
        "cut-before",
        "Begin a partition at {0}",
        _IN_GRAPH,
        _cut_before,
        "a partition begins at {0}",
    ),
    Edit("cut-after", "End a partition at {0}", _IN_GRAPH, _cut_after, "a partition ends at {0}"),
    Edit(
        "alone",
        "Put {0} into a separate partition",
        (TargetKind.NODE, TargetKind.PARTITION, TargetKind.OPERATOR),
        _alone,
        "{0} shares a partition with no other node",
    ),
    Edit(
        "join",
        "Do not cut at {0} any more",
        (TargetKind.NODE, TargetKind.PARTITION, TargetKind.OPERATOR),
        _join,
        "{0} may share a partition again",
    ),
    Edit("rule-off", "Disable {0}", (TargetKind.RULE,), _rule_off, "{0} is disabled"),
    Edit("rule-on", "Enable {0} again", (TargetKind.RULE,), _rule_on, "{0} decides again"),
    Edit(
        "move-up",
        "Let {0} choose earlier",
        (TargetKind.PARTITIONER,),
        _move_up,
        "{0} has one place higher priority",
    ),
    Edit(
        "add-partitioner",
        "Delegate to {0}",
        (TargetKind.PARTITIONER,),
        _add_partitioner,
        "{0} takes what it supports",
    ),
    Edit(
        "plan-with",
        "Plan memory with {0}",
        (TargetKind.PLANNER,),
        _plan_with,
        "memory is planned with {0}",
    ),
    Edit(
        "compile-with",
        "Compile with {0}",
        (TargetKind.TOOLCHAIN,),
        _compile_with,
        "the {0} toolchain compiles",
    ),
    *(
        Edit(
            f"compute-{word}",
            f"Compute {{0}} in {word}",
            _COMPUTING,
            _compute_in(word),
            f"{{0}} is computed in {word}",
            word,
            "Compute {0} in",
        )
        for word in PRECISIONS
    ),
    Edit(
        "compute-own",
        "Compute {0} in its original type",
        _COMPUTING,
        _compute_in(""),
        "{0} is as it was",
    ),
    *(
        Edit(
            f"quantize-{word}",
            f"Quantize {{0}}: {word}",
            _OF_ONE,
            _quantize_as(word),
            f"{{0}} is quantized: {word}",
            word,
            "Quantize {0}",
        )
        for word in (*QUANTIZING_MODES, *WEIGHT_KINDS, "none")
    ),
    Edit(
        "quantize-as-rest",
        "Quantize {0} as the rest",
        _OF_ONE,
        _quantize_as(""),
        "{0} is quantized like the rest",
    ),
)
