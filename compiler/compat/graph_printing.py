"""Graphs as strings with one node marked."""

from __future__ import annotations

from typing import Any

import torch

from compiler.errors import source_line


def add_cursor_to_graph(graph: torch.fx.Graph, finding_node: torch.fx.Node) -> str:
    """Return a graph as a string with an arrow at a node."""
    lines: list[str] = ["graph():"]
    for node in graph.nodes:
        mark = "--> " if node is finding_node else "    "
        lines.append(f"{mark}{_shown(node)}")
    return "\n".join(lines)


def inspect_node(graph: torch.fx.Graph, node: torch.fx.Node) -> str:
    """Return a graph with an arrow at a node, and the facts about the node.

    Raises: ValueError if the node is not of that graph
    """
    if node.graph is not graph:
        raise ValueError(f"{node.name} is not a node of this graph")
    lines = [
        "Here is the node in the graph module:",
        add_cursor_to_graph(graph, node),
        f"This node {node} has metadata of:",
    ]
    for key in ("val", "spec", "debug_handle", "delegation_tag"):
        if key in node.meta:
            lines.append(f"{key}: {node.meta[key]}")
    modules: dict[str, tuple[Any, Any]] = node.meta.get("nn_module_stack") or {}
    paths = [str(entry[0]) for entry in modules.values() if entry[0]]
    if paths:
        lines.append(f"module: {paths[-1]}")
    line = source_line(node)
    if line:
        lines.append(f"source: {line}")
    trace = node.meta.get("stack_trace")
    lines.append("The node stacktrace:")
    lines += ["Traceback (most recent call last):", trace] if trace else ["none"]
    return "\n".join(lines)


def _shown(node: torch.fx.Node) -> str:
    if node.op == "output":
        return f"return {node.args[0]}"
    return node.format_node() or node.name
