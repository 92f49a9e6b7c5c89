"""Operators that partitioners request to preserve, and the decisions on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.dialect.functional_variants import is_view, returns_alias
from compiler.dialect.ops import EdgeOp
from compiler.dialect.templates import walk
from compiler.errors import source_line
from compiler.interface.partitioner import NodeFilter, name_of
from compiler.partition.reasons import collecting, operator_of
from compiler.partition.run_partitioner import ops_to_preserve
from compiler.untyped import OpOverload
from schema.etrecord.parts.verdicts import NodeOutcome, Verdict

Node = torch.fx.Node


@dataclass(frozen=True)
class OpsToPreserve:
    """The operators that one partitioner requests to preserve.

    Attributes:
        partitioner: its name
        ops: operators
        requested: filter of their nodes, None for all
    """

    partitioner: str
    ops: frozenset[Any]
    requested: NodeFilter | None


@dataclass
class PreservedOps:
    """The operators that partitioners of a method request to preserve.

    Attributes:
        requests: in the order of the partitioners
        refused: names of exported nodes that are decomposed nevertheless: no partitioner took them
        answered: exported nodes of requested operators, and why they are decomposed; None if
            preserved
        in_parts: names of exported nodes that are decomposed as far as the package does it
    """

    requests: tuple[OpsToPreserve, ...] = ()
    refused: dict[str, str] = field(default_factory=dict[str, str])
    answered: dict[Node, str | None] = field(default_factory=dict[Node, "str | None"])
    in_parts: set[str] = field(default_factory=set[str])

    def as_package(self, node: Node) -> bool:
        """Return whether a node is decomposed as far as the package does it."""
        return node.name in self.in_parts

    @property
    def ops(self) -> frozenset[Any]:
        """Return all operators that a partitioner requests to preserve."""
        return frozenset(op for request in self.requests for op in request.ops)

    def kind(self, node: Node, op: Any) -> str:  # noqa: ANN401
        """Return the decision on a node, see ``PreservationPolicy``."""
        if node.name in self.refused:
            self.answered[node] = self.refused[node.name]
            return "refused"
        requests = [request for request in self.requests if op in request.ops]
        if not requests:
            return ""
        self.answered[node] = self._answer(requests, node)
        return "whole" if self.answered[node] is None else "parts"

    def preserves_inside(self, op: Any, args: Any, kwargs: Any) -> bool:  # noqa: ANN401
        """Return whether an operator inside the decomposition of another one is preserved."""
        requests = [request for request in self.requests if op in request.ops]
        if not requests:
            return False
        stand_in = _stand_in(op, args, kwargs)
        return any(_wants(request, stand_in) for request in requests)

    def _answer(self, requests: Sequence[OpsToPreserve], node: Node) -> str | None:
        with collecting() as reasons:  # a filter may say why, as the partitioner itself does
            if any(_wants(request, node) for request in requests):
                return None
        names = ", ".join(request.partitioner for request in requests)
        noted = reasons.by_node.get(node)
        why = f": {noted.text}" if noted is not None else ""
        return f"the filter of {names} does not preserve this node{why}"

    def verdicts(self, edge: ExportedProgram) -> tuple[Verdict, ...]:
        """Return a verdict for every node that was to be preserved and was decomposed."""
        parts: dict[str, list[str]] = {}
        for node in edge.graph.nodes:
            for source in list(node.meta.get("from_node") or ())[:1]:
                parts.setdefault(source.name, []).append(operator_of(node))
        return tuple(
            self._verdict(node, why, parts.get(node.name, []))
            for node, why in self.answered.items()
            # one without a decomposition is in the edge program, with a verdict of its own
            if why is not None and parts.get(node.name) != [operator_of(node)]
        )

    def _verdict(self, node: Node, why: str, parts: Sequence[str]) -> Verdict:
        wanting = [w for w in self.requests if node.target in w.ops] or [*self.requests]
        operators = ", ".join(dict.fromkeys(parts)) or "nothing"
        return Verdict(
            node=node.name,
            operator=operator_of(node),
            debug_handle=None,
            partitioner=wanting[0].partitioner,
            rule="ops_to_not_decompose",
            outcome=NodeOutcome.DECOMPOSED,
            reason=f"{operator_of(node)} was decomposed into {operators}: {why}",
            source=source_line(node),
        )


def preserved_ops_of(partitioners: Sequence[Any], program: ExportedProgram) -> PreservedOps:
    """Return the operators of an exported program that partitioners request to preserve.

    Views and mutating operators are skipped, since an edge program has none.

    Raises: PartitionError if a partitioner returns anything else
    """
    found: list[OpsToPreserve] = []
    for partitioner in partitioners:
        ops, requested = ops_to_preserve(partitioner, program)
        given = [op.op if isinstance(op, EdgeOp) else op for op in ops]
        kept = frozenset(op for op in given if isinstance(op, OpOverload) and _may_stay(op))
        if kept:
            found.append(OpsToPreserve(name_of(partitioner), kept, requested))
    return PreservedOps(tuple(found))


def _may_stay(op: Any) -> bool:  # noqa: ANN401
    return not op._schema.is_mutable and not is_view(op) and not returns_alias(op)


def _wants(request: OpsToPreserve, node: Node) -> bool:
    return node.target in request.ops and (
        request.requested is None or bool(request.requested(node))
    )


def _stand_in(op: Any, args: Any, kwargs: Any) -> Node:  # noqa: ANN401
    """Return a temporary node for an operator inside a decomposition."""
    graph = torch.fx.Graph()

    def bind(leaf: Any) -> Any:  # noqa: ANN401
        if not isinstance(leaf, torch.Tensor):
            return leaf
        node = graph.placeholder("operand")
        node.meta["val"] = leaf
        return node

    given, named = walk(bind, (tuple(args), dict(kwargs)))
    return graph.call_function(op, given, named)


def preserved_nodes(edge: ExportedProgram, ops: frozenset[Any]) -> list[Node]:
    """Return the calls of preserved operators in an edge program, bodies included."""
    graphs = [m.graph for m in edge.graph_module.modules() if isinstance(m, torch.fx.GraphModule)]
    nodes = [node for graph in graphs for node in graph.nodes if node.op == "call_function"]
    targets = [(node, node.target) for node in nodes]
    return [node for node, target in targets if isinstance(target, EdgeOp) and target.op in ops]
