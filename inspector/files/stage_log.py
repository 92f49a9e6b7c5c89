"""The stages of a compile: the graph before and after each, changes of its nodes, how long.

A compile writes them as ``stages.json`` beside the program on request. Graphs that are
equal are in the file once; a compile of many passes over a large graph keeps the first ones whole
and counts alone of the others, which is noted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, cast

from schema.errors import FormatError
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
class Change:
    """Changes of the nodes of a graph.

    Attributes:
        kept: nodes that are there as before, some under another name
        added: nodes that come from none of the nodes before
        removed: nodes that nothing comes from
        replaced: nodes before, and the nodes that stand for them
        lineage: node -> nodes before that it comes from, where that is not just its own name
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
        """Return how many nodes are gone, those that were replaced too."""
        return len(self.removed) + sum(len(before) for before, _ in self.replaced)

    def behind(self, name: str) -> tuple[str, ...]:
        """Return the nodes before that a node comes from; its own name where nothing is noted."""
        return self.lineage.get(name, (name,))

    def ahead(self, name: str) -> tuple[str, ...]:
        """Return the nodes that come from a node before; its own name where nothing is noted."""
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
def _heirs(change: Change) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for after, before in change.lineage.items():
        for name in before:
            found.setdefault(name, []).append(after)
    return {name: tuple(after) for name, after in found.items()}


@identity_cache
def _removed(change: Change) -> frozenset[str]:
    return frozenset(change.removed)


@dataclass(frozen=True, slots=True)
class Step:
    """A stage that has ended.

    Attributes:
        stage: its name
        method: the method worked on, empty for all
        time_ms: how long it took
        before: number of the graph it found; None where it has none, or it was not kept
        after: number of the graph it left; likewise
        nodes: calls in the graph it left, None where it leaves no graph
        change: changes of the nodes; None where there is no graph before, or none was kept
    """

    stage: str
    method: str
    time_ms: float
    before: int | None = None
    after: int | None = None
    nodes: int | None = None
    change: Change | None = None


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
            "steps": [_step_content(step) for step in self.steps],
            "texts": texts.all,
            "graphs": graphs,
        }

    def lowered(self, method: str) -> int | None:
        """Return the step that left the edge program a record holds, None when there is none."""
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
        """Return whether what a step did was thrown away: a later one lowered the method again."""
        method = self.steps[number].method
        later = self.steps[number + 1 : to + 1]
        return any((one.stage, one.method) == (EDGE, method) for one in later)

    def find(self, wanted: str) -> list[int]:
        """Return the steps that a number or a name means, those with a graph first."""
        if wanted.isdecimal() and int(wanted) < len(self.steps):
            return [int(wanted)]
        named = [
            at
            for at, step in enumerate(self.steps)
            if wanted
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


def _step_content(step: Step) -> dict[str, Any]:
    change = step.change
    return {
        "stage": step.stage,
        "method": step.method,
        "time_ms": step.time_ms,
        "before": step.before,
        "after": step.after,
        "nodes": step.nodes,
        "change": None
        if change is None
        else {
            "kept": change.kept,
            "added": change.added,
            "removed": change.removed,
            "replaced": change.replaced,
            "lineage": change.lineage,
        },
    }


def changed(
    before: Sequence[StageNode], after: Sequence[StageNode], origins: Mapping[str, Sequence[str]]
) -> Change:
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
        told = tuple(name for name in origins.get(node.name, ()) if name in old)
        if was is not None and was.operator == node.operator and not told:
            continue
        own = (node.name,) if was is not None else ()
        lineage[node.name] = told or own or tuple(gone.get(node.handle, ()))
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
) -> Change:
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
    return Change(kept, tuple(groups.get((), ())), removed, tuple(replaced), lineage)


def read_stages(path: Path) -> StageLog:
    """Return the stages in a file.

    Raises: FormatError if it holds none; OSError
    """
    size = path.stat().st_size
    if size > _LARGEST:
        raise FormatError("stages of a compile", f"{size:,} bytes", file=str(path))
    data = path.read_bytes()
    try:
        tree: Any = json.loads(data.decode("utf-8"))
        if tree["stages"] != VERSION:
            raise FormatError(f"version {VERSION}", repr(tree["stages"])[:40], file=str(path))
        return _log_from(tree)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        if isinstance(error, FormatError):
            raise
        what = f"{type(error).__name__}: {error}"
        raise FormatError("stages of a compile", what[:200], file=str(path)) from None


def _log_from(tree: Mapping[str, Any]) -> StageLog:
    texts = [_text(text) for text in cast("list[object]", tree["texts"])]
    rows = cast("list[list[list[Any]]]", tree["graphs"])
    graphs = tuple(tuple(_node_from(row, texts) for row in graph) for graph in rows)
    steps = tuple(_step_from(step, len(graphs)) for step in tree["steps"])
    return StageLog(steps, graphs, _text(tree["note"]), _text(tree["program_sha256"]))


def _node_from(row: Sequence[Any], texts: Sequence[str]) -> StageNode:
    name, *places, handle, source = row
    operator, value, told = (texts[_number(place)] for place in (*places, source))
    return StageNode(_text(name), operator, value, _number(handle), told)


def _step_from(step: Mapping[str, Any], graphs: int) -> Step:
    places: list[int | None] = [
        None if step[key] is None else _number(step[key]) for key in ("before", "after")
    ]
    if any(place is not None and not 0 <= place < graphs for place in places):
        raise ValueError(f"a graph that is not among the {graphs}")
    change, nodes = step["change"], step["nodes"]
    return Step(
        _text(step["stage"]),
        _text(step["method"]),
        float(step["time_ms"]),
        places[0],
        places[1],
        None if nodes is None else _number(nodes),
        None if change is None else _change_from(change),
    )


def _change_from(change: Mapping[str, Any]) -> Change:
    lineage = cast("Mapping[str, Sequence[str]]", change["lineage"])
    return Change(
        _number(change["kept"]),
        _names(change["added"]),
        _names(change["removed"]),
        tuple((_names(before), _names(after)) for before, after in change["replaced"]),
        {_text(name): _names(found) for name, found in lineage.items()},
    )


def _names(found: Iterable[object]) -> tuple[str, ...]:
    if isinstance(found, str):
        raise TypeError("a text where a list of names belongs")
    return tuple(_text(name) for name in found)


def _text(found: object) -> str:
    if not isinstance(found, str):
        raise TypeError(f"a {type(found).__name__} where a text belongs")
    return found


def _number(found: object) -> int:
    if found.__class__ is not int:
        raise TypeError(f"a {type(found).__name__} where a number belongs")
    return cast("int", found)
