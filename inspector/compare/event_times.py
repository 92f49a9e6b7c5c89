"""The time of one method of one session, event by event, with the nodes each event covers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from inspector.compare.program_changes import labels
from inspector.files.session import Session
from inspector.graph.model_graph import ModelGraph
from inspector.join import record_maps
from inspector.join.links import Link
from inspector.join.node_index import base_operator
from inspector.join.operator_names import quantizes
from inspector.profile.attribution import method_runs
from inspector.profile.methods import WITH_TRACING, MethodTime, analyse_profile
from inspector.profile.operator_columns import INNER, LEFT, REST, BlockRows
from inspector.profile.operator_rows import operator_rows
from inspector.trace.event_kinds import CONTROL, DELEGATE_CALL
from inspector.trace.run_times import RunTimes
from inspector.trace.timing import is_time
from inspector.units import NS_PER_MS, format_ms
from schema.backends import short_backend

PORTABLE = "portable"


@dataclass(frozen=True, slots=True)
class EventTime:
    """One event: a kernel, a node inside a delegate, or a delegate without events inside.

    Attributes:
        nodes: ids of the nodes it covers; empty if unknown
        operator: its operator
        where: backend, or ``portable``
        ms: mean over the steady runs of all its occurrences in a run
        calls: occurrences in a run
        tick_ns: step of the clock, 0 for a difference of times
    """

    nodes: tuple[int, ...]
    operator: str
    where: str
    ms: float
    calls: int
    tick_ns: float = 0.0


@dataclass(frozen=True, slots=True)
class MethodTimes:
    """The time of a method.

    Units: ms, means over the steady runs

    Attributes:
        method: name
        time: of its runs, with and without a trace
        events: in the order of the trace
        unattributed_ms: the rest of a recorded run
        notes: on skipped data
    """

    method: str
    time: MethodTime
    events: tuple[EventTime, ...]
    unattributed_ms: float
    notes: tuple[str, ...] = ()


def timed_methods(session: Session) -> tuple[str, ...]:
    """Return the methods with recorded times, in the order of the traces; empty where unknown."""
    return tuple(dict.fromkeys(one.method for one in method_runs(session)))


def method_times(session: Session, method: str, graph: ModelGraph | None) -> MethodTimes | None:
    """Return the time of a method; None if no run of it is known or its times are not comparable.

    Times of runs that logged values are not the program's, and ticks may be cycles. It is that of
    ``operator_rows``, over all traces known to be of this method.

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
    runs = sum(int(part.steady.sum()) for part in parts)
    time = next((one for one in analyse_profile(session).methods if one.method == method), None)
    if not runs or time is None:
        return None
    reader = _RowReader(session, method, graph, NS_PER_MS * runs)
    events = [event for part in parts for event in reader.events(part)]
    rest = time.method_ms - sum(event.ms for event in events)
    notes = (
        ("some delegates count cycles: events inside them are skipped",) if reader.cycles else ()
    )
    return MethodTimes(method, time, tuple(events), rest, notes)


def recorded_times(times: Sequence[MethodTimes | None]) -> tuple[tuple[float | None, ...], str]:
    """Return the time of a run of each session in ms, and what it is.

    All are with a trace or all without one: the two are not compared with one another.
    """
    bare = all(each is None or each.time.bare is not None for each in times)
    values = tuple(
        None if each is None else each.time.latency_ms if bare else each.time.method_ms
        for each in times
    )
    runs = [
        "none" if each is None else _spread(each.time.headline if bare else each.time.traced)
        for each in times
    ]
    how = "without a trace" if bare else WITH_TRACING
    return values, f"mean of the steady runs {how} ({'; '.join(runs)}); not measured together"


def _spread(runs: RunTimes) -> str:
    if runs.p10 is None or runs.p90 is None:
        return f"{len(runs.steady):,}"
    low, high = (format_ms(end) for end in (runs.p10, runs.p90))
    return f"{len(runs.steady):,}, p10 to p90 {low} to {high}"


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
        sums = part.mean_ns * part.steady.sum()
        for row, kind in enumerate(part.kind.tolist()):
            if kind >= LEFT:
                continue
            if not part.timed[row]:
                self.cycles = True
                continue
            link, step = part.links[int(part.link[row])], int(part.instruction[row])
            ms, calls = float(sums[row]) / self._divisor, int(part.passes[row])
            label = part.labels[int(part.label[row])]
            nodes, operator, where = self._named(kind, link, step, label)
            yield EventTime(nodes, operator, where, ms, calls, float(part.tick_ns[row]))

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
        requested = set(link.payload_nodes)
        found = (
            node
            for node in self._by_delegate.get(link.delegate, ())
            if graph.nodes[node].name.rpartition("/")[2] in requested
        )
        return tuple(sorted(found))

    def _operators(self, nodes: tuple[int, ...]) -> str:
        if self._graph is None:
            return ""
        names = [base_operator(self._graph.nodes[node].node.target) for node in nodes]
        # a convolution in integers is compared with the one in floating point
        computing = [name for name in names if not quantizes(name)]
        return " + ".join(dict.fromkeys(computing or names))
