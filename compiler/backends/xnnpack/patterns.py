"""Patterns of nodes: floating-point, statically quantized, dynamically quantized.

The partitioner uses them to group nodes, the payload writer to fold nodes. Both only
look at the neighbours of a node, so a subgraph gives the same answers as the entire graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from compiler.backends.xnnpack.facts import (
    Facts,
    argument,
    bounds_of,
    is_symbolic,
    is_tensor,
    is_transposition,
    op_of,
    rank_of,
    shape_of,
)
from compiler.backends.xnnpack.precision import ConfigPrecisionType
from compiler.backends.xnnpack.quantization import (
    Affine,
    Scales,
    affine_of,
    affine_of_value,
    dequantized_weight,
    dynamic_chain,
    home_of,
    is_dequantize,
    is_quantize,
    scales_of,
    why_not_exact,
)
from compiler.backends.xnnpack.views import matmul_behind, views_around
from compiler.dialect.dim_order import CLONE_DIM_ORDER, TO_DIM_ORDER_COPY
from compiler.partition.regions import follows_source
from compiler.untyped import aten

Node = torch.fx.Node
COPIES = frozenset(
    (aten.clone.default, aten.expand_copy.default, CLONE_DIM_ORDER, TO_DIM_ORDER_COPY)
)
WEIGHT_AT = {
    aten.convolution.default: 1,
    aten.linear.default: 1,
    aten.addmm.default: 2,
    aten.mm.default: 1,
}
"""Argument index of the weight of each layer."""
_BIAS_AT = {aten.addmm.default: 0, aten.mm.default: None}
_SUMS = frozenset((aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor))
_CLAMPS = frozenset((aten.relu.default, aten.hardtanh.default, aten.clamp.default))
_MOVES = frozenset(
    (
        aten.cat.default,
        aten.max_pool2d.default,
        aten.max_pool2d_with_indices.default,
        aten.permute_copy.default,
        aten.slice_copy.Tensor,
        aten.unsqueeze_copy.default,
        aten.view_copy.default,
        *_CLAMPS,
        *COPIES,
    )
)
"""Operators whose quantized kernels preserve the integer values of their operands."""
_STATIC = _SUMS | _MOVES | {aten.mean.dim}
_IMAGE = 4  # dimensions of an NCHW image
_GROUP = 32  # the number of inputs that share a scale of a 4-bit weight is a multiple of it


@dataclass(frozen=True)
class Pattern:
    """How a node runs.

    Attributes:
        precision: floating point, statically or dynamically quantized
        affine: quantization of the result, None for floating point
        along: other nodes that must be in the same partition
        weight: scales of its weight, None for floating point
    """

    precision: ConfigPrecisionType = ConfigPrecisionType.FP32
    affine: Affine | None = None
    along: list[Node] = field(default_factory=list[Node])
    weight: Scales | None = None


PLAIN = Pattern()


def is_copy(node: Node) -> bool:
    """Return whether a node is a no-op: a copy, or a view of the same sizes."""
    op = op_of(node)
    if op is not aten.view_copy.default:
        return op in COPIES
    given: Any = node.args[0]
    same = shape_of(given) == shape_of(node)
    return same and not any(map(is_symbolic, shape_of(node)))


def pattern_of(node: Node, facts: Facts) -> Pattern:
    """Return the pattern of a node."""
    op = op_of(node)
    if op in WEIGHT_AT:
        return _layer(node, facts)
    if op is aten.constant_pad_nd.default:
        return _padding(node, facts)
    if op not in _STATIC:
        return PLAIN
    return _static(node, facts, list(operands_of(node)), None) or PLAIN


def operands_of(node: Node) -> Iterator[Node]:
    """Yield the tensor operands of a node that is not a layer."""
    yield from (given for given in node.all_input_nodes if given.op != "get_attr")


def weight_scales(node: Node, facts: Facts) -> Scales | None:
    """Return the supported scales of a layer's weight, None for floating point."""
    place = WEIGHT_AT[op_of(node)]
    given = dequantized_weight(node.args[place])
    if given is None or home_of(given, facts) is None:
        return None
    found = scales_of(given, facts)
    return None if isinstance(found, str) else found


def _layer(node: Node, facts: Facts) -> Pattern:
    args: Any = node.args
    op = op_of(node)
    place = WEIGHT_AT[op]
    read = args[1 if op is aten.addmm.default else 0]
    views = views_around(node)
    given: Any = read if views is None else views[0].args[0]
    weight = dequantized_weight(args[place])
    scales = weight_scales(node, facts)
    if scales is None or weight is None or not _bias_is_known(node, facts):
        return PLAIN
    between = [n for n in (args[place], weight) if n is not weight] + [weight]
    between += [n for n in weight.args[:1] if isinstance(n, Node) and is_transposition(n)]
    chain = dynamic_chain(given)
    if chain:
        return _dynamic(node, chain, scales, between, facts)
    found = None
    if scales.bits == 8 and not _moves_scales(node, scales):
        found = _static(node, facts, [given], scales)
    if found is None:
        return Pattern(along=between, weight=scales)
    return Pattern(found.precision, found.affine, [*found.along, *between], scales)


def bias_at(node: Node) -> int | None:
    """Return the argument index of a layer's bias, None if it cannot have one."""
    return _BIAS_AT.get(op_of(node), 2)


def _bias_is_known(node: Node, facts: Facts) -> bool:
    place = bias_at(node)
    bias = node.args[place] if place is not None and place < len(node.args) else None
    return bias is None or known_bias(bias, facts)


def known_bias(bias: object, facts: Facts) -> bool:
    """Return whether a bias is a constant, or a dequantized one."""
    if isinstance(bias, Node) and is_dequantize(bias):
        bias = bias.args[0]
    return facts.is_constant(bias)


