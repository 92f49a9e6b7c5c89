"""Verdicts: a table of a method, and the facts of one node."""

from __future__ import annotations

import re

from inspector.files.session import Session
from inspector.graph.delegation import analyse_delegation, verdicts_by_node
from inspector.graph.model_graph import ModelNode
from inspector.graph.node_text import operator_title
from inspector.tables.facts import Fact, FactGroup
from inspector.tables.partitions import Partitions, known_partitions
from inspector.tables.selection import Selection, SelectionKind, Units
from inspector.tables.table import Table, badge_column, text_column
from schema.etrecord.parts.verdicts import NodeOutcome, Verdict
from schema.objects.identity_cache import identity_cache

OUTCOMES = {
    NodeOutcome.DELEGATED: "delegated",
    NodeOutcome.REJECTED: "rejected by rule",
    NodeOutcome.NO_RULE: "no rule for this operator",
    NodeOutcome.CLAIMED: "claimed earlier",
    NodeOutcome.CYCLE: "dropped because of a cycle",
    NodeOutcome.TOO_SMALL: "dropped as too small",
    NodeOutcome.VETOED: "vetoed by the user",
    NodeOutcome.DECOMPOSED: "decomposed",
}

_VETO = "vetoed by the user: "
_DENIED = re.compile(r"(?:\w+ )?(\S+) is denied by \1")  # not a pattern that names it among others


def verdict_table(built: Partitions, delegate: int | None) -> Table:
    """Return the verdicts on all nodes of a method, or on those that a delegate took."""
    inside = {name for one in built.facts.delegates if one.index == delegate for name in one.nodes}
    own = [one for one in built.facts.verdicts if delegate is None or one.node in inside]
    columns = (
        text_column("node", [one.node for one in own], mono=True),
        text_column("operator", [operator_title(one.operator) for one in own]),
        badge_column("verdict", [OUTCOMES[one.outcome] for one in own]),
        text_column("reason", [one.reason for one in own], width=48),
        text_column("partitioner", [one.partitioner for one in own]),
        text_column("rule", [one.rule for one in own], mono=True),
        text_column("source", [one.source for one in own], mono=True),
    )
    names = _names(built)
    keys = [_key(built.facts.method, names.get(one.node)) for one in own]
    return Table(columns, len(own), keys, noun="verdicts")


def _names(built: Partitions) -> dict[str, str]:
    nodes = built.graph.nodes if built.graph is not None else ()
    return {node.node.name: node.name for node in nodes}


def _key(method: str, name: str | None) -> Selection | None:
    if name is None:
        return None
    return Selection(SelectionKind.NODE, method, "compiled", name)


@identity_cache
def known_verdicts(session: Session, method: str) -> dict[str, tuple[Verdict, ...]]:
    """Return the verdicts on each node of a method, that of the partitioner that took it first."""
    for entry in analyse_delegation(session):
        if entry.method == method:
            return verdicts_by_node(entry.verdicts)
    return {}


def verdict_group(session: Session, method: str, node: ModelNode) -> FactGroup | None:
    """Return the verdicts on a node, None when none is recorded."""
    found = known_verdicts(session, method).get(node.node.name)
    if not found:
        return None
    first = found[0]
    facts = [
        fact
        for one in found
        for fact in (
            Fact("partitioner", f"{one.partitioner}: {OUTCOMES[one.outcome]}", one.reason),
            Fact("rule", one.rule, one.rule),
            *([Fact("because", one.reason, one.reason)] if one is not first else []),
        )
    ]
    notice = OUTCOMES[first.outcome].capitalize()
    if first.outcome is NodeOutcome.DELEGATED:
        notice = f"Delegated to {first.backend}"
    return FactGroup("", tuple(facts), notice=notice, text=f"{_sentence(first.reason)}.")


def _sentence(reason: str) -> str:
    """Return a reason below its outcome, without repeating it."""
    text = reason.removeprefix(_VETO)
    own = _DENIED.fullmatch(text)
    return text if own is None else f"the recipe denies {own[1]}"


def verdicts(session: Session, method: str, units: Units) -> Table:
    """Return the verdict on each node of a method; empty where none is recorded.

    Raises: QueryError when no file has delegation data
    """
    return verdict_table(known_partitions(session, method, units), None)
