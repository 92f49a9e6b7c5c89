"""What comparing sessions found, as plain data; the others are held to the first session."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from inspector.compare.alignment import GraphAlignment
from inspector.compare.change import Change
from inspector.compare.statistics import TimeVerdict

LESS, MORE, NEUTRAL = "less", "more", ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in one of the sessions something is.

    Attributes:
        session: its number
        view: overview, graph, operators, timeline, memory, size, partitions, gap or structure
        method: empty for the whole session
        node: name of a node of the model graph, empty for none
        instruction: None for none
        delegate: None for none
        part: name of a file part, empty for none
    """

    session: int
    view: str
    method: str = ""
    node: str = ""
    instruction: int | None = None
    delegate: int | None = None
    part: str = ""


@dataclass(frozen=True, slots=True)
class Delta:
    """One number of every session.

    Attributes:
        area: time, delegation, memory, size, gap, graph or tensors
        what: in words
        unit: ms, bytes, share, dB, or empty for counts
        values: one a session; None where it is missing or unknown
        better: ``less``, ``more``, or empty where neither is
        method: empty for the whole session
        verdicts: of measured times, one a session and None for the first; empty without
        note: why something is missing, or what the number is
        places: where to look, one a session; None where there is nothing to see
        alike: whether the values may be held to each other at all; the note has the reason
    """

    area: str
    what: str
    unit: str
    values: tuple[float | int | None, ...]
    better: str = NEUTRAL
    method: str = ""
    verdicts: tuple[TimeVerdict | None, ...] = ()
    note: str = ""
    places: tuple[Place | None, ...] = ()
    alike: bool = True

    def difference(self, number: int) -> float | int | None:
        """Return a session's value less that of the first, None where it is meaningless."""
        if not self.alike:
            return None
        old, new = self.values[0], self.values[number]
        return None if old is None or new is None else new - old

    @property
    def differs(self) -> bool:
        """Return whether some session has another value than the first."""
        return any(value != self.values[0] for value in self.values[1:])


@dataclass(frozen=True, slots=True)
class RecipeChange:
    """A field of a recipe that is not the same.

    Attributes:
        session: number of the session compared with the first
        field: its dotted name
        old: in the first session, as text
        new: in the other
    """

    session: int
    field: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class OwnerChange:
    """A node that another runs.

    Attributes:
        method: name
        session: number of the session compared with the first
        old_node: its name in the first session; several where they became another node
        new_node: its name there
        operator: what it computes
        module: dotted path of its module
        old_owner: backend, or ``portable`` for the kernels of the runtime
        new_owner: likewise
        old_delegate: partition, None outside of delegates
        new_delegate: likewise
        reason: reason of the partitioner there, empty when nothing is recorded
    """

    method: str
    session: int
    old_node: str
    new_node: str
    operator: str
    module: str
    old_owner: str
    new_owner: str
    old_delegate: int | None
    new_delegate: int | None
    reason: str = ""

    @property
    def other(self) -> bool:
        """Return whether another backend runs it, and not only another partition of the same."""
        return self.old_owner != self.new_owner

    def words(self) -> str:
        """Return the change as a phrase."""
        old, new = (
            _owner(self.old_owner, self.old_delegate),
            _owner(self.new_owner, self.new_delegate),
        )
        return f"{self.new_node} moved from {old} to {new}"


def _owner(name: str, delegate: int | None) -> str:
    return name if delegate is None else f"{name} delegate {delegate}"


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """A delegate of the first session and its counterpart, or a new one.

    Attributes:
        method: name
        session: number of the session compared with the first
        old: its index in the first session, None for a new one
        new: its index there, None for one that is gone
        backend: backend id
        old_nodes: how many nodes it had
        new_nodes: how many it has
        common: how many of them are the same
    """

    method: str
    session: int
    old: int | None
    new: int | None
    backend: str
    old_nodes: int
    new_nodes: int
    common: int


