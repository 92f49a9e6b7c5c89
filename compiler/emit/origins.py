"""The recorded nodes that instructions come from, by names that hold across nested graphs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from schema.etrecord.parts.origins import Origins


class Homes:
    """Names nodes as a record does, prefixed by the nodes of their nested graphs."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        self._prefixes = dict(_prefixes(module, ""))

    def __call__(self, node: torch.fx.Node) -> str:
        """Return the name of a node, in nested graphs as in ``cond/0/NAME``."""
        return self.inside(node) + node.name

    def inside(self, node: torch.fx.Node) -> str:
        """Return the name prefix of the graph that contains a node."""
        return self._prefixes.get(node.graph, "")


def _prefixes(module: Any, prefix: str) -> Iterator[tuple[torch.fx.Graph, str]]:  # noqa: ANN401
    yield module.graph, prefix
    for node in module.graph.nodes:
        if node.op != "call_function":
            continue
        homes = [
            one for one in node.args if isinstance(one, torch.fx.Node) and one.op == "get_attr"
        ]
        bodies = [getattr(module, str(one.target), None) for one in homes]
        graphs = [body for body in bodies if isinstance(body, torch.fx.GraphModule)]
        for place, body in enumerate(graphs):
            yield from _prefixes(body, f"{prefix}{node.name}/{place}/")


def note_delegate(
    origins: Origins,
    step: int,
    prefix: str,
    module: Any,  # noqa: ANN401 - a LoweredBackendModule
) -> None:
    """Record the results of a delegate call and the nodes of its backend's identifiers.

    Args:
        origins: of the method
        step: the call
        prefix: of the names in the graph of the call
        module: the lowered module
    """
    results: Any = module.original_module.graph.output_node().args[0]
    origins.results[step] = tuple(f"{prefix}{value}" for value in results)
    meta: dict[str, Any] = module.meta or {}
    inside: dict[str, tuple[str, ...]] = meta.get("origins") or {}
    origins.inside[step] = {
        str(key): tuple(prefix + name for name in names) for key, names in inside.items()
    }
