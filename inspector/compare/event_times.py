"""The time of one method of one session, event by event, with the nodes each event covers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from inspector.compare.program_changes import labels
from inspector.files.session import Session
from inspector.graph.model_graph import ModelGraph
from inspector.join import record_maps
from inspector.join.links import Link
from inspector.join.node_index import base_operator
from inspector.profile.attribution import mean, method_runs
from inspector.profile.operator_columns import INNER, LEFT, REST, BlockRows
from inspector.profile.operator_rows import operator_rows
from inspector.trace.event_kinds import CONTROL, DELEGATE_CALL
from inspector.trace.timing import is_time
from schema.backends import short_backend

_NS_PER_MS = 1e6
PORTABLE = "portable"


@dataclass(frozen=True, slots=True)
class EventTime:
    """One event: a kernel, a node inside a delegate, or a delegate without events inside.

    Attributes:
        nodes: ids of the nodes it covers; empty if unknown
        operator: its operator
        where: backend, or ``portable``
        ms: mean over the runs of all its occurrences in a run
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

    Units: ms, means over runs

    Attributes:
        method: name
        runs: number of runs
        whole_ms: of a run
        events: in the order of the trace
        unattributed_ms: the rest
        samples: time of each run
        notes: on skipped data
    """

    method: str
    runs: int
    whole_ms: float
    events: tuple[EventTime, ...]
    unattributed_ms: float
    samples: tuple[float, ...]
    notes: tuple[str, ...] = ()


def timed_methods(session: Session) -> tuple[str, ...]:
    """Return the methods with recorded times, in the order of the traces; empty where unknown."""
    return tuple(dict.fromkeys(one.method for one in method_runs(session)))


def method_times(session: Session, method: str, graph: ModelGraph | None) -> MethodTimes | None:
    """Return the time of a method, None if no run of it is known or ticks are not time.

    It is that of ``operator_rows``, over all traces known to be of this method.

    Args:
        session: with the traces
        method: name; empty for runs of unknown methods
        graph: with the nodes of events; None to skip nodes
    """
    parts = [
        part
        for part in operator_rows(session, method).parts
        if part.has_shares and (part.method or "") == method
    ]
    runs = sum(part.samples.shape[1] for part in parts)
    whole = [one for one in method_runs(session) if one.method == method and len(one.times_ns)]
    if not runs or not whole:
        return None
    reader = _RowReader(session, method, graph, _NS_PER_MS * runs)
    events = [event for part in parts for event in reader.events(part)]
    samples = np.concatenate([one.times_ns for one in whole]) / _NS_PER_MS
    total = float(mean(samples))
    rest = total - sum(event.ms for event in events)
    notes = (
        ("some delegates count cycles: events inside them are skipped",) if reader.cycles else ()
    )
    times = tuple(samples.tolist())
    return MethodTimes(method, len(samples), total, tuple(events), rest, times, notes)


class _RowReader:
    """Finds the nodes that each row covers.

    Attributes:
        cycles: whether rows were skipped that are not time
    """

    def __init__(
        self, session: Session, method: str, graph: ModelGraph | None, divisor: float
    ) -> None:
        self._graph, self._divisor, self.cycles = graph, divisor, False
        program = session.program
        known = program is not None and method in {plan.name for plan in program.plans}
        self._labels = labels(program.plan(method)) if program is not None and known else ()
        order = sorted(record_maps.delegates(session.record, method)) if session.record else ()
        self._calls = {step: number for number, step in enumerate(order)}
        self._by_instruction: dict[int, int] = {}
        self._by_delegate: dict[int, list[int]] = {}
        for node in graph.nodes if graph is not None else ():
            if node.instruction is not None:
                self._by_instruction.setdefault(node.instruction, node.id)
            if node.delegate is not None:
                self._by_delegate.setdefault(node.delegate, []).append(node.id)

    def events(self, part: BlockRows) -> Iterator[EventTime]:
        """Yield the rows of a block that are time, without unattributed time."""
        sums = part.samples.sum(axis=1)
        for row, kind in enumerate(part.kind.tolist()):
            if kind == LEFT:
                continue
            if not part.timed[row]:
                self.cycles = True
                continue
            link, step = part.links[int(part.link[row])], int(part.instruction[row])
            ms, calls = float(sums[row]) / self._divisor, int(part.passes[row])
            label = part.labels[int(part.label[row])]
            nodes, operator, where = self._named(kind, link, step, label)
            yield EventTime(nodes, operator, where, ms, calls)

    def _named(
        self, kind: int, link: Link, step: int, label: str
    ) -> tuple[tuple[int, ...], str, str]:
        backend = short_backend(link.backend) if link.backend else "delegate"
        call = f"{backend} delegate" if link.backend else "delegate"
        if kind == INNER:
            nodes = self._nodes(link, None) or self._payload_nodes(link)
            return nodes, self._operators(nodes) or label, backend
        if kind == REST and is_time("ns", link.backend):
            return (), f"{call}, between its nodes", backend
        if kind == REST or link.backend or label == DELEGATE_CALL:
            nodes = tuple(self._by_delegate.get(self._delegate(link, step), ()))
            return nodes, call, backend
        nodes = () if label in CONTROL else self._nodes(link, step)
        return nodes, self._operator(link, step, nodes, label), PORTABLE

    def _operator(self, link: Link, step: int, nodes: tuple[int, ...], label: str) -> str:
        if self._labels:
            known = 0 <= step < len(self._labels)
            return base_operator(self._labels[step]) if known else label
        return self._operators(nodes) if link.node and link.nodes else label

    def _delegate(self, link: Link, step: int) -> int:
        if link.delegate is not None:
            return link.delegate
        return self._calls.get(step, -1)

    def _nodes(self, link: Link, number: int | None) -> tuple[int, ...]:
        if self._graph is None:
            return ()
        if self._graph.source == "record":
            names = (link.node,) if link.node else link.nodes
            found = (self._graph.by_name.get(name) for name in names)
            return tuple(sorted(node for node in found if node is not None))
        own = self._by_instruction.get(number) if number is not None else None
        return (own,) if own is not None else ()

    def _payload_nodes(self, link: Link) -> tuple[int, ...]:
        """Return the nodes of a payload that replaces its call in the graph."""
        graph = self._graph
        if graph is None or graph.source == "record" or link.delegate is None:
            return ()
        wanted = set(link.payload_nodes)
        found = (
            node
            for node in self._by_delegate.get(link.delegate, ())
            if graph.nodes[node].name.rpartition("/")[2] in wanted
        )
        return tuple(sorted(found))

    def _operators(self, nodes: tuple[int, ...]) -> str:
        if self._graph is None:
            return ""
        names = (base_operator(self._graph.nodes[node].node.target) for node in nodes)
        return " + ".join(dict.fromkeys(names))
