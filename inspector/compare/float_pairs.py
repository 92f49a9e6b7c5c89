"""Which values of a quantized graph are which of its float graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from inspector.compare.alignment import align_graphs
from inspector.graph.model_graph import ModelNode, recorded_model
from inspector.numerics.flat_graph import FlatGraph, FlatNode, Scope, Value, flat_graph
from schema.graph import Graph

Place = tuple[Scope, str, int]  # nested graph, node, output
_ROUNDING = ("quantize_", "dequantize_")


class FloatPairs:
    """A quantized graph beside its float graph; only the outermost graph of each.

    Args:
        quantized: graph with quantize and dequantize nodes
        plain: the same program before it was quantized
    """

    def __init__(self, quantized: Graph, plain: Graph) -> None:
        self._flat, self._plain = flat_graph(quantized), flat_graph(plain)
        old, new = recorded_model(plain, "source"), recorded_model(quantized, "record")
        alignment = align_graphs(old, new)
        self._gone = {old.nodes[number].name for number in alignment.removed}
        self._named = [_by_name(self._plain), _by_name(self._flat)]
        self._folded: set[str] = set()
        self._models = [(old.nodes[one.old], new.nodes[one.new]) for one in alignment.pairs]
        self._nodes = dict(self._paired())

    def _paired(self) -> Iterator[tuple[str, str]]:
        for plain, quantized in self._models:
            own, node = self._named[0].get(plain.name), self._named[1].get(quantized.name)
            if own is None or node is None or is_rounding(node) or not own.writes:
                continue
            last = self._last_folded(own, quantized.name)
            if _same_shape(self._plain, last, self._flat, node):
                yield quantized.name, last.node.name

    def _last_folded(self, own: FlatNode, quantized: str) -> FlatNode:
        """Return the last float node whose work a quantized node does.

        A batch norm is in the weights of the convolution before it: the result of the convolution
        is that of the batch norm, which the quantized graph lacks. Both have constants; another
        node that it lacks is there in parts, as a tril of ones is.
        """
        last = own
        while (follower := self._folded_into(last)) is not None:
            self._folded.add(quantized)
            last = follower
        return last

    def _folded_into(self, node: FlatNode) -> FlatNode | None:
        users = {one.place: one for one in self._plain.users.get(node.writes[0], ())}
        if len(users) != 1 or len(node.writes) != 1:
            return None
        (user,) = users.values()
        if user.node.name not in self._gone or len(user.writes) != 1:
            return None
        computed = [value for value in user.reads if self._is_computed(value)]
        alike = _same_shape(self._plain, user, self._plain, node)
        scales = self._has_constants(node) and self._has_constants(user)
        return user if alike and scales and computed == [node.writes[0]] else None

    def _has_constants(self, node: FlatNode) -> bool:
        return not all(map(self._is_computed, node.reads))

    def _is_computed(self, value: Value) -> bool:
        return value in self._plain.producers or value in self._plain.inputs

    def place(self, name: str, index: int) -> Place | None:
        """Return where the float graph has a result of a quantized one, apart from roundings."""
        root = self._without_roundings(name, index)
        if root is None:
            return None
        maker = self._flat.producers.get(root)
        if maker is not None:
            found = self._nodes.get(maker[0].node.name)
            return None if found is None else ((), found, maker[1])
        if root not in self._flat.inputs:
            return None
        number = self._flat.inputs.index(root)
        inputs = self._plain.inputs
        return ((), inputs[number][1], 0) if number < len(inputs) else None

    def _without_roundings(self, name: str, index: int) -> Value | None:
        node = self._named[1].get(name)
        if node is None:
            value = ((), name)
            return value if value in self._flat.inputs else None
        return self._root(node.writes[index]) if index < len(node.writes) else None

    def _root(self, value: Value) -> Value:
        """Return the value that was quantized or dequantized into this one."""
        maker = self._flat.producers.get(value)
        while maker is not None and is_rounding(maker[0]) and maker[0].reads:
            value = maker[0].reads[0]
            maker = self._flat.producers.get(value)
        return value

    @cached_property
    def weights(self) -> Sequence[tuple[str, str]]:
        """Return the constants that both programs have: of the float one, and of the other.

        Those of nodes that something is folded into differ and are left out.
        """
        found: dict[str, str] = {}
        for plain, quantized in self._models:
            if quantized.name not in self._folded:
                found.update(zip(_constants(plain), self._constants(quantized), strict=False))
        return tuple(found.items())

    def _constants(self, node: ModelNode) -> list[str]:
        """Return the constants of a quantized node, also those that are dequantized for it."""
        roots = (self._flat.meta.get(self._root(((), name))) for name in node.node.inputs)
        return [meta.constant for meta in roots if meta is not None and meta.constant]


def _constants(node: ModelNode) -> list[str]:
    return [weight.name for weight in node.weights]


def _by_name(graph: FlatGraph) -> Mapping[str, FlatNode]:
    return {node.node.name: node for node in graph.nodes if not node.scope}


def is_rounding(node: FlatNode) -> bool:
    """Return whether a node quantizes or dequantizes a tensor."""
    return node.operator.rpartition("::")[2].startswith(_ROUNDING)


def _same_shape(graph: FlatGraph, node: FlatNode, other: FlatGraph, its: FlatNode) -> bool:
    """Return whether the first results of two nodes have one shape, as far as it is known."""
    one, two = graph.meta.get(node.writes[0]), other.meta.get(its.writes[0])
    if one is None or two is None or one.tensor is None or two.tensor is None:
        return len(node.writes) == len(its.writes)
    sizes = one.tensor.sizes, two.tensor.sizes
    return len(sizes[0]) == len(sizes[1]) and all(
        a == b or isinstance(a, str) or isinstance(b, str) for a, b in zip(*sizes, strict=True)
    )


def edge_scale(flat: FlatGraph, value: Value) -> tuple[float, int] | None:
    """Return scale and zero point of a value that is rounded to one scale, None for others."""
    node = flat.producers[value][0].node
    given = {arg.name: arg.literal for arg in node.args}
    scale, zero = given.get("scale"), given.get("zero_point")
    if isinstance(scale, (int, float)) and isinstance(zero, (int, float)):
        return float(scale), int(zero)
    return None


@dataclass(frozen=True, slots=True)
class EdgePlaces:
    """Where a float graph has the values of an edge graph.

    Attributes:
        values: value of the edge graph -> its place
        scales: integers among them -> scale and zero point
        rounded: those that are quantized or dequantized there, unlike at their place
    """

    values: Mapping[Value, Place]
    scales: Mapping[Value, tuple[float, int]]
    rounded: frozenset[Value]


def edge_places(flat: FlatGraph, between: Mapping[Value, Place], pairs: FloatPairs) -> EdgePlaces:
    """Return where a float graph has the values of an edge graph.

    Args:
        flat: the edge graph
        between: its values -> their places in the quantized graph of the pairs
        pairs: of that graph
    """
    values: dict[Value, Place] = {}
    scales: dict[Value, tuple[float, int]] = {}
    rounded: set[Value] = set()
    for value, (scope, name, index) in between.items():
        found = None if scope else pairs.place(name, index)
        if found is None:
            continue
        maker = flat.producers.get(value)
        if maker is not None and is_rounding(maker[0]):
            scale = edge_scale(flat, value)
            if maker[0].operator.rpartition("::")[2].startswith(_ROUNDING[0]):
                if scale is None:
                    continue  # chosen while it runs: it is compared where it is dequantized
                scales[value] = scale
            rounded.add(value)
        values[value] = found
    return EdgePlaces(values, scales, frozenset(rounded))
