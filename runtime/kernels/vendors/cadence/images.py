"""Convolutions and pooling of programs for Cadence, in either order of channels.

Source: backends/cadence/aot/ref_implementations.py of release 1.5.1
"""

# ruff: noqa: PLR0913 - the arguments are those of the operators

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from runtime.errors import invalid_argument
from runtime.kernels.vendors.bounds import check_dtype, check_padded, check_size
from runtime.kernels.vendors.quantizing import quantize_to

Sizes = Sequence[int]
_F: Any = F  # its stubs know no sequences


def conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
    x_zero: int,
    weight_zero: int,
    bias_scale: float,
    scale: float,
    zero: int,
    multiplier: int,
    shift: int,
    offset: Tensor | None = None,
) -> Tensor:
    """Return a quantized convolution [batch, channel, ...]."""
    del multiplier, shift, offset
    given = (x.float() - x_zero, weight.float() - weight_zero, bias.float())
    check_padded(x, padding)
    if x.dim() == 3:
        sums = F.conv1d(*given, stride[-1], padding[-1], dilation[-1], groups)
    elif x.dim() == 4:
        sums = F.conv2d(*given, tuple(stride), tuple(padding), tuple(dilation), groups)
    else:
        raise invalid_argument(f"an input of {x.dim()} dimensions instead of 3 or 4")
    return quantize_to(sums * bias_scale, scale, zero, x.dtype)


def channels_last_1d(x: Tensor, weight: Tensor, *rest: Any) -> Tensor:  # noqa: ANN401
    """Return a convolution [batch, length, channel]; weights are [output, kernel, input]."""
    made = conv(x.permute(0, 2, 1).contiguous(), weight.permute(0, 2, 1).contiguous(), *rest)
    return made.permute(0, 2, 1).contiguous()


def channels_last(x: Tensor, weight: Tensor, *rest: Any) -> Tensor:  # noqa: ANN401
    """Return a convolution [batch, ..., channel]; depthwise weights are [kernel, output]."""
    if weight.dim() == x.dim() - 1:
        own = weight.movedim(-1, 0).unsqueeze(1)
    else:
        own = weight.movedim(-1, 1)
    return conv(x.movedim(-1, 1).contiguous(), own.contiguous(), *rest).movedim(1, -1).contiguous()


def depthwise(run: Callable[..., Tensor], channel: int) -> Callable[..., Tensor]:
    """Return a convolution that has as many groups as channels."""

    def called(x: Tensor, *rest: Any) -> Tensor:  # noqa: ANN401
        if rest[5] != x.shape[channel]:
            raise invalid_argument(f"{rest[5]} groups of {x.shape[channel]} channels")
        return run(x, *rest)

    return called


def plain_conv(dims: int) -> Callable[..., Tensor]:
    """Return a convolution of real values."""
    run: Any = (_F.conv1d, _F.conv2d, _F.conv3d)[dims - 1]

    def called(
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        stride: Sizes,
        padding: Sizes,
        dilation: Sizes,
        groups: int,
    ) -> Tensor:
        check_padded(x, padding)
        places = [tuple(one) for one in (stride, padding, dilation)]
        return run(x, weight, bias, *places, groups)

    return called


def weight_only_conv(
    x: Tensor, weight: Tensor, w_scale: float, bias: Tensor, b_scale: float
) -> Tensor:
    """Return a convolution of real values [batch, length, channel], weights [3, output, input]."""
    check_dtype("weight", weight, torch.int8)
    if weight.dim() != 3 or weight.shape[0] != 3 or weight.shape[1] % 4 or weight.shape[2] % 4:
        raise invalid_argument(f"weights of shape {[*weight.shape]}")
    own = weight.permute(1, 2, 0).contiguous().float() * w_scale
    return F.conv1d(x.permute(0, 2, 1).contiguous().float(), own, bias.float() * b_scale)


def transposed_conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    output_padding: Sizes,
    groups: int,
    channel_last: bool = False,
) -> Tensor:
    """Return a transposed convolution; weights are flipped, output channels first."""
    flat = x.dim() == 3
    own = weight.flip([-1] if weight.dim() == 3 else [-1, -2]).transpose(0, 1).contiguous()
    if channel_last:
        x, own = (one.movedim(-1, 1).contiguous() for one in (x, own))
    places = [tuple(one)[:1] if flat else tuple(one) for one in (stride, padding, output_padding)]
    apart = tuple(dilation)[:1] if flat else tuple(dilation)
    sizes = zip(x.shape[2:], own.shape[2:], places[0], places[2], apart, strict=True)
    check_size(x.shape[0], own.shape[1], *(a * s + k * d + o for a, k, s, o, d in sizes))
    run: Any = _F.conv_transpose1d if flat else _F.conv_transpose2d
    made: Tensor = run(x, own, bias, *places, groups, apart)
    return made.movedim(1, -1).contiguous() if channel_last else made


