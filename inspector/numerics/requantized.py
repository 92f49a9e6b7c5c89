"""Which of the integers that a value is held in an event or a node has, where there are several.

A real value of the record is quantized, and what is quantized may be again, in other steps. A
payload rescales in the same order, with sums of 32 bits between, which no recorded node has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeVar

from inspector.numerics.flat_graph import FlatNode, Value
from inspector.numerics.fused_nodes import type_of
from inspector.numerics.payload_values import (
    DEQUANTIZE,
    QUANTIZE,
    RESCALE,
    PayloadValues,
    is_moving,
    is_stored,
)
from inspector.numerics.shared_handles import DelegateEvent

_Name = TypeVar("_Name", str, Value)


class Requantized:
    """Chains of integers on both sides, by what they are computed from."""

    def __init__(self, values: PayloadValues) -> None:
        self._values = values
        made = {self._made(one.writes[0]) for one in values.events if is_stored(one)}
        asked = {
            self._quantized(one.writes[0]) for one in values.moving if QUANTIZE in one.operator
        }
        self._steps = _alone((values.of(name), self._depth(name), name) for name in made)
        self._asked = _alone((values.root(one), self._depth_of(one), one) for one in asked)

    def has(self, event: DelegateEvent, node: FlatNode) -> bool:
        """Return whether an event has the integers that a node quantizes to."""
        logged = next((one.scalar_type for each in event.passes for one in each), -1)
        if QUANTIZE not in node.operator:
            return False
        root = self._values.root(node.writes[0])
        steps, asked = self._steps.get(root, {}), self._asked.get(root, {})
        own, wanted = self._made(event.writes[0]), self._quantized(node.writes[0])
        place = asked.get(wanted)
        same = logged == type_of(self._values.graph, node) and len(steps) == len(asked)
        return same and place is not None and steps.get(own) == place

    # ---- the payload
    def _made(self, name: str) -> str:
        """Return the integers that these are in another layout or shape."""
        for _ in range(len(self._values.writers) + 1):
            writer = self._values.writers.get(name)
            if writer is None or not is_moving(writer) or writer.kind == RESCALE:
                break
            name = writer.reads[0]
        return self._values.first(name)

    def _depth(self, name: str) -> int:
        """Return how many integers of the same value lie before some."""
        count, first = 0, name
        for _ in range(len(self._values.writers) + 1):
            writer = self._values.writers.get(name)
            if writer is None or not is_moving(writer):
                return count + (writer is None and name != first)  # an input is quantized
            name = self._made(writer.reads[0])
            before = self._values.writers.get(name)
            count += before is not None and is_stored(before)
        return count

    # ---- the record
    def _quantized(self, value: Value) -> Value:
        """Return the integers that these are in another layout or shape, or again."""
        for _ in range(len(self._values.graph.nodes) + 1):
            before = self._before(value)
            if before is None or not before[1]:
                break
            value = before[0]
        return self._values.same(value)

    def _depth_of(self, value: Value) -> int:
        count = 0
        for _ in range(len(self._values.graph.nodes) + 1):
            before = self._before(self._quantized(value))
            if before is None:
                break
            value, count = before[0], count + 1
        return count

    def _before(self, value: Value) -> tuple[Value, bool] | None:
        """Return the integers that some are made of, and whether in the same steps."""
        maker = self._values.graph.producers.get(value)
        if maker is None or not self._values.moves(maker[0]):
            return None
        if QUANTIZE not in maker[0].operator:
            return maker[0].reads[0], True
        value = maker[0].reads[0]
        for _ in range(len(self._values.graph.nodes) + 1):
            behind = self._values.graph.producers.get(value)
            if behind is None or not self._values.moves(behind[0]):
                return None
            if DEQUANTIZE in behind[0].operator:
                return behind[0].reads[0], steps_of(behind[0]) == steps_of(maker[0])
            value = behind[0].reads[0]
        return None


def _alone(
    found: Iterable[tuple[Value | None, int, _Name]],
) -> Mapping[Value, Mapping[_Name, int]]:
    """Return value -> integers -> place in their chain, without values that have branches."""
    by_value: dict[Value, dict[_Name, int]] = {}
    for value, depth, name in found:
        if value is not None:
            by_value.setdefault(value, {})[name] = depth
    return {
        value: own for value, own in by_value.items() if max(Counter(own.values()).values()) == 1
    }


def steps_of(node: FlatNode) -> object:
    """Return scale, zero point, range and dtype of a quantization by numbers, unequal without."""
    wanted = ("scale", "zero_point", "quant_min", "quant_max", "dtype")
    given = {one.name: one.literal for one in node.node.args if not one.values}
    return tuple(str(given.get(one)) for one in wanted) if "scale" in given else node.place
