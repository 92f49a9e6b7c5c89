"""Sizes of delegated views that are left to be inferred, so that no partition needs them.

A view with one size that is only known at run time, and an expansion that changes nothing, read
that size from the graph. In a partition it would be one more argument, which no kernel reads.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.dialect.ops import edge_op
from compiler.partition.tags import tag_of
from compiler.untyped import aten

Node = torch.fx.Node
_VIEW, _EXPAND = edge_op(aten.view_copy.default), edge_op(aten.expand_copy.default)
_INFERRED = -1


def inferred_sizes(node: Node) -> list[int] | None:
    """Return the sizes of a view or expansion without those that follow from its operand.

    None for other nodes, and where the operand does not tell them.
    """
    if node.target not in (_VIEW, _EXPAND):
        return None
    before, after = _shape(node.args[0]), _shape(node)
    if before is None or after is None:
        return None
    if node.target is _EXPAND and [*map(str, before)] != [*map(str, after)]:
        return None  # comparing symbols themselves would fix them
    sizes = [size if isinstance(size, int) else _INFERRED for size in after]
    several = node.target is _VIEW and sizes.count(_INFERRED) > 1
    return None if several or 0 in sizes else sizes


def _shape(node: Any) -> tuple[Any, ...] | None:  # noqa: ANN401
    value = node.meta.get("val") if isinstance(node, Node) else None
    return tuple(value.shape) if isinstance(value, torch.Tensor) else None


def let_infer(program: ExportedProgram) -> None:
    """Let the tagged views and expansions of a program infer the sizes that it computes."""
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            _let_infer(module)


def _let_infer(module: torch.fx.GraphModule) -> None:
    changed = False
    for node in module.graph.nodes:
        sizes = inferred_sizes(node) if any(map(_is_size, node.all_input_nodes)) else None
        if sizes is not None and tag_of(node) is not None:
            node.update_arg(1, sizes)
            changed = True
    if not changed:
        return
    for node in reversed(module.graph.nodes):
        if node.op == "call_function" and _is_size(node) and not node.users:
            module.graph.erase_node(node)
    module.recompile()


def _is_size(node: Node) -> bool:
    return isinstance(node.meta.get("val"), torch.SymInt)
