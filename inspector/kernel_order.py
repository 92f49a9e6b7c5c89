"""Joins a delegate's events, which carry only kernel names, to the nodes of its payload by order.

All or nothing: every event must be an operator of the payload, in order, and every operator must
have its event, save those the runtime may merge into a neighbour. Anything else is no match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from schema.graph import GraphNode
from schema.identity_cache import identity_cache
from schema.payloads import Payload
from schema.payloads.model import RuntimeOperator


@dataclass(frozen=True, slots=True)
class PayloadMatch:
    """What one event covers.

    Attributes:
        nodes: payload nodes, the one the event is named after first, then those merged into it
        handles: debug handles of those nodes
        inserted: no covered node has a handle (a layout copy the compiler added)
    """

    nodes: tuple[str, ...]
    handles: tuple[int, ...]
    inserted: bool


def match_payload_events(payload: Payload, names: Sequence[str]) -> tuple[PayloadMatch | None, ...]:
    """Return the match of each event of one delegate call, all None when the orders disagree."""
    return _match(payload, tuple(names))


@identity_cache
def _match(payload: Payload, names: tuple[str, ...]) -> tuple[PayloadMatch | None, ...]:
    nothing: tuple[PayloadMatch | None, ...] = (None,) * len(names)
    operators = payload.operators
    if not operators or not names:
        return nothing
    kernels = [name.rsplit(" #", 1)[0] for name in names]
    reach = _reachable(operators, kernels)
    if 0 not in reach[0]:
        return nothing
    return _follow(payload, kernels, reach)


def _steps(operator: RuntimeOperator, kernels: list[str], at: int) -> list[int]:
    """Return how many events the operator may take from here."""
    found: list[int] = []
    if at < len(kernels) and _is(kernels[at], operator.names):
        if at + 1 < len(kernels) and _is(kernels[at + 1], operator.followed_by):
            found.append(2)
        found.append(1)
    if operator.optional:
        found.append(0)
    return found


def _is(kernel: str, names: tuple[str, ...]) -> bool:
    return any(kernel.startswith(name) for name in names)


def _reachable(operators: tuple[RuntimeOperator, ...], kernels: list[str]) -> list[set[int]]:
    """Return for each operator the event positions from which the rest can be matched."""
    goal = [set[int]() for _ in operators] + [{len(kernels)}]
    slack = sum(op.optional or bool(op.followed_by) for op in operators) + 1
    for index in range(len(operators) - 1, -1, -1):
        low, high = min(goal[index + 1], default=0), max(goal[index + 1], default=-1)
        for at in range(max(low - 2, index - slack, 0), min(high, index + slack) + 1):
            if any(at + step in goal[index + 1] for step in _steps(operators[index], kernels, at)):
                goal[index].add(at)
    return goal


def _follow(
    payload: Payload, kernels: list[str], reach: list[set[int]]
) -> tuple[PayloadMatch | None, ...]:
    covered: list[list[str]] = [[] for _ in kernels]
    leading: list[str] = []
    at = 0
    for index, operator in enumerate(payload.operators):
        choices = _steps(operator, kernels, at)
        taken = next(step for step in choices if at + step in reach[index + 1])
        if taken == 0:
            (covered[at - 1] if at else leading).append(operator.node)
        for event in range(at, at + taken):
            covered[event].append(operator.node)
        at += taken
    if covered and leading:
        covered[0] += leading
    nodes = _nodes(payload)
    return tuple(_made(names, nodes) for names in covered)


def _nodes(payload: Payload) -> dict[str, GraphNode]:
    return {node.name: node for node in payload.graph.nodes} if payload.graph is not None else {}


def _made(names: list[str], nodes: dict[str, GraphNode]) -> PayloadMatch:
    handles = [nodes[name].debug_handle for name in names if name in nodes]
    known = tuple(dict.fromkeys(handle for handle in handles if handle is not None))
    return PayloadMatch(tuple(names), known, not known)
