"""The sizes inside of a payload that was made with those of an example, for the sizes of a run.

A rule has to find the sizes that the payload has before it may find others: what differs from its
formula (a padding mode, a flag) is unknown. The kinds are those of XNNPACK's schema; a backend
names this table in its traits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from schema.graph import Graph, GraphNode, GraphValue

Sizes: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Resized:
    """A node with the sizes of its operands.

    Attributes:
        node: of the payload
        given: sizes of each operand, for which those of the results are found
        example: sizes of the first result in the payload
    """

    node: GraphNode
    given: tuple[Sizes, ...]
    example: Sizes

    def number(self, name: str) -> int:
        """Return an integer attribute; 0 where the node has none."""
        value = self.node.attributes.get(name)
        return value if isinstance(value, int) else 0

    def numbers(self, name: str) -> Sizes:
        """Return an attribute that is a tuple of integers."""
        return cast("Sizes", self.node.attributes.get(name) or ())


Rule: TypeAlias = Callable[[Resized], Sizes | None]


def with_sizes(graph: Graph, inputs: Sequence[Sizes], rules: Mapping[str, Rule]) -> Graph | None:
    """Return a payload with other sizes of its inputs, None where some that follow are unknown.

    Args:
        graph: a payload whose tensors have the sizes of an example
        inputs: sizes of its inputs, in memory order
        rules: kind of node -> the sizes of its results
    """
    if len(inputs) != len(graph.inputs):
        return None
    old = {
        name: sizes for name, value in graph.values.items() if (sizes := _sizes(value)) is not None
    }
    new = {**old, **dict(zip(graph.inputs, inputs, strict=True))}
    for node in graph.calls():
        operands = [name for arg in node.args for name in arg.values]
        if any(name not in old for name in (*operands, *node.outputs)):
            return None
        if any(new[name] != old[name] for name in operands):
            found = _results(node, rules.get(node.target), [old, new], operands)
            if found is None:
                return None
            new |= dict.fromkeys(node.outputs, found)
    return replace(graph, values={name: _resized(one, new) for name, one in graph.values.items()})


def _results(
    node: GraphNode, rule: Rule | None, sides: Sequence[Mapping[str, Sizes]], operands: list[str]
) -> Sizes | None:
    """Return the sizes of the results of a node, None where its rule does not hold."""
    old = sides[0]
    example = old[node.outputs[0]]
    if rule is None or any(old[name] != example for name in node.outputs):
        return None
    before, after = (
        rule(Resized(node, tuple(side[name] for name in operands), example)) for side in sides
    )
    return after if before == example else None


def _sizes(value: GraphValue) -> Sizes | None:
    sizes = value.tensor.sizes if value.tensor is not None else None
    is_known = sizes is not None and all(isinstance(size, int) for size in sizes)
    return cast("Sizes", sizes) if is_known else None


def _resized(value: GraphValue, sizes: Mapping[str, Sizes]) -> GraphValue:
    if value.tensor is None or value.name not in sizes:
        return value
    return replace(value, tensor=replace(value.tensor, sizes=sizes[value.name]))


def _same(node: Resized) -> Sizes:
    return node.given[0]


def _broadcast(node: Resized) -> Sizes | None:
    rank = max(map(len, node.given))
    columns = zip(*((1,) * (rank - len(one)) + one for one in node.given), strict=True)
    found = [set(column) - {1} or {1} for column in columns]
    return tuple(one.pop() for one in found) if all(len(one) == 1 for one in found) else None


def _fully_connected(node: Resized) -> Sizes | None:
    """Rows keep their sizes; a result of rank 2 has them flattened."""
    given, weight = node.given[0], node.given[1]
    channels = node.example[-1]
    inner = math.prod(weight) // channels if channels else 0
    if len(node.example) == len(given):
        return (*given[:-1], channels)
    rows = math.prod(given) // inner if inner else 0
    return (rows, channels) if len(node.example) == 2 and rows * inner == math.prod(given) else None


def _matmul(node: Resized) -> Sizes | None:
    one, two = node.given[:2]
    if min(len(one), len(two)) < 2 or one[-1] != two[-2]:
        return None
    batch = _broadcast(replace(node, given=(one[:-2], two[:-2])))
    return None if batch is None else (*batch, one[-2], two[-1])


def _transposed(node: Resized) -> Sizes:
    return tuple(node.given[0][place] for place in node.numbers("perm"))


def _reshaped(node: Resized) -> Sizes | None:
    """One size may be 0: what is left of the elements."""
    shape, count = node.numbers("new_shape"), math.prod(node.given[0])
    known = math.prod(size for size in shape if size)
    if shape.count(0) > 1 or not known or count % known:
        return None
    found = tuple(size or count // known for size in shape)
    return found if math.prod(found) == count else None


def _padded(node: Resized) -> Sizes:
    pads = zip(node.numbers("pre_paddings"), node.numbers("post_paddings"), strict=True)
    return tuple(
        size + before + after for size, (before, after) in zip(node.given[0], pads, strict=True)
    )


def _concatenated(node: Resized) -> Sizes | None:
    axis, first = node.number("axis"), node.given[0]
    if any(one[:axis] + one[axis + 1 :] != first[:axis] + first[axis + 1 :] for one in node.given):
        return None
    return (*first[:axis], sum(one[axis] for one in node.given), *first[axis + 1 :])


def _sliced(node: Resized) -> Sizes:
    """A size of 0 is what follows the offset."""
    parts = zip(node.given[0], node.numbers("offsets"), node.numbers("sizes"), strict=True)
    return tuple(size or given - offset for given, offset, size in parts)


def _scaled(node: Resized) -> Sizes | None:
    given = node.given[0]
    image = node.number("new_height"), node.number("new_width")
    return (given[0], *image, given[3]) if len(given) == 4 else None


def _windows(node: Resized, prefix: str, stride: str) -> Sizes | None:
    """Return the sizes of images after a window was moved over them; channels are the example's."""
    if len(node.given[0]) != 4:
        return None
    batch, *image, _ = node.given[0]
    found: list[int] = []
    for side, low, high, size in zip(
        ("height", "width"), ("top", "left"), ("bottom", "right"), image, strict=True
    ):
        window = max(1, node.number(f"dilation_{side}")) * (node.number(f"{prefix}_{side}") - 1) + 1
        room = size + node.number(f"padding_{low}") + node.number(f"padding_{high}") - window
        found.append(room // max(1, node.number(f"{stride}_{side}")) + 1)
    return (batch, *found, node.example[-1]) if min(found) > 0 else None


def _convolution(node: Resized) -> Sizes | None:
    return _windows(node, "kernel", "subsampling")


def _pooling(node: Resized) -> Sizes | None:
    return _windows(node, "pooling", "stride")


def _global_pooling(node: Resized) -> Sizes | None:
    given = node.given[0]
    return (given[0], 1, 1, given[3]) if len(given) == 4 else None


_SAME = """Clamp LeakyReLU Sigmoid ELU Hardswish Gelu Softmax Convert Copy Floor SquareRoot Ceiling
    Negate Square Abs ReciprocalSquareRoot Log Tanh Exp Sin Cos"""
_BROADCAST = "Add Div Minimum Multiply Subtract Maximum PReLU"

RULES: dict[str, Rule] = {
    **dict.fromkeys(_SAME.split(), _same),
    **dict.fromkeys(_BROADCAST.split(), _broadcast),
    **dict.fromkeys((f"Concatenate{count}" for count in range(2, 6)), _concatenated),
    **dict.fromkeys(("Conv2d", "DepthwiseConv2d"), _convolution),
    **dict.fromkeys(("AvgPooling2d", "MaxPooling2d"), _pooling),
    "GlobalAvgPooling2d": _global_pooling,
    "FullyConnected": _fully_connected,
    "BatchMatrixMultiply": _matmul,
    "StaticTranspose": _transposed,
    "StaticReshape": _reshaped,
    "StaticConstantPad": _padded,
    "StaticSlice": _sliced,
    "StaticResizeBilinear2D": _scaled,
}
