"""Reasons why nodes are not delegated, collected while a partitioner runs.

Partitioners need not cooperate: helpers note their decisions, and ``WhyNoPartition`` and
its reporter let partitioners explain themselves.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Generator, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field

import torch

from compiler.dialect.mutating_ops import is_write, writer_of
from compiler.dialect.ops import EdgeOp
from schema.etrecord.parts.verdicts import NodeOutcome

Node = torch.fx.Node


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a node was not, or not yet, delegated.

    Attributes:
        rule: id of the rule that decided
        outcome: the decision
        text: the reason as a sentence
    """

    rule: str
    outcome: NodeOutcome
    text: str


@dataclass
class Reasons:
    """The reasons collected while one partitioner ran.

    Attributes:
        by_node: why a node stays outside, or which rule took it; later notes win
        groups: nodes that must stay together, such as a layer and its quantize nodes
    """

    by_node: dict[Node, Reason] = field(default_factory=dict[Node, Reason])
    groups: list[tuple[Node, ...]] = field(default_factory=list[tuple[Node, ...]])


_current: ContextVar[Reasons | None] = ContextVar("reasons", default=None)


@contextlib.contextmanager
def collecting() -> Generator[Reasons, None, None]:
    """Collect the reasons noted inside the context."""
    reasons = Reasons()
    token = _current.set(reasons)
    try:
        yield reasons
    finally:
        _current.reset(token)


def note(node: Node, rule: str, outcome: NodeOutcome, text: str, *, weak: bool = False) -> None:
    """Record why a node is not delegated, or which rule took it; does nothing without a collector.

    Args:
        node: which node
        rule: id of the rule that decided
        outcome: the decision
        text: the reason as a sentence
        weak: keep an existing reason
    """
    reasons = _current.get()
    if reasons is not None and not (weak and node in reasons.by_node):
        reasons.by_node[node] = Reason(rule, outcome, text)


def noted(node: Node) -> Reason | None:
    """Return the reason noted for a node, or None."""
    reasons = _current.get()
    return None if reasons is None else reasons.by_node.get(node)


def belong_together(groups: Iterable[Sequence[Node]]) -> None:
    """Record nodes that rules of the user must not split."""
    reasons = _current.get()
    if reasons is not None:
        reasons.groups += [tuple(group) for group in groups if len(group) > 1]


def groups_noted() -> list[tuple[Node, ...]]:
    """Return the nodes that must stay together."""
    reasons = _current.get()
    return [] if reasons is None else reasons.groups


def operator_of(node: Node) -> str:
    """Return the operator of a call as in ``aten.add.Tensor``."""
    target = writer_of(node) if is_write(node) else node.target
    if isinstance(target, EdgeOp):
        return target.__name__
    if isinstance(target, str):
        return target
    schema = getattr(target, "_schema", None)
    name = getattr(target, "__name__", str(target))
    home = f"{schema.name.split('::')[0]}." if schema is not None else ""
    return name if name.startswith(home) else f"{home}{name}"


def value_of(node: Node) -> str:
    """Return dtype and shape of a node's value, as in ``float32[2, 3]``."""
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        sizes = ", ".join(str(size) for size in value.shape)
        return f"{str(value.dtype).removeprefix('torch.')}[{sizes}]"
    return type(value).__name__


class WhyNoPartition:
    """Notes why a node was rejected, and logs it; call it with the node and the reason."""

    def __init__(self, logger: logging.Logger) -> None:
        self.logger = logger
        self.node: Node | None = None
        self.reason = ""

    def __call__(self, node: Node, reason: str) -> None:
        """Record a reason."""
        self.node, self.reason = node, reason
        note(node, self.logger.name, NodeOutcome.REJECTED, reason)
        self.logger.debug("%s", self)

    def __str__(self) -> str:
        name = self.node.format_node() if self.node is not None else None
        return f"WhyNoPartition: Node {name} was not partitioned because {self.reason}."


class WhyNoPartitionReporter:
    """Collects why nodes were rejected, for a table."""

    def __init__(self) -> None:
        self._rejected: list[tuple[str, str, str]] = []

    def report_reject(self, node: Node, reason: str) -> None:
        """Record a reason."""
        self._rejected.append((node.name, operator_of(node), reason))
        note(node, type(self).__name__, NodeOutcome.REJECTED, reason)

    def get_table_report(self) -> str:
        """Return the reasons as a table of node, operator and reason."""
        if not self._rejected:
            return "No reject reasons recorded."
        rows = [("Node", "Operator", "Reason"), *self._rejected]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        pairs = [zip(row, widths, strict=True) for row in rows]
        return "\n".join("  ".join(t.ljust(w) for t, w in pair).rstrip() for pair in pairs)

    def wrap_check(self, check: Callable[[Node], bool], reason: str) -> Callable[[Node], bool]:
        """Return a check that notes the reason whenever it fails."""

        def checked(node: Node) -> bool:
            if check(node):
                return True
            self.report_reject(node, reason)
            return False

        return checked
