"""Quantization parameters of a graph: scales, zero points, ranges.

PT2E writes a quantized operator as *dequantize, operator, quantize*; torchao's ``quantize_``
leaves operators of torchao with the same meaning.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import torch

from compiler.backends.xnnpack.facts import (
    Facts,
    is_transposition,
    op_of,
    shape_of,
    value_of,
)
from compiler.dialect.dim_order import TO_DIM_ORDER_COPY
from compiler.untyped import aten

Node = torch.fx.Node
QUANTIZE, DEQUANTIZE = "quantize_", "dequantize_"
_HOMES = ("quantized_decomposed", "torchao")
_PARAMETERS = frozenset(
    (
        "choose_qparams.tensor",
        "choose_qparams_per_token_asymmetric.default",
        "choose_qparams_affine.default",
    )
)
_STATIC_Q, _STATIC_DQ = "quantize_per_tensor.default", "dequantize_per_tensor.default"
_BYTE = range(-128, 128)
_NIBBLE = range(-8, 8)
_TINY = torch.finfo(torch.float32).smallest_normal
_PLAIN = (torch.float32, torch.float16)
_PARAMETERS_AT = {
    _STATIC_Q: 1,
    _STATIC_DQ: 1,
    "dequantize_per_channel.default": 1,
    "dequantize_per_channel_group.default": 1,
    "dequantize_affine.default": 2,
}
"""Argument index of the scale; the zero point follows."""
_WIDENS = frozenset((aten._to_copy.default, TO_DIM_ORDER_COPY))


@dataclass(frozen=True, slots=True)
class Affine:
    """Per-tensor scale and zero point that are known at compile time."""

    scale: float
    zero_point: int
    low: int = -128
    high: int = 127


@dataclass(frozen=True, slots=True)
class Scales:
    """The quantization parameters of a weight.

    Attributes:
        scale: a scalar, one for each channel, or [channels, groups]
        axis: of the channels, -1 for a single scale
        group: how many inputs share a scale, 0 for all of a channel
        bits: 8 or 4
    """

    scale: torch.Tensor
    axis: int
    group: int
    bits: int


def quantizing_name(node: object) -> str:
    """Return the name of a quantization operator with its overload, empty for others."""
    if not isinstance(node, Node) or node.op != "call_function":
        return ""
    schema = getattr(op_of(node), "_schema", None)
    home, _, name = ("" if schema is None else str(schema.name)).partition("::")
    return f"{name}.{schema.overload_name or 'default'}" if schema and home in _HOMES else ""


def is_quantize(node: object) -> bool:
    """Return whether a node is a quantize."""
    return quantizing_name(node).startswith(QUANTIZE)


def is_dequantize(node: object) -> bool:
    """Return whether a node dequantizes."""
    return quantizing_name(node).startswith(DEQUANTIZE)


def affine_of(node: object) -> Affine | None:
    """Return the parameters of a static per-tensor (de)quantize node, None for other nodes."""
    if quantizing_name(node) not in (_STATIC_Q, _STATIC_DQ):
        return None
    assert isinstance(node, Node)
    scale, zero_point, low, high, dtype, *_ = node.args[1:]
    known: Any = (scale, zero_point, low, high)
    if dtype is not torch.int8 or not all(isinstance(n, (int, float)) for n in known):
        return None
    return Affine(float(known[0]), *map(int, known[1:]))


def affine_of_value(node: Node) -> Affine | None:
    """Return the parameters of an int8 value: those of its source, else those of its users."""
    built = affine_of(node) if is_quantize(node) else None
    if built is not None:
        return built
    read = {affine_of(user) for user in node.users if is_dequantize(user)}
    return read.pop() if len(read) == 1 else None


def why_not_exact(affine: Affine) -> str:
    """Return why kernels do not support the parameters of a value, empty if they do."""
    if not _TINY <= affine.scale < float("inf"):
        return f"the scale is {affine.scale}"
    if affine.zero_point not in _BYTE:
        return f"the zero point is {affine.zero_point}, outside of -128 to 127"
    return ""


def require_valid_scales(node: Node, facts: Facts) -> None:
    """Reject scales that are zero, subnormal, infinite or NaN, and zero points out of range.

    No kernel loads them, so such a program is an error of the quantizer. Nodes with parameters
    chosen at run time pass.

    Args:
        node: quantizes to, or dequantizes from, int8
        facts: about the program

    Raises: ValueError with the node, the value and its place
    """
    first = _PARAMETERS_AT.get(quantizing_name(node))
    if first is None:
        return
    scale, zero = (_known(given, facts) for given in node.args[first : first + 2])
    if scale is not None:
        wide = _listed(scale).float()
        place = _first(~wide.isfinite() | ((wide >= 0) & (wide < _TINY)))
        if place is not None:
            raise ValueError(
                f"{node.name}: expected a finite, normal quantization scale, found"
                f" {float(wide[place])} at index {place}"
            )
    if zero is not None:
        whole = _listed(zero)
        place = _first((whole < _BYTE[0]) | (whole > _BYTE[-1]))
        if place is not None:
            raise ValueError(
                f"{node.name}: expected a zero point from {_BYTE[0]} to {_BYTE[-1]}, found"
                f" {int(whole[place])} at index {place}"
            )


def _listed(number: torch.Tensor) -> torch.Tensor:
    return number if number.dim() else number.reshape(1)


def _first(broken: torch.Tensor) -> tuple[int, ...] | None:
    """Return the index of the first true value, None if all are false."""
    places: Any = broken.nonzero()
    return tuple(map(int, places[0])) if len(places) else None


def dynamic_source(node: object) -> Node | None:
    """Return the dynamically quantized value behind a dequantize node, None if not dynamic."""
    chain = dynamic_chain(node)
    source: Any = chain[-1].args[0] if chain else None
    return source if isinstance(source, Node) else None


def dynamic_chain(node: object) -> list[Node]:
    """Return the nodes that quantize a value dynamically.

    Args:
        node: the dequantize node at the end

    Returns: that node, the quantize node, two results, the choice; empty if it is not such a chain
    """
    if not is_dequantize(node):
        return []
    assert isinstance(node, Node)
    quantize: Any = node.args[0]
    if not is_quantize(quantize):
        return []
    results = [arg for arg in quantize.args[1:] if _is_result(arg)]
    if len(results) != len(_pair(quantize)) or results != _pair(quantize) or _pair(node) != results:
        return []
    choices = list(dict.fromkeys(result.args[0] for result in results))
    if len(choices) != 1 or quantizing_name_of_choice(choices[0]) not in _PARAMETERS:
        return []
    if choices[0].args[0] is not quantize.args[0]:
        return []
    return [node, quantize, *results, choices[0]]


def _pair(node: Node) -> list[Any]:
    """Return scale and zero point of a node; torchao has the block's size before them."""
    first = 2 if "affine" in quantizing_name(node) else 1
    return list(node.args[first : first + 2])


