"""Patterns in edge graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch.fx.passes.utils.matcher_utils import SubgraphMatcher

Node = torch.fx.Node


def matches_of(
    graph: torch.fx.Graph, patterns: Sequence[torch.fx.Graph], *, ignore_literals: bool = False
) -> list[list[Node]]:
    """Return for each match of each pattern its calls; matches may overlap."""
    found: list[list[Node]] = []
    for pattern in patterns:
        matcher: Any = SubgraphMatcher(pattern, ignore_literals=ignore_literals)
        for match in matcher.match(graph):
            pairs = cast("dict[Node, Node]", match.nodes_map).items()
            found.append([n for p, n in pairs if p.op != "placeholder" and n.op != "placeholder"])
    return found