@dataclass(frozen=True, slots=True)
class TimeRow:
    """Time of an operator, a module, or nodes that are measured together, in every session.

    Units: ms, medians over the runs of a trace

    Attributes:
        method: name
        name: operator, dotted module path, or node
        ms: one a session; None where it is not there or has no time
        calls: events a run, one a session
        where: backends that ran it, one a session
        nodes: names of the nodes, one tuple a session; empty for operators and modules
        note: what else to know
    """

    method: str
    name: str
    ms: tuple[float | None, ...]
    calls: tuple[int, ...]
    where: tuple[str, ...] = ()
    nodes: tuple[tuple[str, ...], ...] = ()
    note: str = ""

    def difference(self, number: int) -> float | None:
        """Return a session's time less that of the first, None where one is missing."""
        old, new = self.ms[0], self.ms[number]
        return None if old is None or new is None else new - old


@dataclass(frozen=True, slots=True)
class GapRow:
    """How far one output is from the reference, in every session.

    Attributes:
        method: name
        node: node of the first session that has it
        output: which of its outputs
        operator: what it computes
        max_abs: one a session; None where it was not compared
        own: what the node adds by itself
        reasons: why it was not compared, one a session
    """

    method: str
    node: str
    output: int
    operator: str
    max_abs: tuple[float | None, ...]
    own: tuple[float | None, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WeightChange:
    """A recorded weight that is not the same.

    Attributes:
        method: name
        session: number of the session compared with the first
        name: of the parameter, buffer or constant
        old: type and shape in the first session, None where it is not there
        new: likewise in the other
        largest: largest difference of two elements; None where they cannot be compared
        share: of the elements that differ; likewise
    """

    method: str
    session: int
    name: str
    old: str | None
    new: str | None
    largest: float | None = None
    share: float | None = None


@dataclass(frozen=True, slots=True)
class MethodGraphs:
    """The graphs of one method side by side.

    Attributes:
        method: name
        alignments: first session with each other one; None where a graph is missing
        note: why, empty otherwise
    """

    method: str
    alignments: tuple[GraphAlignment | None, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sessions or more side by side.

    Attributes:
        names: of the sessions, unique
        methods: those the first session shares with another
        summary: what matters most, first
        recipes: fields that differ, where recipes are recorded
        graphs: a method
        owners: nodes that changed owner
        partitions: delegates that are new, gone, or have other nodes
        operators: time by operator
        modules: time by module
        nodes: time of nodes that are measured together, largest difference first
        memory: numbers of the arenas
        sizes: bytes by kind of part
        gaps: outputs by how much their error differs
        weights: recorded weights that differ
        changes: everything `etscope diff` finds, one tuple a session after the first
        notes: what is missing and why
    """

    names: tuple[str, ...]
    methods: tuple[str, ...]
    summary: tuple[Delta, ...]
    recipes: tuple[RecipeChange, ...]
    graphs: tuple[MethodGraphs, ...]
    owners: tuple[OwnerChange, ...]
    partitions: tuple[PartitionChange, ...]
    operators: tuple[TimeRow, ...]
    modules: tuple[TimeRow, ...]
    nodes: tuple[TimeRow, ...]
    memory: tuple[Delta, ...]
    sizes: tuple[Delta, ...]
    gaps: tuple[GapRow, ...]
    weights: tuple[WeightChange, ...]
    changes: tuple[tuple[Change, ...], ...]
    notes: tuple[str, ...]

    def graph(self, method: str, session: int) -> GraphAlignment | None:
        """Return the graphs of the first and another session, None where one is missing."""
        for each in self.graphs:
            if each.method == method:
                return each.alignments[session - 1]
        return None


def delta_content(delta: Delta) -> dict[str, Any]:
    """Return a delta as a JSON object with its differences."""
    count = range(1, len(delta.values))
    return {
        **{name: getattr(delta, name) for name in ("area", "what", "method", "better")},
        "unit": delta.unit or None,
        "values": list(delta.values),
        "differences": [delta.difference(number) for number in count],
        "verdicts": [None if one is None else one.content() for one in delta.verdicts[1:]],
        "note": delta.note or None,
        "places": [None if one is None else asdict(one) for one in delta.places],
    }
