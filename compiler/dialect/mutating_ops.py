"""Custom operators that mutate their arguments, as functional calls that return the new values.

The call is ``auto_functionalized(op, **arguments)`` of torch: its results are those of the
operator, or None, followed by the new value of each mutated argument. Memory planning lets the
operator overwrite the old values (see ``memory.writes``).
"""

from __future__ import annotations

from typing import Any

import torch

from compiler.dialect.ops import EdgeOp, edge_op

WRITE: Any = torch.ops.higher_order.auto_functionalized
"""Target of every such call in an edge graph."""
WITH_BASES: Any = torch.ops.higher_order.auto_functionalized_v2
"""Torch's alternative target, for mutated values that may be views of others."""


def is_write(node: torch.fx.Node) -> bool:
    """Return whether a node calls an operator that writes to its arguments."""
    return node.op == "call_function" and node.target in (WRITE, WITH_BASES)


def writer_of(node: torch.fx.Node) -> EdgeOp:
    """Return the mutating operator of a functionalized node."""
    op: Any = node.args[0]
    return edge_op(op)


def written_by(op: EdgeOp) -> tuple[str, ...]:
    """Return the arguments that an operator writes, in the order of the results."""
    arguments: Any = op.op._schema.arguments
    return tuple(a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write)


def first_written(node: torch.fx.Node) -> int:
    """Return which result is the new value of the first argument that is written."""
    return max(len(writer_of(node).op._schema.returns), 1)