def _moves_scales(node: Node, scales: Scales) -> bool:
    """Return whether scales are not those of the result's channels, in the kernels' order."""
    if scales.group:
        return True
    if scales.axis < 0:
        return False
    if op_of(node) is not aten.convolution.default:
        return scales.axis != _axis_of_outputs(node)
    if not argument(node, "transposed"):
        return scales.axis != 0
    return scales.axis != 1 or argument(node, "groups") != 1


def _axis_of_outputs(node: Node) -> int:
    """Return the dimension of the stored weight of a linear layer that its results have."""
    op = op_of(node)
    if op in (aten.addmm.default, aten.mm.default):
        return 1 if is_dequantize(node.args[WEIGHT_AT[op]]) else 0
    return 0


def _dynamic(
    node: Node, chain: list[Node], scales: Scales, between: list[Node], facts: Facts
) -> Pattern:
    """Return the pattern of a layer with dynamically quantized input."""
    plain = Pattern(along=between, weight=scales)
    if any(op_of(matmul_behind(user)) not in WEIGHT_AT for user in chain[0].users):
        return plain
    if any(user not in chain for one in chain[1:] for user in one.users):
        return plain
    if op_of(node) is aten.convolution.default:
        fits = rank_of(node) == _IMAGE and _is_whole_convolution(node, facts)
    else:
        fits = not scales.group or _fits_groups(node, scales)
    if not fits or (not scales.group and _moves_scales(node, scales)):
        return plain
    along = [*chain, *between]
    return Pattern(ConfigPrecisionType.DYNAMIC_QUANT, None, along, scales)


def _fits_groups(node: Node, scales: Scales) -> bool:
    return scales.bits == 4 and scales.group % _GROUP == 0 and _axis_of_outputs(node) == 0


def _is_whole_convolution(node: Node, facts: Facts) -> bool:
    """Return whether a convolution mixes channels, and has weights of 8 bits a channel."""
    scales = weight_scales(node, facts)
    weight = home_of(node.args[1], facts)
    if scales is None or scales.group or scales.bits != 8 or weight is None:
        return False
    if argument(node, "transposed"):
        return argument(node, "groups") == 1
    return argument(node, "groups") == 1 or weight.meta["val"].shape[1] != 1


def _static(
    node: Node, facts: Facts, operands: list[Node], weight: Scales | None
) -> Pattern | None:
    """Return the pattern of a node between dequantize and quantize, None otherwise."""
    views = views_around(node)
    reader = node if views is None else views[0]
    given = [_operand_affine(one, reader, facts, weight is not None) for one in operands]
    passed, quantize = result_of(node)
    affine = affine_of(quantize)
    known = [one for one in given if one is not None]
    if affine is None or len(known) != len(given) or not known:
        return None
    if any(map(why_not_exact, (affine, *known))):
        return None
    if op_of(node) in _MOVES and any(one != affine for one in known):
        return None
    assert isinstance(quantize, Node)
    along = [*operands, *passed, quantize]
    along += [n.args[0] for n in operands if _is_padding(n) and isinstance(n.args[0], Node)]
    return Pattern(ConfigPrecisionType.STATIC_QUANT, affine, along)


def _operand_affine(given: Node, reader: Node, facts: Facts, pads: bool) -> Affine | None:
    """Return the quantization parameters of an operand that is dequantized for one user only."""
    if not isinstance(given, Node) or list(given.users) != [reader]:  # pyright: ignore[reportUnnecessaryIsInstance]
        return None
    if pads and _is_padding(given):
        return _operand_affine(given.args[0], given, facts, pads=False)  # pyright: ignore[reportArgumentType]
    affine = affine_of(given)
    source = given.args[0] if is_dequantize(given) else None
    if affine is None or not isinstance(source, Node):
        return None
    if facts.is_constant(source):
        return affine
    return affine if affine_of_value(source) == affine else None


def _is_padding(node: Node) -> bool:
    """Return whether a node pads the spatial dimensions with zeros."""
    if op_of(node) is not aten.constant_pad_nd.default or (argument(node, "value") or 0) != 0:
        return False
    sides = list(argument(node, "pad"))
    known = all(isinstance(size, int) and size >= 0 for size in sides)
    return known and not any(sides[2 * (rank_of(node) - 2) :])


def _padding(node: Node, facts: Facts) -> Pattern:
    """Return the padding of a quantized layer, which is delegated together with it."""
    users = list(node.users)
    if len(users) != 1 or op_of(users[0]) not in WEIGHT_AT or not _is_padding(node):
        return PLAIN
    found = _layer(users[0], facts)
    given: Any = node.args[0]
    if found.precision is not ConfigPrecisionType.STATIC_QUANT or node not in found.along:
        return PLAIN
    return Pattern(found.precision, affine_of(given), [users[0], *found.along])


def result_of(node: Node) -> tuple[list[Node], Node | None]:
    """Return the nodes from a node to the quantize of its result, inclusive."""
    views = views_around(node)
    passed: list[Node] = [] if views is None else [views[1]]
    reader = _sole_user(views[1] if views is not None else node)
    if reader is not None and follows_source(reader) and not is_tensor(node):
        passed.append(reader)
        reader = _sole_user(reader)
    if reader is not None and op_of(node) in _SUMS | WEIGHT_AT.keys() and bounds_of(reader):
        passed.append(reader)
        reader = _sole_user(reader)
    return passed, reader if is_quantize(reader) else None


def _sole_user(node: Node) -> Node | None:
    users = list(node.users)
    return users[0] if len(users) == 1 else None