def _is_result(node: object) -> bool:
    return isinstance(node, Node) and node.target is operator.getitem


def quantizing_name_of_choice(node: object) -> str:
    """Return the name of an operator that chooses scale and zero point."""
    name = quantizing_name(node)
    return name if name.startswith("choose_qparams") else ""


def home_of(node: object, facts: Facts) -> Node | None:
    """Return the constant of a weight argument: behind a transposition and a dequantization."""
    node = dequantized_weight(node) or node
    if isinstance(node, Node) and (is_dequantize(node) or is_widened(node)):
        node = node.args[0]
        if isinstance(node, Node) and is_quantize(node):
            node = node.args[0]
    return facts.weight(node)


def dequantized_weight(node: object) -> Node | None:
    """Return the dequantize node behind a weight argument, None for floating point."""
    if isinstance(node, Node) and is_transposition(node):
        node = node.args[0]
    found = is_dequantize(node) or is_widened(node)
    return node if isinstance(node, Node) and found else None


def is_widened(node: object) -> bool:
    """Return whether a node casts an int8 matrix to floating point, with a scale of 1."""
    if not isinstance(node, Node) or op_of(node) not in _WIDENS:
        return False
    source: Any = node.args[0]
    built, given = value_of(node), value_of(source)
    home = source.args[0] if is_transposition(source) else source
    whole = given.dtype is torch.int8 and given.dim() == 2
    return home.op == "placeholder" and whole and built.dtype in _PLAIN


