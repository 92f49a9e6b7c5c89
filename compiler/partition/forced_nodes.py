"""Forced nodes: those that a partitioner dropped for their size are tagged, others are reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.interface.partitioner import TAG, DelegationSpec
from compiler.partition.reasons import Reason, note, noted
from compiler.partition.regions import unit_of
from compiler.partition.tags import set_tag, tag_of
from schema.etrecord.parts.verdicts import NodeOutcome

Node = torch.fx.Node
NOT_FORCED = "it cannot be forced in"
_DROPPED = (NodeOutcome.TOO_SMALL, NodeOutcome.CYCLE)
_UNKNOWN = Reason(
    "force_nodes", NodeOutcome.NO_RULE, "the partitioner did not take it, without a reason"
)


def with_forced(
    program: ExportedProgram,
    specs: Mapping[str, DelegationSpec],
    is_forced: Callable[[Node], bool],
    default: DelegationSpec | None,
) -> dict[str, DelegationSpec]:
    """Tag forced nodes that were dropped for their size or a cycle, note why others stay outside.

    Args:
        program: tagged by a partitioner; changed
        specs: delegation spec of each tag
        is_forced: whether the user forces a node
        default: delegation spec of the partitioner, None if unknown

    Returns: delegation spec of each tag afterwards
    """
    found = dict(specs)
    kinds = [*{spec.backend_id: spec for spec in specs.values()}.values()]
    spec = kinds[0] if len(kinds) == 1 else default
    for node in _calls(program.graph_module):
        if tag_of(node) in specs or unit_of(node) is not node or not is_forced(node):
            continue
        reason = noted(node) or _UNKNOWN
        if reason.outcome in _DROPPED and spec is not None:
            tag = _free(found)
            found[tag] = spec
            set_tag(node, tag)
            node.meta[TAG] = tag
            text = f"forced by the user, though {reason.text}"
            note(node, reason.rule, NodeOutcome.DELEGATED, text)
        else:
            note(node, reason.rule, reason.outcome, f"{NOT_FORCED}: {reason.text}")
    return found


def _calls(module: torch.fx.GraphModule) -> Iterator[Any]:
    for inner in module.modules():
        if isinstance(inner, torch.fx.GraphModule):
            yield from (node for node in inner.graph.nodes if node.op == "call_function")


def _free(taken: Mapping[str, Any]) -> str:
    count = 0
    while f"forced{count}" in taken:
        count += 1
    return f"forced{count}"
