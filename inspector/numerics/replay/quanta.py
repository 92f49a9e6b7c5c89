"""Scales of quantized values: rounding may differ by one step of a scale."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from inspector.numerics.flat_graph import FlatGraph, FlatNode, Scope, Value
from inspector.numerics.join_facts import JoinTarget
from inspector.rebuild.torch_bridge import load_torch
from runtime.emulation.recorded import UNKNOWN, Sides

Place = tuple[Scope, str, int]  # nested graph, node, output
# What a runtime's kernel chooses where all values are 0; ATen chooses `eps`. Both are right.
_OF_ZEROS = 0.1
_ROUNDED = ("torch.int8", "torch.uint8", "torch.int16")
_SIGNS, _SIGN = {"torch.int8", "torch.uint8"}, 128
_SUMS = ("torch.int32", "torch.int64")
_EPS = 2**-23  # of operators without the argument: that of float32


class Quanta:
    """Records the scales chosen by a running graph, and finds scales that are literals.

    Args:
        graph: the recorded edge graph
        places: value of that graph -> its location in the reference; None for the edge graph
    """

    def __init__(self, graph: FlatGraph, places: Mapping[Value, Place] | None) -> None:
        self._graph = graph
        self._places = places
        self._chosen: dict[Place, float] = {}
        self._least: dict[Place, float] = {}
        choosing = [n for n in graph.nodes if "choose_qparams" in n.operator and n.writes]
        self._choosing = {(node.scope, node.node.name): node for node in choosing}
        found = (self._place(node.writes[0]) for node in choosing)
        self._requested = {place[:2]: place for place in found if place is not None}

    def _place(self, value: Value) -> Place | None:
        if self._places is not None:
            return self._places.get(value)
        maker = self._graph.producers.get(value)
        return None if maker is None else (value[0], maker[0].node.name, maker[1])

    def note(self, scope: Scope, name: str, pair: list[Any]) -> None:
        """Record the scales that a choose_qparams node has computed on both sides."""
        place = self._requested.get((scope, name))
        if place is None:
            return
        sides = [side[place[2]] for side in pair if side is not UNKNOWN]
        self._chosen[place] = max((float(side.max()) for side in sides), default=0.0)
        self._least[place] = min((float(side.min()) for side in sides), default=_OF_ZEROS)

    def of(self, target: JoinTarget, *, whole: bool) -> float:
        """Return the step to which a target is rounded, or 0 if not rounded or unknown.

        Args:
            target: a value and the nodes that compute it
            whole: whether these are all nodes of a delegate; then only the last one counts
        """
        scope = target.value[0]
        choosing = self._choosing.get((scope, target.node))
        if choosing is not None:
            return self._free_choice(choosing)
        names = (target.node,) if whole else target.covers or (target.node,)
        producers = (self._graph.producers.get((scope, name)) for name in names)
        nodes = [maker[0] for maker in producers if maker is not None]
        nodes = [node for node in nodes if _rounds(node, target)]
        return max((self._step(node, target) for node in nodes), default=0.0)

    def _step(self, node: FlatNode, target: JoinTarget) -> float:
        dynamic = list(self._scales(node))
        if "::quantize" in node.operator and node.node.name == target.node:
            return 2.0 if dynamic else 1.0  # of integers: a zero point is rounded too
        steps = [arg.literal for arg in node.node.args if arg.name == "scale"]
        found = [float(step) for step in steps if isinstance(step, (int, float))]
        return max([*found, *dynamic], default=0.0)

    def _free_choice(self, node: FlatNode) -> float:
        """Return the allowed difference of a scale, which is irrelevant if all values are 0."""
        place = self._place(node.writes[0])
        least = self._least.get(place, _OF_ZEROS) if place is not None else _OF_ZEROS
        given = (arg.literal for arg in node.node.args if arg.name == "eps")
        eps = next((float(one) for one in given if isinstance(one, (int, float))), _EPS)
        return _OF_ZEROS if least <= eps * 1.001 else 0.0

    def _scales(self, node: FlatNode) -> Iterator[float]:
        for value in node.reads:
            place = self._place(value)
            if place is not None and place in self._chosen:
                yield self._chosen[place]


def not_rounded(found: Any, sides: Sides) -> bool:  # noqa: ANN401 - a tensor
    """Return whether a tensor holds sums of 32 bits, and the recorded value what they round to.

    A vendor's compiler moves a view between a sum and its rounding, under the name of the latter.
    """
    dtype = next(side.dtype for side in sides if side is not UNKNOWN)
    return str(dtype) in _ROUNDED and str(found.dtype) in _SUMS


def in_sign(found: Any, sides: Sides) -> Any:  # noqa: ANN401 - tensors
    """Return integers of 8 bits with the sign of the recorded ones; other tensors as they are.

    A vendor's compiler has unsigned integers where the program has signed ones, lowest for lowest.
    """
    dtype = next(side.dtype for side in sides if side is not UNKNOWN)
    if {str(dtype), str(found.dtype)} != _SIGNS:
        return found
    return (found.view(load_torch().uint8) ^ _SIGN).view(dtype)


def _rounds(node: FlatNode, target: JoinTarget) -> bool:
    """Return whether a node rounds a target; a dequantized value is not rounded."""
    return "::quantize" in node.operator or (
        "::dequantize" in node.operator and node.node.name == target.node
    )
