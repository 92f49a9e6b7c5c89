"""Lets an operator write its result over an input that is not read afterwards.

The graph stays functional: metadata names the argument that the result overwrites,
and the memory plan gives both the same memory.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

from compiler.dialect.copies import copied_program
from compiler.dialect.dim_order import is_contiguous
from compiler.dialect.memory_ops import IN_PLACE_OF
from compiler.dialect.ops import edge_op
from compiler.dialect.templates import nodes_in
from compiler.passes.base import ExportedProgramPassBase, ExportedProgramPassResult
from compiler.passes.fake import same_kind
from compiler.untyped import OpOverload, aten

Node = torch.fx.Node
DEFAULT_INPLACEABLE_OPS: frozenset[Any] = frozenset((edge_op(aten.index_put.default),))


class ReinplacePass(ExportedProgramPassBase):
    """Marks the results that reuse the memory of an input."""

    def __init__(
        self, ops_to_inplace: Collection[Any] | None = None, more: Collection[Any] = ()
    ) -> None:
        """Set the operators.

        Args:
            ops_to_inplace: edge operators that may write over their first argument; None for
                ``index_put``
            more: additional ones
        """
        listed = DEFAULT_INPLACEABLE_OPS if ops_to_inplace is None else ops_to_inplace
        self._operators = frozenset((*listed, *more))

    def call(self, exported_program: ExportedProgram) -> ExportedProgramPassResult:
        """Change the metadata of a program."""
        return ExportedProgramPassResult(exported_program, _mark(exported_program, self._operators))


def reinplace_pass(
    ep: ExportedProgram, ops_to_inplace: Collection[Any] | None = None
) -> ExportedProgram:
    """Return a program in which results reuse the memory of inputs; the given one is not changed.

    Args:
        ep: an edge program
        ops_to_inplace: edge operators that may write over their first argument; None for
            ``index_put``
    """
    built = copied_program(ep)
    _mark(built, ops_to_inplace)
    return built


def _mark(program: ExportedProgram, operators: Collection[Any] | None) -> bool:
    requested = DEFAULT_INPLACEABLE_OPS if operators is None else frozenset(operators)
    nodes = list(program.graph.nodes)
    root_of = _roots(nodes)
    last_read = _last_reads(nodes, root_of)
    own_buffers = _written_buffers(program)
    modified = False
    for place, node in enumerate(nodes):
        base = node.args[0] if node.op == "call_function" and node.args else None
        if node.target not in requested or not isinstance(base, Node):
            continue
        root = root_of[base]
        free = root.op == "call_function" or own_buffers.get(root.name) == node.name
        if free and last_read[root] == place and _only_first(node, base, root_of):
            node.meta[IN_PLACE_OF] = 0
            modified = True
    return modified


def _roots(nodes: list[Node]) -> dict[Node, Node]:
    """Return the nodes whose memory each node may alias; a view may be planned into its source."""
    found: dict[Node, Node] = {}
    for node in nodes:
        source = node.args[0] if node.args else None
        shares = node.op == "call_function" and isinstance(source, Node) and _may_share(node)
        found[node] = found[source] if shares and isinstance(source, Node) else node
    return found


def _may_share(node: Node) -> bool:
    below: Any = getattr(node.target, "op", None)
    return isinstance(below, OpOverload) and torch.Tag.view_copy in below.tags


def _last_reads(nodes: list[Node], root_of: dict[Node, Node]) -> dict[Node, int]:
    found: dict[Node, int] = {}
    for place, node in enumerate(nodes):
        for read in nodes_in((node.args, node.kwargs)):
            found[root_of[read]] = place
    return found


def _written_buffers(program: ExportedProgram) -> dict[str, str]:
    """Return by buffer placeholder the node whose result is written back into it."""
    signature = program.graph_signature
    names = {s.target: s.arg.name for s in signature.input_specs if s.kind == InputKind.BUFFER}
    return {
        names[spec.target]: spec.arg.name
        for spec in signature.output_specs
        if spec.kind == OutputKind.BUFFER_MUTATION and spec.target in names
    }


def _only_first(node: Node, base: Node, root_of: dict[Node, Node]) -> bool:
    """Return whether only the first argument aliases that memory, and the result fits into it."""
    others = nodes_in((node.args[1:], node.kwargs))
    if any(root_of[other] is root_of[base] for other in others):
        return False
    value = base.meta["val"]
    return same_kind(value, node.meta["val"]) and is_contiguous(value)
