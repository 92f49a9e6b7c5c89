"""Joins of nodes whose handles a payload does not tell apart, by what its operators compute.

An operator that computes from values of recorded nodes what one of them computes has its value; so
has one that reads a constant of one node alone. What such an operator reads is what the node
reads, and an operator that writes a value read there is the last one of the node that does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from inspector.join.lowered_kinds import BATCH_NORM, becomes, operation
from inspector.numerics.element_moves import begin_alike, digest, integers
from inspector.numerics.flat_graph import FlatGraph, FlatNode, Value
from inspector.numerics.grades import FLOW, ORDER
from inspector.numerics.other_forms import REDUCED, form_of, other_form
from inspector.numerics.partly_known import COMMUTATIVE, OF_TWO, PartlyKnown, single
from inspector.numerics.payload_flow import has_shape_of
from inspector.numerics.payload_places import ElementPlaces
from inspector.numerics.payload_values import (
    CLAMP,
    DEQUANTIZE,
    PayloadValues,
    is_moving,
    logged_sizes,
)
from inspector.numerics.requantized import Requantized
from inspector.numerics.same_steps import is_distinctive
from inspector.numerics.shared_handles import DelegateEvent
from inspector.numerics.taken_apart import taken_apart

_OF_NORMS = frozenset((operation(BATCH_NORM), "add", "mul", "sub"))
_PACKED = "aten._weight_int8pack_mm.default"  # has no bias: that is added by the next step
_OF_LINEAR = frozenset(map(operation, ("addmm", "linear", "mm")))
_TABLE = "TABLE"  # of an operator of one operand


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
    walk = _PayloadWalk(graph, nodes, events, border)
    for node in nodes:
        event = matched.get(node.node.name)
        if event is not None and _is_sure(event, node):
            whole = len(event.writes) == len(node.writes)
            for name, value in zip(event.writes, node.writes[: None if whole else 1], strict=False):
                walk.learn(name, value)
    walk.walk()
    return walk.found(wanted)


def _is_sure(event: DelegateEvent, node: FlatNode) -> bool:
    whole = event.nodes[-1:] == (node.node.name,) and not event.fused
    return whole and event.grade != ORDER and bool(event.writes) and bool(node.writes)


class _PayloadWalk:
    """Learns values of a payload from those that are known, in both directions."""

    def __init__(
        self,
        graph: FlatGraph,
        nodes: Sequence[FlatNode],
        events: Sequence[DelegateEvent],
        border: Mapping[str, Value],
    ) -> None:
        self._graph = graph
        self._values = PayloadValues(graph, nodes, events)
        self._values.border.update(border)
        self._events = self._values.steps
        names = {n for one in events for n in one.reads if n not in self._values.writers}
        reads = {value for one in nodes for value in one.reads if value not in graph.producers}
        self._constants = {value[1]: value for value in reads if value[1] in names}
        for name, value in border.items():
            self.learn(name, value)
        self._values.learn_casts()
        self._contents = dict(
            one for event in events for one in event.constants if one[0] not in self._values.writers
        )
        self._places = ElementPlaces(self._values)

    def learn(self, name: str, value: Value) -> None:
        """Note which recorded value one of the payload is."""
        self._values.learn(name, value)

    def walk(self) -> None:
        """Go on while that finds more."""
        self._by_constants()
        self._by_weights()
        partly = PartlyKnown(self._values, self._held, self._content)
        before = -1
        while before < len(self._values):
            before = len(self._values)
            self._by_cuts()
            self._forward()
            self._by_tables()
            self._backward()
            if before == len(self._values):
                for event, node in partly.pairs():
                    self._match(event, node)
            if before == len(self._values):
                for event, node in list(taken_apart(self._values)):
                    self.learn(event.writes[0], node.writes[0])

    def found(self, wanted: Collection[str]) -> dict[str, DelegateEvent]:
        """Return the events of some nodes, in the shape that the node has if there is such one."""
        self._places.update()
        if self._values.integers:  # a real value may be the one before or behind its rounding
            return self._moved(wanted)
        fitting: dict[str, list[DelegateEvent]] = {}
        found: dict[str, DelegateEvent] = {}
        for event in self._values.events:
            maker = self._values.maker(event)
            for node in () if maker is None else self._values.members(maker):
                if has_shape_of(self._graph, event, node):
                    if node.node.name in wanted:
                        fitting.setdefault(node.node.name, []).append(event)
                elif node.node.name in wanted and (shaped := self._places.in_layout(event, node)):
                    found.setdefault(node.node.name, shaped)
        for name, events in fitting.items():
            node = next(one for one in self._values.nodes if one.node.name == name)
            sizes = self._values.sizes(node.writes[0])
            order = digest(self._places.recorded(node.writes[0]))
            known = [one for one in events if self._places.digest(one)]
            straight = [one for one in known if self._places.digest(one) == order]
            left = straight or [one for one in events if one not in known]
            exact = [one for one in left if logged_sizes(one) == sizes]
            event = next(iter(exact or left or events))
            own = None if exact else self._places.in_layout(event, node)
            if own is None and not left:  # its elements are elsewhere: not the node's as they are
                continue
            parts = self._values.parts(event, node)
            found[name] = replace(own or event, nodes=parts, grade=FLOW)
        return found | self._moved(wanted)

    def _moved(self, wanted: Collection[str]) -> dict[str, DelegateEvent]:
        """Return the events of moving nodes that have the elements of a known value alike."""
        by_root: dict[Value, list[DelegateEvent]] = {}
        for event in self._values.events:
            root = self._values.of(event.writes[0])
            if root is not None:
                by_root.setdefault(root, []).append(event)
        found: dict[str, DelegateEvent] = {}
        held = Requantized(self._values) if self._values.integers else None
        for node in self._values.moving:
            value = node.writes[0]
            root = self._values.root(value)
            if node.node.name not in wanted or root not in by_root:
                continue
            order = digest(self._places.recorded(value))
            having = [one for one in by_root[root] if held is None or held.has(one, node)]
            alike = [one for one in having if order and self._places.digest(one) == order]
            sizes = self._values.sizes(value)
            exact = [one for one in alike if logged_sizes(one) == sizes]
            left = exact or alike or (having if held is not None else [])
            shaped = (self._places.in_layout(one, node) for one in left)
            own = next((one for one in shaped if one is not None), None)
            if own is not None:
                found[node.node.name] = own
        return found

    # ---- steps
    def _by_cuts(self) -> None:
        """Learn slices that take the same elements of a value as one of the record alone does."""
        self._places.update()
        made: dict[object, list[DelegateEvent]] = {}
        asked: dict[object, list[Value]] = {}
        for event in self._events:
            if event.cut and self._values.of(event.writes[0]) is None:
                source, taken = self._places.cut(event) or (None, None)
                key = source, None if taken is None else digest(np.sort(taken))
                made.setdefault(key, []).append(event)
        for node in self._values.asked if made else ():
            for value in node.writes:
                cuts = () if value in self._values.learned else self._places.recorded_cuts(value)
                for source, taken in cuts:
                    asked.setdefault((source, digest(np.sort(taken))), []).append(value)
        for key, events in made.items():
            if len(events) == len(asked.get(key, ())) == 1:
                self.learn(events[0].writes[0], asked[key][0])

    def _by_constants(self) -> None:
        """Match operators that alone read a constant which one node of their kind alone reads."""
        events: dict[object, list[DelegateEvent]] = {}
        for event in self._events:
            for name in dict.fromkeys(map(self._values.place, event.reads)):
                for key in {self._constants.get(name), self._contents.get(name)} - {None, ""}:
                    events.setdefault(key, []).append(event)
        nodes: dict[object, list[FlatNode]] = {}
        for node in self._values.asked:
            for key in self._keys(node):
                nodes.setdefault(key, []).append(node)
        for key, readers in events.items():
            asked = nodes.get(key, ())
            pairs = [(e, n) for e, n in product(readers, asked) if becomes(n.operator, e.kind)]
            if len(pairs) == 1 and (not isinstance(key, str) or is_distinctive(key)):
                self._match(*pairs[0])

    def _keys(self, node: FlatNode) -> set[Value | str]:
        """Return the values that a node reads, and the contents of those that are constant."""
        roots = {self._values.root(value) for value in node.reads}
        held = {self._content(value) for value in node.reads}
        return {*roots, *held, *(self._graph.contents.get(one[1], "") for one in roots)} - {""}

    def _by_weights(self) -> None:
        """Learn what linear layers of integer weights read and write, by weights of one alone."""
        events: dict[str, list[DelegateEvent]] = {}
        for event in self._events:
            for own in {one for _, one in event.constants} if event.kind == _PACKED else ():
                events.setdefault(own, []).append(event)
        nodes: dict[str, list[tuple[FlatNode, Value]]] = {}
        for node in self._values.asked if events else ():
            for before, value in zip(node.reads, node.reads[1:], strict=False):
                own = self._weight(value) if operation(node.operator) in _OF_LINEAR else ""
                if own:
                    nodes.setdefault(own, []).append((node, before))
        for own, steps in events.items():
            if len(steps) == len(nodes.get(own, ())) == 1 and is_distinctive(own):
                [(node, operand)], event = nodes[own], steps[0]
                last = self._with_bias(event) if len(node.reads) > 2 else event
                self.learn(event.reads[0], operand)
                if last is not None:
                    self.learn(last.writes[0], node.writes[0])

    def _weight(self, value: Value) -> str:
        """Return the content of the integers that a weight is dequantized from, empty without."""
        maker = self._graph.producers.get(self._values.source(value))
        if maker is None or DEQUANTIZE not in maker[0].operator or not maker[0].reads:
            return ""
        return self._content(maker[0].reads[0])

    def _with_bias(self, event: DelegateEvent) -> DelegateEvent | None:
        """Return the step that adds a constant, if it alone reads what another one writes."""
        readers = self._readers(event)
        if len(readers) != 1 or operation(readers[0].kind) != "add" or len(readers[0].reads) != 2:
            return None
        return readers[0] if self._values.data(readers[0]) == [event.writes[0]] else None

    def _forward(self) -> None:
        """Match operators and nodes that alone compute something of known values."""
        made: dict[object, list[DelegateEvent]] = {}
        asked: dict[object, list[FlatNode]] = {}
        for event in self._events:
            if not is_moving(event) and self._values.of(event.writes[0]) is None:
                read = self._read(event)
                alone = read and None not in read and self._has_all(event, len(read))
                if alone and self._places.cut(event) is None:
                    made.setdefault(_unordered(read), []).append(event)
                if (other := other_form(self._values, event)) and None not in other[1]:
                    made.setdefault(_unordered(other[1]), []).append(event)
        for node in self._values.asked:
            read = self._asked(node)
            if node.writes[0] not in self._values.learned and read and None not in read:
                asked.setdefault(_unordered(read), []).append(node)
        for call, events in made.items():
            for event, node in self._only_pairs(events, asked.get(call, ())):
                self._match(event, node)

    def _computes(self, event: DelegateEvent, node: FlatNode) -> bool:
        """Return whether an operator is one of a node's kind, with operands in its order."""
        if event.kind in REDUCED:
            return REDUCED[event.kind] == operation(node.operator)
        if other_form(self._values, event) == (form_of(node), self._asked(node)):
            return True
        if not becomes(node.operator, event.kind):
            return False
        read, asked = self._read(event), self._asked(node)
        return read == asked or operation(node.operator) in COMMUTATIVE

    def _only_pairs(
        self, events: Sequence[DelegateEvent], nodes: Sequence[FlatNode]
    ) -> list[tuple[DelegateEvent, FlatNode]]:
        """Return the operators and nodes that only each other can be.

        Several slices of a value differ in where they begin, several products in a constant.
        """
        pairs = [(e, n) for e, n in product(events, nodes) if self._computes(e, n)]
        found = single(pairs)
        taken = {id(one) for pair in found for one in pair}
        rest = [(e, n) for e, n in pairs if not {id(e), id(n)} & taken]
        return found + single([(e, n) for e, n in rest if self._differs(e, n)])

    def _differs(self, event: DelegateEvent, node: FlatNode) -> bool:
        """Return whether an operator has the numbers or a constant of a node."""
        own = {*map(self._held, event.reads)} - {""}
        return begin_alike(event.given, integers(node.node)) or bool(own & self._keys(node))

    def _read(self, event: DelegateEvent) -> list[object]:
        """Return what an operator reads: values, None for unknown ones, and small constants."""
        found: list[object] = [self._values.of(name) for name in self._values.data(event)]
        if operation(event.kind) in OF_TWO and len(found) == 1:
            held = map(self._contents.get, map(self._values.place, event.reads[:2]))
            found += [one for one in held if one]
        return found

    def _asked(self, node: FlatNode) -> list[object]:
        """Return what a node reads, as of an operator: no parameters, but as second operands."""
        held = [self._content(value) for value in node.reads]
        pairs = [
            (self._values.root(value), own) for value, own in zip(node.reads, held, strict=True)
        ]
        known = self._values.learned
        found: list[object] = [
            root if root in known else None
            for root, own in pairs
            if root in known or (root in self._graph.producers and not own)
        ]
        if operation(node.operator) in OF_TWO and len(found) == 1:
            found += [own for root, own in pairs if own and root not in known]
        return found

    def _held(self, name: str) -> str:
        """Return the content of a constant of the payload, empty for others."""
        return self._contents.get(self._values.place(name), "")

    def _content(self, value: Value) -> str:
        """Return the content of the constant that a value has the elements of, empty for others."""
        for _ in range(len(self._graph.nodes) + 1):
            own = self._graph.contents.get(value[1])
            maker = self._graph.producers.get(value)
            if own or maker is None or not self._values.moves(maker[0]):
                return own or ""
            value = maker[0].reads[0]
        return ""

    def _by_tables(self) -> None:
        """Learn what tables of integers have: all that lies between two quantized values."""
        made: dict[Value, list[DelegateEvent]] = {}
        asked: dict[Value, list[FlatNode]] = {}
        kinds: dict[Value, list[str]] = {}
        for event in self._events if self._values.integers else ():
            read = [one for name in self._values.data(event) if (one := self._values.of(name))]
            if event.kind == _TABLE and self._values.of(event.writes[0]) is None:
                made.setdefault(read[0], []).append(event) if read else None
            for one in read if event.kind != _TABLE else ():
                kinds.setdefault(one, []).append(event.kind)
        for node in self._values.asked if made else ():
            roots = {self._values.root(v) for v in node.reads}
            root = next(iter(roots), None)
            if len(roots) != 1 or root not in made or node.writes[0] in self._values.learned:
                continue
            if not any(becomes(node.operator, kind) for kind in kinds.get(root, ())):
                asked.setdefault(root, []).append(node)
        for root, events in made.items():
            if len(events) == len(asked.get(root, ())) == 1:
                self.learn(events[0].writes[0], asked[root][0].writes[0])

    def _backward(self) -> None:
        """Learn what matched operators read, where only one pairing is possible."""
        for event in self._events:
            node = self._values.computing(event, self._values.of(event.writes[0]))
            if node is None:
                continue
            names = {self._values.place(name): name for name in self._values.data(event)}
            values = dict.fromkeys(self._values.root(value) for value in node.reads)
            left = [name for name in names if self._values.of(name) is None]
            open_values = [
                one
                for one in values
                if one in self._values.makers and one not in self._values.learned
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
            if (writer := self._values.writers.get(name)) is not None
            and self._values.computing(writer, value) is not None
        ]
        apart = all(len(set(side)) == len(fitting) for side in zip(*fitting, strict=True))
        for name, value in fitting if apart else ():
            self.learn(name, value)

    def _match(self, event: DelegateEvent, node: FlatNode) -> None:
        """Learn what an operator writes: the value of its node, or of what is folded into it."""
        if operation(event.kind) == CLAMP:
            node = self._last_clamp(event, node)
        event = self._last_reduction(event)
        users = self._graph.users.get(node.writes[0], ())
        if len(users) == 1 and users[0].operator == BATCH_NORM:
            if self._is_normed(event):
                return
            node = users[0]
        act = self._only_user(node)
        acts = act is not None and operation(act.operator) == CLAMP
        if act is not None and acts and (event.fused or self._saturates(event)):
            node = self._last_clamp(event, act)
        elif event.fused:
            return
        self.learn(event.writes[0], node.writes[0])

    # ---- facts
    def _last_clamp(self, event: DelegateEvent, node: FlatNode) -> FlatNode:
        """Return the last of the clamps in a row that one clamp of the payload is."""
        if self._is_clamped(event):
            return node
        for _ in range(len(self._values.nodes)):
            user = self._only_user(node)
            if user is None or operation(user.operator) != CLAMP:
                break
            node = user
        return node

    def _is_clamped(self, event: DelegateEvent) -> bool:
        return any(operation(one.kind) == CLAMP for one in self._readers(event))

    def _saturates(self, event: DelegateEvent) -> bool:
        """Return whether an activation can only be the bounds of the integers of a step."""
        own = operation(event.kind) != CLAMP
        return self._values.integers and own and not self._is_clamped(event)

    def _readers(self, event: DelegateEvent) -> list[DelegateEvent]:
        name = event.writes[0]
        return [one for one in self._events if name in map(self._values.place, one.reads)]

    def _only_user(self, node: FlatNode) -> FlatNode | None:
        """Return the one node of the delegate that reads a value which nothing else does."""
        users = {user.place: user for user in self._graph.users.get(node.writes[0], ())}
        user = next(iter(users.values()), None)
        if len(users) != 1 or user is None or node.writes[0] in self._graph.results:
            return None
        return user if user.writes and user.writes[0] in self._values.makers else None

    def _last_reduction(self, event: DelegateEvent) -> DelegateEvent:
        """Return the last of the steps in a row that reduce one dimension each."""
        for _ in self._events if event.kind in REDUCED else ():
            readers = self._readers(event)
            if len(readers) != 1 or readers[0].kind != event.kind:
                break
            event = readers[0]
        return event

    def _is_normed(self, event: DelegateEvent) -> bool:
        """Return whether what an operator writes is read by one call that a norm may be."""
        readers = [one for one in self._readers(event) if not is_moving(one)]
        if len(readers) != 1 or operation(readers[0].kind) not in _OF_NORMS:
            return False
        return len(self._values.data(readers[0])) == 1  # a norm's other operands are constants

    def _has_all(self, event: DelegateEvent, count: int) -> bool:
        """Return whether an operator reads nothing else that its result depends on.

        Of a multiplication by a constant that is not in the record, it is open whose it is.
        """
        return count == 2 or operation(event.kind) not in OF_TWO


def _unordered(values: Sequence[object]) -> tuple[str, ...]:
    return tuple(sorted(map(str, values)))
