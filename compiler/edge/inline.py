"""Inlining of a template into a graph."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from compiler.dialect.ops import edge_op
from compiler.dialect.templates import Input, ScalarConstant, StepResult, Template, nodes_in, walk
from compiler.edge.symbols import Symbols
from compiler.untyped import SYMBOLIC


def inline(
    graph: torch.fx.Graph,
    template: Template,
    call: tuple[Any, dict[str, Any]],
    metadata: dict[str, Any],
    constant: Callable[[ScalarConstant], torch.fx.Node],
    symbols: Symbols,
) -> Any:  # noqa: ANN401 - a node, a number, or nested lists of them
    """Create the nodes of a template and return the node of its result.

    Args:
        graph: the new graph, at its insertion point
        template: the steps
        call: arguments and keyword arguments in the new graph
        metadata: what every new node inherits
        constant: creates the placeholder of a lifted scalar
        symbols: creates the nodes of symbolic sizes
    """
    inputs = nodes_in(call)
    built: list[Any] = []
    nothing: dict[str, Any] = {}

    def resolve(leaf: Any) -> Any:  # noqa: ANN401
        if isinstance(leaf, StepResult):
            return built[leaf.index]
        if isinstance(leaf, Input):
            return inputs[leaf.index]
        if isinstance(leaf, ScalarConstant):
            return constant(leaf)
        return symbols.node(leaf) if isinstance(leaf, SYMBOLIC) else leaf

    for step in template.steps:
        target = step.target if step.target is operator.getitem else edge_op(step.target)
        args = walk(resolve, step.args)
        kwargs: Any = walk(resolve, step.kwargs) if step.kwargs else nothing
        node = graph.create_node("call_function", target, args, kwargs)
        node.meta = {**metadata, "val": step.value}
        built.append(node)
    result: Any = walk(resolve, template.result)
    return result
