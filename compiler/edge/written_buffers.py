"""Buffers that a method writes, and what that means for the other methods of its program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.utils._pytree import tree_leaves

Node = torch.fx.Node
WRITTEN_ELSEWHERE = "written_elsewhere"
"""Metadata of a placeholder: another method writes this buffer, so its value may change."""


def written_by_others(programs: Mapping[str, ExportedProgram]) -> dict[str, frozenset[str]]:
    """Return by method the buffers that other methods write.

    Where methods share their state, these are not constants of a method that only reads them.

    Args:
        programs: as exported, writes in place included
    """
    if len(programs) < 2:
        return dict.fromkeys(programs, frozenset())
    written = {name: written_buffers(program) for name, program in programs.items()}
    return {
        name: frozenset[str]().union(*(found for other, found in written.items() if other != name))
        for name in programs
    }


def written_buffers(program: ExportedProgram) -> frozenset[str]:
    """Return the names of the buffers that a program writes, also in place or through views."""
    signature = program.graph_signature
    source: dict[Node, frozenset[str]] = {}
    found = set(signature.buffers_to_mutate.values())
    for node in program.graph.nodes:
        if node.op == "placeholder" and node.name in signature.inputs_to_buffers:
            source[node] = frozenset((signature.inputs_to_buffers[node.name],))
        elif node.op == "call_function" and not source.keys().isdisjoint(node.all_input_nodes):
            found.update(_written(node, source))
            if _may_alias(node):
                source[node] = _sources(node.all_input_nodes, source)
    return frozenset(found)


def mark_written_elsewhere(program: ExportedProgram, buffers: frozenset[str]) -> None:
    """Mark the placeholders of these buffers, but those that the program writes itself."""
    signature = program.graph_signature
    own = set(signature.buffers_to_mutate.values())
    for node in program.graph.nodes:
        target = signature.inputs_to_buffers.get(node.name) if node.op == "placeholder" else None
        if target in buffers and target not in own:
            node.meta[WRITTEN_ELSEWHERE] = True


def _may_alias(node: Node) -> bool:
    """Return whether a result may be a view of an argument: known to be none by the schema."""
    schema: Any = getattr(node.target, "_schema", None)
    return schema is None or any(one.alias_info is not None for one in schema.returns)


def _written(node: Node, source: Mapping[Node, frozenset[str]]) -> frozenset[str]:
    """Return the buffers behind the arguments that a call writes."""
    schema: Any = getattr(node.target, "_schema", None)
    if schema is None or not schema.is_mutable:
        return frozenset()
    found: list[Any] = []
    for place, formal in enumerate(schema.arguments):
        if formal.alias_info is not None and formal.alias_info.is_write:
            found += node.args[place : place + 1]
            found.append(node.kwargs.get(formal.name))
    return _sources([one for one in tree_leaves(found) if isinstance(one, Node)], source)


def _sources(nodes: list[Node], source: Mapping[Node, frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*(source.get(node, frozenset[str]()) for node in nodes))