def scales_of(node: Node, facts: Facts) -> Scales | str:
    """Return the scales of a weight's dequantize node, or why kernels do not support them."""
    name, weight = quantizing_name(node), node.args[0]
    assert isinstance(weight, Node)
    if is_widened(node):
        return Scales(torch.ones(1), -1, 0, 8)
    args: Any = list(node.args)
    if name == _STATIC_DQ:
        _, scale, zero, low, high, dtype = args[:6]
        axis, group = -1, 0
    elif name == "dequantize_per_channel.default":
        _, scale, zero, axis, low, high, dtype = args[:7]
        group = 0
    elif name == "dequantize_per_channel_group.default":
        _, scale, zero, low, high, dtype, group = args[:7]
        axis = 0
    elif name == "dequantize_affine.default":
        _, block, scale, zero, dtype, low, high = args[:7]
        found = _axis_of_block(block, shape_of(weight))
        if isinstance(found, str):
            return found
        axis, group = found
    else:
        return f"its weight is scaled by {name}, which is not supported"
    return _checked(facts, weight, (scale, zero), (axis, group), (low, high, dtype))


def _axis_of_block(block: Any, sizes: tuple[Any, ...]) -> tuple[int, int] | str:  # noqa: ANN401
    """Return axis of the channels and size of a group for a block that has one scale."""
    if list(block) == list(sizes):
        return -1, 0
    if len(block) == 2 and block[0] == 1 and sizes[1] % block[1] == 0:
        return 0, int(block[1])
    if block[0] == 1 and list(block[1:]) == list(sizes[1:]):
        return 0, 0
    return f"one scale of its weight is for a block of {list(block)} of {list(sizes)}"


def _checked(
    facts: Facts,
    weight: Node,
    numbers: tuple[Any, Any],
    place: tuple[int, int],
    limits: tuple[int, int, Any],
) -> Scales | str:
    scale, zero = (_known(each, facts) for each in numbers)
    if scale is None:
        return "the scales of its weight are not static"
    if zero is not None and bool(zero.ne(0).any()):
        return f"its weight has the zero point {int(zero.reshape(-1)[0])}, only 0 is supported"
    if not bool((scale > 0).all()) or not bool(scale.isfinite().all()):
        return "a scale of its weight is not a positive number"
    low, high, dtype = limits
    if dtype is not torch.int8 or not (low in _BYTE and high in _BYTE):
        return f"its weight is {dtype}, only int8 is supported"
    return _placed(weight, scale.float(), place, 4 if low in _NIBBLE and high in _NIBBLE else 8)


def _placed(weight: Node, scale: torch.Tensor, place: tuple[int, int], bits: int) -> Scales | str:
    (axis, group), sizes = place, shape_of(weight)
    if axis < 0:
        return Scales(scale.reshape(-1), -1, 0, bits)
    if not group:
        return Scales(scale.reshape(-1), axis % len(sizes), 0, bits)
    inputs = int(sizes[1])
    if group == inputs:
        return Scales(scale.reshape(-1), 0, 0, bits)
    return Scales(scale.reshape(int(sizes[0]), inputs // group), 0, group, bits)


def _known(value: Any, facts: Facts) -> torch.Tensor | None:  # noqa: ANN401
    if value is None:
        return None
    if isinstance(value, (int, float)):
        return torch.tensor(value)
    return facts.tensor(value) if facts.is_constant(value) else None
