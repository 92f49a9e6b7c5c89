"""Joins of integers inside a payload that computes in them, without handles of its own.

Between two quantized values of the record lie real ones, which such a payload never has: it sums
in 32 bits and rescales. But each of its integers is computed from others, as each `quantize` of the
record is: it has the value of the only `quantize` whose operators it may be, and which is computed
from the same integers, if it is the only one that may have it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from inspector.join.lowered_kinds import becomes, operation
from inspector.numerics.flat_graph import FlatGraph, FlatNode, Value, is_transparent
from inspector.numerics.grades import FLOW
from inspector.numerics.payload_flow import has_shape_of, is_as_large
from inspector.numerics.payload_values import DEQUANTIZE, QUANTIZE, is_stored
from inspector.numerics.requantized import steps_of
from inspector.numerics.shared_handles import DelegateEvent

_MOVED = frozenset(("identity", "permute", "reshape", "transpose", "view"))  # keep all elements
_OF_LAYOUT = frozenset(("rescale", "slice", "pad", *_MOVED))
_REDUCED = {
    "REDUCE_MAX": "amax",
    "REDUCE_MIN": "amin",
    "REDUCE_PRODUCT": "prod",
    "REDUCE_SUM": "sum",
}
_TABLE = "TABLE"  # of any operator of one operand
_ACTIVATIONS = frozenset(map(operation, ("aten::relu", "aten::hardtanh", "aten::clamp")))
_MOST = 2000  # events of a payload; each round looks at all
_WEIGHT = "_weight"  # behind the name of a node, in that of its constant


@dataclass(frozen=True, slots=True)
class _Made:
    """How an integer value is computed.

    Attributes:
        sources: integer values that it is computed from, in order of their names
        steps: operators or kinds on the way, without those of layout and rescaling
        names: of the nodes on the way, or of the constants that are read there
    """

    sources: tuple[str, ...]
    steps: tuple[str, ...]
    names: frozenset[str]


def integers_walked(
    graph: FlatGraph,
    nodes: Sequence[FlatNode],
    events: Sequence[DelegateEvent],
    border: Mapping[str, Value],
    wanted: Collection[str],
) -> dict[str, DelegateEvent]:
    """Return node -> event of nodes that quantize, whose integers the payload shows.

    Args:
        graph: the recorded graph
        nodes: of the delegate, in graph order
        events: of one call, in order
        border: recorded values of the inputs and outputs of the payload
        wanted: names of nodes that are not known otherwise
    """
    left = [one for one in nodes if QUANTIZE in one.operator and one.node.name in wanted]
    if not left or len(events) > _MOST:
        return {}
    return _IntegerWalk(graph, nodes, events, border).found(left)


class _IntegerWalk:
    """Values of a payload from its inputs on: which recorded one each is."""

    def __init__(
        self,
        graph: FlatGraph,
        nodes: Sequence[FlatNode],
        events: Sequence[DelegateEvent],
        border: Mapping[str, Value],
    ) -> None:
        self._graph = graph
        self._inside = {one.writes[0]: one for one in nodes if one.writes}
        self._names = {one.node.name for one in nodes}
        self._makers = {name: one for one in events if one.kind for name in one.writes[:1]}
        self._known = {name: str(self._root(value)) for name, value in border.items()}

    def found(self, wanted: Sequence[FlatNode]) -> dict[str, DelegateEvent]:
        """Return the events of some nodes that quantize."""
        asked = {
            one.node.name: self._recorded(one)
            for one in self._inside.values()
            if QUANTIZE in one.operator
        }
        nodes = {one.node.name: one for one in self._inside.values()}
        found: dict[str, DelegateEvent] = {}
        before = -1
        while before < len(self._known):
            before = len(self._known)
            made = [
                (event, how)
                for event in self._makers.values()
                if is_stored(event)
                and operation(event.kind) not in _MOVED
                and event.writes[0] not in self._known
                and (how := self._computed(event)) is not None
            ]
            open_nodes = {n: how for n, how in asked.items() if n not in found and how is not None}
            pairs = [
                (event, name)
                for event, how in made
                for name, other in open_nodes.items()
                if self._is_alike(event, how, nodes[name], other)
            ]
            for event, name in pairs:
                alone = [1 for one, other in pairs if one is event or other == name]
                if len(alone) == 1:
                    found[name] = replace(event, nodes=(name,), grade=FLOW)
                    self._known[event.writes[0]] = str(self._root(nodes[name].writes[0]))
        # behind a reshape the elements may lie in another order: that value is in no event
        by_root = {str(self._root(nodes[name].writes[0])): one for name, one in found.items()}
        result: dict[str, DelegateEvent] = {}
        for node in wanted:
            event = by_root.get(str(self._root(node.writes[0])))
            if event is not None and has_shape_of(self._graph, event, node):
                result[node.node.name] = replace(event, nodes=(node.node.name,))
        return result

    def _is_alike(self, event: DelegateEvent, how: _Made, node: FlatNode, other: _Made) -> bool:
        """Return whether an integer may be that of a node: by sources, kinds, names, size."""
        if how.sources != other.sources or not is_as_large(self._graph, event, node):
            return False
        named = self._names & {one.partition(_WEIGHT)[0] for one in how.names}
        if not named <= other.names:
            return False
        acts = [any(map(_is_activation, one.steps)) for one in (how, other)]
        if acts[0] > acts[1] or (acts[1] > acts[0] and self._is_clamped(event)):
            return False
        kinds, rest = ([s for s in one.steps if not _is_activation(s)] for one in (how, other))
        return bool(how.steps) == bool(other.steps) and _are_of(dict.fromkeys(kinds), rest)

    def _is_clamped(self, event: DelegateEvent) -> bool:
        """Return whether an activation of the payload reads an integer: it may be the node's."""
        readers = [one for one in self._makers.values() if event.writes[0] in one.reads]
        return any(_is_activation(one.kind) for one in readers)

    def _recorded(self, node: FlatNode) -> _Made | None:
        """Return how what a node quantizes is computed, None where that reads no integer."""
        sources: set[str] = set()
        steps: list[str] = []
        names: set[str] = set()
        left, seen = [*node.reads[:1]], set[Value]()
        while left:
            value = left.pop()
            maker = self._inside.get(value)
            if value in seen:
                continue
            seen.add(value)
            if maker is None:
                if value in self._graph.producers:
                    return None  # a real value from outside
                continue  # a parameter
            if DEQUANTIZE in maker.operator:
                source = self._root(maker.reads[0])
                if source in self._graph.producers or self._is_input(source):
                    sources.add(str(source))
                continue
            if not _moves(maker):
                steps.append(maker.operator)
                names.add(maker.node.name)
            left += maker.reads
        return _Made(tuple(sorted(sources)), tuple(steps), frozenset(names)) if sources else None

    def _computed(self, event: DelegateEvent) -> _Made | None:
        """Return how an integer of the payload is computed, None where a source is not known."""
        sources: set[str] = set()
        steps: list[str] = []
        constants: set[str] = set()
        left, seen = [event], set[str]()
        while left:
            one = left.pop()
            if one.writes[0] in seen:
                continue
            seen.add(one.writes[0])
            if operation(one.kind) not in _OF_LAYOUT:
                steps.append(one.kind)
            for name in one.reads:
                maker = self._makers.get(name)
                if name in self._known:
                    sources.add(self._known[name])
                elif maker is None:
                    constants.add(name)
                elif is_stored(maker) and operation(maker.kind) not in _OF_LAYOUT - {"rescale"}:
                    return None
                else:
                    left.append(maker)
        return (
            _Made(tuple(sorted(sources)), tuple(steps), frozenset(constants)) if sources else None
        )

    def _is_input(self, value: Value) -> bool:
        return str(value) in self._known.values()

    def _root(self, value: Value) -> Value:
        """Return the value that a recorded one is in another shape or layout."""
        for _ in range(len(self._graph.nodes) + 1):
            maker = self._graph.producers.get(value)
            if maker is None:
                break
            before = maker[0] if _moves(maker[0]) else self._same_before(maker[0])
            if before is None:
                break
            value = before.reads[0]
        return value

    def _same_before(self, node: FlatNode) -> FlatNode | None:
        """Return the `dequantize` whose integers a `quantize` gives again, if it is such a pair."""
        if QUANTIZE not in node.operator:
            return None
        before = self._behind_moves(node.reads[0])
        if before is None or DEQUANTIZE not in before.operator:
            return None
        return before if steps_of(before) == steps_of(node) else None

    def _behind_moves(self, value: Value) -> FlatNode | None:
        """Return what computes a value, behind nodes that only move its elements."""
        for _ in range(len(self._graph.nodes) + 1):
            maker = self._graph.producers.get(value)
            if maker is None or not _moves(maker[0]):
                return None if maker is None else maker[0]
            value = maker[0].reads[0]
        return None


def _is_activation(step: str) -> bool:
    return operation(step) in _ACTIVATIONS


def _are_of(kinds: Iterable[str], operators: Sequence[str]) -> bool:
    """Return whether steps of some kinds are those of some operators."""
    left = [*operators]
    for kind in kinds:
        alone = kind == _TABLE and len(left) == 1
        reduced = _REDUCED.get(kind)
        fitting = [
            one
            for one in left
            if alone or (operation(one) == reduced if reduced else becomes(one, kind))
        ]
        if not fitting:
            return False
        left.remove(fitting[0])
    return not left


def _moves(node: FlatNode) -> bool:
    return is_transparent(node) or (operation(node.operator) in _MOVED and len(node.reads) == 1)
