"""Rules that fit nothing: most often a name that was written wrongly."""

from __future__ import annotations

from collections.abc import Callable, Iterable

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
_KINDS: tuple[tuple[str, _NamesOf], ...] = (
    ("ops", operators_behind),
    ("nodes", names_behind),
    ("modules", modules_around),
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
    for kind, names_of in _KINDS:
        given = [
            (f"{way}_{kind}", one) for way in ("deny", "allow") for one in _of(rules, way, kind)
        ]
        if not given:
            continue
        names = {name for node in nodes for name in names_of(node)}
        for rule, one in given:
            pattern = op_pattern(one) if kind == "ops" else one
            if not fits_any(names, pattern):
                found.append((rule, str(one)))
    return found


def _of(rules: PartitionRules, way: str, kind: str) -> tuple[str, ...]:
    return tuple(getattr(rules, f"{way}_{kind}"))


def _calls(program: ExportedProgram) -> Iterable[torch.fx.Node]:
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            yield from (node for node in module.graph.nodes if node.op == "call_function")
