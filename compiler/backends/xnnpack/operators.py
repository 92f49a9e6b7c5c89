"""How each operator is written: elementwise, data movement, reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from compiler.backends.xnnpack.facts import (
    argument,
    bounds_of,
    is_symbolic,
    op_of,
    rank_of,
    shape_of,
    static_size,
    value_of,
)
from compiler.backends.xnnpack.layout import UNIT, axis_in, in_memory, moves_data, plain
from compiler.backends.xnnpack.lowering import Lowering
from compiler.backends.xnnpack.steps import PayloadStep
from compiler.untyped import aten
from schema.payloads.xnnpack import nodes as n
from schema.payloads.xnnpack.model import NO_VALUE

Node = torch.fx.Node
Emit = Callable[[Lowering, PayloadStep], None]

UNARY: dict[Any, str] = {
    aten.abs.default: "Abs",
    aten.ceil.default: "Ceiling",
    aten.cos.default: "Cos",
    aten.exp.default: "Exp",
    aten.floor.default: "Floor",
    aten.gelu.default: "Gelu",
    aten.hardswish.default: "Hardswish",
    aten.log.default: "Log",
    aten.neg.default: "Negate",
    aten.pow.Tensor_Scalar: "Square",
    aten.rsqrt.default: "ReciprocalSquareRoot",
    aten.sigmoid.default: "Sigmoid",
    aten.sin.default: "Sin",
    aten.sqrt.default: "SquareRoot",
    aten.tanh.default: "Tanh",
}
BINARY: dict[Any, str] = {
    aten.add.Tensor: "Add",
    aten.add.Scalar: "Add",
    aten.sub.Tensor: "Subtract",
    aten.sub.Scalar: "Subtract",
    aten.mul.Tensor: "Multiply",
    aten.mul.Scalar: "Multiply",
    aten.div.Tensor: "Div",
    aten.div.Scalar: "Div",
    aten.maximum.default: "Maximum",
    aten.minimum.default: "Minimum",
    aten.prelu.default: "PReLU",
    aten._prelu_kernel.default: "PReLU",
}
_CAT_MOST = 5  # the schema has Concatenate2 to Concatenate5; longer ones are chained


def unary(lowering: Lowering, step: PayloadStep) -> None:
    """Write an operator with one operand."""
    source = _source(lowering, step)
    lowering.add(step, n.Unary(UNARY[op_of(step.node)], source, lowering.result(step.node)))


def convert(lowering: Lowering, step: PayloadStep) -> None:
    """Write a quantize or dequantize node."""
    source = _source(lowering, step)
    lowering.add(step, n.Unary("Convert", source, lowering.result(step.node)))


def _source(lowering: Lowering, step: PayloadStep) -> int:
    """Return the first operand in the layout of the result."""
    operand: Any = step.node.args[0]
    return lowering.operand(operand, lowering.home(step.node))


def clamp(lowering: Lowering, step: PayloadStep) -> None:
    """Write an activation that could not be fused."""
    source = _source(lowering, step)
    form = n.Unary("Clamp", source, lowering.result(step.node))
    lowering.writer.node(form, step.handles, bounds_of(step.node))


def leaky_relu(lowering: Lowering, step: PayloadStep) -> None:
    """Write a leaky relu."""
    slope = float(argument(step.node, "negative_slope"))
    source = _source(lowering, step)
    lowering.add(step, n.LeakyReLU("LeakyReLU", slope, source, lowering.result(step.node)))


def elu(lowering: Lowering, step: PayloadStep) -> None:
    """Write an exponential linear unit."""
    alpha, source = float(argument(step.node, "alpha")), _source(lowering, step)
    lowering.add(step, n.ELU("ELU", alpha, source, lowering.result(step.node)))


def softmax(lowering: Lowering, step: PayloadStep) -> None:
    """Write a softmax over the last dimension."""
    source = _source(lowering, step)
    lowering.add(step, n.Unary("Softmax", source, lowering.result(step.node)))


def binary(lowering: Lowering, step: PayloadStep) -> None:
    """Write an operator with two operands, which may be broadcast."""
    first, second = (_broadcast(lowering, step.node, arg) for arg in step.node.args[:2])
    kind = BINARY[op_of(step.node)]
    lowering.add(step, n.Binary(kind, first, second, lowering.result(step.node)))


def prelu(lowering: Lowering, step: PayloadStep) -> None:
    """Write a leaky relu with a slope for each channel."""
    slope: Any = step.node.args[1]
    weight = lowering.steps.constant(slope).reshape(-1)
    rank, layout = rank_of(step.node), lowering.home(step.node)
    shaped = weight.reshape((1, -1) + (1,) * (rank - 2)) if rank > 1 else weight
    with lowering.filed_with(slope):
        second = lowering.constant(step.node, shaped, layout)
    source = _source(lowering, step)
    lowering.add(step, n.Binary("PReLU", source, second, lowering.result(step.node)))


def _broadcast(lowering: Lowering, node: Node, given: Any) -> int:  # noqa: ANN401
    layout = lowering.home(node)
    if not isinstance(given, Node):
        return lowering.fixed(torch.tensor(given, dtype=value_of(node).dtype))
    if not lowering.steps.is_constant(given):
        same = rank_of(given) == rank_of(node)
        return lowering.operand(given, layout if same else plain(rank_of(given)))
    return lowering.known(given, () if rank_of(given) == 0 else layout)


def norm(lowering: Lowering, step: PayloadStep) -> None:
    """Write a batch norm as a multiplication and an addition."""
    node = step.node
    scale, shift = scale_and_shift(lowering, node)
    shape = (1, -1) + (1,) * (rank_of(node) - 2)
    dtype, layout = value_of(node).dtype, lowering.home(node)
    source = _source(lowering, step)
    with lowering.filed_with(*node.args[1:5]):
        factor, summand = (
            lowering.fixed_in(tensor.reshape(shape).to(dtype), layout) for tensor in (scale, shift)
        )
    sizes = map(static_size, in_memory(shape_of(node), layout))
    product = lowering.inner(node, tuple(sizes))
    lowering.writer.node(n.Binary("Multiply", source, factor, product), step.handles)
    lowering.add(step, n.Binary("Add", product, summand, lowering.result(node)))


def scale_and_shift(lowering: Lowering, node: Node) -> tuple[torch.Tensor, torch.Tensor]:
    """Return scale and shift of a batch norm for each channel."""
    weight, bias, mean, variance = (
        None if arg is None else lowering.steps.constant(arg).double()
        for arg in _nodes(node.args[1:5])
    )
    assert mean is not None
    assert variance is not None
    scale = (variance + float(argument(node, "eps"))).rsqrt()
    scale = scale if weight is None else scale * weight
    return scale, -mean * scale if bias is None else bias - mean * scale


def _nodes(args: Any) -> list[Node | None]:  # noqa: ANN401
    return list(args)


def view(lowering: Lowering, step: PayloadStep) -> None:
    """Write a reshape; one that only adds or removes dimensions of size 1 keeps the layout."""
    given: Any = step.node.args[0]
    home, rank = lowering.home(given), rank_of(given)
    kept = not moves_data(shape_of(given), home, plain(rank))
    source = lowering.operand(given, home if kept else plain(rank))
    built = lowering.result(step.node)
    lowering.reshape(shape_of(step.node), source, built, step.handles)


def permute(lowering: Lowering, step: PayloadStep) -> None:
    """Write a permutation, as a reshape where the memory layout matches already."""
    given: Any = step.node.args[0]
    rank, source = rank_of(given), lowering.home(given)
    order = [dim % rank for dim in argument(step.node, "dims")]
    # The result's layout expressed in the operand's dimensions.
    requested = tuple(dim if dim == UNIT else order[dim] for dim in lowering.home(step.node))
    lowering.rearrange(
        lowering.read(given),
        lowering.operand(given, source),
        (source, requested),
        lambda: lowering.result(step.node),
        step.handles,
    )


def cat(lowering: Lowering, step: PayloadStep) -> None:
    """Write a concatenation; of more than five tensors as a tree."""
    node, parts = step.node, argument(step.node, "tensors")
    layout = lowering.home(node)
    axis = axis_in(layout, argument(node, "dim"), rank_of(node))
    sizes = [list(map(static_size, in_memory(shape_of(part), layout))) for part in parts]
    ids = [lowering.operand(part, layout) for part in parts]
    while len(ids) > _CAT_MOST:
        joined = [*sizes[0]]
        joined[axis] = sum(size[axis] for size in sizes[:_CAT_MOST])
        built = lowering.inner(node, joined)
        lowering.writer.node(_joined(axis, ids[:_CAT_MOST], built), step.handles)
        ids, sizes = [built, *ids[_CAT_MOST:]], [joined, *sizes[_CAT_MOST:]]
    lowering.add(step, _joined(axis, ids, lowering.result(node)))


def _joined(axis: int, ids: list[int], built: int) -> n.NodeForm:
    if len(ids) == 1:
        return n.Unary("Copy", ids[0], built)
    given = dict.fromkeys((f"input{place}_id" for place in range(1, _CAT_MOST + 1)), NO_VALUE)
    given.update((f"input{place}_id", ident) for place, ident in enumerate(ids, 1))
    return n.Concatenate(f"Concatenate{len(ids)}", axis, output_id=built, **given)


def pad(lowering: Lowering, step: PayloadStep) -> None:
    """Write a constant padding."""
    node, rank = step.node, rank_of(step.node)
    given = list(argument(node, "pad"))
    before, after = [0] * rank, [0] * rank
    for place in range(len(given) // 2):
        before[rank - 1 - place], after[rank - 1 - place] = given[2 * place : 2 * place + 2]
    layout = lowering.home(node)
    form = n.StaticPad(
        "StaticConstantPad",
        _placed(before, layout),
        _placed(after, layout),
        float(argument(node, "value") or 0),
        _source(lowering, step),
        lowering.result(node),
    )
    lowering.add(step, form)


def _placed(values: list[int], layout: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(0 if dim < 0 else values[dim] for dim in layout)


def slices(lowering: Lowering, step: PayloadStep) -> None:
    """Write a slice with step 1."""
    node = step.node
    given: Any = node.args[0]
    dim, start = argument(node, "dim") % rank_of(node), argument(node, "start") or 0
    size = static_size(shape_of(given)[dim])
    offsets = [0] * rank_of(node)
    offsets[dim] = min(max(start + size if start < 0 else start, 0), size)
    layout = lowering.home(node)
    whole = [0 if is_symbolic(size) else size for size in shape_of(node)]  # 0 for all there is
    sizes = tuple(in_memory(whole, layout))
    source = _source(lowering, step)
    built = lowering.result(node)
    placed = _placed(offsets, layout)
    lowering.add(step, n.StaticSlice("StaticSlice", len(sizes), placed, sizes, source, built))
