"""Rules that fit nothing: most often a name that was written wrongly."""

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
    """Return the rules about operators, nodes and modules that fit no call of any program.

    Args:
        rules: of a partitioner
        programs: as exported, and as lowered: a rule may name what is in either

    Returns: the name of the rule, as ``deny_ops``, and what it names
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
    return found


def _pattern(kind: str, member: str, given: Any) -> str:  # noqa: ANN401 - an operator or a name
    if kind == "ops":
        return op_pattern(given)
    return given.partition("=")[0] if member == "force_nodes" else given


def _calls(program: ExportedProgram) -> Iterable[torch.fx.Node]:
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            yield from (node for node in module.graph.nodes if node.op == "call_function")