def avg_pool(
    x: Tensor,
    kernel: Sizes,
    stride: Sizes = (),
    padding: Sizes = (0, 0),
    ceil_mode: bool = False,
    count_padding: bool = True,
    divisor: int | None = None,
    in_zero: Tensor | None = None,
    channel_last: bool = False,
) -> Tensor:
    """Return an average pooling, of integers rounded to even."""
    if channel_last:
        raise invalid_argument("channels last has no reference")
    pads = tuple(padding) or (0, 0)
    check_padded(x, pads)
    if in_zero is None:
        return _F.avg_pool2d(x, kernel, stride or None, pads, ceil_mode, count_padding, divisor)
    fill = in_zero.item() if count_padding else 0
    image = F.pad(x, (pads[-1], pads[-1], pads[0], pads[0]), value=fill).float()
    made = _F.avg_pool2d(image, kernel, stride or None, 0, ceil_mode, count_padding, divisor)
    limits = torch.iinfo(x.dtype)
    return torch.round(made).clamp(limits.min, limits.max).to(x.dtype)


def max_pool(
    x: Tensor, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool
) -> Tensor:
    """Return a max pooling of integers."""
    check_padded(x, padding)
    return _F.max_pool2d(x.float(), kernel, stride, padding, dilation, ceil_mode).to(x.dtype)


def max_pool_last(x: Tensor, *rest: Any) -> Tensor:  # noqa: ANN401
    """Return a max pooling [batch, height, width, channel]."""
    return max_pool(x.permute(0, 3, 1, 2).contiguous(), *rest).permute(0, 2, 3, 1).contiguous()


def _as_image(x: Tensor, channel_last: bool) -> Tensor:
    if x.dim() == 3:
        x = x.unsqueeze(1 if channel_last else 2)
    return x.movedim(-1, 1).contiguous() if channel_last else x


def _fill(zero: Tensor | int | None, batch: int) -> Tensor:
    given = torch.as_tensor(0 if zero is None else zero)
    if given.numel() not in (1, batch):
        raise invalid_argument(f"{given.numel()} zero points for a batch of {batch}")
    return given.reshape(-1).expand(batch)


def im2row(
    x: Tensor,
    kernel: Sizes,
    dilation: Sizes,
    padding: Sizes,
    stride: Sizes,
    zero: Tensor | int | None,
    channel_last: bool = False,
) -> Tensor:
    """Return the patches of an image as rows; padding has the value of the zero point."""
    image = _as_image(x, channel_last)
    check_padded(image, padding)
    fills = _fill(zero, len(image))
    high, wide = padding
    parts = [
        F.pad(one, (wide, wide, high, high), value=fill.item())
        for one, fill in zip(image, fills, strict=True)
    ]
    whole = torch.stack(parts).float()
    check_size(*whole.shape, *kernel)
    return F.unfold(whole, tuple(kernel), tuple(dilation), 0, tuple(stride)).to(x.dtype).mT


def transposed_im2row(
    x: Tensor,
    kernel: Sizes,
    dilation: Sizes,
    padding: Sizes,
    stride: Sizes,
    output_padding: Sizes,
    zero: Tensor | None,
    channel_last: bool = False,
) -> Tensor:
    """Return the inputs of each element of a transposed convolution as rows."""
    image = _as_image(x, channel_last)
    batch, channels = image.shape[:2]
    places = [
        _places(image.shape[at + 2], kernel[at], (dilation, padding, stride, output_padding), at)
        for at in range(2)
    ]
    (rows, in_rows), (columns, in_columns) = places
    check_size(batch, channels, rows.numel(), columns.numel())
    taken = image[:, :, rows[:, None, :, None], columns[None, :, None, :]]
    inside = in_rows[:, None, :, None] & in_columns[None, :, None, :]
    fill = _fill(zero, batch).to(x.dtype).reshape(-1, 1, 1, 1, 1, 1)
    patches = torch.where(inside, taken, fill)
    order = (0, 2, 3, 4, 5, 1) if channel_last else (0, 2, 3, 1, 4, 5)
    return patches.permute(order).reshape(batch, len(rows) * len(columns), -1)


def _places(
    size: int, kernel: int, facts: tuple[Sizes, Sizes, Sizes, Sizes], at: int
) -> tuple[Tensor, Tensor]:
    """Return the index of the input for each output and kernel element, and whether it is one."""
    apart, pad, step, more = (one[at] for one in facts)
    if step < 1:
        raise invalid_argument(f"a stride of {step}")
    count = (size - 1) * step - 2 * pad + apart * (kernel - 1) + more + 1
    check_size(count, kernel)
    place = torch.arange(count)[:, None] + torch.arange(kernel) * apart
    place = place - (kernel - 1) * apart + pad
    inside = (place % step == 0) & (place >= 0) & (place < step * size)
    return (place // step).clamp(0, size - 1), inside
