"""What is known of the values of a payload: which recorded one each is, but for its layout."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.join.lowered_kinds import BATCH_NORM, becomes, operation
from inspector.numerics.element_moves import PERMUTING
from inspector.numerics.flat_graph import (
    FlatGraph,
    FlatNode,
    Value,
    is_transparent,
    known_sizes,
)
from inspector.numerics.payload_flow import is_as_large
from inspector.numerics.same_steps import same_names, same_values
from inspector.numerics.shared_handles import DelegateEvent

CAST, CLAMP = "cast", operation("clamp")
RESCALE = "RESCALE"  # of a payload that computes in integers
QUANTIZE, DEQUANTIZE = "::quantize_per", "::dequantize_per"
_STORED = (0, 1, 2)  # dtypes
_MOVING = PERMUTING | {
    *("clone", "identity", "reshape", "squeeze", "unsqueeze", "view"),
    RESCALE.lower(),
}
_PARTS = _MOVING | {"cat", "expand", "getitem", "select", "slice", "split_with_sizes"}


class PayloadValues:
    """Values of the payload and of the record, those that only move elements as what they move.

    What is computed alike is one value on each side. A payload that computes in integers has
    those of real values: steps that quantize and rescale are followed as moves.

    Attributes:
        graph: the recorded graph
        events: those of known kinds, in order
        steps: of them the first of those that compute alike
        writers: value of the payload -> what writes it
        integers: whether the payload computes in integers
        nodes: of the delegate that compute, in graph order
        asked: of them the first of those that compute alike
        moving: the others, which move the elements of a value
        makers: recorded value -> the node that computes it
        border: recorded values of the inputs and outputs of the payload
        learned: recorded values that are known to be in the payload
    """

    def __init__(
        self,
        graph: FlatGraph,
        nodes: Sequence[FlatNode],
        events: Sequence[DelegateEvent],
    ) -> None:
        self.graph = graph
        self.events = [one for one in events if one.kind and one.writes]
        self.writers = {one.writes[0]: one for one in self.events}
        self.integers = any(one.kind == RESCALE for one in self.events)
        self._same_names = same_names(self.events)
        self._same_values = same_values(graph, nodes)
        self.steps = [one for one in self.events if one.writes[0] not in self._same_names]
        self.nodes = [one for one in nodes if one.writes and not self.moves(one)]
        self.asked = [one for one in self.nodes if one.writes[0] not in self._same_values]
        self.moving = [one for one in nodes if one.writes and self.moves(one)]
        self.makers = {one.writes[0]: one for one in self.nodes}
        self._members: dict[Value, list[FlatNode]] = {}
        for one in self.nodes:
            self._members.setdefault(self.same(one.writes[0]), []).append(one)
        self.border: dict[str, Value] = {}
        self._known: dict[str, Value] = {}
        self.learned: set[Value] = set()
        self._doubted: set[str] = set()

    def __len__(self) -> int:
        """Return how many values of the payload are known."""
        return len(self._known)

    def learn(self, name: str, value: Value) -> None:
        """Note which recorded value one of the payload is."""
        place, root = self.place(name), self.root(value)
        writer, maker = self.writers.get(place), self.makers.get(root)
        if writer is not None and maker is not None and not is_as_large(self.graph, writer, maker):
            return
        known = self._known.setdefault(place, root)
        self.learned.add(known)
        if known != root:
            self._doubted.add(place)

    def learn_casts(self) -> None:
        """Learn inputs that the payload converts to the dtype it computes in, unless nodes do."""
        for event in self.events:
            names = self.data(event) if event.kind == CAST else []
            value = self.border.get(names[0]) if len(names) == 1 else None
            users = self.graph.users.get(value, ()) if value is not None else ()
            if value is not None and not any(becomes(one.operator, CAST) for one in users):
                self.learn(event.writes[0], value)

    def of(self, name: str) -> Value | None:
        """Return the recorded value that one of the payload is, None if that is not known."""
        place = self.place(name)
        return None if place in self._doubted else self._known.get(place)

    def maker(self, event: DelegateEvent) -> FlatNode | None:
        """Return the node whose value is known to be the one that an operator writes."""
        root = self.of(event.writes[0])
        return None if root is None else self.makers.get(root)

    def computing(self, event: DelegateEvent, value: Value | None) -> FlatNode | None:
        """Return the node of an operator's kind whose value, or what follows it, a value is.

        A batch norm and an activation behind it may be part of the operator.
        """
        node = None if value is None else self.makers.get(value)
        if node is not None and (event.fused or self.integers):
            clamped = operation(node.operator) == CLAMP
            if event.fused or (clamped and not becomes(node.operator, event.kind)):
                node = self._before(node) if clamped else None
        if node is not None and node.operator == BATCH_NORM and not becomes(BATCH_NORM, event.kind):
            node = self._before(node)
        return node if node is not None and becomes(node.operator, event.kind) else None

    def parts(self, event: DelegateEvent, node: FlatNode) -> tuple[str, ...]:
        """Return the names of the nodes that an operator is, the one whose value it writes last."""
        first = self.computing(event, node.writes[0])
        names = [node.node.name]
        while first is not None and node is not first and (one := self._before(node)) is not None:
            node = one
            names.append(node.node.name)
        return tuple(reversed(names))

    def _before(self, node: FlatNode) -> FlatNode | None:
        return self.makers.get(self.source(node.reads[0])) if node.reads else None

    def data(self, event: DelegateEvent) -> list[str]:
        """Return the operands that are computed, inputs, or constants of the recorded graph."""
        return [
            one
            for one in event.reads
            if self.place(one) in self.writers or self.place(one) in self._known
        ]

    def place(self, name: str) -> str:
        """Return the value of the payload that this one is in another layout or shape."""
        for _ in range(len(self.writers) + 1):
            writer = self.writers.get(name)
            if writer is None or not is_moving(writer) or not writer.reads:
                break
            name = writer.reads[0]
        return self.first(name)

    def root(self, value: Value) -> Value:
        """Return the recorded value that this one is in another layout or shape."""
        return self.same(self.source(value))

    def first(self, name: str) -> str:
        """Return the first of the values of the payload that are computed as this one is."""
        return self._same_names.get(name, name)

    def same(self, value: Value) -> Value:
        """Return the first of the recorded values that are computed as this one is."""
        return self._same_values.get(value, value)

    def members(self, node: FlatNode) -> Sequence[FlatNode]:
        """Return the nodes that compute as this one does, itself among them."""
        return self._members.get(self.same(node.writes[0]), (node,))

    def source(self, value: Value) -> Value:
        """Return the recorded value whose elements this one has."""
        for _ in range(len(self.graph.nodes) + 1):
            maker = self.graph.producers.get(value)
            if maker is None or not self.moves(maker[0]):
                break
            value = maker[0].reads[0]
        return value

    def moves(self, node: FlatNode) -> bool:
        """Return whether a node has the elements of its operand, each once."""
        if self.integers and (QUANTIZE in node.operator or DEQUANTIZE in node.operator):
            return len(node.reads) > 0
        moving = operation(node.operator) in _MOVING and len(node.reads) == 1
        return is_transparent(node) or moving or self.graph.expands_nothing(node)

    def sizes(self, value: Value | None) -> tuple[int, ...] | None:
        """Return the sizes of a recorded value, None if one is unknown."""
        return None if value is None else known_sizes(self.graph.meta.get(value))


def is_stored(event: DelegateEvent) -> bool:
    """Return whether an event has integers of 8 or 16 bits."""
    tensors = next(iter(event.passes), ())
    return bool(tensors) and tensors[0].scalar_type in _STORED


def is_moving(event: DelegateEvent) -> bool:
    """Return whether an operator of a payload has the elements of its operand, each once."""
    return operation(event.kind) in _MOVING


def logged_sizes(event: DelegateEvent) -> tuple[int, ...] | None:
    """Return the sizes of what an event logged first, None without."""
    tensors = next(iter(event.passes), ())
    return next((one.sizes for one in tensors), None)


def is_dequantized(graph: FlatGraph, value: Value) -> bool:
    """Return whether a recorded value is a dequantized one, or has elements of one."""
    maker = graph.producers.get(value)
    while maker is not None and maker[0].reads and operation(maker[0].operator) in _PARTS:
        maker = graph.producers.get(maker[0].reads[0])
    return maker is not None and DEQUANTIZE in maker[0].operator
