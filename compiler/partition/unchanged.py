"""Whether a partitioner left the graph it was given as it was."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.edge.templates import walk
from compiler.partition.interface import name_of
from compiler.partition.tags import PartitionContractError


def check_unchanged(partitioner: object, given: ExportedProgram, tagged: ExportedProgram) -> None:
    """Compare a tagged program with the one it is a copy of.

    Raises: PartitionContractError naming the first node that differs
    """
    difference = _difference(given.graph_module, tagged.graph_module)
    if not difference and given.graph_signature != tagged.graph_signature:
        difference = "its signature differs"
    if difference:
        raise PartitionContractError(
            f"The partitioner {name_of(partitioner)} should not modify the graph module: "
            f"{difference}"
        )


def _difference(given: torch.fx.GraphModule, tagged: torch.fx.GraphModule) -> str:
    before, after = list(given.graph.nodes), list(tagged.graph.nodes)
    for old, new in zip(before, after, strict=False):
        if _facts(old) != _facts(new):
            return f"{old.format_node()} has become {new.format_node()}"
        inner = _inner(given, old)
        if inner is not None:
            found = _inner(tagged, new)
            text = _difference(inner, found) if found is not None else "it is gone"
            if text:
                return f"in {old.name}, {text}"
    if len(before) != len(after):
        return f"it has {len(after)} nodes, was given {len(before)}"
    return ""


def _inner(module: torch.fx.GraphModule, node: torch.fx.Node) -> torch.fx.GraphModule | None:
    found = getattr(module, str(node.target), None) if node.op == "get_attr" else None
    return found if isinstance(found, torch.fx.GraphModule) else None


def _facts(node: torch.fx.Node) -> Any:  # noqa: ANN401
    args, kwargs = walk(_named, (tuple(node.args), dict(node.kwargs)))
    return node.op, node.name, str(node.target), args, kwargs


def _named(leaf: Any) -> Any:  # noqa: ANN401
    if isinstance(leaf, torch.fx.Node):
        return "node", leaf.name
    return repr(leaf)
