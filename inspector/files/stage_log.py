"""The stages of a compile: the graph before and after each, changes of its nodes, durations.

A compile writes them as ``stages.json`` next to the program on request. Equal graphs are
stored once; a compile with many passes over a large graph stores the first ones completely
and only counts of the others, with a note.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from schema.objects.codec import read_versioned, to_json
from schema.objects.identity_cache import identity_cache

STAGES, EDGE = "stages.json", "edge"
CALL_DELEGATE = "call_delegate"
VERSION = 1
MOST_NODES = 400_000
"""Nodes that are kept of all graphs together."""
_LARGEST = 512 << 20  # bytes

Group: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class StageNode:
    """A call in a graph.

    Attributes:
        name: of the node; one in a body of control flow has the body's before it
        operator: as in ``aten.add.Tensor``
        value: dtype and shape of what it makes
        handle: debug handle, 0 without one
        source: ``file:line`` of the user's code, empty when unknown
    """

    name: str
    operator: str
    value: str = ""
    handle: int = 0
    source: str = ""


@dataclass(frozen=True, eq=False)
class StageChange:
    """Changes of the nodes of a graph.

    Attributes:
        kept: unchanged nodes, possibly renamed
        added: nodes without a predecessor
        removed: nodes without a successor
        replaced: old nodes, and the nodes replacing them
        lineage: node -> its predecessors, if not just its own name
    """

    kept: int = 0
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    replaced: tuple[Group, ...] = ()
    lineage: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    @property
    def plus(self) -> int:
        """Return how many nodes are new, those that replace others too."""
        return len(self.added) + sum(len(after) for _, after in self.replaced)

    @property
    def minus(self) -> int:
        """Return how many nodes were removed or replaced."""
        return len(self.removed) + sum(len(before) for before, _ in self.replaced)

    def behind(self, name: str) -> tuple[str, ...]:
        """Return the predecessors of a node; by default its own name."""
        return self.lineage.get(name, (name,))

    def ahead(self, name: str) -> tuple[str, ...]:
        """Return the successors of a node; by default its own name."""
        gone = name in self.lineage or name in _removed(self)
        return _heirs(self).get(name) or (() if gone else (name,))


def delegated(group: Group, operators: Mapping[str, str]) -> tuple[Group, ...]:
    """Return a group in which nodes went into delegates as one group for each of them.

    Args:
        group: nodes before and those that stand for them
        operators: of the nodes behind the stage, by name

    Returns: each node with the calls it is in, then the results of those; none where there is no
        delegate in the group
    """
    before, after = group
    calls = tuple(name for name in after if operators.get(name) == CALL_DELEGATE)
    if not calls:
        return ()
    results = [((), (name,)) for name in after if name not in calls]
    return (*(((name,), calls) for name in before), *results)


@identity_cache
def _heirs(change: StageChange) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for after, before in change.lineage.items():
        for name in before:
            found.setdefault(name, []).append(after)
    return {name: tuple(after) for name, after in found.items()}


@identity_cache
def _removed(change: StageChange) -> frozenset[str]:
    return frozenset(change.removed)


@dataclass(frozen=True, slots=True)
class Step:
    """A stage that has ended.

    Attributes:
        stage: its name
        method: the method worked on, empty for all
        time_ms: duration
        before: index of its input graph; None if there is none, or it was not stored
        after: index of its output graph; likewise
        nodes: calls in its output graph, or None
        change: changes of the nodes; None where there is no graph before, or none was kept
    """

    stage: str
    method: str
    time_ms: float
    before: int | None = None
    after: int | None = None
    nodes: int | None = None
    change: StageChange | None = None


@dataclass(frozen=True, slots=True)
class StageLog:
    """The stages of one compile.

    Attributes:
        steps: in the order they ended
        graphs: nodes in order, by the numbers of the steps
        note: what was left out and why, empty for nothing
        program_sha256: of the program that the compile wrote, empty when unknown
    """

    steps: tuple[Step, ...] = ()
    graphs: tuple[tuple[StageNode, ...], ...] = ()
    note: str = ""
    program_sha256: str = ""

    def content(self) -> dict[str, Any]:
        """Return it as a JSON object; strings that nodes share are in it once."""
        texts = _Texts()
        graphs = [
            [
                [n.name, texts.of(n.operator), texts.of(n.value), n.handle, texts.of(n.source)]
                for n in graph
            ]
            for graph in self.graphs
        ]
        return {
            "stages": VERSION,
            "program_sha256": self.program_sha256,
            "note": self.note,
            "steps": to_json(self.steps),
            "texts": texts.all,
            "graphs": graphs,
        }

    def lowered(self, method: str) -> int | None:
        """Return the step whose output is the recorded edge program, or None."""
        steps = enumerate(self.steps)
        found = [at for at, one in steps if (one.stage, one.method) == (EDGE, method)]
        return found[-1] if found else None

    def traced(self, at: int, name: str, to: int) -> tuple[str, ...]:
        """Return the nodes behind or ahead of a node of one step in the graph another one left.

        Args:
            at: the step whose graph the node is in
            name: of the node
            to: the other step, of the same method
        """
        method = self.steps[at].method
        names: dict[str, None] = {name: None}
        back = to < at
        between = range(at, to, -1) if back else range(at + 1, to + 1)
        for number in between:
            step = self.steps[number]
            if step.method != method or step.change is None or self._is_redone(number, to):
                continue
            follow = step.change.behind if back else step.change.ahead
            names = dict.fromkeys(found for one in names for found in follow(one))
        return tuple(names)

    def _is_redone(self, number: int, to: int) -> bool:
        """Return whether a step was superseded: a later one lowered the method again."""
        method = self.steps[number].method
        later = self.steps[number + 1 : to + 1]
        return any((one.stage, one.method) == (EDGE, method) for one in later)

    def find(self, requested: str) -> list[int]:
        """Return the steps with a number or a name, those with a graph first."""
        if requested.isdecimal() and int(requested) < len(self.steps):
            return [int(requested)]
        named = [
            at
            for at, step in enumerate(self.steps)
            if requested
            in (step.stage, step.stage.removeprefix("pass "), f"{step.stage} {step.method}")
        ]
        return sorted(named, key=lambda at: self.steps[at].after is None)


class _Texts:
    def __init__(self) -> None:
        self.all: list[str] = []
        self._places: dict[str, int] = {}

    def of(self, text: str) -> int:
        if text not in self._places:
            self._places[text] = len(self.all)
            self.all.append(text)
        return self._places[text]


def changed(
    before: Sequence[StageNode], after: Sequence[StageNode], origins: Mapping[str, Sequence[str]]
) -> StageChange:
    """Return changes of the nodes of a graph.

    A node of the same name and operator is the same. Another one comes from the nodes that
    ``origins`` names, else from the one of its own name, else from those that are gone and have its
    debug handle, else from none.

    Args:
        before: nodes of the graph that was found
        after: nodes of the graph that was left
        origins: node after -> names of nodes before, as far as they are known
    """
    old = {node.name: node for node in before}
    new = {node.name for node in after}
    gone: dict[int, list[str]] = {}
    for node in before:
        if node.name not in new and node.handle:
            gone.setdefault(node.handle, []).append(node.name)
    lineage: dict[str, tuple[str, ...]] = {}
    for node in after:
        was = old.get(node.name)
        named = tuple(name for name in origins.get(node.name, ()) if name in old)
        if was is not None and was.operator == node.operator and not named:
            continue
        own = (node.name,) if was is not None else ()
        lineage[node.name] = named or own or tuple(gone.get(node.handle, ()))
    shared = {source for sources in lineage.values() for source in sources}
    for name in sorted(
        new & old.keys() & shared - lineage.keys()
    ):  # it stays, beside what comes from it
        lineage[name] = (name,)
    return _grouped(old, after, lineage)


def _grouped(
    old: Mapping[str, StageNode],
    after: Sequence[StageNode],
    lineage: Mapping[str, tuple[str, ...]],
) -> StageChange:
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, sources in lineage.items():
        groups.setdefault(sources, []).append(name)
    operators = {node.name: node.operator for node in after}
    kept = sum(node.name in old and node.name not in lineage for node in after)
    replaced: list[Group] = []
    for sources, names in groups.items():
        if not sources:
            continue
        if len(sources) == len(names) == 1 and old[sources[0]].operator == operators[names[0]]:
            kept += 1
        else:
            replaced.append((sources, tuple(names)))
    used = {source for sources in lineage.values() for source in sources}
    stays = {node.name for node in after if node.name not in lineage}
    removed = tuple(name for name in old if name not in used and name not in stays)
    return StageChange(kept, tuple(groups.get((), ())), removed, tuple(replaced), lineage)


_Row: TypeAlias = tuple[str, int, int, int, int]  # name, and places of strings around the handle


@dataclass(frozen=True, slots=True)
class _StageFile:
    """A file of stages; strings that nodes share are in it once."""

    stages: int
    program_sha256: str
    note: str
    steps: tuple[Step, ...]
    texts: tuple[str, ...]
    graphs: tuple[tuple[_Row, ...], ...]

    def __post_init__(self) -> None:
        """Raise ValueError for places of strings or graphs that there are not."""
        known = range(len(self.graphs))
        for one in self.steps:
            wrong = [at for at in (one.before, one.after) if at is not None and at not in known]
            if wrong:
                raise ValueError(f"stage {one.stage}: graph {wrong[0]} of {len(known)}")
        strings = range(len(self.texts))
        for graph in self.graphs:
            for name, operator, value, _, source in graph:
                if not all(place in strings for place in (operator, value, source)):
                    raise ValueError(f"node {name:.60}: a string that is not in the file")


def read_stages(path: Path) -> StageLog:
    """Return the stages in a file.

    Raises: FormatError if it holds none; OSError
    """
    found = read_versioned(path, _StageFile, "stages of a compile", ("stages", VERSION), _LARGEST)
    texts = found.texts
    graphs = tuple(
        tuple(
            StageNode(name, texts[operator], texts[value], handle, texts[source])
            for name, operator, value, handle, source in graph
        )
        for graph in found.graphs
    )
    return StageLog(found.steps, graphs, found.note, found.program_sha256)
