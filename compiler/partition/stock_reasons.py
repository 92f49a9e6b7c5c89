"""Reasons reported through helpers of the ``executorch`` package and of torch.

The package's helpers only log them, torch's partitioner queries a support
object and stores nothing. While a partitioner runs they are recorded like those of
``compiler.partition.reasons``; the behaviour of these helpers does not change.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Generator, Mapping
from typing import Any, cast

import torch
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner as TorchPartitioner

from compiler.partition.capability import note_refused
from compiler.partition.reasons import note
from compiler.partition.regions import unit_of
from compiler.partition.steering import keeps_out
from compiler.partition.support import ExplainedSupport, SupportAnswer, explain
from schema.etrecord.parts.verdicts import NodeOutcome

Node = torch.fx.Node
_PACKAGE = "executorch."
_HOME = f"{_PACKAGE}exir.backend.utils"
_ALONE = "its partition has fewer than 2 computing nodes"
_DOORS = (("WhyNoPartition", "__call__"), ("WhyNoPartitionReporter", "report_reject"))


@contextlib.contextmanager
def noting_stock_reasons(ours: Mapping[Node, Node] | None = None) -> Generator[None, None, None]:
    """Record the reasons passed to the package's helpers and torch's partitioner in the context.

    Args:
        ours: our node for each node the partitioner sees; None if it sees ours
    """
    home: Any = sys.modules.get(_HOME)
    propose = TorchPartitioner.propose_partitions
    before: list[tuple[Any, str, Any]] = [(TorchPartitioner, propose.__name__, propose)]
    TorchPartitioner.propose_partitions = _proposing(propose, ours)
    for name, method in _DOORS:
        door = getattr(home, name, None)
        original = getattr(door, method, None)
        if original is not None:
            before.append((door, method, original))
            setattr(door, method, _listening(original, ours))
    try:
        yield
    finally:
        for door, method, original in before:
            setattr(door, method, original)


def _listening(
    original: Callable[..., Any], ours: Mapping[Node, Node] | None
) -> Callable[..., Any]:
    def listening(door: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        message: dict[str, Any] = {**dict(zip(("node", "reason"), args, strict=False)), **kwargs}
        node, reason = message.get("node"), message.get("reason")
        if isinstance(node, Node) and isinstance(reason, str):
            logger: Any = getattr(door, "logger", None)
            rule = str(getattr(logger, "name", type(door).__name__)).removeprefix(_PACKAGE)
            mine = node if ours is None else ours.get(node, node)
            note(mine, rule, NodeOutcome.REJECTED, reason, weak=True)  # there the first reason wins
        return original(door, *args, **kwargs)

    return listening


_VETOED = SupportAnswer(False, "rules", "vetoed by the user")


class _Remembering(ExplainedSupport):
    """Queries a support object and records its answers."""

    def __init__(self, support: Any, ours: Mapping[Node, Node] | None) -> None:  # noqa: ANN401
        self.support = support
        self.answers: dict[Node, SupportAnswer] = {}
        self._ours = ours

    def explain(self, submodules: Mapping[str, torch.nn.Module], node: Node) -> SupportAnswer:
        """Return the answer of the support object, or that of the user's rules.

        A vendor that learns of a rule while it decides treats what belongs to the node, such as
        its quantization, as it does around an operator that it does not support.
        """
        unit = unit_of(node)
        mine = unit if self._ours is None else self._ours.get(unit, unit)
        if node.op == "call_function" and keeps_out(mine):
            return _VETOED
        self.answers[node] = explain(self.support, submodules, node)
        return self.answers[node]


def _proposing(propose: Callable[..., Any], ours: Mapping[Node, Node] | None) -> Any:  # noqa: ANN401
    def proposing(partitioner: Any) -> Any:  # noqa: ANN401
        support = partitioner.operator_support
        if isinstance(support, _Remembering):  # of the inner one of two nested contexts
            return propose(partitioner)
        asked = partitioner.operator_support = _Remembering(support, ours)
        try:
            found = propose(partitioner)
        finally:
            partitioner.operator_support = support
        answers = {
            node: message for node, message in asked.answers.items() if unit_of(node) is node
        }
        note_refused(answers, ours)
        if not partitioner.allows_single_node_partition:
            kept = {node for partition in found for node in partition.nodes}
            dropped = (node for node, message in answers.items() if message.supported)
            for node in dropped:
                if node not in kept and node.op == "call_function":
                    mine = node if ours is None else ours.get(node, node)
                    note(mine, "allows_single_node_partition", NodeOutcome.TOO_SMALL, _ALONE)
        return found

    return proposing


def node_pairs(shown: torch.fx.GraphModule, ours: torch.fx.GraphModule) -> dict[Node, Node]:
    """Return a map from the nodes of one graph, bodies included, to those of another."""
    found = dict(zip(shown.graph.nodes, ours.graph.nodes, strict=True))
    bodies = dict(ours.named_children())
    for name, child in shown.named_children():
        if isinstance(child, torch.fx.GraphModule):
            found |= node_pairs(child, cast("Any", bodies[name]))
    return found
