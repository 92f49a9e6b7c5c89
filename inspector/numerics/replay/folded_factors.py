"""Whether a value is the recorded one with a factor or shift of its graph folded in."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, cast

from inspector.numerics.flat_graph import (
    FlatGraph,
    FlatNode,
    Scope,
    Value,
    is_transparent,
    number_argument,
)
from inspector.numerics.inside import InsideOutput
from inspector.numerics.replay.comparing import RunLog
from inspector.numerics.replay.inputs import logged_tensor
from inspector.numerics.replay.references import MappedReference
from inspector.rebuild.torch_bridge import load_torch
from runtime.emulation.graph import GraphRun
from runtime.emulation.recorded import UNKNOWN, Sides

_PRODUCT = "aten::mul"
_SCALING = (_PRODUCT, "aten::div")
_SHIFTING = ("aten::add", "aten::sub")
_NORMS = ("aten::_native_batch_norm_legit_no_training", "aten::native_batch_norm")
_QUANTIZES = "quantized_decomposed::quantize"
_ROUNDING = (_QUANTIZES, "quantized_decomposed::dequantize")
_SIGN = 128  # between signed and unsigned integers of 8 bits
_MOVES = (
    "aten::permute_copy",
    "aten::transpose_copy",
    "aten::t_copy",
    "aten::expand_copy",
    "aten::slice_copy",
    "aten::select_copy",
    "aten::split_with_sizes_copy",
    "_operator::getitem",
)
_PRODUCTS = ("aten::mm", "aten::bmm")
_LOOKUPS = ("aten::index", "aten::index_select")
_TOGETHER = 3  # factors: a scale that attention has on both sides, and one more
_MOST = 8  # factors that are combined: 92 products
_SAME = 2**-7  # of the largest element: two roundings to bfloat16


def explained(
    log: RunLog,
    reference: MappedReference,
    inputs: Sequence[Any],
    state: Mapping[str, Sides],
    doubted: Sequence[InsideOutput],
) -> set[tuple[int, int]]:
    """Return call and slot of the nodes whose tensors have factors of the graph folded in.

    Args:
        log: tensors of the run and their joins
        reference: program that they are compared with, which is run once more
        inputs: of the run
        state: buffers before it
        doubted: nodes with another value
    """
    graph = log.join.graph
    assert graph is not None
    targets = [(one, one.target.value) for one in doubted if one.target is not None]
    factors = FoldedFactors(
        graph,
        recorded_values(
            graph, reference, inputs, state, _deciding(graph, [value for _, value in targets])
        ),
    )
    found: set[tuple[int, int]] = set()
    for one, value in targets:
        logged = logged_tensor(log.buffer, one.passes[-1])
        if not isinstance(logged, str) and factors.explain(value, logged):
            found.add((one.instruction, one.slot))
    return found


def _deciding(graph: FlatGraph, values: Sequence[Value]) -> set[Value]:
    """Return the values that decide on some: these, their readers and the factors."""
    wanted = {
        *values,
        *(out for one in values for user in graph.users.get(one, ()) for out in user.writes),
    }
    for node in graph.nodes:
        if node.operator in (*_SCALING, *_LOOKUPS):
            wanted.update((*node.reads[:1], *node.writes[:1]))
    return wanted


def recorded_values(
    graph: FlatGraph,
    reference: MappedReference,
    inputs: Sequence[Any],
    state: Mapping[str, Sides],
    wanted: Collection[Value],
) -> dict[Value, Any]:
    """Return values of a program that is run once more.

    Args:
        graph: recorded graph
        reference: program that is run
        inputs: of the run
        state: buffers before it, those of the program alone first
        wanted: values
    """
    places: dict[tuple[Scope, str], list[tuple[Value, int]]] = {}
    for value in wanted:
        maker = graph.producers.get(value)
        place = (value[0], maker[0].node.name if maker else value[1], maker[1] if maker else 0)
        if reference.values is not None:
            place = reference.values.get(value, place)
        places.setdefault(place[:2], []).append((value, place[2]))
    found: dict[Value, Any] = {}

    def observe(scope: Scope, name: str, sides: Sides, _times: int) -> None:
        for value, index in places.get((scope, name), ()):
            result = sides[0]
            several = cast("Sequence[Any]", result) if isinstance(result, list | tuple) else ()
            found[value] = several[index] if index < len(several) else result

    run = GraphRun(
        reference.graph.graph,
        observe,
        state={name: [_copy(sides[0])] for name, sides in state.items()},
    )
    given: list[Sides] = [[UNKNOWN if one is None else _copy(one)] for one in inputs]
    for name, sides in zip(reference.graph.graph.inputs, given, strict=False):
        observe((), name, sides, 0)
    run.run(given)
    return found


class FoldedFactors:
    """The factors of a graph, and what they make of its values.

    Args:
        graph: recorded graph
        recorded: its values
    """

    def __init__(self, graph: FlatGraph, recorded: Mapping[Value, Any]) -> None:
        self._graph = graph
        self._recorded = recorded
        # Values that depend on what the user gives; a nested graph is given values of the run.
        self._of_run = {*graph.inputs, *_given_to_nested(graph)}
        for node in graph.nodes:
            if not self._of_run.isdisjoint(node.reads):
                self._of_run.update(node.writes)

    def explain(self, value: Value, logged: Any) -> bool:  # noqa: ANN401 - a tensor
        """Return whether a logged tensor is a value with a factor or shift folded in.

        These are what the next layer makes of it with a constant, that without its shift, or its
        product with factors on both sides of the layers around it that keep factors.
        """
        own = _real(self._recorded.get(value))
        if own is None or logged.numel() != own.numel():
            return False
        found = _real(logged).reshape(own.shape)
        if any(_is_same(found, one) for one in self._folded(value, own, found)):
            return True
        ratio = _ratio(found, own)
        return ratio is not None and any(_is_near(ratio, one) for one in self._factors(value, own))

    def _folded(self, value: Value, own: Any, found: Any) -> Iterator[Any]:  # noqa: ANN401
        """Yield what the next layers compute, with and without their shifts."""
        makers = self._makers(value)
        if makers and makers[0].operator.startswith(_QUANTIZES):
            yield from (own + _SIGN, own - _SIGN)
        pairs = [*self._roundings(value)]
        pairs += [(step, -zero) for step, zero in self._integers_beside(value, *_SHIFTING)]
        for step, zero in pairs:
            yield from (own / step + zero + shift for shift in (0, _SIGN, -_SIGN))
        for user in self._graph.users.get(value, ()):
            result = _real(self._recorded.get(user.writes[0])) if user.writes else None
            if result is None or result.shape != own.shape or not self._is_affine(user, value):
                continue
            yield result
            if user.operator.startswith(_QUANTIZES):
                yield from (result + _SIGN, result - _SIGN)
            if user.operator in _NORMS:
                dims = [each for each in range(own.dim()) if each != 1]
                yield result + (found - result).mean(dims, keepdim=True)

    def _roundings(self, value: Value) -> Iterator[tuple[float, float]]:
        """Yield step and zero point of each rounding of a value, also behind moves of it."""
        for user, _ in self._behind_moves(value):
            if user.operator.startswith(_QUANTIZES):
                step, zero = _steps(user)
                if step and zero is not None:
                    yield step, zero

    def _integers_beside(self, value: Value, *operators: str) -> Iterator[tuple[float, float]]:
        """Yield step and zero point of the integers that a value is combined with.

        It may be rounded itself before. A sum with them is computed in their steps, which are
        multiplied behind it; a product with them has their steps in its other factor.
        """
        for user, at in self._behind_moves(value, through=_ROUNDING):
            for other in user.reads if user.operator in operators else ():
                maker = self._rounding_of(other) if other != at else None
                step, zero = _steps(maker) if maker is not None else (None, None)
                if step and zero is not None:
                    yield step, zero

    def _rounding_of(self, value: Value) -> FlatNode | None:
        """Return the node whose real values of integers a value has, perhaps moved."""
        makers = self._makers(value)
        while makers and (is_transparent(makers[0]) or makers[0].operator in _MOVES):
            makers = self._makers(makers[0].reads[0])
        is_real = bool(makers) and makers[0].operator.startswith(_ROUNDING[1])
        return makers[0] if is_real else None

    def _behind_moves(
        self, value: Value, through: tuple[str, ...] = ()
    ) -> Iterator[tuple[FlatNode, Value]]:
        """Yield who reads a value, or what nodes that only move elements make of it, and which.

        Nodes whose operator begins with one of ``through`` are passed too.
        """
        left, seen = [value], {value}
        while left:
            at = left.pop()
            for user in self._graph.users.get(at, ()):
                yield user, at
                moves = is_transparent(user) or user.operator in _MOVES
                if moves or (through and user.operator.startswith(through)):
                    left += [one for one in user.writes if one not in seen]
                    seen.update(user.writes)

    def _is_affine(self, node: FlatNode, value: Value) -> bool:
        if node.operator in _NORMS or node.operator.startswith(_QUANTIZES):
            return node.reads[:1] == (value,)
        constants = [one for one in node.reads if one != value]
        return node.operator in (*_SCALING, *_SHIFTING) and all(map(self._is_constant, constants))

    def _is_constant(self, value: Value) -> bool:
        return value not in self._of_run

    def _factors(self, value: Value, own: Any) -> Iterator[float]:  # noqa: ANN401
        """Yield the factors that the value may have been given."""
        yield from (step for step, _ in self._integers_beside(value, _PRODUCT))
        after, before = self._scales(value)
        for given, is_before in ((after, False), (before, True)):
            for count in range(1, _TOGETHER + 1):
                for chosen in combinations(given[:_MOST], count):
                    product = math.prod(chosen)
                    yield 1 / product if is_before else product
        if not own.is_floating_point() or own.equal(own.round()):
            yield from self._strides(value)

    def _scales(self, value: Value) -> tuple[list[float], list[float]]:
        """Return the factors behind and beside a value, and those before it."""
        after: list[float] = []
        before: list[float] = []
        seen = {value}
        left = [(value, True), (value, False)]
        while left:
            at, down = left.pop()
            nodes = self._graph.users.get(at, ()) if down else self._makers(at)
            for node in nodes:
                scale = self._scale(node)
                if scale is None and not _keeps_factors(node):
                    continue
                if scale is not None:
                    is_upstream = not down and self._is_before(node, value)
                    (before if is_upstream else after).append(scale)
                more = [*((one, True) for one in node.writes if down)]
                if not down or node.operator in _PRODUCTS:
                    more += [(one, False) for one in node.reads if not self._is_constant(one)]
                left += [one for one in more if one[0] not in seen]
                seen.update(one for one, _ in more)
        return after, before

    def _makers(self, value: Value) -> Sequence[FlatNode]:
        maker = self._graph.producers.get(value)
        return (maker[0],) if maker is not None else ()

    def _is_before(self, node: FlatNode, value: Value) -> bool:
        left, seen = [*node.writes], set(node.writes)
        while left:
            at = left.pop()
            if at == value:
                return True
            for user in self._graph.users.get(at, ()):
                left += [one for one in user.writes if one not in seen]
                seen.update(user.writes)
        return False

    def _scale(self, node: FlatNode) -> float | None:
        """Return the one factor of a product with a constant, None for other nodes."""
        data = [one for one in node.reads if not self._is_constant(one)]
        if node.operator not in _SCALING or len(data) != 1 or data[0] != node.reads[0]:
            return None
        before, after = (_real(self._recorded.get(one)) for one in (data[0], node.writes[0]))
        if before is None or after is None or before.shape != after.shape:
            return None
        return _ratio(after, before)

    def _strides(self, value: Value) -> Iterator[float]:
        """Yield by how many elements the index that a value becomes steps in what it reads."""
        for user, at in self._behind_moves(value):
            if user.operator in _LOOKUPS and user.reads[0] != at:
                indexed = self._recorded.get(user.reads[0])
                sizes = () if indexed is None else tuple(indexed.shape)
                yield from (float(_numel(sizes[k:])) for k in range(1, len(sizes)))


def _given_to_nested(graph: FlatGraph) -> Iterator[Value]:
    for scope, nested in graph.graphs.items():
        yield from ((scope, name) for name in nested.inputs if scope)


def _copy(value: Any) -> Any:  # noqa: ANN401 - a tensor or a scalar
    return value.detach().clone() if hasattr(value, "clone") else value


def _keeps_factors(node: FlatNode) -> bool:
    return is_transparent(node) or node.operator in (*_MOVES, *_PRODUCTS)


def _steps(node: FlatNode) -> tuple[float | None, float | None]:
    """Return step and zero point of a rounding, None where a tensor has them."""
    return number_argument(node.node, "scale"), number_argument(node.node, "zero_point")


def _numel(sizes: Sequence[int]) -> int:
    return int(load_torch().Size(sizes).numel())


def _real(value: Any) -> Any:  # noqa: ANN401 - a tensor or nothing
    is_tensor = isinstance(value, load_torch().Tensor) and value.numel() > 0
    return value.double() if is_tensor and not value.is_complex() else None


def _ratio(found: Any, own: Any) -> float | None:  # noqa: ANN401
    """Return the factor between two tensors, None unless it is one."""
    square = float((own * own).sum())
    ratio = float((found * own).sum()) / square if square else 0.0
    return ratio if ratio and _is_same(found, own * ratio) else None


def _is_same(found: Any, other: Any) -> bool:  # noqa: ANN401
    return float((found - other).abs().max()) <= _SAME * float(other.abs().max())


def _is_near(ratio: float, other: float) -> bool:
    return abs(ratio - other) <= _SAME * abs(other)
