"""Recipe targets of a selection, and the edits available for them."""

from __future__ import annotations

from dataclasses import dataclass

from devtools_app.viewmodels.delegate_calls import called_delegate, rows_of
from devtools_app.viewmodels.scene_search import related_to
from inspector.files.session import Session
from inspector.graph.delegation import analyse_delegation
from inspector.graph.model_graph import ModelNode
from inspector.graph.node_text import exported_name, operator_title
from inspector.profile.join_index import join_index
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.edits import (
    Edit,
    EditTarget,
    TargetKind,
    backends_of,
    called,
    edits_for,
)
from inspector.tables.selection import Selection, SelectionKind
from inspector.tables.verdicts import known_verdicts
from schema.backends import short_backend
from schema.etrecord.parts.verdicts import Verdict
from schema.graph import NodeKind
from schema.objects.plural import plural

_LONGEST = 44  # characters of a name in a menu
_ON = {
    TargetKind.NODE: "This node",
    TargetKind.PARTITION: "Its partition",
    TargetKind.OPERATOR: "All nodes of this operator",
    TargetKind.MODULE: "Its module",
    TargetKind.RULE: "The rule that decided",
    TargetKind.PARTITIONER: "The partitioner",
    TargetKind.PLANNER: "The memory planner",
    TargetKind.TOOLCHAIN: "The toolchain",
}


@dataclass(frozen=True, slots=True)
class Offer:
    """An edit available for the selection.

    Attributes:
        edit: the edit
        target: of the edit
        job: the recipe after it
        words: instead of those of the edit, where it stands for several
        backends: that the recipe delegates to
    """

    edit: Edit
    target: EditTarget
    job: CompileJob
    words: str = ""
    backends: str = "delegates"

    @property
    def label(self) -> str:
        """Return its menu text."""
        return self.words or self.edit.label.format(_brief(called(self.target)), self.backends)

    @property
    def family(self) -> str:
        """Return the name of its submenu, empty if it is not one of several choices."""
        return "" if self.words else self.edit.family.format(_brief(called(self.target)))

    @property
    def described(self) -> str:
        """Return the effect."""
        return self.words or self.edit.describe(self.target)


@dataclass(frozen=True, slots=True)
class OfferGroup:
    """The edits on one target.

    Attributes:
        title: kind and name of the target
        offers: the edits
    """

    title: str
    offers: tuple[Offer, ...]


def offers(job: CompileJob, targets: tuple[EditTarget, ...]) -> tuple[OfferGroup, ...]:
    """Return the edits available for targets that would change a recipe."""
    found: list[OfferGroup] = []
    backends = backends_of(job)
    for target in targets:
        result = tuple(
            Offer(edit, target, edit.apply(job, target), backends=backends)
            for edit in edits_for(job, target)
        )
        if result:
            own = target is targets[0] and target.kind is TargetKind.MODULE
            kind = "This module" if own else _ON[target.kind]
            found.append(OfferGroup(f"{kind}: {_named(target)}", result))
    return tuple(found)


def _brief(name: str) -> str:
    """Return a name for one line of a menu: the end of a long one, by which it differs."""
    return name if len(name) <= _LONGEST else f"…{name[1 - _LONGEST :]}"


def _named(target: EditTarget) -> str:
    if target.kind is TargetKind.PARTITION:
        return f"{target.name}, {plural(len(target.nodes), 'node')}"
    return operator_title(target.name) if target.kind is TargetKind.OPERATOR else target.name


def edit_targets(session: Session, method: str, selection: Selection) -> tuple[EditTarget, ...]:
    """Return the recipe targets of a selection, the most specific first.

    The call of a delegate and its overhead are of a partition; values and parts have no target.
    """
    if selection.kind is SelectionKind.DELEGATE and selection.delegate is not None:
        return _partition(session, method, selection.delegate)
    index = join_index(session, method)
    graph = index.graph
    if graph is None or selection.kind is SelectionKind.VALUE:
        return ()
    related = related_to(selection, index)
    nodes = [graph.nodes[graph.by_name[name]] for name in related.nodes if name in graph.by_name]
    called = called_delegate(selection, nodes, rows_of(session, method, selection, related))
    if called is not None:
        return _partition(session, method, called)
    return _of_node(session, method, nodes[0]) if nodes else ()


def module_targets(path: str) -> tuple[EditTarget, ...]:
    """Return the recipe target of a module, none for an empty path."""
    return (EditTarget(TargetKind.MODULE, path),) if path else ()


def _of_node(session: Session, method: str, node: ModelNode) -> tuple[EditTarget, ...]:
    inner = node.node
    if inner.kind is not NodeKind.CALL:
        return ()
    verdicts = known_verdicts(session, method).get(inner.name, ())
    found: list[EditTarget] = []
    if session.record is not None and "/" not in node.name:
        found.append(EditTarget(TargetKind.NODE, inner.name, exported=exported_name(inner)))
    if node.delegate is not None:
        found += _partition(session, method, node.delegate)
    operator = verdicts[0].operator if verdicts else inner.target.replace("::", ".")
    if operator:
        found.append(EditTarget(TargetKind.OPERATOR, operator))
    return (*found, *module_targets(inner.module_path), *_of_verdicts(verdicts))


def _of_verdicts(verdicts: tuple[Verdict, ...]) -> list[EditTarget]:
    rules = dict.fromkeys((one.rule, one.partitioner) for one in verdicts if one.rule)
    found = [EditTarget(TargetKind.RULE, rule, partitioner=who) for rule, who in rules]
    names = dict.fromkeys(one.partitioner for one in verdicts if one.partitioner)
    return found + [EditTarget(TargetKind.PARTITIONER, name) for name in names]


def _partition(session: Session, method: str, number: int) -> tuple[EditTarget, ...]:
    for entry in analyse_delegation(session):
        if entry.method != method:
            continue
        for one in entry.delegates:
            if one.index == number and one.nodes:
                name = f"{short_backend(one.backend_id)} delegate {number}"
                return (EditTarget(TargetKind.PARTITION, name, nodes=one.nodes),)
    return ()
