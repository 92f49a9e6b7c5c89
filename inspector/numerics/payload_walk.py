"""Joins of nodes whose handles a payload does not tell apart, by what its operators compute.

An operator that computes from values of recorded nodes what one of them computes has its value; so
has one that reads a constant of one node alone. What such an operator reads is what the node
reads, and an operator that writes a value read there is the last one of the node that does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import product

from inspector.join.lowered_kinds import becomes, operation
from inspector.numerics.element_moves import (
    PERMUTING,
    ElementMove,
    arrangement,
    digest,
    integers,
)
from inspector.numerics.flat_graph import FlatGraph, FlatNode, Value, is_transparent
from inspector.numerics.grades import FLOW, ORDER
from inspector.numerics.moved import recorded_dims
from inspector.numerics.payload_flow import has_shape_of, is_as_large, known_sizes
from inspector.numerics.shared_handles import DelegateEvent
from inspector.numerics.traced import strides_of
from schema.dtypes.scalar_type import numel

_MOVING = PERMUTING | {"clone", "identity", "reshape", "squeeze", "unsqueeze", "view"}
_NORM = "aten::_native_batch_norm_legit_no_training"
_OF_NORMS = frozenset((operation(_NORM), "add", "mul", "sub"))
_OF_TWO = frozenset(("add", "div", "maximum", "minimum", "mul", "pow", "sub"))
_CLAMP = operation("clamp")
_COMMUTATIVE = frozenset(("add", "maximum", "minimum", "mul"))


def walked(
    graph: FlatGraph,
    nodes: Sequence[FlatNode],
    matched: Mapping[str, DelegateEvent],
    wanted: Collection[str],
    events: Sequence[DelegateEvent],
    border: Mapping[str, Value],
) -> dict[str, DelegateEvent]:
    """Return node -> event of nodes whose value the data flow of the payload shows.

    Args:
        graph: the recorded graph
        nodes: of the delegate, in graph order
        matched: events of the nodes that are known
        wanted: nodes whose events are ambiguous
        events: all of the call, in order
        border: recorded values of the inputs and outputs of the payload
    """
    if not wanted:
        return {}
    walk = _PayloadWalk(graph, nodes, events)
    for name, value in border.items():
        walk.learn(name, value)
    for node in nodes:
        event = matched.get(node.node.name)
        if event is not None and _is_sure(event, node):
            walk.learn(event.writes[0], node.writes[0])
    walk.walk()
    return walk.found(wanted)


def _is_sure(event: DelegateEvent, node: FlatNode) -> bool:
    whole = event.nodes[-1:] == (node.node.name,) and not event.fused
    return whole and event.grade != ORDER and bool(event.writes) and bool(node.writes)


class _PayloadWalk:
    """What is known of the values of a payload: which recorded one each is, but for its layout."""

    def __init__(
        self, graph: FlatGraph, nodes: Sequence[FlatNode], events: Sequence[DelegateEvent]
    ) -> None:
        self._graph = graph
        self._events = [one for one in events if one.kind and one.writes and not _is_fused(one)]
        self._writers = {one.writes[0]: one for one in self._events}
        self._nodes = [one for one in nodes if one.writes and not self._moves(one)]
        self._moving = [one for one in nodes if one.writes and self._moves(one)]
        self._makers = {one.writes[0]: one for one in self._nodes}
        self._by_name = {one.node.name: one for one in self._nodes}
        self._known: dict[str, Value] = {}
        self._learned: set[Value] = set()  # the values of those
        self._doubted: set[str] = set()
        self._in_order: dict[str, bool] = {}  # value -> whether its elements are
        self._places: dict[str, bytes] = {}  # value -> the digest of those of its elements
        names = {name for one in self._events for name in one.reads if name not in self._writers}
        reads = {value for one in nodes for value in one.reads if value not in graph.producers}
        self._constants = {value[1]: value for value in reads if value[1] in names}

    def learn(self, name: str, value: Value) -> bool:
        """Note which recorded value one of the payload is; return whether that is new."""
        place, root = self._place(name), self._root(value)
        writer, maker = self._writers.get(place), self._makers.get(root)
        if writer is not None and maker is not None and not is_as_large(self._graph, writer, maker):
            return False
        known = self._known.setdefault(place, root)
        self._learned.add(known)
        if known != root:
            self._doubted.add(place)
            return False
        return True

    def walk(self) -> None:
        """Go on while that finds more."""
        self._by_constants()
        before = -1
        while before < len(self._known):
            before = len(self._known)
            self._forward()
            self._backward()

    def found(self, wanted: Collection[str]) -> dict[str, DelegateEvent]:
        """Return the events of some nodes, in the shape that the node has if there is such one."""
        fitting: dict[str, list[DelegateEvent]] = {}
        found: dict[str, DelegateEvent] = {}
        for event in self._events:
            node = self._makers.get(self._of(event.writes[0]) or ((), ""))
            if node is None:
                continue
            if not has_shape_of(self._graph, event, node):
                if self._is_in_order(event):
                    found[node.node.name] = self._reshaped(event, node)
            elif node.node.name in wanted:
                fitting.setdefault(node.node.name, []).append(event)
        for name, events in fitting.items():
            sizes = _sizes(self._graph, self._by_name[name])
            exact = (one for one in events if _logged_sizes(one) == sizes)
            found[name] = replace(next(exact, events[0]), nodes=(name,), grade=FLOW)
        return found | self._moved(wanted)

    def _moved(self, wanted: Collection[str]) -> dict[str, DelegateEvent]:
        """Return the events of moving nodes that have the elements of a known value alike."""
        by_root: dict[Value, list[DelegateEvent]] = {}
        for event in self._events:
            root = self._of(event.writes[0])
            if root is not None:
                by_root.setdefault(root, []).append(event)
        found: dict[str, DelegateEvent] = {}
        for node in self._moving:
            root = self._root(node.writes[0])
            if node.node.name not in wanted or root not in by_root:
                continue
            sizes = known_sizes(self._graph.meta.get(root))
            asked = self._recorded_moves(node)
            order = b"" if sizes is None or asked is None else digest(arrangement(sizes, asked))
            if sizes is None or asked is None or not order:
                continue
            alike = [one for one in by_root[root] if self._is_arranged(one, sizes, order)]
            exact = (one for one in alike if _logged_sizes(one) == asked[-1].sizes)
            event = next(exact, alike[0] if alike else None)
            if event is not None:
                found[node.node.name] = self._reshaped(event, node)
        return found

    def _is_arranged(self, event: DelegateEvent, sizes: tuple[int, ...], order: bytes) -> bool:
        """Return whether an event has the elements of a value of these sizes in an order."""
        name = event.writes[0]
        if name not in self._places:  # of one root all have its sizes
            found = self._logged_moves(event, sizes)
            self._places[name] = b"" if found is None else digest(arrangement(*found))
        return self._places[name] == order

    def _recorded_moves(self, node: FlatNode) -> list[ElementMove] | None:
        """Return the moves from the root of a recorded value to it, None if one is unknown."""
        moves: list[ElementMove] = []
        for _ in range(len(self._graph.nodes)):
            sizes = known_sizes(self._graph.meta.get(node.writes[0]))
            permutes = operation(node.operator) in PERMUTING
            dims = tuple(recorded_dims(node, len(sizes or ()))) if permutes else None
            if sizes is None or dims == ():
                return None
            moves.append(ElementMove(sizes, dims))
            maker = self._graph.producers.get(node.reads[0])
            if maker is None or not self._moves(maker[0]):
                break
            node = maker[0]
        return moves[::-1]

    def _logged_moves(
        self, event: DelegateEvent, sizes: tuple[int, ...]
    ) -> tuple[tuple[int, ...], list[ElementMove]] | None:
        """Return the logged sizes of a value, and the moves from it to that of an event.

        None if they are unknown, or sizes of the value are others than in the record, but for ones.
        """
        moves: list[ElementMove] = []
        while operation(event.kind) in _MOVING:
            permutes, logged = operation(event.kind) in PERMUTING, _logged_sizes(event)
            if logged is None or len(moves) > len(self._writers) or (permutes and not event.dims):
                return None
            moves.append(ElementMove(logged, event.dims if permutes else None))
            writer = self._writers.get(event.reads[0]) if event.reads else None
            if writer is None:  # an input
                return sizes, moves[::-1]
            event = writer
        logged = _logged_sizes(event)
        return None if logged is None or not self._is_in_order(event) else (logged, moves[::-1])

    def _is_in_order(self, event: DelegateEvent) -> bool:
        """Return whether the elements of a known value are in the order of the recorded ones.

        They are where its sizes are those of the record, but for ones, and where it is computed
        element by element, or row by row, from such a value in another shape.
        """
        known = self._in_order.get(event.writes[0])
        if known is not None:
            return known
        self._in_order[event.writes[0]] = False  # of a damaged payload that reads what it writes
        root = self._of(event.writes[0])
        sizes = None if root is None else known_sizes(self._graph.meta.get(root))
        logged, node = _logged_sizes(event), None if root is None else self._makers.get(root)
        if sizes is None or logged is None:
            return False
        found = _without_ones(logged) == _without_ones(sizes)
        if not found and node is not None and numel(logged) == numel(sizes):
            read = [one for one in node.reads if one in self._graph.producers]
            kept = len(read) == 1 and known_sizes(self._graph.meta.get(read[0])) == sizes
            data = self._data(event)
            found = kept and len(data) == 1 and self._reads_in_order(data[0], read[0])
        self._in_order[event.writes[0]] = found
        return found

    def _reads_in_order(self, name: str, value: Value) -> bool:
        """Return whether a value of the payload has the elements of a recorded one in order."""
        root, writer = self._root(value), self._writers.get(name)
        sizes, maker = known_sizes(self._graph.meta.get(root)), self._graph.producers.get(value)
        if writer is None or sizes is None or maker is None or self._of(name) != root:
            return False
        asked = [] if value == root else self._recorded_moves(maker[0])
        order = b"" if asked is None else digest(arrangement(sizes, asked))
        return bool(order) and self._is_arranged(writer, sizes, order)

    def _reshaped(self, event: DelegateEvent, node: FlatNode) -> DelegateEvent:
        """Return an event with its tensors in the sizes of a node."""
        own = replace(event, nodes=(node.node.name,), grade=FLOW)
        sizes = known_sizes(self._graph.meta.get(node.writes[0])) or ()
        if any(one.strides != strides_of(one.sizes) for each in event.passes for one in each):
            return own
        passes = tuple(
            tuple(replace(one, sizes=sizes, strides=strides_of(sizes)) for one in each)
            for each in event.passes
        )
        return replace(own, passes=passes)

    # ---- steps
    def _by_constants(self) -> None:
        """Match operators that alone read a constant which one node of their kind alone reads."""
        events: dict[str, list[DelegateEvent]] = {}
        for event in self._events:
            for name in dict.fromkeys(event.reads):
                events.setdefault(name, []).append(event)
        nodes: dict[Value, list[FlatNode]] = {}
        for node in self._nodes:
            for value in dict.fromkeys(map(self._root, node.reads)):
                nodes.setdefault(value, []).append(node)
        for name, value in self._constants.items():
            readers = events.get(name, ()), nodes.get(value, ())
            pairs = [(e, n) for e, n in product(*readers) if becomes(n.operator, e.kind)]
            if len(pairs) == 1:
                self._match(*pairs[0])

    def _forward(self) -> None:
        """Match operators and nodes that alone compute something of known values."""
        made: dict[object, list[DelegateEvent]] = {}
        asked: dict[object, list[FlatNode]] = {}
        for event in self._events:
            if operation(event.kind) not in _MOVING and self._of(event.writes[0]) is None:
                read = self._data(event)
                values = [self._of(name) for name in read]
                if read and None not in values and self._has_all(event, len(read)):
                    made.setdefault(self._call(event.kind, values), []).append(event)
        known = self._learned
        for node in self._nodes:
            roots = [self._root(value) for value in node.reads]  # without parameters
            read = [one for one in roots if one in known or one in self._graph.producers]
            if node.writes[0] not in known and read and known.issuperset(read):
                asked.setdefault(self._call(node.operator, read), []).append(node)
        for call, events in made.items():
            for event, node in _only_pairs(events, asked.get(call, ())):
                if becomes(node.operator, event.kind):
                    self._match(event, node)

    def _backward(self) -> None:
        """Learn what matched operators read, where only one pairing is possible."""
        for event in self._events:
            node = self._makers.get(self._of(event.writes[0]) or ((), ""))
            if node is None or not becomes(node.operator, event.kind):
                continue
            names = {self._place(name): name for name in self._data(event)}
            values = dict.fromkeys(self._root(value) for value in node.reads)
            left = [name for name in names if self._of(name) is None]
            open_values = [
                one for one in values if one in self._makers and one not in self._learned
            ]
            if len(left) == len(open_values) == 1:
                self.learn(left[0], open_values[0])
            elif len(left) == len(open_values) == 2:
                self._pair(left, open_values)

    def _pair(self, names: Sequence[str], values: Sequence[Value]) -> None:
        """Learn of two operands those whose makers have the kinds of different operators."""
        fitting = [
            (name, value)
            for name in names
            for value in values
            if (writer := self._writers.get(name)) is not None
            and becomes(self._makers[value].operator, writer.kind)
        ]
        apart = all(len(set(side)) == len(fitting) for side in zip(*fitting, strict=True))
        for name, value in fitting if apart else ():
            self.learn(name, value)

    def _match(self, event: DelegateEvent, node: FlatNode) -> None:
        """Learn what an operator writes: the value of its node, or of what is folded into it."""
        if operation(event.kind) == _CLAMP:
            node = self._last_clamp(event, node)
        users = self._graph.users.get(node.writes[0], ())
        if len(users) != 1 or users[0].operator != _NORM:
            self.learn(event.writes[0], node.writes[0])
        elif not self._is_normed(event):
            self.learn(event.writes[0], users[0].writes[0])

    # ---- facts
    def _last_clamp(self, event: DelegateEvent, node: FlatNode) -> FlatNode:
        """Return the last of the clamps in a row that one clamp of the payload is."""
        readers = (one for one in self._events if event.writes[0] in map(self._place, one.reads))
        if any(operation(one.kind) == _CLAMP for one in readers):
            return node
        for _ in range(len(self._nodes)):
            users = {user.place: user for user in self._graph.users.get(node.writes[0], ())}
            last = node.writes[0] in self._graph.results or len(users) != 1
            user = None if last else next(iter(users.values()))
            if user is None or user.node.name not in self._by_name:
                break
            if operation(user.operator) != _CLAMP:
                break
            node = user
        return node

    def _is_normed(self, event: DelegateEvent) -> bool:
        """Return whether what an operator writes is read by one call that a norm may be."""
        readers = [one for one in self._events if event.writes[0] in map(self._place, one.reads)]
        readers = [one for one in readers if operation(one.kind) not in _MOVING]
        return len(readers) == 1 and operation(readers[0].kind) in _OF_NORMS

    def _of(self, name: str) -> Value | None:
        place = self._place(name)
        return None if place in self._doubted else self._known.get(place)

    def _data(self, event: DelegateEvent) -> list[str]:
        """Return the operands that are computed, inputs, or constants of the recorded graph."""
        return [
            one
            for one in event.reads
            if self._place(one) in self._writers or self._place(one) in self._known
        ]

    def _has_all(self, event: DelegateEvent, count: int) -> bool:
        """Return whether an operator reads nothing else that its result depends on.

        Of a multiplication by a constant that is not in the record, it is open whose it is.
        """
        return count == 2 or operation(event.kind) not in _OF_TWO

    def _call(self, operator: str, values: Sequence[Value | None]) -> object:
        kind = operation(operator)
        return kind, tuple(sorted(map(str, values)) if kind in _COMMUTATIVE else map(str, values))

    def _place(self, name: str) -> str:
        """Return the value of the payload that this one is in another layout or shape."""
        for _ in range(len(self._writers) + 1):
            writer = self._writers.get(name)
            if writer is None or operation(writer.kind) not in _MOVING or not writer.reads:
                break
            name = writer.reads[0]
        return name

    def _root(self, value: Value) -> Value:
        """Return the recorded value that this one is in another layout or shape."""
        for _ in range(len(self._graph.nodes) + 1):
            maker = self._graph.producers.get(value)
            if maker is None or not self._moves(maker[0]):
                break
            value = maker[0].reads[0]
        return value

    def _moves(self, node: FlatNode) -> bool:
        """Return whether a node has the elements of its operand, each once."""
        moving = operation(node.operator) in _MOVING and len(node.reads) == 1
        return is_transparent(node) or moving or self._expands_nothing(node)

    def _expands_nothing(self, node: FlatNode) -> bool:
        """Return whether a node expands a tensor to the sizes that it has."""
        if operation(node.operator) != "expand" or not node.reads:
            return False
        before, after = (
            known_sizes(self._graph.meta.get(one)) for one in (node.reads[0], node.writes[0])
        )
        return before is not None and before == after


def _without_ones(sizes: Sequence[int]) -> list[int]:
    return [size for size in sizes if size != 1]


def _only_pairs(
    events: Sequence[DelegateEvent], nodes: Sequence[FlatNode]
) -> list[tuple[DelegateEvent, FlatNode]]:
    """Return the operators and nodes that only each other can be: of slices by where they begin."""
    if len(events) == len(nodes) == 1:
        return [(events[0], nodes[0])]
    pairs = [(e, n) for e, n in product(events, nodes) if _begin_alike(e.given, integers(n.node))]
    sides = [Counter(id(one) for one in side) for side in zip(*pairs, strict=True)]
    return [(e, n) for e, n in pairs if sides[0][id(e)] == sides[1][id(n)] == 1]


def _begin_alike(one: Sequence[int], other: Sequence[int]) -> bool:
    """Return whether arguments agree as far as both are given."""
    count = min(len(one), len(other))
    return count > 0 and one[:count] == other[:count]


def _is_fused(event: DelegateEvent) -> bool:
    """Return whether an operator also computes what other nodes do: an activation behind it."""
    return event.fused or "_with_" in event.kind


def _logged_sizes(event: DelegateEvent) -> tuple[int, ...] | None:
    tensors = next(iter(event.passes), ())
    return next((one.sizes for one in tensors), None)


def _sizes(graph: FlatGraph, node: FlatNode) -> tuple[int | str, ...] | None:
    meta = graph.meta.get(node.writes[0])
    return meta.tensor.sizes if meta is not None and meta.tensor is not None else None
