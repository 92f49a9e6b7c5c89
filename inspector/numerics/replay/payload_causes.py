"""What a payload holds beside its record, for the layers whose values differ.

Only where both are there to be compared: stored weights beside those that the record quantizes, and
an epsilon beside the integers that it is added to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from inspector.files.session import Session
from inspector.graph.delegate_inside import InsideNode, InsideValue, inside_delegate
from inspector.numerics.flat_graph import FlatGraph, Value
from inspector.numerics.inside import InsideOutput
from inspector.numerics.report import INSIDE, Row
from inspector.rebuild.torch_bridge import load_torch
from schema.dtypes.scalar_type import scalar_type
from schema.program import instructions
from schema.program import model as m

EPSILON = (
    "its payload adds the epsilon of real values ({eps:g}) to the variance of stored integers: the"
    " scale of these was moved behind the normalization"
)
WEIGHTS = (
    "{count} of {all} weights of its payload are one step beside those that the record quantizes"
    " (at most {own} steps, {recorded} in the record)"
)
HALVED = ": the range of these was halved, so that the largest fall between two steps"
_NORMALIZES, _EPS = "MVN", "eps"
_QUANTIZES = "quantized_decomposed::quantize_per"
_INTEGERS = ("int8", "uint8")
_HALF = 64  # steps of a weight of 8 bits in half of its range
_FEW = 4  # elements below which integers that are alike tell nothing

Recorded = Callable[[Sequence[Value]], Mapping[Value, Any]]


def with_causes(
    session: Session,
    method: str,
    rows: Sequence[Row],
    inside: Sequence[InsideOutput],
    found: tuple[FlatGraph, Recorded],
) -> tuple[Row, ...]:
    """Return rows with a note where the payload shows why a layer differs.

    Args:
        session: with the program
        method: that ran
        rows: of its comparison
        inside: nodes inside its delegates
        found: recorded graph, and what returns values of it
    """
    doubted = [row for row in rows if row.place == INSIDE and row.differs and not row.note]
    if not doubted or session.program is None:
        return tuple(rows)
    layers = {(one.instruction, one.slot): one for one in inside}
    places = _delegates(session, method)
    notes: dict[int, str] = {}
    for row in doubted:
        one, place = layers.get((row.instruction, row.slot)), places.get(row.instruction)
        if one is None or one.target is None or place is None:
            continue
        others = [
            layers[other.instruction, other.slot]
            for other in rows
            if other.compared and other.place == INSIDE and other.instruction == row.instruction
        ]
        before = [other for other in others if other is not one]
        payload = inside_delegate(session, method, place).by_name
        nodes = [*_between(payload, one.name, {other.name for other in before})]
        ends = {other.target.value for other in before if other.target is not None}
        words = [*_epsilons(nodes), *_weights(nodes, found, one.target.value, ends)]
        if words:
            notes[id(row)] = "; ".join(dict.fromkeys(words))
    return tuple(replace(row, note=notes.get(id(row), row.note)) for row in rows)


def _delegates(session: Session, method: str) -> dict[int, int]:
    """Return call of a delegate -> its index."""
    assert session.program is not None
    calls = [one.instr_args for *_, one in instructions(session.program.plan(method))]
    return {
        step: one.delegate_index
        for step, one in enumerate(calls)
        if isinstance(one, m.DelegateCall)
    }


def _between(payload: Mapping[str, InsideNode], name: str, ends: set[str]) -> Iterator[InsideNode]:
    """Yield a layer and those before it whose values are not compared."""
    makers = {value: node for node in payload.values() for value in node.node.outputs}
    left, seen = [payload[name]] if name in payload else [], {name}
    while left:
        node = left.pop()
        yield node
        for value in node.node.inputs:
            before = makers.get(value)
            if before is not None and before.node.name not in seen | ends:
                seen.add(before.node.name)
                left.append(before)


def _epsilons(nodes: Sequence[InsideNode]) -> Iterator[str]:
    for one in nodes:
        eps = one.node.attributes.get(_EPS)
        if one.node.target == _NORMALIZES and one.values and _is_stored(one.values[0]):
            number = _number(eps)
            if number:
                yield EPSILON.format(eps=number)


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return 0.0


def _weights(
    nodes: Sequence[InsideNode], found: tuple[FlatGraph, Recorded], value: Value, ends: set[Value]
) -> Iterator[str]:
    graph, recorded = found
    stored = [one for node in nodes for one in node.values if one.constant and _is_stored(one)]
    made = [*_quantized_constants(graph, value, ends - {value})] if stored else []
    if not made:
        return
    torch = load_torch()
    values = [one for one in recorded(made).values() if isinstance(one, torch.Tensor)]
    for one in stored:
        own = _integers(one)
        pairs = [pair for value in values if (pair := _aligned(own, value)) is not None]
        if len(pairs) == 1 and (count := int((pairs[0][0] != pairs[0][1]).sum())):
            most = [int(side.abs().max()) for side in pairs[0]]
            words = WEIGHTS.format(count=count, all=own.numel(), own=most[0], recorded=most[1])
            yield words + (HALVED if most[1] == _HALF else "")


def _quantized_constants(graph: FlatGraph, value: Value, ends: set[Value]) -> Iterator[Value]:
    """Yield the integers of constants that a value depends on, up to values that are compared."""
    given = {*graph.inputs}
    left, seen = [value], {value}
    while left:
        maker = graph.producers.get(left.pop())
        if maker is None:
            continue
        node = maker[0]
        if node.operator.startswith(_QUANTIZES) and not _depends(graph, node.reads[0], given):
            yield node.writes[0]
        for read in node.reads:
            if read not in seen | ends:
                seen.add(read)
                left.append(read)


def _depends(graph: FlatGraph, value: Value, given: set[Value]) -> bool:
    left, seen = [value], {value}
    while left:
        at = left.pop()
        if at in given:
            return True
        maker = graph.producers.get(at)
        more = [one for one in maker[0].reads if one not in seen] if maker is not None else []
        seen.update(more)
        left += more
    return False


def _is_stored(one: InsideValue) -> bool:
    tensor = one.value.tensor
    return tensor is not None and scalar_type(tensor.scalar_type).name in _INTEGERS


def _integers(one: InsideValue) -> Any:  # noqa: ANN401 - a tensor, empty without its bytes
    torch, tensor = load_torch(), one.value.tensor
    data = one.constant.data if one.constant is not None else None
    assert tensor is not None
    sizes = [size for size in tensor.sizes if isinstance(size, int)]
    dtype = getattr(torch, scalar_type(tensor.scalar_type).name)
    if not data or len(sizes) != len(tensor.sizes) or len(data) != math.prod(sizes):
        return torch.empty(0, dtype=torch.int32)
    return torch.frombuffer(bytearray(data), dtype=dtype).reshape(sizes).int()


def _aligned(own: Any, value: Any) -> tuple[Any, Any] | None:  # noqa: ANN401
    """Return stored and recorded weights in one shape, None unless they are the same or nearly."""
    if value.is_floating_point() or own.numel() != value.numel() or own.numel() < _FEW:
        return None
    forms = [value, value.mT] if value.dim() == 2 else [value]
    sides = [(own, form.int().reshape(own.shape)) for form in forms]
    near = [pair for pair in sides if int((pair[0] - pair[1]).abs().max()) <= 1]
    return near[0] if near else None
