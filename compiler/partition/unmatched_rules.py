"""Rules that match nothing, mostly misspelled names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.partition.rules import (
    PartitionRules,
    fits_any,
    modules_around,
    names_behind,
    op_pattern,
    operators_behind,
)
from schema.recipe.assignments import split_pair

_NamesOf = Callable[[torch.fx.Node], list[str]]
_KINDS: tuple[tuple[str, _NamesOf, tuple[str, ...]], ...] = (
    ("ops", operators_behind, ("deny_ops", "allow_ops", "alone_ops")),
    (
        "nodes",
        names_behind,
        (
            "deny_nodes",
            "allow_nodes",
            "force_nodes",
            "cut_before",
            "cut_after",
            "alone_nodes",
        ),
    ),
    ("modules", modules_around, ("deny_modules", "allow_modules")),
)


def unmatched_rules(
    rules: PartitionRules, programs: Iterable[ExportedProgram]
) -> list[tuple[str, str]]:
    """Return the rules about operators, nodes, modules and dtypes that match no call.

    Args:
        rules: of a partitioner
        programs: as exported, and as lowered: a rule may name nodes of either

    Returns: the name of the rule, as ``deny_ops``, and its unmatched value; ``deny_dtypes`` for a
        dtype in ``deny_tensors``
    """
    nodes = [node for program in programs for node in _calls(program)]
    found: list[tuple[str, str]] = []
    for kind, names_of, members in _KINDS:
        given = [(member, one) for member in members for one in getattr(rules, member)]
        if not given:
            continue
        names = {name for node in nodes for name in names_of(node)}
        for member, one in given:
            if not fits_any(names, _pattern(kind, member, one)):
                found.append((member, str(one)))
    requested = dict.fromkeys(name for rule in rules.deny_tensors for name in rule.dtypes)
    there = set(map(_dtypes_of, nodes)) if requested else set[frozenset[str]]()
    seen = frozenset[str]().union(*there)
    return found + [("deny_dtypes", name) for name in requested if name not in seen]


def _dtypes_of(node: torch.fx.Node) -> frozenset[str]:
    """Return the dtypes of the inputs and results of a node, as ``float16``."""
    values: list[Any] = []
    for each in (node, *node.all_input_nodes):
        value = each.meta.get("val")
        values += value if isinstance(value, (list, tuple)) else (value,)
    tensors = (value for value in values if isinstance(value, torch.Tensor))
    return frozenset(str(tensor.dtype).removeprefix("torch.") for tensor in tensors)


def _pattern(kind: str, member: str, given: Any) -> str:  # noqa: ANN401 - an operator or a name
    if kind == "ops":
        return op_pattern(given)
    return split_pair(given)[0] if member == "force_nodes" else given


def _calls(program: ExportedProgram) -> Iterable[torch.fx.Node]:
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            yield from (node for node in module.graph.nodes if node.op == "call_function")
