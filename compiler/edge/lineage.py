"""Metadata that a new node inherits from its source node: names, source lines, debug handle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.fx.traceback import NodeSource, NodeSourceAction

PASS_NAME = "to_edge"
_INHERITED = ("stack_trace", "nn_module_stack", "source_fn_stack", "torch_fn", "custom")


class Lineage:
    """Numbers the oldest ancestors of one program's nodes from 1, in order of first use."""

    def __init__(self) -> None:
        self._handles: dict[tuple[str, int], int] = {}

    def metadata(self, node: torch.fx.Node) -> dict[str, Any]:
        """Return the metadata for all nodes that this one is lowered to."""
        kept = {name: node.meta[name] for name in _INHERITED if name in node.meta}
        source = _source(node)
        root = _oldest(source)
        handle = self._handles.setdefault(root, len(self._handles) + 1)
        return {**kept, "from_node": [source], "debug_handle": handle}


def renumber(graph: torch.fx.Graph, bodies: Mapping[str, Any]) -> None:
    """Renumber debug handles from 1 without gaps, in node order, bodies last.

    The stock compiler also numbers only the remaining nodes, so that traces and records of both use
    the same handles for the same operators.
    """
    numbers: dict[int, int] = {}
    queue: list[tuple[torch.fx.Graph, Mapping[str, Any]]] = [(graph, bodies)]
    for nodes, held in queue:
        for node in nodes.nodes:
            handle = node.meta.get("debug_handle")
            if handle and node.op not in ("placeholder", "output"):
                node.meta["debug_handle"] = numbers.setdefault(handle, len(numbers) + 1)
            body = held.get(str(node.target)) if node.op == "get_attr" else None
            if isinstance(body, torch.fx.GraphModule):
                queue.append((body.graph, dict(body.named_children())))


def _source(node: torch.fx.Node) -> NodeSource:
    # The chain is shared, not copied as NodeSource(node) would: nothing changes it.
    source = NodeSource(None, PASS_NAME, NodeSourceAction.CREATE)
    source.node_info = NodeSource.NodeInfo(node.name, str(node.target), id(node.graph))
    source.from_node = list(node.meta.get("from_node") or ())
    return source


def _oldest(source: NodeSource) -> tuple[str, int]:
    # Export's metadata names intermediate tracing graphs, in which one node may stand for many.
    return source.name, source.graph_id
