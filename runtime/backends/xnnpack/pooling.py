"""Max, average and argmax pooling, and padding of images."""

from __future__ import annotations

import torch

from runtime.backends.xnnpack.model import PayloadNode
from runtime.backends.xnnpack.node_calls import NodeCall, Values, chain, check_size, moving
from runtime.backends.xnnpack.representation import Tensor, from_real, to_real
from runtime.errors import invalid_argument
from runtime.untyped import aten
from schema.payloads.xnnpack import nodes as n

SAME_PADDING = 4  # XNN_FLAG_TENSORFLOW_SAME_PADDING
KEEP_DIMS = 0x40  # XNN_FLAG_KEEP_DIMS
Padding = tuple[int, int, int, int]
"""Left, right, top, bottom."""


def padding_of(form: n.Pooling | n.Convolution | n.ArgMaxPooling) -> Padding:
    """Return the padding of a node's form."""
    return form.padding_left, form.padding_right, form.padding_top, form.padding_bottom


def same_padding(
    image: Tensor, window: tuple[int, int], stride: tuple[int, int], dilation: tuple[int, int]
) -> Padding:
    """Return the padding of an image that makes the output size its size divided by the stride.

    Shapes: image (N, C, H, W)
    """
    found: list[int] = []
    for dim in (1, 0):
        size, reach = image.shape[2 + dim], (window[dim] - 1) * dilation[dim] + 1
        whole = max((-(-size // stride[dim]) - 1) * stride[dim] + reach - size, 0)
        found += [whole // 2, whole - whole // 2]
    return found[0], found[1], found[2], found[3]


def pad_image(image: Tensor, padding: Padding, fill_value: float) -> Tensor:
    """Return an image with padding.

    Shapes: image (N, C, H, W)
    """
    if not any(padding):
        return image
    left, right, top, bottom = padding
    count, channels, height, width = image.shape
    check_size(count * channels * (height + top + bottom) * (width + left + right), image.numel())
    return aten.constant_pad_nd.default(image, list(padding), fill_value)


def to_channels_first(held: Tensor) -> Tensor:
    """Return a channels-last value as a channels-first image.

    Shapes: (N, H, W, C) -> (N, C, H, W)
    """
    if held.dim() != 4:
        raise invalid_argument(f"an image must have 4 dimensions, found {list(held.shape)}")
    return held.permute(0, 3, 1, 2)


def to_channels_last(image: Tensor) -> Tensor:
    """Return a channels-first image as a channels-last value.

    Shapes: (N, C, H, W) -> (N, H, W, C)
    """
    return image.permute(0, 2, 3, 1).contiguous()


def max_pool(node: PayloadNode, values: Values) -> NodeCall:
    """Bind MaxPooling2d."""
    assert isinstance(node.form, n.Pooling)
    form = node.form
    window, stride = _kernel_size(form), (form.stride_height, form.stride_width)
    dilation = (form.dilation_height, form.dilation_width)
    padding = padding_of(form)
    same = bool(form.flags & SAME_PADDING)

    def run(held: Tensor) -> Tensor:
        image = to_channels_first(held)
        padding_now = same_padding(image, window, stride, dilation) if same else padding
        image = pad_image(image, padding_now, float("-inf"))
        found = aten.max_pool2d.default(image, window, stride, [0, 0], dilation)
        return to_channels_last(found)

    source, target = values[node.inputs[0]], values[node.outputs[0]]
    return NodeCall(moving(source, target, run, node.bounds), node.inputs)


def average_pool(node: PayloadNode, values: Values) -> NodeCall:
    """Bind AvgPooling2d; padding is not counted."""
    assert isinstance(node.form, n.Pooling)
    form = node.form
    window, stride = _kernel_size(form), (form.stride_height, form.stride_width)
    padding = padding_of(form)
    same = bool(form.flags & SAME_PADDING)

    def run(real: Tensor) -> Tensor:
        image = to_channels_first(real)
        padding_now = same_padding(image, window, stride, (1, 1)) if same else padding
        if not any(padding_now):
            return to_channels_last(aten.avg_pool2d.default(image, window, stride))
        sums = aten.avg_pool2d.default(pad_image(image, padding_now, 0.0), window, stride)
        ones = torch.ones((1, 1, *image.shape[2:]))
        return to_channels_last(
            sums / aten.avg_pool2d.default(pad_image(ones, padding_now, 0.0), window, stride)
        )

    source, target = values[node.inputs[0]], values[node.outputs[0]]
    change = chain(to_real(source), run, from_real(target, node.bounds))
    assert change is not None
    return NodeCall(change, node.inputs)


def global_average_pool(node: PayloadNode, values: Values) -> NodeCall:
    """Bind GlobalAvgPooling2d: the mean over the second and third last dimensions."""
    assert isinstance(node.form, n.Unary)
    keep = bool(node.form.flags & KEEP_DIMS)

    def run(real: Tensor) -> Tensor:
        if real.dim() < 3:
            raise invalid_argument(f"an image has the shape {list(real.shape)}")
        return real.mean((-3, -2), keepdim=keep)

    source, target = values[node.inputs[0]], values[node.outputs[0]]
    change = chain(to_real(source), run, from_real(target, node.bounds))
    assert change is not None
    return NodeCall(change, node.inputs)


def argmax_pool(node: PayloadNode, values: Values) -> NodeCall:
    """Bind ArgMaxPooling2d: adjacent windows; indices in a window are column-major."""
    assert isinstance(node.form, n.ArgMaxPooling)
    form = node.form
    height, width = form.pooling_height, form.pooling_width
    padding = padding_of(form)

    def run(held: Tensor) -> tuple[Tensor, Tensor]:
        image = pad_image(to_channels_first(held), padding, float("-inf"))
        count, channels, rows, columns = image.shape
        down, across = rows // height, columns // width
        image = image[:, :, : down * height, : across * width]
        parts = image.reshape(count, channels, down, height, across, width)
        flat = parts.permute(0, 2, 4, 1, 5, 3).reshape(count, down, across, channels, -1)
        found, places = flat.max(-1)
        return found.contiguous(), places.to(torch.int32)

    return NodeCall(run, node.inputs[:1])


def _kernel_size(form: n.Pooling) -> tuple[int, int]:
    return form.pooling_height, form.pooling_width
