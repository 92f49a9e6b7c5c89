"""Node metadata as JSON of a record, in which every value is a string."""

from __future__ import annotations

import json
from typing import Any

import torch

from compiler.record.graph_ids import GraphIds


class MetadataWriter:
    """Writes the metadata of the nodes of one graph; equal module stacks are written once."""

    def __init__(self, numbers: GraphIds, *, handles: bool) -> None:
        """Initialize without sources.

        Args:
            numbers: ids of the graphs that nodes come from
            handles: whether nodes have debug handles; the stock tool requires one on each
        """
        self.numbers = numbers
        self._handles = handles
        self._stacks: dict[int, str] = {}
        self._sources: dict[int, str] = {}

    def of(self, node: torch.fx.Node) -> dict[str, str]:
        """Return the metadata of a node."""
        meta = node.meta
        found: dict[str, str] = {}
        if meta.get("stack_trace"):
            found["stack_trace"] = meta["stack_trace"]
        if meta.get("nn_module_stack"):
            found["nn_module_stack"] = self._stack(meta["nn_module_stack"])
        if meta.get("torch_fn"):
            found["torch_fn"] = ";".join(meta["torch_fn"])
        if meta.get("from_node"):
            found["from_node"] = self._source(meta["from_node"])
        if self._handles:
            found["debug_handle"] = str(meta.get("debug_handle", 0))
        return found

    def _stack(self, stack: dict[str, tuple[str, Any]]) -> str:
        if id(stack) not in self._stacks:
            entries = [f"{key},{path},{_type(kind)}" for key, (path, kind) in stack.items()]
            self._stacks[id(stack)] = ";".join(entries)
        return self._stacks[id(stack)]

    def _source(self, sources: list[Any]) -> str:
        if id(sources) not in self._sources:
            self._sources[id(sources)] = json.dumps([self._plain(source) for source in sources])
        return self._sources[id(sources)]

    def _plain(self, source: Any) -> dict[str, Any]:  # noqa: ANN401 - torch's NodeSource
        return {
            "name": source.name,
            "target": source.target,
            "graph_id": self.numbers.of(source.graph_id),
            "pass_name": source.pass_name,
            "action": "+".join(action.name.lower() for action in source.action),
            "from_node": [self._plain(below) for below in source.from_node],
        }


def _type(kind: Any) -> str:  # noqa: ANN401 - a class, or its name
    return kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
