"""Serialization of convolution, pooling and resizing."""

from __future__ import annotations

import math
from typing import Any

import torch

from compiler.backends.xnnpack.facts import (
    argument,
    is_symbolic,
    numbers,
    op_of,
    rank_of,
    shape_of,
    static_size,
)
from compiler.backends.xnnpack.layout import channels_last, plain
from compiler.backends.xnnpack.lowering import Lowering
from compiler.backends.xnnpack.row_means import is_row_mean
from compiler.backends.xnnpack.steps import PayloadStep
from compiler.backends.xnnpack.weights import (
    IntegerWeight,
    bias_of,
    filed_as_bias,
    filed_as_weight,
    filter_of,
    parameters,
)
from compiler.untyped import aten
from schema.payloads.xnnpack import nodes as n
from schema.payloads.xnnpack.model import NO_VALUE

Node = torch.fx.Node
# XNN_FLAG_KEEP_DIMS, _ALIGN_CORNERS, _TRANSPOSE_WEIGHTS
KEEP_DIMS, ALIGN_CORNERS, TRANSPOSED = 0x40, 8, 1
_IMAGE = 3  # height, width and channels share the scale of a dynamically quantized image
# XNNPACK runs a pointwise convolution as a fully connected layer, and then gives each pixel of
# what it reads a scale, also where another convolution reads it that expects one an image.
_PIXEL = 1


def _pair(node: Node, name: str, count: int, default: int = 0) -> tuple[int, int]:
    """Return an argument a dimension as (height, width); a signal has the height 1."""
    found = numbers(argument(node, name), count, default)
    filler = 0 if name in ("padding", "output_padding") else 1
    return (filler, found[0]) if count == 1 else (found[0], found[1])


def convolution(lowering: Lowering, step: PayloadStep) -> None:
    """Write a convolution, with the batch norms after it in its weights."""
    node = step.node
    weight, bias = parameters(lowering, step, 1, 2)
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
    layout = channels_last(rank_of(given))
    read = lowering.operand(given, layout)
    if step.is_dynamic:
        moved = (*pad, *(size - 1 for size in (height, width, *step_by)))
        pointwise = kind == "Conv2d" and groups == 1 and not any(moved)
        read = lowering.rows(given, layout, _PIXEL if pointwise else _IMAGE)
    filter_id, bias_id = _filter(lowering, step, kind, filter_in_memory(kind, weight, groups), bias)
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
        input1_id=read,
        filter_id=filter_id,
        bias_id=bias_id,
        output_id=lowering.result(node),
    )
    lowering.add(step, form)


def _filter(
    lowering: Lowering, step: PayloadStep, kind: str, data: torch.Tensor, bias: torch.Tensor | None
) -> tuple[int, int]:
    """Add weight and bias of a convolution and return the ids of their values."""
    plain = data.dtype is not torch.int8
    channels = 3 if kind == "DepthwiseConv2d" else 0
    source: Any = step.node.args[0]
    with filed_as_weight(lowering, step, 1):
        whole = IntegerWeight(data, channels, data.shape[channels])
        ident = lowering.fixed(data) if plain else filter_of(lowering, step, whole)
    with filed_as_bias(lowering, step, 2):
        if plain:
            return ident, NO_VALUE if bias is None else lowering.fixed(bias)
        return ident, bias_of(lowering, step, bias, source)


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


def pool(lowering: Lowering, step: PayloadStep) -> None:
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


def mean(lowering: Lowering, step: PayloadStep) -> None:
    """Write the mean of each image, or of each row."""
    if is_row_mean(step.node):
        _row_mean(lowering, step)
        return
    given: Any = step.node.args[0]
    source = lowering.operand(given, channels_last(4))
    built = lowering.result(step.node)
    lowering.add(step, n.Unary("GlobalAvgPooling2d", source, built, KEEP_DIMS))


def _row_mean(lowering: Lowering, step: PayloadStep) -> None:
    """Write the mean of each row: a reshape to images, their mean, and a reshape back."""
    node = step.node
    given: Any = node.args[0]
    *outer, width = shape_of(given)
    rows = math.prod(map(static_size, outer))
    unknown = [size for size in outer if is_symbolic(size)]
    source = lowering.operand(given, plain(rank_of(given)))
    images = lowering.inner(given, (rows, width, 1, 1))
    lowering.reshape((unknown[0] if unknown else rows, width, 1, 1), source, images)
    means = lowering.inner(node, (rows, 1, 1, 1))
    form = n.Unary("GlobalAvgPooling2d", images, means, KEEP_DIMS)
    lowering.writer.node(form, step.handles, step.bounds)
    lowering.reshape(shape_of(node), means, lowering.result(node), step.handles)


def largest(lowering: Lowering, step: PayloadStep) -> None:
    """Write the largest value along the height or the width as a pool."""
    given: Any = step.node.args[0]
    sizes = [static_size(size) for size in shape_of(given)]
    over = argument(step.node, "dim") % 4
    window = (sizes[2], 1) if over == 2 else (1, sizes[3])
    source = lowering.operand(given, channels_last(4))
    built = lowering.result(step.node)
    form = n.Pooling(
        "MaxPooling2d",
        pooling_height=window[0],
        pooling_width=window[1],
        stride_height=1,
        stride_width=1,
        dilation_height=1,
        dilation_width=1,
        input_id=source,
        output_id=built,
    )
    lowering.add(step, form)


def resize(lowering: Lowering, step: PayloadStep) -> None:
    """Write a bilinear resize."""
    given: Any = step.node.args[0]
    height, width = (static_size(size) for size in shape_of(step.node)[2:])
    flags = ALIGN_CORNERS if argument(step.node, "align_corners") else 0
    source = lowering.operand(given, channels_last(4))
    built = lowering.result(step.node)
    kind = "StaticResizeBilinear2D"
    lowering.add(step, n.StaticResize(kind, height, width, source, built, flags))
