"""Pools: the largest, the mean, and the place of the largest of each window."""

from __future__ import annotations

import torch

from runtime.backends.xnnpack.model import Node
from runtime.backends.xnnpack.node_calls import Bound, Values, chain, check_size, moved
from runtime.backends.xnnpack.representation import Tensor, settle, to_real
from runtime.errors import invalid_argument
from runtime.untyped import aten
from schema.payloads.xnnpack import nodes as n

SAME_PADDING = 4
KEEP_DIMS = 0x40
Margins = tuple[int, int, int, int]
"""Left, right, top, bottom."""


def margins_of(form: n.Pooling | n.Convolution | n.ArgMaxPooling) -> Margins:
    """Return the padding of a form."""
    return form.padding_left, form.padding_right, form.padding_top, form.padding_bottom


def same_margins(
    image: Tensor, window: tuple[int, int], stride: tuple[int, int], dilation: tuple[int, int]
) -> Margins:
    """Return the padding with which an image gives one window a stride.

    Shapes: image (N, C, H, W)
    """
    found: list[int] = []
    for dim in (1, 0):
        size, reach = image.shape[2 + dim], (window[dim] - 1) * dilation[dim] + 1
        whole = max((-(-size // stride[dim]) - 1) * stride[dim] + reach - size, 0)
        found += [whole // 2, whole - whole // 2]
    return found[0], found[1], found[2], found[3]


def widened(image: Tensor, margins: Margins, filler: float) -> Tensor:
    """Return an image with margins around it.

    Shapes: image (N, C, H, W)
    """
    if not any(margins):
        return image
    left, right, top, bottom = margins
    count, channels, height, width = image.shape
    check_size(count * channels * (height + top + bottom) * (width + left + right), image.numel())
    return aten.constant_pad_nd.default(image, list(margins), filler)


def to_image(held: Tensor) -> Tensor:
    """Return a value with its channels last as torch sees images.

    Shapes: (N, H, W, C) -> (N, C, H, W)
    """
    if held.dim() != 4:
        raise invalid_argument(f"an image has the shape {list(held.shape)}")
    return held.permute(0, 3, 1, 2)


def to_held(image: Tensor) -> Tensor:
    """Return an image with its channels last.

    Shapes: (N, C, H, W) -> (N, H, W, C)
    """
    return image.permute(0, 2, 3, 1).contiguous()


def max_pool(node: Node, values: Values) -> Bound:
    """Bind MaxPooling2d."""
    assert isinstance(node.form, n.Pooling)
    form = node.form
    window, stride = _window(form), (form.stride_height, form.stride_width)
    dilation = (form.dilation_height, form.dilation_width)
    margins = margins_of(form)
    same = bool(form.flags & SAME_PADDING)

    def run(held: Tensor) -> Tensor:
        image = to_image(held)
        around = same_margins(image, window, stride, dilation) if same else margins
        image = widened(image, around, float("-inf"))
        found = aten.max_pool2d.default(image, window, stride, [0, 0], dilation)
        return to_held(found)

    source, target = values[node.inputs[0]], values[node.outputs[0]]
    return Bound(moved(source, target, run, node.bounds), node.inputs)


def average_pool(node: Node, values: Values) -> Bound:
    """Bind AvgPooling2d; margins do not count."""
    assert isinstance(node.form, n.Pooling)
    form = node.form
    window, stride = _window(form), (form.stride_height, form.stride_width)
    margins = margins_of(form)
    same = bool(form.flags & SAME_PADDING)

    def run(real: Tensor) -> Tensor:
        image = to_image(real)
        around = same_margins(image, window, stride, (1, 1)) if same else margins
        if not any(around):
            return to_held(aten.avg_pool2d.default(image, window, stride))
        sums = aten.avg_pool2d.default(widened(image, around, 0.0), window, stride)
        ones = torch.ones((1, 1, *image.shape[2:]))
        return to_held(sums / aten.avg_pool2d.default(widened(ones, around, 0.0), window, stride))

    source, target = values[node.inputs[0]], values[node.outputs[0]]
    change = chain(to_real(source), run, settle(target, node.bounds))
    assert change is not None
    return Bound(change, node.inputs)


def global_mean(node: Node, values: Values) -> Bound:
    """Bind GlobalAvgPooling2d: the mean over the second and third last dimensions."""
    assert isinstance(node.form, n.Unary)
    keep = bool(node.form.flags & KEEP_DIMS)

    def run(real: Tensor) -> Tensor:
        if real.dim() < 3:
            raise invalid_argument(f"an image has the shape {list(real.shape)}")
        return real.mean((-3, -2), keepdim=keep)

    source, target = values[node.inputs[0]], values[node.outputs[0]]
    change = chain(to_real(source), run, settle(target, node.bounds))
    assert change is not None
    return Bound(change, node.inputs)


def largest(node: Node, values: Values) -> Bound:
    """Bind ArgMaxPooling2d: windows side by side; places in them are counted down first."""
    assert isinstance(node.form, n.ArgMaxPooling)
    form = node.form
    height, width = form.pooling_height, form.pooling_width
    margins = margins_of(form)

    def run(held: Tensor) -> tuple[Tensor, Tensor]:
        image = widened(to_image(held), margins, float("-inf"))
        count, channels, rows, columns = image.shape
        down, across = rows // height, columns // width
        image = image[:, :, : down * height, : across * width]
        parts = image.reshape(count, channels, down, height, across, width)
        flat = parts.permute(0, 2, 4, 1, 5, 3).reshape(count, down, across, channels, -1)
        found, places = flat.max(-1)
        return found.contiguous(), places.to(torch.int32)

    return Bound(run, node.inputs[:1])


def _window(form: n.Pooling) -> tuple[int, int]:
    return form.pooling_height, form.pooling_width
