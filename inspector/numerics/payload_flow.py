"""Matches the nodes of a payload with the recorded nodes of a delegate, by data flow.

Payloads are ordered by their compiler: of two chains that do not touch, the second may come first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from inspector.files.payloads import executed_payload
from inspector.files.session import Session
from inspector.graph.delegate_inside import InsideNode, InsideValue, executed_inside
from inspector.join.lowered_kinds import becomes
from inspector.join.operands import delegate_output_counts, plan_operands
from inspector.join.record_maps import edge_graph
from inspector.numerics.element_moves import Cut, integers, integers_of, permuted_dims
from inspector.numerics.flat_graph import (
    FlatGraph,
    FlatNode,
    Value,
    flat_graph,
    known_sizes,
    number_argument,
)
from inspector.numerics.grades import FLOW, ORDER
from inspector.numerics.join_facts import Join
from inspector.numerics.same_steps import constants_of, settings_of
from inspector.numerics.shared_handles import DelegateEvent
from inspector.numerics.traced import instruction_outputs
from schema.dtypes.scalar_type import numel
from schema.graph import GraphNode
from schema.program import instructions
from schema.program import model as m

_INTEGERS = ((-128, 127), (-127, 127), (0, 255), (-32768, 32767), (-32767, 32767))
# Of operands that a payload has by name: in any order, and what moves elements reads one first.
_PLACES = {"cond": 0, "input": 0, "x": 0, "a": 2, "indices": 2, "y": 2, "b": 3}
_MOST_EVENTS = 400  # of a payload; each choice looks at all that are left


def border_values(session: Session, method: str, join: Join) -> Mapping[int, Mapping[str, Value]]:
    """Return delegate call -> payload input or output -> recorded value."""
    program = session.program
    assert program is not None
    plan = program.plan(method)
    operands = plan_operands(plan, delegate_output_counts(program, plan))
    slots = {(one.instruction, one.value): one.slot for one in instruction_outputs(program, method)}
    at: dict[int, Value] = {index: ((), name) for index, name in join.inputs.items()}
    found: dict[int, Mapping[str, Value]] = {}
    for step, (_, _, instruction) in enumerate(instructions(plan)):
        before = dict(at) if step in join.calls else {}
        for index in operands[step].writes:
            target = join.targets.get((step, slots.get((step, index), -1)))
            at.pop(index, None)
            if target is not None and target.grade != ORDER:
                at[index] = target.value
        args = instruction.instr_args
        if step in join.calls and isinstance(args, m.DelegateCall):
            graph = executed_payload(session, method, args.delegate_index).graph
            names = (*graph.inputs, *graph.outputs) if graph is not None else ()
            if graph is None or len(names) != len(args.args):
                continue
            split = len(graph.inputs)
            sides = [(before, *pair) for pair in zip(names[:split], args.args[:split], strict=True)]
            sides += [(at, *pair) for pair in zip(names[split:], args.args[split:], strict=True)]
            found[step] = {name: side[index] for side, name, index in sides if index in side}
    return found


def outputs_by_flow(
    session: Session,
    method: str,
    call: m.DelegateCall,
    nodes: Sequence[FlatNode],
    known: Mapping[int, Value],
) -> dict[int, tuple[Value, str]]:
    """Return index of a value that a call writes -> recorded value, as far as known by data flow.

    FLOW if data flow shows it, ORDER if the first of several candidates was taken.

    Args:
        session: with the program
        method: of the call
        call: of a delegate
        nodes: that it took, in graph order
        known: index of a value -> recorded value, for values known before the call
    """
    assert session.program is not None
    record = session.record
    edge = edge_graph(record, method) if record is not None else None
    plan = session.program.plan(method)
    if edge is None or not 0 <= call.delegate_index < len(plan.delegates):
        return {}
    payload = executed_payload(session, method, call.delegate_index).graph
    if payload is None or len(payload.inputs) + len(payload.outputs) != len(call.args):
        return {}
    split = len(payload.inputs)
    given = zip(payload.inputs, call.args[:split], strict=True)
    border = {name: known[index] for name, index in given if index in known}
    inside = executed_inside(session, method, call.delegate_index)
    events = [payload_event(one) for one in inside.nodes]
    if len(events) > _MOST_EVENTS:
        return {}
    graph = flat_graph(edge)
    matched = by_flow(graph, nodes, events, border)
    written = {
        name: (node.writes[0], event.grade)
        for node in nodes
        if (event := matched.get(node.node.name)) is not None and not event.fused and node.writes
        for name in event.writes[:1]
    }
    results = zip(payload.outputs, call.args[split:], strict=True)
    return {index: written[name] for name, index in results if name in written}


def payload_event(node: InsideNode) -> DelegateEvent:
    """Return a payload node as an event without tensors."""
    writes = tuple(one.value.name for one in node.values if one.role.startswith("output"))
    given = sorted(node.values, key=lambda one: _PLACES.get(one.role, 1))
    reads = tuple(one.value.name for one in given if one.value.name not in writes)
    kind = "" if _is_saturation(node.node) else node.node.target
    return DelegateEvent(
        node.node.name,
        (),
        ORDER,
        (),
        kind,
        reads,
        writes,
        fused=bool(node.activation),
        dims=permuted_dims(node.node, {one.role: one.value.literal for one in node.values}),
        given=integers(node.node),
        cut=_cut(node),
        constants=constants_of(node),
        settings=settings_of(node),
        scale=_scale(node),
    )


def _scale(node: InsideNode) -> float | None:
    """Return the scale of a rounding, which a payload names so."""
    given = number_argument(node.node, "scale")
    held = next((one.value.literal for one in node.values if one.role == "scale"), given)
    return float(held) if isinstance(held, (int, float)) else None


def _cut(node: InsideNode) -> tuple[Cut, ...]:
    """Return what a slice of TOSA takes, whose begin and size are constants of the payload."""
    inputs = [one for one in node.values if not one.role.startswith("output")]
    tensor = inputs[0].value.tensor if inputs else None
    if node.node.target != "SLICE" or tensor is None:
        return ()
    given = [_stored(one) for one in inputs[1:]]
    if len(given) != 2 or any(len(one) != len(tensor.sizes) for one in given):
        return ()
    pairs = zip(*given, strict=True)
    return tuple((dim, start, start + size, 1) for dim, (start, size) in enumerate(pairs))


def _stored(one: InsideValue) -> Sequence[int]:
    """Return the integers of a constant: its bytes, or numbers where the payload has those."""
    if one.value.literal is not None:
        return integers_of(one.value.literal)
    data = b"" if one.constant is None or one.constant.data is None else one.constant.data
    return np.frombuffer(data, np.int64).tolist() if len(data) % 8 == 0 else []


def _is_saturation(node: GraphNode) -> bool:
    """Return whether a clamp of real values is a step of a quantization: no activation is."""
    bounds = node.attributes.get("min_val"), node.attributes.get("max_val")
    return bounds in _INTEGERS and all(isinstance(one, float) for one in bounds)


def by_flow(
    graph: FlatGraph,
    nodes: Sequence[FlatNode],
    events: Sequence[DelegateEvent],
    border: Mapping[str, Value],
) -> dict[str, DelegateEvent]:
    """Return node -> event for each kind whose events are all known.

    Args:
        graph: the recorded graph
        nodes: that share handles, in graph order
        events: of those handles, in payload order
        border: recorded values of the inputs and outputs of the payload
    """
    return _FlowMatcher(graph, nodes, events, border).matches()


class _FlowMatcher:
    """Assigns nodes without contradiction, those without a choice first."""

    def __init__(
        self,
        graph: FlatGraph,
        nodes: Sequence[FlatNode],
        events: Sequence[DelegateEvent],
        border: Mapping[str, Value],
    ) -> None:
        self._graph = graph
        self._values = dict(border)
        self._matched: dict[int, tuple[FlatNode, str]] = {}
        self._certain = True  # until the first of several nodes that fit is taken
        self._events = list(events)
        self._open: dict[int, list[FlatNode]] = {}
        kinds = Counter(event.kind for event in events)
        fitting = {
            kind: [node for node in nodes if kind and becomes(node.operator, kind)]
            for kind in kinds
        }
        for number, event in enumerate(events):
            if len(fitting[event.kind]) == kinds[event.kind]:
                self._open[number] = fitting[event.kind]

    def matches(self) -> dict[str, DelegateEvent]:
        """Return the known values."""
        kinds = {self._events[number].kind for number in self._open}
        while self._open:
            number = self._next()
            left = self._open.pop(number)
            self._certain = self._certain and len(left) < 2
            if left:
                self._take(number, left[0])
        counts = {self._events[number].kind: 0 for number in self._matched}
        for number in self._matched:
            counts[self._events[number].kind] += 1
        every = Counter(event.kind for event in self._events)
        whole = {kind for kind in kinds if counts.get(kind) == every[kind]}
        return {
            node.node.name: replace(event, nodes=(node.node.name,), grade=grade)
            for number, (node, grade) in self._matched.items()
            if (event := self._events[number]).kind in whole
        }

    def _next(self) -> int:
        """Narrow all choices, and return the first event with the fewest."""
        used = {node.place for node, _ in self._matched.values()}
        for number, left in self._open.items():
            event = self._events[number]
            self._open[number] = [
                node for node in left if node.place not in used and self._fits(event, node)
            ]
        return min(self._open, key=lambda number: (len(self._open[number]) != 1, number))

    def _take(self, number: int, node: FlatNode) -> None:
        self._matched[number] = node, FLOW if self._certain else ORDER
        if self._events[number].fused:
            return  # it writes the value of a node after this one
        for name, value in zip(self._events[number].writes, node.writes, strict=False):
            self._values.setdefault(name, value)

    def _fits(self, event: DelegateEvent, node: FlatNode) -> bool:
        return (
            self._agree(event.reads, node.reads)
            and self._agree(event.writes, node.writes)
            and is_as_large(self._graph, event, node)
        )

    def _agree(self, names: Iterable[str], values: Iterable[Value]) -> bool:
        """Return whether the payload values that are known are among those of a node."""
        known = Counter(
            self._graph.root(self._values[name]) for name in names if name in self._values
        )
        return not known - Counter(map(self._graph.root, values))


def has_shape_of(graph: FlatGraph, event: DelegateEvent, node: FlatNode) -> bool:
    """Return whether the tensors of an event have the sizes of a node's result in some order.

    But for those of one. If one of them is unknown, they are considered the same.
    """
    return _alike(graph, event, node, sorted)


def has_sizes_of(graph: FlatGraph, event: DelegateEvent, node: FlatNode) -> bool:
    """Return whether the tensors of an event have the sizes of a node's result, but for ones.

    If one of them is unknown, they are considered the same.
    """
    return _alike(graph, event, node, list)


def _alike(
    graph: FlatGraph,
    event: DelegateEvent,
    node: FlatNode,
    ordered: Callable[[Iterable[int]], list[int]],
) -> bool:
    sizes = _sizes(graph, node)
    if sizes is None or not event.passes or not event.passes[0]:
        return True
    sides = event.passes[0][0].sizes, sizes
    found, asked = (ordered(size for size in side if size != 1) for side in sides)
    return found == asked


def is_as_large(graph: FlatGraph, event: DelegateEvent, node: FlatNode) -> bool:
    """Return whether the tensors of an event have as many elements as the result of a node.

    If one of them is unknown, they are considered compatible.
    """
    sizes = _sizes(graph, node)
    if sizes is None or not event.passes or not event.passes[0]:
        return True
    return numel(sizes) == numel(event.passes[0][0].sizes)


def _sizes(graph: FlatGraph, node: FlatNode) -> tuple[int, ...] | None:
    return known_sizes(graph.meta.get(node.writes[0])) if node.writes else None
