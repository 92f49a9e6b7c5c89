"""What operators outside the core set compute from constants alone: no program has to run those."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import torch

from compiler.dialect.ops import EdgeOp
from compiler.dialect.templates import walk
from compiler.edge.config import EdgeCompileConfig
from compiler.edge.verifier import operator_fault

Node = torch.fx.Node


def constant_results(
    graph: torch.fx.Graph, constants: Mapping[str, torch.Tensor], config: EdgeCompileConfig
) -> dict[Node, torch.Tensor]:
    """Return the values of nodes that the verifier would refuse and that read constants alone.

    Args:
        graph: an edge graph, whose writes are outputs
        constants: by the name of their placeholder; not written, not exchanged
        config: whose exceptions are not refused
    """
    if not config.check_ir_validity:
        return {}
    faults: dict[EdgeOp, str] = {}
    known: dict[Node, Any] = {}
    found: dict[Node, torch.Tensor] = {}
    for node in graph.nodes:
        target: Any = node.target
        if not isinstance(target, EdgeOp):
            continue
        if target not in faults:
            faults[target] = operator_fault(target, config)
        if not faults[target] or _value(node, constants, known) is None:
            continue
        results = [node] if isinstance(known[node], torch.Tensor) else [*node.users]
        values = {one: _value(one, constants, known) for one in results}
        if all(isinstance(one, torch.Tensor) for one in values.values()) and not any(
            user.op == "output" for one in results for user in one.users
        ):
            found |= values
    return found


def _value(node: Node, constants: Mapping[str, torch.Tensor], known: dict[Node, Any]) -> Any:  # noqa: ANN401
    """Return the value of a node, None if it is not known before the program runs."""
    if node not in known:
        known[node] = constants.get(node.name) if node.op == "placeholder" else None
        inputs = [_value(one, constants, known) for one in node.all_input_nodes]
        if _may_compute(node) and all(one is not None for one in inputs):
            known[node] = _computed(node, known)
    return known[node]


def _may_compute(node: Node) -> bool:
    target: Any = node.target
    if target is operator.getitem:
        return True
    if not isinstance(target, EdgeOp):
        return False
    below = target.op
    return not below._schema.is_mutable and torch.Tag.nondeterministic_seeded not in below.tags


def _computed(node: Node, known: Mapping[Node, Any]) -> Any:  # noqa: ANN401
    def real(leaf: Any) -> Any:  # noqa: ANN401
        return known[leaf] if isinstance(leaf, Node) else leaf

    args, kwargs = walk(real, (tuple(node.args), dict(node.kwargs)))
    target: Any = node.target
    try:
        with torch.no_grad():
            return target(*args, **kwargs)
    except RuntimeError:  # torch has no kernel for this type here; the verifier says the rest
        return None
