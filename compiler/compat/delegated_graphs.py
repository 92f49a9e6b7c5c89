"""Delegated graphs as strings, and their parts."""

from __future__ import annotations

import operator
import sys
from typing import Any

import torch

from compiler.dialect.delegate_call import executorch_call_delegate, is_lowered_module
from compiler.interface.backend import CompileSpec

Node = torch.fx.Node


def get_lowered_backend_modules(graph_module: torch.fx.GraphModule) -> list[Any]:
    """Return the lowered modules that a graph calls, in order, each once."""
    found = [getattr(graph_module, str(node.target)) for node in get_delegates(graph_module.graph)]
    return [module for place, module in enumerate(found) if module not in found[:place]]


def get_delegates(graph: torch.fx.Graph) -> list[Node]:
    """Return the nodes that name lowered modules."""
    calls = [node for node in graph.nodes if node.target is executorch_call_delegate]
    homes: list[Any] = [call.args[0] for call in calls]
    return list(dict.fromkeys(homes))


def get_non_lowered_nodes(graph: torch.fx.Graph) -> list[Node]:
    """Return the calls that are neither delegates nor ``getitem`` of their results."""
    return [
        node
        for node in graph.nodes
        if node.op == "call_function"
        and node.target is not executorch_call_delegate
        and not _takes_result(node)
    ]


def _takes_result(node: Node) -> bool:
    source = node.args[0] if node.args else None
    if node.target is not operator.getitem or not isinstance(source, Node):
        return False
    return source.target is executorch_call_delegate


def get_delegated_payload(
    graph_module: torch.fx.GraphModule,
) -> dict[str, tuple[str, list[CompileSpec], bytes]]:
    """Return backend id, settings and payload of each lowered module, by the name of its node."""
    found: dict[str, tuple[str, list[CompileSpec], bytes]] = {}
    for node in get_delegates(graph_module.graph):
        module: Any = getattr(graph_module, str(node.target))
        found[node.name] = (module.backend_id, module.compile_specs, module.processed_bytes)
    return found


def get_control_flow_submodules(
    graph_module: torch.fx.GraphModule,
) -> list[tuple[str, torch.fx.GraphModule, Node]]:
    """Return name, body and call of every body of control flow that a graph calls."""
    found: list[tuple[str, torch.fx.GraphModule, Node]] = []
    for node in graph_module.graph.nodes:
        inner = getattr(graph_module, str(node.target), None) if node.op == "get_attr" else None
        if isinstance(inner, torch.fx.GraphModule):
            found += [(str(node.target), inner, user) for user in node.users]
    return found


def format_delegated_graph(graph_module: torch.fx.GraphModule) -> str:
    """Return a graph as a string; below each lowered module its backend and original graph."""
    return "\n".join(("graph():", *_lines(graph_module, "  "))) + "\n"


def print_delegated_graph(graph_module: torch.fx.GraphModule) -> None:
    """Print a graph with the graphs of its delegates."""
    sys.stdout.write(format_delegated_graph(graph_module) + "\n")


def _lines(graph_module: torch.fx.GraphModule, indent: str) -> list[str]:
    lines: list[str] = []
    for node in graph_module.graph.nodes:
        lines.append(f"{indent}{node.format_node()}")
        module: Any = getattr(graph_module, str(node.target), None) if node.op == "get_attr" else 0
        if is_lowered_module(module):
            inside = module.original_module.graph_module
            lines += [
                f"{indent}  backend_id: {module.backend_id}",
                f"{indent}  lowered graph():",
                *_lines(inside, f"{indent}    "),
            ]
    return lines
