"""Applies the user's rules to a stock partitioner, with a verdict on every node it processed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from compiler.partition.logged_reasons import harvesting
from compiler.partition.quantized_regions import whole_regions
from inspector.toolchain.stock.nodes import Node, calls_in, operator_of, unit_of
from inspector.toolchain.stock.rules import TAG, StockRules, ask_less, asking, cut_anew
from inspector.toolchain.stock.verdicts import PartitionerLog, Verdict, claimed, judge
from schema.vendors.table import takes_whole_regions


@dataclass
class Partitioned:
    """The decisions of the partitioners of one method.

    Attributes:
        verdicts: of all of them, in order
        seconds: duration
        began: start time of the first one, 0 before
        origins: by name of a processed node, its exported node
    """

    verdicts: list[Verdict] = field(default_factory=list[Verdict])
    seconds: float = 0.0
    began: float = 0.0
    origins: dict[str, str] = field(default_factory=dict[str, str])


def steered(
    partitioner: Any,  # noqa: ANN401 - of the package
    rules: StockRules,
    partitioned: Partitioned,
    notify: Callable[..., None],
) -> Any:  # noqa: ANN401
    """Return the partitioner, changed so that it follows the rules and its decisions are noted."""
    answered: dict[Node, bool] = {}
    dropped: set[str] = set()
    ask_less(partitioner, rules, answered, dropped)
    partition = partitioner.partition

    def wrapped(program: Any) -> Any:  # noqa: ANN401
        start = time.perf_counter()
        partitioned.began = partitioned.began or start
        answered.clear()
        calls = [node for node, _ in calls_in(program.graph_module)]
        names = {name for node in calls for name in (node.name, operator_of(node))}
        kept_out = _kept_out(program.graph_module, rules, partitioner) if rules.apply else {}
        with harvesting(names, notify, prints=True) as harvest, asking(kept_out):
            result = partition(program)
        module, tags = result.tagged_exported_program.graph_module, result.partition_tags
        vetoed: dict[Node, tuple[str, str]] = {}
        if rules.apply:
            vetoed = {node: why for node, why in kept_out.items() if TAG not in node.meta}
            vetoed.update(cut_anew(module, rules, tags, kept_out))
            vetoed.update({unit_of(node): why for node, why in vetoed.items()})
            dropped.update(node.name for node in vetoed)
        for node, path in calls_in(module):
            partitioned.origins[path] = rules.origin(node)
        listener = PartitionerLog(harvest.found, answered, vetoed)
        earlier = claimed(partitioned.verdicts, type(partitioner).__name__)
        partitioned.verdicts += [*judge(module, partitioner, tags, listener), *earlier]
        partitioned.seconds += time.perf_counter() - start
        return result

    partitioner.partition = wrapped
    return partitioner


def _kept_out(
    module: Any,  # noqa: ANN401
    rules: StockRules,
    partitioner: Any,  # noqa: ANN401
) -> dict[Node, tuple[str, str]]:
    """Return why nodes were never offered to the rules of a partitioner."""
    nodes = dict.fromkeys(unit_of(node) for node, _ in calls_in(module))
    vetoed = {node: why for node in nodes if (why := rules.veto(node)) is not None}
    backend = getattr(getattr(partitioner, "delegation_spec", None), "backend_id", "")
    if takes_whole_regions(str(backend)):
        vetoed.update(whole_regions(vetoed, nodes, operator_of))
    return vetoed
