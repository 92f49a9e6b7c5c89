"""How operators over images are written: convolutions, pools, resizing; and matrix products."""

from __future__ import annotations

from typing import Any

import torch

from compiler.backends.xnnpack.facts import (
    argument,
    is_transposition,
    numbers,
    op_of,
    rank_of,
    shape_of,
    static_size,
)
from compiler.backends.xnnpack.layout import channels_last, plain
from compiler.backends.xnnpack.lowering import Lowering
from compiler.backends.xnnpack.operators import scale_and_shift
from compiler.backends.xnnpack.steps import Step
from compiler.untyped import aten
from schema.payloads.xnnpack import nodes as n
from schema.payloads.xnnpack.model import NO_VALUE

Node = torch.fx.Node
KEEP_DIMS, ALIGN_CORNERS, TRANSPOSED = 0x40, 8, 1


def _pair(node: Node, name: str, count: int, default: int = 0) -> tuple[int, int]:
    """Return an argument a dimension as (height, width); a signal has the height 1."""
    found = numbers(argument(node, name), count, default)
    filler = 0 if name in ("padding", "output_padding") else 1
    return (filler, found[0]) if count == 1 else (found[0], found[1])


def convolution(lowering: Lowering, step: Step) -> None:
    """Write a convolution, with the batch norms after it in its weights."""
    node = step.node
    weight, bias = _parameters(lowering, step, 1, 2)
    count, transposed = weight.dim() - 2, bool(argument(node, "transposed"))
    groups = int(argument(node, "groups"))
    weight = weight.unsqueeze(2) if count == 1 else weight
    height, width = weight.shape[2:]
    ins, outs = weight.shape[1], weight.shape[0] // groups
    kind = "Conv2d"
    if transposed:
        kind, ins, outs = "ConvTranspose2d", weight.shape[0] // groups, weight.shape[1]
    elif ins == 1 and groups > 1:
        kind = "DepthwiseConv2d"
    pad, step_by, dilation = (
        _pair(node, name, count) for name in ("padding", "stride", "dilation")
    )
    adjusted = _pair(node, "output_padding", count) if transposed else (0, 0)
    given: Any = node.args[0]
    form = n.Convolution(
        kind,
        padding_top=pad[0],
        padding_right=pad[1],
        padding_bottom=pad[0],
        padding_left=pad[1],
        kernel_height=height,
        kernel_width=width,
        subsampling_height=step_by[0],
        subsampling_width=step_by[1],
        dilation_height=dilation[0],
        dilation_width=dilation[1],
        group_input_channels=ins,
        group_output_channels=outs,
        groups=groups,
        adjustment_height=adjusted[0],
        adjustment_width=adjusted[1],
        input1_id=lowering.operand(given, channels_last(rank_of(given))),
        filter_id=lowering.fixed(filter_in_memory(kind, weight, groups)),
        bias_id=NO_VALUE if bias is None else lowering.fixed(bias),
        output_id=lowering.result(node),
    )
    lowering.add(step, form)


