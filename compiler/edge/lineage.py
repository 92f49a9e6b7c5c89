"""What a new node inherits from the node it comes from: names, source lines and debug handle."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx.traceback import NodeSource, NodeSourceAction

PASS_NAME = "to_edge"
_INHERITED = ("stack_trace", "nn_module_stack", "source_fn_stack", "torch_fn", "custom")


class Lineage:
    """Numbers the oldest ancestors of one program's nodes from 1, in the order they are met."""

    def __init__(self) -> None:
        self._handles: dict[tuple[str, int], int] = {}

    def metadata(self, node: torch.fx.Node) -> dict[str, Any]:
        """Return the metadata of all nodes made from this one."""
        kept = {name: node.meta[name] for name in _INHERITED if name in node.meta}
        source = _source(node)
        root = _oldest(source)
        handle = self._handles.setdefault(root, len(self._handles) + 1)
        return {**kept, "from_node": [source], "debug_handle": handle}


def _source(node: torch.fx.Node) -> NodeSource:
    # The chain is shared, not copied as NodeSource(node) would: nothing changes it.
    source = NodeSource(None, PASS_NAME, NodeSourceAction.CREATE)
    source.node_info = NodeSource.NodeInfo(node.name, str(node.target), id(node.graph))
    source.from_node = list(node.meta.get("from_node") or ())
    return source


def _oldest(source: NodeSource) -> tuple[str, int]:
    # Export's own bookkeeping names graphs of tracing, in which one node may stand for many.
    return source.name, source.graph_id
