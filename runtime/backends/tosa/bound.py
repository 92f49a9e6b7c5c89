"""Operators of TOSA bound to what their node fixes: dtypes, attributes, constants.

They compute what the general ones do. Where those widen integers, these use the narrowest
arithmetic that is exact: float32 for sums below 2**24, 32-bit integers that wrap alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from runtime.backends.graph import Operation
from runtime.backends.tosa.integers import BOUNDS, Facts
from schema.graph import Graph, GraphNode

_EXACT = 1 << 24  # integers up to it are exact in float32
_FLOATS = ("float32", "float16", "bfloat16")
_LARGEST = {"int4": 15, "int8": 255, "int16": 65535}  # distance of a value to its zero point
_aten: Any = torch.ops.aten
Binder = Callable[[GraphNode, Graph, Sequence[str], Sequence[str]], "Operation | None"]


def bound(node: GraphNode, graph: Graph) -> Operation | None:
    """Return the call of a node for its dtypes, None where only the general one is exact."""
    binder = _BINDERS.get(node.target)
    if binder is None or not node.outputs:
        return None
    names = tuple(name for argument in node.args for name in argument.values)
    dtypes = [dtype_of(graph, name) for name in (*names, node.outputs[0])]
    try:
        return binder(node, graph, names, dtypes)
    except (IndexError, KeyError, TypeError, ValueError):
        return None  # of a damaged node: the general call reports what it lacks


def dtype_of(graph: Graph, name: str) -> str:
    """Return the dtype of a tensor of a graph, empty where it is unknown or none."""
    tensor = graph.values[name].tensor
    return "" if tensor is None else tensor.dtype


def _is_constant(graph: Graph, name: str) -> bool:
    value = graph.values[name]
    return bool(value.constant) or value.literal is not None


def _integers(graph: Graph, name: str) -> tuple[int, ...] | None:
    """Return a list of integers that the graph fixes, None for one that is computed."""
    literal: Any = graph.values[name].literal
    if not isinstance(literal, (tuple, list)):
        return None
    return tuple(map(int, cast("Sequence[Any]", literal)))


# ---- elementwise


def _same(run: Callable[..., Any], count: int) -> Binder:
    """Return the binder of an operator that torch has, on operands of equal dtype."""

    def bind(
        _: GraphNode, __: Graph, names: Sequence[str], dtypes: Sequence[str]
    ) -> Operation | None:
        own = set(dtypes[:count])
        if len(names) < count or len(own) != 1 or not own <= {*_FLOATS, "int32"}:
            return None
        return Operation(run, tuple(names[:count]))

    return bind


def _compared(run: Callable[..., Any]) -> Binder:
    def bind(
        _: GraphNode, __: Graph, names: Sequence[str], dtypes: Sequence[str]
    ) -> Operation | None:
        return Operation(run, tuple(names)) if dtypes[0] == dtypes[1] != "int48" else None

    return bind


def _floating(run: Callable[..., Any], count: int) -> Binder:
    def bind(
        _: GraphNode, __: Graph, names: Sequence[str], dtypes: Sequence[str]
    ) -> Operation | None:
        return Operation(run, tuple(names[:count])) if dtypes[0] in _FLOATS else None

    return bind


def _mul(
    _: GraphNode, graph: Graph, names: Sequence[str], dtypes: Sequence[str]
) -> Operation | None:
    if dtypes[0] in _FLOATS:
        return Operation(torch.mul, tuple(names[:2]))
    if dtypes[:2] in (["int8", "int8"], ["int16", "int16"]):  # a product fits 32 bits
        return Operation(_wide_product, tuple(names[:2]))
    return None


def _wide_product(a: Tensor, b: Tensor) -> Tensor:
    return a.int() * b.int()


def _clamp(
    node: GraphNode, _: Graph, names: Sequence[str], dtypes: Sequence[str]
) -> Operation | None:
    low: Any = node.attributes.get("min_val")
    high: Any = node.attributes.get("max_val")
    coded = any(isinstance(one, str) for one in (low, high))
    if coded or node.attributes.get("nan_mode") == "ignore" or dtypes[0] == "int48":
        return None
    return Operation(partial(_clamped, low, high), tuple(names))


def _clamped(low: float, high: float, x: Tensor) -> Tensor:
    return x.clamp(low, high)


# ---- shapes


def _ints(node: GraphNode, name: str) -> tuple[int, ...]:
    found: Any = node.attributes[name]
    return tuple(map(int, found))


def _reshaped(sizes: tuple[int, ...], x: Tensor) -> Tensor:
    return x.reshape(sizes)


def _permuted(order: tuple[int, ...], x: Tensor) -> Tensor:
    return x.permute(order)


def _sliced(place: tuple[slice, ...], x: Tensor) -> Tensor:
    return x[place]


def _reshape(
    _: GraphNode, graph: Graph, names: Sequence[str], __: Sequence[str]
) -> Operation | None:
    sizes = _integers(graph, names[1])
    return None if sizes is None else Operation(partial(_reshaped, sizes), (names[0],))


def _transpose(
    node: GraphNode, _: Graph, names: Sequence[str], __: Sequence[str]
) -> Operation | None:
    return Operation(partial(_permuted, _ints(node, "perms")), tuple(names))


def _slice(_: GraphNode, graph: Graph, names: Sequence[str], __: Sequence[str]) -> Operation | None:
    start, size = _integers(graph, names[1]), _integers(graph, names[2])
    if start is None or size is None or len(start) != len(size):
        return None
    place = tuple(slice(a, a + b) for a, b in zip(start, size, strict=True))
    return Operation(partial(_sliced, place), (names[0],))


def _pad(
    _: GraphNode, graph: Graph, names: Sequence[str], dtypes: Sequence[str]
) -> Operation | None:
    padding = _integers(graph, names[1])
    if padding is None or len(padding) % 2 or not _is_constant(graph, names[2]):
        return None
    pairs = [padding[at : at + 2] for at in range(0, len(padding), 2)]
    order = [one for pair in reversed(pairs) for one in pair]
    values: list[Any] = []

    def padded(x: Tensor, value: Tensor) -> Tensor:
        if not values:
            values.append(value.item())
        return _aten.constant_pad_nd(x, order, values[0])

    return Operation(padded, (names[0], names[2])) if dtypes[0] != "int48" else None


def _reduced(run: Callable[..., Any], **more: Any) -> Binder:  # noqa: ANN401
    def bind(
        node: GraphNode, _: Graph, names: Sequence[str], dtypes: Sequence[str]
    ) -> Operation | None:
        if dtypes[0] not in (*_FLOATS, "int32") or node.attributes.get("nan_mode") == "ignore":
            return None
        axis = int(str(node.attributes["axis"]))
        keywords = more if dtypes[0] == "int32" else {}
        return Operation(partial(run, dim=axis, keepdim=True, **keywords), tuple(names))

    return bind


# ---- sums of products


class _Once:
    """A function of constants, computed at the first call."""

    def __init__(self, run: Callable[..., Any]) -> None:
        self._run = run
        self._found: Any = None

    def __call__(self, *given: Any) -> Any:  # noqa: ANN401
        if self._found is None:
            self._found = self._run(*given)
        return self._found


def _convolution(
    node: GraphNode, graph: Graph, names: Sequence[str], dtypes: Sequence[str]
) -> Operation | None:
    if len(names) != 5 or not all(_is_constant(graph, name) for name in names[1:]):
        return None
    if dtypes[0] not in (*_FLOATS, *_LARGEST):
        return None
    facts = node.attributes
    prepare = _Once(partial(_prepared, node.target, facts, dtypes[0]))
    return Operation(partial(_convolved, prepare), tuple(names))


def _prepared(
    kind: str, facts: Facts, dtype: str, weight: Tensor, bias: Tensor, *zeros: Tensor
) -> Callable[[Tensor], Tensor]:
    """Return a convolution of images whose weights are constants."""
    real = weight.is_floating_point()
    own = weight if real else weight.double() - zeros[1].double()
    groups = 1
    if kind == "DEPTHWISE_CONV2D":
        groups = weight.shape[2]
        own = own.permute(2, 3, 0, 1).flatten(0, 1).unsqueeze(1)
    else:
        own = own.movedim(-1, 1)
    work = torch.float32
    if not real:
        largest = float(own.abs().flatten(1).sum(1).max()) if own.numel() else 0.0
        work = torch.float32 if largest * _LARGEST[dtype] < _EXACT else torch.float64
    own = own.to(work).contiguous()
    pad: Any = facts["pad"]
    before, after = tuple(map(int, pad[::2])), tuple(map(int, pad[1::2]))
    even = before == after
    margins = [one for pair in zip(before[::-1], after[::-1], strict=True) for one in pair]
    stride, dilation = tuple(facts["stride"]), tuple(facts["dilation"])
    run: Any = F.conv2d if weight.dim() == 4 else F.conv3d
    share = before if even else (0,) * len(before)
    zero = None if real or not bool(zeros[0].any()) else zeros[0].to(work)
    inside = bias.to(work).expand(own.shape[0]).contiguous() if real else None
    outside = None if real else bias.expand(own.shape[0])

    def convolve(x: Tensor) -> Tensor:
        image = x.movedim(-1, 1)
        if not real:
            image = image.to(work)
            if zero is not None:
                image = image - zero
        if not even:
            image = F.pad(image, margins)
        made = run(image, own, inside, stride, share, dilation, groups).movedim(1, -1)
        return made if outside is None else made.to(outside.dtype) + outside

    return convolve


def _convolved(prepare: _Once, x: Tensor, *constants: Tensor) -> Tensor:
    return prepare(*constants)(x)


def _matmul(
    _: GraphNode, graph: Graph, names: Sequence[str], dtypes: Sequence[str]
) -> Operation | None:
    if dtypes[0] in _FLOATS:
        return Operation(torch.bmm, tuple(names[:2]))
    tensor = graph.values[names[0]].tensor
    inner = tensor.sizes[-1] if tensor is not None and tensor.sizes else None
    if dtypes[0] != "int8" or dtypes[1] != "int8" or not isinstance(inner, int):
        return None
    return Operation(_product, tuple(names)) if inner * 255 * 255 < _EXACT else None


def _product(a: Tensor, b: Tensor, a_zero: Tensor, b_zero: Tensor) -> Tensor:
    return torch.bmm(a.float() - a_zero.float(), b.float() - b_zero.float())


# ---- quantized


def _rescale(
    node: GraphNode, graph: Graph, names: Sequence[str], dtypes: Sequence[str]
) -> Operation | None:
    facts, limits = node.attributes, BOUNDS.get(dtypes[-1])
    unsigned = facts["input_unsigned"] or facts["output_unsigned"]
    if limits is None or unsigned or dtypes[0] not in ("int8", "int16", "int32"):
        return None
    if len(names) != 5 or not all(_is_constant(graph, name) for name in names[1:]):
        return None
    double = facts["rounding_mode"] == "double_round"
    prepare = _Once(partial(_scale, double, limits))
    return Operation(partial(_convolved, prepare), tuple(names))


def _scale(
    double: bool,
    limits: tuple[int, int],
    multiplier: Tensor,
    shift: Tensor,
    in_zero: Tensor,
    out_zero: Tensor,
) -> Callable[[Tensor], Tensor]:
    """Return a rescaling whose factors are constants."""
    factor, bits = multiplier.long(), shift.long()
    half = torch.ones_like(bits) << (bits - 1)
    twice = torch.where(bits > 31, 1 << 30, 0) if double and bool((bits > 31).any()) else None
    before, after = int(in_zero.reshape(-1)[0]), int(out_zero.reshape(-1)[0])
    low, high = limits

    def rescale(x: Tensor) -> Tensor:
        value = x.long()
        if value is x:
            value = x.clone()
        if before:
            value -= before
        more = None if twice is None else torch.where(value >= 0, twice, -twice)
        value = value * factor
        value += half
        if more is not None:
            value += more
        value >>= bits
        if after:
            value += after
        return value.clamp_(low, high)

    return rescale


def _table(
    _: GraphNode, graph: Graph, names: Sequence[str], dtypes: Sequence[str]
) -> Operation | None:
    return Operation(_looked_up, tuple(names)) if dtypes[0] == "int8" else None


def _looked_up(x: Tensor, entries: Tensor) -> Tensor:
    return entries[x.long() + 128]


def _max_pool(
    node: GraphNode, _: Graph, names: Sequence[str], dtypes: Sequence[str]
) -> Operation | None:
    if node.attributes.get("nan_mode") == "ignore" or dtypes[0] not in (*_FLOATS, "int8", "int16"):
        return None
    top, bottom, left, right = _ints(node, "pad")
    stride, kernel = _ints(node, "stride"), _ints(node, "kernel")
    even = top == bottom and left == right and 2 * top <= kernel[0] and 2 * left <= kernel[1]

    def pooled(x: Tensor) -> Tensor:
        image = x.movedim(-1, 1).float()
        if even:
            made = F.max_pool2d(image, kernel, stride, (top, left))
        else:
            made = F.max_pool2d(
                F.pad(image, (left, right, top, bottom), value=-math.inf), kernel, stride
            )
        return made.movedim(1, -1)

    return Operation(pooled, tuple(names))


_COMPARISONS = {"EQUAL": torch.eq, "GREATER": torch.gt, "GREATER_EQUAL": torch.ge}
_EQUAL_DTYPES = {
    "ABS": (torch.abs, 1),
    "ADD": (torch.add, 2),
    "SUB": (torch.sub, 2),
}
_FLOAT_ONLY = {
    "CEIL": torch.ceil,
    "COS": torch.cos,
    "ERF": torch.erf,
    "EXP": torch.exp,
    "FLOOR": torch.floor,
    "LOG": torch.log,
    "NEGATE": torch.neg,
    "RECIPROCAL": torch.reciprocal,
    "RSQRT": torch.rsqrt,
    "SIGMOID": torch.sigmoid,
    "SIN": torch.sin,
    "TANH": torch.tanh,
}
_BINDERS: dict[str, Binder] = {
    **{name: _compared(run) for name, run in _COMPARISONS.items()},
    **{name: _same(run, count) for name, (run, count) in _EQUAL_DTYPES.items()},
    **{name: _floating(run, 1) for name, run in _FLOAT_ONLY.items()},
    "CLAMP": _clamp,
    "CONV2D": _convolution,
    "CONV3D": _convolution,
    "DEPTHWISE_CONV2D": _convolution,
    "MATMUL": _matmul,
    "MAX_POOL2D": _max_pool,
    "MUL": _mul,
    "PAD": _pad,
    "POW": _floating(torch.pow, 2),
    "REDUCE_MAX": _reduced(torch.amax),
    "REDUCE_MIN": _reduced(torch.amin),
    "REDUCE_SUM": _reduced(torch.sum, dtype=torch.int32),
    "RESCALE": _rescale,
    "RESHAPE": _reshape,
    "SLICE": _slice,
    "TABLE": _table,
    "TRANSPOSE": _transpose,
}
