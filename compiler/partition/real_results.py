"""Partitions of backends that return reals where a program has stored integers.

OpenVINO's front end computes a quantize whose integers are a result as reals rounded to their
steps; the stock runtime refuses to write these into the integers of the program (error 0x1).
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from compiler.interface.partitioner import DelegationSpec
from compiler.partition.quantized_regions import is_dequantize, is_quantization
from compiler.partition.reasons import note, operator_of
from compiler.partition.tags import set_tag, tag_of
from compiler.partition.verdicts import calls_in
from schema.etrecord.parts.verdicts import NodeOutcome
from schema.vendors.table import vendors_of

_WHY = "its integers leave the partition, whose backend returns reals there"


def keep_integers_inside(module: torch.fx.GraphModule, specs: dict[str, DelegationSpec]) -> None:
    """Let no quantized integers leave partitions whose backend returns reals.

    A dequantize goes into the partition of the quantize that it reads: it has no other inputs, so
    that no cycle comes about. A quantize whose integers are read elsewhere stays out.

    Args:
        module: tagged; changed, with the bodies of its control flow
        specs: of each tag; without those that lost all their nodes afterwards
    """
    named = {tag for tag, spec in specs.items() if _returns_reals(spec.backend_id)}
    nodes = [node for node, _ in calls_in(module)] if named else []
    before = set(map(tag_of, nodes))
    for node in nodes:
        tag = tag_of(node)
        if tag not in named or not is_quantization(operator_of(node)) or not _is_stored(node):
            continue
        others = [user for user in node.users if tag_of(user) != tag]
        if all(_is_moved(one, specs, specs[tag].backend_id) for one in others):
            for one in others:
                set_tag(one, tag)
        else:
            set_tag(node, None)
            note(node, "quantization", NodeOutcome.REJECTED, _WHY)
    for tag in named & (before - set(map(tag_of, nodes))):
        del specs[tag]


def leave_once(module: torch.fx.GraphModule, specs: Mapping[str, DelegationSpec]) -> None:
    """Let equal dequantizes of a value leave their partition as one of them.

    They are one tensor for OpenVINO's front end, which refuses it as two results.

    Args:
        module: tagged; changed, with the bodies of its control flow
        specs: of each tag
    """
    named = {tag for tag, spec in specs.items() if _returns_reals(spec.backend_id)}
    first: dict[object, torch.fx.Node] = {}
    for node in [one for one, _ in calls_in(module)] if named else []:
        tag = tag_of(node)
        outside = [user for user in node.users if tag_of(user) != tag]
        if tag not in named or not outside or not is_dequantize(operator_of(node)):
            continue
        key = node.graph, tag, node.target, str((node.args, node.kwargs))
        kept = first.setdefault(key, node)
        if kept is not node:
            node.replace_all_uses_with(kept, outside.__contains__)
            if not node.users:
                node.graph.erase_node(node)


def _returns_reals(backend_id: str) -> bool:
    return any(one.real_results for one in vendors_of(backend_id))


def _is_stored(node: torch.fx.Node) -> bool:
    """Return whether a result is of stored integers."""
    dtype = getattr(node.meta.get("val"), "dtype", None)
    return isinstance(dtype, torch.dtype) and not dtype.is_floating_point


def _is_moved(node: torch.fx.Node, specs: dict[str, DelegationSpec], backend_id: str) -> bool:
    """Return whether a node is a dequantize of the same backend that reads nothing else."""
    spec = specs.get(tag_of(node) or "") if node.op == "call_function" else None
    alone = len(node.all_input_nodes) == 1 and is_quantization(operator_of(node))
    return alone and spec is not None and spec.backend_id == backend_id
