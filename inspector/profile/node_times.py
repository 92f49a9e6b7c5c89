"""Time of the nodes of a model graph, from the runs of its method.

An operator's time belongs to the node it was joined to. When one event covers several nodes (a
fused kernel, an operator that was decomposed) the first that computes has the time and the others
name it: time is never counted twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.files.session import Session
from inspector.graph.delegation import analyse_delegation
from inspector.graph.model_graph import ModelGraph
from inspector.join.links import Link, link_block
from inspector.profile.attribution import steady_set
from inspector.profile.join_index import JoinIndex, join_index
from inspector.profile.methods import time_of
from inspector.profile.operator_columns import OPERATOR, REST, BlockRows
from inspector.profile.operator_rows import operator_rows
from inspector.trace.timed_blocks import timed_blocks
from inspector.units import NS_PER_MS
from schema.graph import is_compute
from schema.objects.identity_cache import identity_cache

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class NodeTimes:
    """Mean times over the steady runs, in nanoseconds.

    Attributes:
        node_ns: time of each node, NaN where none was measured
        tick_ns: step of the clock that each was measured with, 0 where none was
        part_of: node -> the node whose time it is in
        delegate_ns: delegate -> time of its calls
        method_ns: time of the whole method, NaN when unknown or not the program's
        runs: number of steady runs

    Shapes: node_ns, tick_ns float64[nodes]
    """

    node_ns: Floats
    tick_ns: Floats
    part_of: Mapping[int, int]
    delegate_ns: Mapping[int, float]
    method_ns: float
    runs: int

    def share(self, ns: float) -> float:
        """Return a time as a part of the method's, NaN when that is unknown."""
        return ns / self.method_ns if self.method_ns > 0 else float("nan")


def no_times(nodes: int) -> NodeTimes:
    """Return the times of a graph that was not run."""
    return NodeTimes(np.full(nodes, np.nan), np.zeros(nodes), {}, {}, float("nan"), 0)


@identity_cache
def node_times(session: Session, method: str, graph: ModelGraph) -> NodeTimes:
    """Return the times of a graph's nodes; NaN for all without a trace that fits the method."""
    runs = run_count(session, method) if session.timed_dumps else 0
    parts = [part for part in operator_rows(session, method).parts if part.joined] if runs else []
    if not parts:
        return no_times(len(graph.nodes))
    sums = _NodeSums(graph, join_index(session, method), _recorded_calls(session, method))
    for part in parts:
        sums.take(part)
    whole = None if session.times_with_values else time_of(session, method)
    method_ns = whole.method_ms * NS_PER_MS if whole is not None else float("nan")
    delegates = {index: total / runs for index, total in sums.delegates.items()}
    node_ns, ticks = np.array(sums.nodes, np.float64), np.array(sums.ticks, np.float64)
    return NodeTimes(node_ns / runs, ticks, sums.part_of, delegates, method_ns, runs)


def run_count(session: Session, method: str) -> int:
    """Return how many steady runs of a method there are, over all traces."""
    total = 0
    for block in timed_blocks(session.timed_dumps).blocks:
        inside = bool((block.layout.chain >= 0).any())
        if inside and link_block(session, block).method in (method, None):
            total += int(steady_set(block).sum())
    return total


def _recorded_calls(session: Session, method: str) -> dict[int, int]:
    """Return instruction -> delegate by the record, where no program is open that shows it."""
    if session.program is not None:
        return {}
    facts = (one for one in analyse_delegation(session) if one.method == method)
    return {call: one.index for each in facts for one in each.delegates for call in one.calls}


class _NodeSums:
    """Sums of samples over the runs of all blocks."""

    def __init__(self, graph: ModelGraph, index: JoinIndex, calls: Mapping[int, int]) -> None:
        self._graph, self._index, self._calls = graph, index, calls
        self._by_step = instruction_nodes(graph)
        self.nodes = [math.nan] * len(graph.nodes)
        self.ticks = [0.0] * len(graph.nodes)
        self.part_of: dict[int, int] = {}
        self.delegates: dict[int, float] = {}

    def take(self, part: BlockRows) -> None:
        """Add the operators of a block."""
        timed = np.flatnonzero(part.timed & (part.event >= 0))
        totals: Floats = np.nansum(part.samples[timed][:, part.steady], axis=1)
        kinds, steps = part.kind[timed].tolist(), part.instruction[timed].tolist()
        numbers: list[int] = part.link[timed].tolist()
        links = [part.links[number] for number in numbers]
        events, ticks = part.events[timed].tolist(), part.tick_ns[timed].tolist()
        rows = zip(totals.tolist(), kinds, links, steps, events, ticks, strict=True)
        for total, kind, link, step, event, tick_ns in rows:
            delegate = self._calls.get(step) if link.delegate is None else link.delegate
            if delegate is not None:
                self.delegates[delegate] = self.delegates.get(delegate, 0.0) + total
            if kind == REST or (kind == OPERATOR and delegate is not None):
                continue
            called = kind == OPERATOR and self._graph.source == "program"
            ids = self._by_step.get(step, ()) if called else self._nodes(link, step, event)
            self._spread(ids, total, tick_ns)

    def _nodes(self, link: Link, step: int, event: int) -> list[int]:
        if self._graph.source == "program":
            prefix = f"{link.backend}_{step}/"
            names = tuple(prefix + name for name in link.payload_nodes)
        else:
            names = self._index.event_nodes.get(event, ())
        return [self._graph.by_name[name] for name in names if name in self._graph.by_name]

    def _spread(self, ids: Sequence[int], total: float, tick_ns: float) -> None:
        if not ids:
            return
        main = ids[0]
        if len(ids) > 1:
            nodes = self._graph.nodes
            main = next((one for one in ids if is_compute(nodes[one].node.target)), main)
            self.part_of.update((one, main) for one in ids if one != main)
        known = self.nodes[main]
        self.nodes[main] = total if math.isnan(known) else known + total
        self.ticks[main] = max(self.ticks[main], tick_ns)


def instruction_nodes(graph: ModelGraph) -> dict[int, list[int]]:
    """Return instruction -> nodes of a graph made from a program."""
    found: dict[int, list[int]] = {}
    for node in graph.nodes:
        if node.instruction is not None:
            found.setdefault(node.instruction, []).append(node.id)
    return found
