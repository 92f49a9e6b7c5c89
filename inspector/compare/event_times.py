"""The time of one method of one session, event by event, with the nodes each event covers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from inspector.diff.program import labels
from inspector.files.session import Session
from inspector.graph.model_graph import ModelGraph
from inspector.join.links import BlockLinks, Link, link_block
from inspector.join.node_index import base_operator
from inspector.trace.blocks import Block, trace_blocks
from inspector.trace.event_kinds import (
    CALLS,
    CONTROL,
    DELEGATE_CALL,
    KERNEL_PREFIX,
    inside_delegates,
    named_events,
    whole_runs,
)
from inspector.trace.timing import is_time, scale_factor
from schema.backends import short_backend
from schema.etdump.events import EventKind

PORTABLE = "portable"


@dataclass(frozen=True, slots=True)
class EventTime:
    """One event: a kernel, a node inside a delegate, or a delegate that tells no more.

    Attributes:
        nodes: ids of the nodes it covers; empty when that is not known
        operator: what it computes
        where: backend, or ``portable``
        ms: median over the runs of all its occurrences in a run
        calls: occurrences in a run
    """

    nodes: tuple[int, ...]
    operator: str
    where: str
    ms: float
    calls: int


@dataclass(frozen=True, slots=True)
class MethodTimes:
    """The time of a method.

    Units: ms, medians over runs

    Attributes:
        method: name
        runs: how many
        whole_ms: of a run
        events: what is known of it, in the order of the trace
        unattributed_ms: the rest
        samples: time of each run
        notes: what could not be used
    """

    method: str
    runs: int
    whole_ms: float
    events: tuple[EventTime, ...]
    unattributed_ms: float
    samples: tuple[float, ...]
    notes: tuple[str, ...] = ()


def logs_tensors(session: Session) -> bool:
    """Return whether the runs of a session logged values, which takes time of its own."""
    runs = (run for dump in session.dumps for run in dump.run_data)
    return any(bool(np.any(run.events.kind == EventKind.DEBUG)) for run in runs)


def method_times(session: Session, method: str, graph: ModelGraph | None) -> MethodTimes | None:
    """Return the time of a method, None when no run of it is known or ticks are no time.

    Of several kinds of runs that with most runs counts.

    Args:
        session: what ran
        method: name
        graph: whose nodes the events are of; None to leave them out
    """
    unit = session.options.source_time_scale
    if not is_time(unit):
        return None
    found: list[tuple[Block, BlockLinks]] = []
    for block in trace_blocks(session.dumps).blocks:
        if whole_runs(block).any():
            links = link_block(session, block)
            if links.method == method:
                found.append((block, links))
    if not found:
        return None
    block, links = max(found, key=lambda each: len(each[0].runs))
    return _Reader(block, links, graph, scale_factor(unit, "ms")).times(method)


class _Reader:
    """Reads the events of one block."""

    def __init__(
        self, block: Block, links: BlockLinks, graph: ModelGraph | None, scale: float
    ) -> None:
        self._block, self._links, self._graph = block, links, graph
        medians = np.median(block.total, axis=0) / scale
        self._ms = np.where(np.isnan(medians), 0.0, medians)
        whole = block.total[:, whole_runs(block)].sum(axis=1) / scale
        self._samples = np.asarray(whole[np.isfinite(whole)], dtype=np.float64)
        self._by_instruction: dict[int, int] = {}
        self._by_delegate: dict[int, list[int]] = {}
        self._calls: dict[int, str] = {}
        for node in graph.nodes if graph is not None else ():
            if node.instruction is not None:
                self._by_instruction.setdefault(node.instruction, node.id)
            if node.delegate is not None:
                self._by_delegate.setdefault(node.delegate, []).append(node.id)
        self._inside = self._inner_events()

    def times(self, method: str) -> MethodTimes | None:
        """Return what is known."""
        if not len(self._samples):
            return None
        events = [event for number in self._outer() for event in self._events(number)]
        whole = float(np.median(self._samples))
        rest = whole - sum(event.ms for event in events)
        notes = ("some delegates count cycles: their inside is left out",) if self._cycles() else ()
        samples = tuple(self._samples.tolist())
        return MethodTimes(method, len(samples), whole, tuple(events), rest, samples, notes)

    def _cycles(self) -> bool:
        return any(
            not is_time("ns", self._links.link(at[0]).backend) for at in self._inside.values()
        )

    def _inner_events(self) -> dict[int, list[int]]:
        layout = self._block.layout
        found: dict[int, list[int]] = {}
        chosen = inside_delegates(self._block) & (layout.instruction != -1) & (layout.last >= 0)
        for event in np.flatnonzero(chosen).tolist():
            found.setdefault(int(layout.instruction[event]), []).append(event)
        return found

    def _outer(self) -> Iterator[int]:
        """Yield the events that are instructions, one each."""
        block = self._block
        layout = block.layout
        known = named_events(block, CALLS)
        own = (layout.chain >= 0) & (layout.last >= 0) & ~inside_delegates(block)
        called = set(layout.instruction[own & known].tolist())
        for event in np.flatnonzero(own).tolist():
            if known[event] or int(layout.instruction[event]) not in called:
                yield event

    def _events(self, event: int) -> Iterator[EventTime]:
        block, links = self._block, self._links
        link = links.link(event)
        name = block.event_name(event)
        number = block.instruction(event)
        calls = int(block.layout.occurrences[event])
        if name == DELEGATE_CALL:
            yield from self._delegated(event, link, number, calls)
            return
        operator = name.removeprefix(KERNEL_PREFIX)
        if links.plan is not None and number is not None:
            known = labels(links.plan)
            operator = base_operator(known[number]) if number < len(known) else operator
        elif link.node and link.nodes:
            operator = self._operators(self._nodes(link, number))
        nodes = () if name in CONTROL else self._nodes(link, number)
        yield EventTime(nodes, operator, PORTABLE, float(self._ms[event]), calls)

    def _delegated(
        self, event: int, link: Link, number: int | None, calls: int
    ) -> Iterator[EventTime]:
        backend = short_backend(link.backend) if link.backend else "delegate"
        inside = self._inside.get(-1 if number is None else number, [])
        whole = float(self._ms[event])
        inner = [(one, self._links.link(one)) for one in inside]
        if not inner or not is_time("ns", link.backend):
            nodes = tuple(self._by_delegate.get(self._delegate(link, number), ()))
            yield EventTime(nodes, f"{backend} delegate", backend, whole, calls)
            return
        for one, its in inner:
            nodes = self._nodes(its, None) or self._payload_nodes(its, number)
            operator = self._operators(nodes) or self._block.event_name(one)
            occurrences = int(self._block.layout.occurrences[one])
            yield EventTime(nodes, operator, backend, float(self._ms[one]), occurrences)
        rest = whole - sum(float(self._ms[one]) for one in inside)
        yield EventTime((), f"{backend} delegate, between its nodes", backend, rest, calls)

    def _delegate(self, link: Link, number: int | None) -> int:
        if link.delegate is not None:
            return link.delegate
        order = sorted(self._links.delegates)
        return order.index(number) if number in order else -1

    def _nodes(self, link: Link, number: int | None) -> tuple[int, ...]:
        if self._graph is None:
            return ()
        if self._graph.source == "record":
            names = (link.node,) if link.node else link.nodes
            found = (self._graph.by_name.get(name) for name in names)
            return tuple(sorted(node for node in found if node is not None))
        own = self._by_instruction.get(number) if number is not None else None
        return (own,) if own is not None else ()

    def _payload_nodes(self, link: Link, number: int | None) -> tuple[int, ...]:
        """Return the nodes of a payload that stands in the graph in place of its call."""
        graph = self._graph
        if graph is None or graph.source == "record" or link.delegate is None:
            return ()
        wanted = set(link.payload_nodes)
        found = (
            node
            for node in self._by_delegate.get(link.delegate, ())
            if graph.nodes[node].name.rpartition("/")[2] in wanted
        )
        del number
        return tuple(sorted(found))

    def _operators(self, nodes: tuple[int, ...]) -> str:
        if self._graph is None:
            return ""
        names = (base_operator(self._graph.nodes[node].node.target) for node in nodes)
        return " + ".join(dict.fromkeys(names))
