"""The result of comparing sessions, as plain data; others are compared with the first."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from inspector.compare.alignment import GraphAlignment
from inspector.compare.change import Change
from inspector.compare.statistics import TimeVerdict

LESS, MORE, NEUTRAL = "less", "more", ""


@dataclass(frozen=True, slots=True)
class ComparePlace:
    """A location in one of the sessions.

    Attributes:
        session: its index
        view: overview, graph, operators, timeline, memory, size, partitions, gap or structure
        method: empty for the entire session
        node: name of a node of the model graph, may be empty
        instruction: or None
        delegate: or None
        part: name of a file part, may be empty
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
    """One figure of every session.

    Attributes:
        area: time, delegation, memory, size, gap, graph or tensors
        what: description
        unit: ms, bytes, share, dB, or empty for counts
        values: one per session; None if missing or unknown
        better: ``less``, ``more``, or empty
        method: empty for the entire session
        verdicts: of measured times, one per session and None for the first; may be empty
        note: why a value is missing, or an explanation
        places: locations, one per session or None
        unlike: sessions that are not variants of the first: a difference is neither gain nor loss
    """

    area: str
    what: str
    unit: str
    values: tuple[float | int | None, ...]
    better: str = NEUTRAL
    method: str = ""
    verdicts: tuple[TimeVerdict | None, ...] = ()
    note: str = ""
    places: tuple[ComparePlace | None, ...] = ()
    unlike: frozenset[int] = frozenset()

    def difference(self, number: int) -> float | int | None:
        """Return a session's value less that of the first, None if it is meaningless."""
        old, new = self.values[0], self.values[number]
        return None if old is None or new is None else new - old

    @property
    def differs(self) -> bool:
        """Return whether a session differs from the first."""
        return any(value != self.values[0] for value in self.values[1:])


@dataclass(frozen=True, slots=True)
class RecipeChange:
    """A field of a recipe that differs.

    Attributes:
        session: index of the session compared with the first
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
    """A node whose owner changed.

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
        """Return whether the backend changed, not only the partition."""
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
        new: its index there, None for a removed one
        backend: backend id
        old_nodes: number of nodes before
        new_nodes: number of nodes now
        common: number of nodes in both
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

    Units: ms, means over the steady runs of a trace

    Attributes:
        method: name
        name: operator, dotted module path, or node
        ms: one per session; None if it is not known; 0 where a trace has no such event
        calls: events per run, one per session
        where: backends that ran it, one per session
        nodes: names of the nodes, one tuple per session; empty for operators and modules
        note: further information
        ticks_ns: step of the clock, one per session, 0 for differences; may be empty
    """

    method: str
    name: str
    ms: tuple[float | None, ...]
    calls: tuple[int, ...]
    where: tuple[str, ...] = ()
    nodes: tuple[tuple[str, ...], ...] = ()
    note: str = ""
    ticks_ns: tuple[float, ...] = ()

    def difference(self, number: int) -> float | None:
        """Return a session's time less that of the first, None if one is missing."""
        old, new = self.ms[0], self.ms[number]
        return None if old is None or new is None else new - old


@dataclass(frozen=True, slots=True)
class GapRow:
    """The error of one output against its reference, in every session.

    Attributes:
        method: name
        node: node of the first session that has it
        output: index of the output
        operator: of the node
        max_abs: one per session; None if not compared
        own: error added by the node itself
        reasons: why it was not compared, one per session
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
    """A recorded weight that differs.

    Attributes:
        method: name
        session: number of the session compared with the first
        name: of the parameter, buffer or constant
        old: type and shape in the first session, None if missing
        new: likewise in the other
        largest: largest difference of two elements; None if not comparable
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
        alignments: first session with each other one; None if a graph is missing
        note: the reason, else empty
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
        summary: the most important figures
        recipes: differing fields, if recipes are recorded
        graphs: by method
        owners: nodes that changed owner
        partitions: delegates added, removed, or with other nodes
        operators: time by operator
        modules: time by module
        nodes: time of nodes that are measured together, largest difference first
        memory: figures of planned buffers
        sizes: bytes by kind of part
        gaps: outputs by how much their error differs
        weights: recorded weights that differ
        changes: all results of `etscope diff`, one tuple per session after the first
        notes: missing data and reasons
        problems: why the sessions are not variants of one program, or not whole; empty if they are
        unlike: numbers of the sessions that have a problem beside the first
        blocks: fastest run of each session in a block of runs measured together, in ms; None for a
            block that failed
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
    problems: tuple[str, ...] = ()
    unlike: frozenset[int] = frozenset()
    blocks: tuple[tuple[float | None, ...], ...] = ()

    def graph(self, method: str, session: int) -> GraphAlignment | None:
        """Return the graphs of the first and another session, None if one is missing."""
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