def filter_in_memory(kind: str, weight: torch.Tensor, groups: int) -> torch.Tensor:
    """Return a filter as the kernels read it.

    Shapes: weight [out, in/groups, h, w], for a transposed convolution [in, out/groups, h, w]
    """
    if kind == "DepthwiseConv2d":
        return weight.permute(1, 2, 3, 0).contiguous()
    if kind == "Conv2d":
        return weight.permute(0, 2, 3, 1).contiguous()
    ins, outs, height, width = weight.shape
    split = weight.reshape(groups, ins // groups, outs, height, width)
    return split.permute(0, 2, 3, 4, 1).reshape(groups * outs, height, width, -1).contiguous()


def _parameters(
    lowering: Lowering, step: Step, weight_at: int, bias_at: int
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return weight and bias with the norms of a step in them."""
    node, steps = step.node, lowering.steps
    args: Any = node.args
    home: Any = steps.facts.weight(args[weight_at])
    weight = steps.facts.tensor(home)
    given = args[bias_at] if len(args) > bias_at else None
    bias = None if given is None else steps.constant(given)
    if not step.norms:
        return weight, bias
    dtype = weight.dtype
    transposed = op_of(node) is aten.convolution.default and bool(argument(node, "transposed"))
    groups = int(argument(node, "groups")) if transposed else 1
    wide, shift = weight.double(), 0.0 if bias is None else bias.double()
    for norm in step.norms:
        factor, summand = scale_and_shift(lowering, norm)
        wide = _scaled(wide, factor, groups) if transposed else wide * _tall(factor, wide)
        shift = shift * factor + summand
    assert isinstance(shift, torch.Tensor)
    return wide.to(dtype), shift.to(dtype)


def _tall(factor: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return factor.reshape(-1, *[1] * (weight.dim() - 1))


def _scaled(weight: torch.Tensor, factor: torch.Tensor, groups: int) -> torch.Tensor:
    """Scale the filters of a transposed convolution, whose outputs are the second dimension."""
    split = weight.reshape(groups, -1, *weight.shape[1:])
    wide = factor.reshape(groups, 1, -1, *[1] * (weight.dim() - 2))
    return (split * wide).reshape(weight.shape)


def linear(lowering: Lowering, step: Step) -> None:
    """Write a linear layer; its weight may be computed."""
    places = {aten.linear.default: (0, 1, 2), aten.mm.default: (0, 1, 2)}
    given_at, weight_at, bias_at = places.get(op_of(step.node), (1, 2, 0))
    args: Any = step.node.args
    written = args[weight_at]
    # A transposed weight is read as it was before; what mm and addmm take is [in, out].
    as_given = op_of(step.node) is aten.linear.default or is_transposition(written)
    flags = 0 if as_given else TRANSPOSED
    source = lowering.operand(args[given_at], plain(rank_of(args[given_at])))
    if lowering.steps.facts.weight(written) is None:
        flags = 0 if op_of(step.node) is aten.linear.default else TRANSPOSED
        weight = lowering.operand(written, plain(2))
        given = args[bias_at] if op_of(step.node) is not aten.mm.default else None
        bias = NO_VALUE if given is None else lowering.operand(given, plain(1))
    else:
        weight, bias = _layer(lowering, step, weight_at, bias_at)
    made = lowering.result(step.node)
    lowering.add(step, n.FullyConnected("FullyConnected", source, weight, bias, made, flags))


def _layer(lowering: Lowering, step: Step, weight_at: int, bias_at: int) -> tuple[int, int]:
    tensor, shift = _parameters(lowering, step, weight_at, bias_at)
    if shift is None:
        return lowering.fixed(tensor), NO_VALUE
    # Kernels of bfloat16 add a bias of float32.
    wide = shift.float() if shift.dtype is torch.bfloat16 else shift
    return lowering.fixed(tensor), lowering.fixed(wide.reshape(-1))


def bmm(lowering: Lowering, step: Step) -> None:
    """Write a product of two batches of matrices."""
    args: Any = step.node.args
    first, second = (lowering.operand(given, plain(3)) for given in args)
    made = lowering.result(step.node)
    lowering.add(step, n.Binary("BatchMatrixMultiply", first, second, made))


def pool(lowering: Lowering, step: Step) -> None:
    """Write a pool; the last windows of a rounded-up one reach into padding."""
    node = step.node
    most = op_of(node) is not aten.avg_pool2d.default
    size = _pair(node, "kernel_size", 2)
    stride = _pair(node, "stride", 2) if argument(node, "stride") else size
    pad = _pair(node, "padding", 2)
    dilation = _pair(node, "dilation", 2, 1) if most else (1, 1)
    given: Any = node.args[0]
    end = list(pad)
    if argument(node, "ceil_mode"):
        for at in (0, 1):
            covered = (static_size(shape_of(node)[2 + at]) - 1) * stride[at]
            reach = covered + dilation[at] * (size[at] - 1) + 1
            end[at] = max(0, reach - static_size(shape_of(given)[2 + at]) - pad[at])
    form = n.Pooling(
        "MaxPooling2d" if most else "AvgPooling2d",
        padding_top=pad[0],
        padding_right=end[1],
        padding_bottom=end[0],
        padding_left=pad[1],
        pooling_height=size[0],
        pooling_width=size[1],
        stride_height=stride[0],
        stride_width=stride[1],
        dilation_height=dilation[0],
        dilation_width=dilation[1],
        input_id=lowering.operand(given, channels_last(4)),
        output_id=lowering.result(node),
        flags=KEEP_DIMS,
    )
    lowering.add(step, form)


def mean(lowering: Lowering, step: Step) -> None:
    """Write the mean of each image."""
    given: Any = step.node.args[0]
    source = lowering.operand(given, channels_last(4))
    made = lowering.result(step.node)
    lowering.add(step, n.Unary("GlobalAvgPooling2d", source, made, KEEP_DIMS))


def largest(lowering: Lowering, step: Step) -> None:
    """Write the largest value along the height or the width as a pool."""
    given: Any = step.node.args[0]
    sizes = [static_size(size) for size in shape_of(given)]
    over = argument(step.node, "dim") % 4
    window = (sizes[2], 1) if over == 2 else (1, sizes[3])
    source = lowering.operand(given, channels_last(4))
    made = lowering.result(step.node)
    form = n.Pooling(
        "MaxPooling2d",
        pooling_height=window[0],
        pooling_width=window[1],
        stride_height=1,
        stride_width=1,
        dilation_height=1,
        dilation_width=1,
        input_id=source,
        output_id=made,
    )
    lowering.add(step, form)


def resize(lowering: Lowering, step: Step) -> None:
    """Write a bilinear resize."""
    given: Any = step.node.args[0]
    height, width = (static_size(size) for size in shape_of(step.node)[2:])
    flags = ALIGN_CORNERS if argument(step.node, "align_corners") else 0
    source = lowering.operand(given, channels_last(4))
    made = lowering.result(step.node)
    kind = "StaticResizeBilinear2D"
    lowering.add(step, n.StaticResize(kind, height, width, source, made, flags))
