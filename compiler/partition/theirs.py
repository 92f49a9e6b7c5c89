"""Reasons that partitioners of the ``executorch`` package tell the package's own helpers.

Those helpers write them to a log that nobody reads. While such a partitioner runs they are noted,
as those of ``compiler.partition.reasons`` are; what the package does with them stays the same.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Generator, Mapping
from typing import Any, cast

import torch

from compiler.partition.reasons import note
from schema.etrecord.verdicts import Outcome

Node = torch.fx.Node
_PACKAGE = "executorch."
_HOME = f"{_PACKAGE}exir.backend.utils"
_DOORS = (("WhyNoPartition", "__call__"), ("WhyNoPartitionReporter", "report_reject"))


@contextlib.contextmanager
def noting_theirs(ours: Mapping[Node, Node] | None = None) -> Generator[None, None, None]:
    """Note what is told to the package's helpers inside.

    Args:
        ours: our node for each the partitioner is shown; None where it is shown ours
    """
    home: Any = sys.modules.get(_HOME)
    before: list[tuple[Any, str, Any]] = []
    for name, method in _DOORS:
        door = getattr(home, name, None)
        told = getattr(door, method, None)
        if told is not None:
            before.append((door, method, told))
            setattr(door, method, _listening(told, ours))
    try:
        yield
    finally:
        for door, method, told in before:
            setattr(door, method, told)


def _listening(told: Callable[..., Any], ours: Mapping[Node, Node] | None) -> Callable[..., Any]:
    def listening(door: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        said: dict[str, Any] = {**dict(zip(("node", "reason"), args, strict=False)), **kwargs}
        node, reason = said.get("node"), said.get("reason")
        if isinstance(node, Node) and isinstance(reason, str):
            logger: Any = getattr(door, "logger", None)
            rule = str(getattr(logger, "name", type(door).__name__)).removeprefix(_PACKAGE)
            mine = node if ours is None else ours.get(node, node)
            note(mine, rule, Outcome.REJECTED, reason, weak=True)  # the first word counts there
        return told(door, *args, **kwargs)

    return listening


def twins(shown: torch.fx.GraphModule, ours: torch.fx.GraphModule) -> dict[Node, Node]:
    """Return the node of one graph, bodies included, that stands for each of another."""
    found = dict(zip(shown.graph.nodes, ours.graph.nodes, strict=True))
    bodies = dict(ours.named_children())
    for name, child in shown.named_children():
        if isinstance(child, torch.fx.GraphModule):
            found |= twins(child, cast("Any", bodies[name]))
    return found
