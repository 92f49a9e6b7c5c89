"""Time by operator, by module and by node of several sessions side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from inspector.compare.alignment import GraphAlignment
from inspector.compare.event_times import EventTime, MethodTimes
from inspector.compare.model import TimeRow
from inspector.graph.model_graph import ModelGraph
from inspector.profile.operator_columns import TRACING
from schema.graph import common_module

Times = Sequence[MethodTimes | None]
Graphs = Sequence[ModelGraph | None]
_NAMED = 3  # nodes of a group that are named


def operator_rows(method: str, times: Times) -> tuple[TimeRow, ...]:
    """Return the time by operator, largest first; unattributed time and tracing are rows.

    A session whose trace has no event of an operator spent no time in it. With the cost of tracing,
    where all know it, the rows add up to the times without a trace.
    """
    none = [None if each is None else 0.0 for each in times]
    rows = _grouped(method, times, lambda _, event: (event.operator,), none)
    rest = tuple(None if each is None else each.unattributed_ms for each in times)
    known = tuple(0 for _ in times)
    rows.append(TimeRow(method, "unattributed", rest, known, note="not in any instruction"))
    traced = tuple(None if each is None else each.time.tracing_ms for each in times)
    if all(one is not None for one in traced):
        taken = tuple(-(one or 0.0) for one in traced)
        rows.append(TimeRow(method, TRACING, taken, known, note="what the trace adds, taken off"))
    return tuple(sorted(rows, key=_weight))


def module_rows(method: str, times: Times, graphs: Graphs) -> tuple[TimeRow, ...]:
    """Return the time by module, each including its children; events without a module last.

    An event over nodes of several modules counts for their common parent, so that the time of a
    module is missing where no event is of it alone.
    """

    def paths(number: int, event: EventTime) -> Iterable[str]:
        graph = graphs[number]
        if graph is None or not event.nodes:
            return ("no module known",)
        parts = common_module([graph.nodes[node].node for node in event.nodes]).split(".")
        found = [".".join(parts[: at + 1]) for at in range(len(parts)) if parts[at]]
        return found or ("no module known",)

    return tuple(sorted(_grouped(method, times, paths, [None] * len(times)), key=_weight))


@dataclass(slots=True)
class _Sum:
    """Accumulates one row."""

    ms: list[float | None]
    calls: list[int]
    where: list[list[str]]
    ticks_ns: list[float]

    def add(self, number: int, event: EventTime) -> None:
        """Add an event of a session."""
        self.ms[number] = (self.ms[number] or 0.0) + event.ms
        self.calls[number] += event.calls
        self.ticks_ns[number] = max(self.ticks_ns[number], event.tick_ns)
        if event.where not in self.where[number]:
            self.where[number].append(event.where)

    def row(self, method: str, name: str, nodes: tuple[tuple[str, ...], ...] = ()) -> TimeRow:
        """Return it as it is shown."""
        where = tuple(", ".join(names) for names in self.where)
        return TimeRow(
            *(method, name, tuple(self.ms), tuple(self.calls), where, nodes),
            ticks_ns=tuple(self.ticks_ns),
        )


def _nothing(ms: Sequence[float | None]) -> _Sum:
    count = len(ms)
    return _Sum(list(ms), [0] * count, [[] for _ in range(count)], [0.0] * count)


def _grouped(
    method: str,
    times: Times,
    keys: Callable[[int, EventTime], Iterable[str]],
    before: Sequence[float | None],
) -> list[TimeRow]:
    """Return a row for each key of the events; a session without any keeps its time ``before``."""
    sums: dict[str, _Sum] = {}
    for number, each in enumerate(times):
        for event in each.events if each is not None else ():
            for key in keys(number, event):
                sums.setdefault(key, _nothing(before)).add(number, event)
    return [found.row(method, name) for name, found in sums.items()]


def _weight(row: TimeRow) -> float:
    return -max((ms for ms in row.ms if ms is not None), default=0.0)


class _Groups:
    """Nodes of all sessions in groups: those one event covers, and those that are the same."""

    def __init__(self) -> None:
        self._parent: dict[tuple[int, int], tuple[int, int]] = {}

    def root(self, node: tuple[int, int]) -> tuple[int, int]:
        """Return the representative of the group of a node."""
        path: list[tuple[int, int]] = []
        while (above := self._parent.get(node, node)) != node:
            path.append(node)
            node = above
        for each in path:
            self._parent[each] = node
        return node

    def join(self, one: tuple[int, int], two: tuple[int, int]) -> None:
        """Merge the groups of two nodes; the smaller represents them."""
        here, there = sorted((self.root(one), self.root(two)))
        if here != there:
            self._parent[there] = here


def node_rows(
    method: str,
    times: Times,
    graphs: Graphs,
    alignments: Sequence[GraphAlignment | None],
) -> tuple[TimeRow, ...]:
    """Return the time of groups of nodes, largest difference first.

    A group is the smallest set of nodes whose time is known in every session: nodes covered by one
    event in one session are grouped in all.
    """
    groups = _Groups()
    for number, alignment in enumerate(alignments, 1):
        for pair in alignment.pairs if alignment is not None else ():
            groups.join((0, pair.old), (number, pair.new))
    for number, each in enumerate(times):
        for event in each.events if each is not None else ():
            for node in event.nodes[1:]:
                groups.join((number, event.nodes[0]), (number, node))
    sums: dict[tuple[int, int], _Sum] = {}
    for number, each in enumerate(times):
        for event in each.events if each is not None else ():
            if event.nodes:
                root = groups.root((number, event.nodes[0]))
                sums.setdefault(root, _nothing([None] * len(times))).add(number, event)
    members = _members(groups, graphs, sums)
    rows = [
        found.row(method, _title(members[root]), tuple(map(tuple, members[root])))
        for root, found in sums.items()
    ]
    return tuple(sorted(rows, key=_change))


def _members(
    groups: _Groups, graphs: Graphs, requested: Iterable[tuple[int, int]]
) -> dict[tuple[int, int], list[list[str]]]:
    found: dict[tuple[int, int], list[list[str]]] = {
        root: [[] for _ in graphs] for root in requested
    }
    for number, graph in enumerate(graphs):
        for node in graph.nodes if graph is not None else ():
            root = groups.root((number, node.id))
            if root in found:
                found[root][number].append(node.name)
    return found


def _title(members: Sequence[Sequence[str]]) -> str:
    names = next((each for each in members if each), ())
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _change(row: TimeRow) -> tuple[float, float]:
    gaps = [
        abs(gap) for number in range(1, len(row.ms)) if (gap := row.difference(number)) is not None
    ]
    return -max(gaps, default=-1.0), _weight(row)
