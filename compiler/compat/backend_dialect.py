"""Operators of the backend dialect in graphs that passes of users have changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from compiler.dialect.ops import edge_op
from compiler.passes.base import PassBase, PassResult
from compiler.untyped import OpOverload


class EdgeToBackendOpsPass(PassBase):
    """Replaces torch overloads that passes have inserted by ``ops.backend.NAMESPACE.NAME``.

    Operators on sizes remain Python functions: they become ``executorch_prim`` when the program is
    emitted.
    """

    def call(self, graph_module: torch.fx.GraphModule) -> Any:  # noqa: ANN401 - a PassResult
        """Change a graph and its subgraphs in place."""
        for module in graph_module.modules():
            if isinstance(module, torch.fx.GraphModule):
                _replace(module)
        return PassResult(graph_module, True)


def trace_and_lower_to_edge_ops(function: Callable[..., Any]) -> torch.fx.GraphModule:
    """Return the graph of a function with edge operators, for use as a pattern."""
    traced: Any = torch.fx
    module: torch.fx.GraphModule = traced.symbolic_trace(function)
    _replace(module)
    return module


def _replace(module: torch.fx.GraphModule) -> None:
    for node in module.graph.nodes:
        if node.op == "call_function" and isinstance(node.target, OpOverload):
            node.target = edge_op(node.target)
    module.recompile()
