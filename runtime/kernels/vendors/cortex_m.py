"""Operators of programs for Cortex-M: int8 arithmetic of CMSIS-NN.

Sums are computed in float64, which holds those of 32 bits exactly. Offsets are negative zero
points.

Source: the schemas and the Python implementations of backends/cortex_m/ops of release 1.5.1
"""

# ruff: noqa: PLR0913 - the arguments are those of the operators

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from runtime.errors import invalid_argument
from runtime.kernels.rule import Rule, result
from runtime.kernels.vendors.bounds import check_dtype, check_padded, check_size
from runtime.kernels.vendors.quantizing import QUANTIZE, dequantize, quantize

_SHIFT = 20  # of the operands of an addition, before they are scaled
_SOFTMAX_BITS = 5  # integer bits of the input of a softmax
_SOFTMAX_SCALE, _SOFTMAX_ZERO = 1 / 256, -128
_LOW, _HIGH = -128, 127
_PHYSICAL = (0, 3, 1, 2)  # place of each dimension in channels-last order


def requantized(values: Tensor, multiplier: Tensor | int, shift: Tensor | int) -> Tensor:
    """Return ``values * multiplier * 2**(shift - 31)``, rounded as arm_nn_requantize does."""
    by, bits = torch.as_tensor(multiplier).long(), torch.as_tensor(shift).long()
    left, right = bits.clamp(min=0), (-bits).clamp(min=0)
    made = ((values.long() << left) * by + (1 << 30)) >> 31
    mask = (torch.ones_like(right) << right) - 1
    rest, made = made & mask, made >> right
    return (made + (rest > (mask >> 1) + (made < 0).long())).int()


def _int8(values: Tensor, zero: int, low: int = _LOW, high: int = _HIGH) -> Tensor:
    return (values + zero).clamp(low, high).to(torch.int8)


def _same_or_channels(a: Tensor, b: Tensor) -> None:
    """Check that two shapes are equal, or that one has a value for each channel."""
    one = a.dim() == b.dim() == 4 and a.shape[1] == b.shape[1]
    channels = one and any(x.numel() == x.shape[1] for x in (a, b))
    if a.shape != b.shape and not channels:
        raise invalid_argument(f"shapes {[*a.shape]} and {[*b.shape]} do not fit together")


def _add(
    a: Tensor,
    a_zero: int,
    a_multiplier: int,
    a_shift: int,
    b: Tensor,
    b_zero: int,
    b_multiplier: int,
    b_shift: int,
    zero: int,
    multiplier: int,
    shift: int,
    low: int,
    high: int,
) -> Tensor:
    _same_or_channels(a, b)
    left = requantized((a.int() - a_zero) << _SHIFT, a_multiplier, a_shift)
    right = requantized((b.int() - b_zero) << _SHIFT, b_multiplier, b_shift)
    return _int8(requantized(left + right, multiplier, shift), zero, low, high)


def _mul(
    a: Tensor, a_zero: int, b: Tensor, b_zero: int, zero: int, multiplier: int, shift: int
) -> Tensor:
    _same_or_channels(a, b)
    return _int8(requantized((a.int() - a_zero) * (b.int() - b_zero), multiplier, shift), zero)


def _div(a: Tensor, a_zero: int, b: Tensor, b_zero: int, zero: int, scale: float) -> Tensor:
    check_dtype("the dividend", a, torch.int8, torch.int16)
    if a.shape != b.shape:
        raise invalid_argument(f"shapes {[*a.shape]} and {[*b.shape]} differ")
    over, under = (a.int() - a_zero).float(), (b.int() - b_zero).float()
    quotient = torch.where(under != 0, over / under, torch.zeros_like(over))
    limits = torch.iinfo(a.dtype)
    return (torch.round(quotient * scale) + zero).clamp(limits.min, limits.max).to(a.dtype)


def _activation(x: Tensor, table: Tensor) -> Tensor:
    check_dtype("the input", x, torch.int8)
    return table[x.long() - _LOW].to(torch.int8)


def _batch_matmul(
    a: Tensor,
    a_offset: int,
    b_transposed: Tensor,
    b_offset: int,
    zero: int,
    multiplier: int,
    shift: int,
    scratch: Tensor,
) -> Tensor:
    del scratch
    left, right = a.double() + a_offset, b_transposed.double() + b_offset
    return _int8(requantized(torch.bmm(left, right.mT).long().int(), multiplier, shift), zero)


def _linear(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    kernel_sum: Tensor | None,
    in_offset: int,
    weight_offset: int,
    out_offset: int,
    multipliers: Sequence[int],
    shifts: Sequence[int],
    high: int,
    low: int,
) -> Tensor:
    values, own = x.double(), weight.double()
    if kernel_sum is not None:  # cores with vector instructions: it holds offset and bias
        made = values @ own.T + values.sum(-1, keepdim=True) * weight_offset + kernel_sum
    else:
        made = (values + in_offset) @ (own + weight_offset).T
        made = made if bias is None else made + bias
    return _int8(requantized(made.long().int(), multipliers[0], shifts[0]), out_offset, low, high)


def _softmax(
    x: Tensor, dim: int, in_zero: int, zero: int, multiplier: int, shift: int, diff_min: int
) -> Tensor:
    del diff_min
    check_dtype("the input", x, torch.int8)
    scale = math.ldexp(multiplier / (1 << 31), shift) / (1 << (31 - _SOFTMAX_BITS))
    if zero != _SOFTMAX_ZERO or scale <= 0:
        raise invalid_argument(f"zero point {zero}, scale of the input {scale}")
    made = torch.softmax((x.int() - in_zero).float() * scale, dim)
    return _int8(torch.round(made / _SOFTMAX_SCALE), zero)


def _transpose(x: Tensor, order: Sequence[int]) -> Tensor:
    return x.permute(tuple(order)).contiguous()


def _is_channels_last(x: Tensor) -> bool:
    if x.dim() != 4:
        return False
    alike = x.shape[1] == 1 or (x.shape[2] == 1 and x.shape[3] == 1)
    return alike or list(cast(Any, x).dim_order())[:2] == [0, 2]


def _pad(x: Tensor, before: Sequence[int], after: Sequence[int], value: int) -> Tensor:
    """Return a padded tensor; padding is in the order of the memory, aligned to the right."""
    if len(before) != 4 or len(after) != 4 or x.dim() > 4:
        raise invalid_argument(f"padding {[*before]} and {[*after]} of {x.dim()} dimensions")
    if _is_channels_last(x):
        before, after = ([pads[place] for place in _PHYSICAL] for pads in (before, after))
    own = [(before[4 - x.dim() + dim], after[4 - x.dim() + dim]) for dim in range(x.dim())]
    check_size(*(size + sum(pads) for size, pads in zip(x.shape, own, strict=True)))
    return F.pad(x, [pad for pads in reversed(own) for pad in pads], value=value)


def _image(x: Tensor, weight: Tensor) -> None:
    if x.dim() != 4 or weight.dim() != 4:
        raise invalid_argument(f"{x.dim()} and {weight.dim()} dimensions instead of 4 and 4")


def _channels(sums: Tensor, multipliers: Tensor, shifts: Tensor) -> Tensor:
    """Return sums [batch, channel, ...] scaled channel by channel."""
    count = sums.shape[1]
    by, bits = (one.flatten()[:count].reshape(-1, 1, 1) for one in (multipliers, shifts))
    return requantized(sums.long().int(), by, bits)


def _conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    in_offset: int,
    zero: int,
    multipliers: Tensor,
    shifts: Tensor,
    low: int,
    high: int,
    scratch: Tensor,
) -> Tensor:
    """Return a convolution; weights are [output, height, width, input]."""
    del scratch
    _image(x, weight)
    groups = x.shape[1] // max(weight.shape[3], 1)
    own = weight.permute(0, 3, 1, 2).double()
    sums = _sums(x, own, bias, (stride, padding, dilation), in_offset, groups)
    return _int8(_channels(sums, multipliers, shifts), zero, low, high)


def _depthwise(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    multiplier: int,
    in_offset: int,
    zero: int,
    multipliers: Tensor,
    shifts: Tensor,
    low: int,
    high: int,
    scratch: Tensor,
) -> Tensor:
    """Return a depthwise convolution; weights are [1, height, width, output]."""
    del scratch, multiplier
    _image(x, weight)
    own = weight.permute(3, 0, 1, 2).double()
    sums = _sums(x, own, bias, (stride, padding, dilation), in_offset, x.shape[1])
    return _int8(_channels(sums, multipliers, shifts), zero, low, high)


def _sums(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    places: tuple[Sequence[int], Sequence[int], Sequence[int]],
    offset: int,
    groups: int,
) -> Tensor:
    stride, padding, dilation = (tuple(one) for one in places)
    check_padded(x, padding)
    given = None if bias is None else bias.double()
    return F.conv2d(x.double() + offset, weight, given, stride, padding, dilation, groups)


def _transposed_conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    output_padding: Sequence[int],
    dilation: Sequence[int],
    in_offset: int,
    zero: int,
    multipliers: Tensor,
    shifts: Tensor,
    low: int,
    high: int,
    scratch: Tensor,
    output_scratch: Tensor,
) -> Tensor:
    """Return a transposed convolution; weights are [output, height, width, input]."""
    del scratch, output_scratch
    _image(x, weight)
    sizes = (x.shape[dim + 2] * stride[dim] for dim in range(2))
    reach = (weight.shape[dim + 1] * dilation[dim] + output_padding[dim] for dim in range(2))
    check_size(x.shape[0], weight.shape[0], *(a + b for a, b in zip(sizes, reach, strict=True)))
    sums = F.conv_transpose2d(
        x.double() + in_offset,
        weight.permute(3, 0, 1, 2).double(),
        None if bias is None else bias.double(),
        tuple(stride),
        tuple(padding),
        tuple(output_padding),
        x.shape[1] // max(weight.shape[3], 1),
        tuple(dilation),
    )
    return _int8(_channels(sums, multipliers, shifts), zero, low, high)


def _pair(sizes: Sequence[int]) -> tuple[int, int]:
    if len(sizes) not in (1, 2):
        raise invalid_argument(f"{[*sizes]} instead of one or two sizes")
    return int(sizes[0]), int(sizes[-1])


def _avg_pool(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    zero: int,
    multiplier: int,
    shift: int,
    scratch: Tensor,
) -> Tensor:
    del scratch
    scale = multiplier * (2**shift) / (1 << 31)
    check_padded(x, _pair(padding))
    made = F.avg_pool2d(
        (x.float() - zero) * scale, _pair(kernel), _pair(stride), _pair(padding), ceil_mode, False
    )
    return _int8(torch.round(made / scale), zero)


def _max_pool(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    in_zero: int,
    zero: int,
    low: int,
    high: int,
) -> Tensor:
    if x.dim() != 4 or in_zero != zero or _pair(dilation) != (1, 1) or ceil_mode:
        raise invalid_argument("pooling with dilation, ceil mode, or another zero point")
    image = x.contiguous(memory_format=torch.contiguous_format).float()
    made = F.max_pool2d(image, _pair(kernel), _pair(stride), _pair(padding))
    return made.clamp(low, high).to(torch.int8)


def _inner(run: Callable[..., Tensor], x: Tensor, *rest: Any) -> Tensor:  # noqa: ANN401
    """Return what an operator computes for an image [batch, height, width, channel]."""
    return run(x.permute(0, 3, 1, 2).contiguous(), *rest).permute(0, 2, 3, 1).contiguous()


_QUANTIZED = "(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, "
_SCALED = (
    "int input_offset, int output_offset, Tensor requantize_multipliers, Tensor requantize_shifts, "
    "int activation_min, int activation_max, Tensor scratch"
)
_POOLED = "(Tensor input, int[] kernel_size, int[] stride, int[] padding, "
_LINES: dict[str, tuple[Callable[..., Tensor], str]] = {
    "quantize_per_tensor": (quantize, QUANTIZE),
    "dequantize_per_tensor": (dequantize, QUANTIZE),
    "quantized_add": (
        _add,
        "(Tensor self, int self_zero_point, int self_multiplier, int self_shift, Tensor other, "
        "int other_zero_point, int other_multiplier, int other_shift, int output_zero_point, "
        "int output_multiplier, int output_shift, int activation_min, int activation_max",
    ),
    "quantized_mul": (
        _mul,
        "(Tensor self, int self_zero_point, Tensor other, int other_zero_point, "
        "int output_zero_point, int output_multiplier, int output_shift",
    ),
    "quantized_div": (
        _div,
        "(Tensor self, int self_zero_point, Tensor other, int other_zero_point, "
        "int output_zero_point, float output_scale",
    ),
    "quantized_activation": (_activation, "(Tensor input, Tensor lut"),
    "quantized_batch_matmul": (
        _batch_matmul,
        "(Tensor lhs, int lhs_zero_point, Tensor rhs_transposed, int rhs_zero_point, "
        "int output_zero_point, int output_multiplier, int output_shift, Tensor scratch",
    ),
    "minimum": (torch.minimum, "(Tensor self, Tensor other"),
    "maximum": (torch.maximum, "(Tensor self, Tensor other"),
    "quantized_linear": (
        _linear,
        "(Tensor input, Tensor weights, Tensor? bias, Tensor? kernel_sum, int input_offset, "
        "int filter_offset, int output_offset, int[] requantize_multipliers, "
        "int[] requantize_shifts, int activation_max, int activation_min",
    ),
    "softmax": (
        _softmax,
        "(Tensor input, int dim, int input_zero_point, int output_zero_point, "
        "int input_multiplier, int input_shift, int diff_min",
    ),
    "transpose": (_transpose, "(Tensor input, int[] perm"),
    "pad": (_pad, "(Tensor input, int[] pre_pad, int[] post_pad, int pad_value"),
    "quantized_conv2d": (_conv, f"{_QUANTIZED}int[] dilation, {_SCALED}"),
    "quantized_depthwise_conv2d": (
        _depthwise,
        f"{_QUANTIZED}int[] dilation, int depth_multiplier, {_SCALED}",
    ),
    "quantized_transpose_conv2d": (
        _transposed_conv,
        f"{_QUANTIZED}int[] output_padding, int[] dilation, {_SCALED}, Tensor output_scratch",
    ),
    "quantized_avg_pool2d": (
        _avg_pool,
        f"{_POOLED}bool ceil_mode, int zero_point, int multiplier, int shift, Tensor scratch",
    ),
    "quantized_max_pool2d": (
        _max_pool,
        f"{_POOLED}int[] dilation, bool ceil_mode, int input_zero_point, int output_zero_point, "
        "int activation_min, int activation_max",
    ),
}
_IMAGES = ("quantized_conv2d", "quantized_depthwise_conv2d", "quantized_transpose_conv2d")
_POOLS = ("quantized_avg_pool2d", "quantized_max_pool2d")
_OUT = ", *, Tensor(a!) out) -> Tensor(a!)"
TABLE: dict[str, Rule] = {
    **{f"cortex_m::{name}.out": result(run, given + _OUT) for name, (run, given) in _LINES.items()},
    **{
        f"cortex_m::{name}_nhwc.out": result(
            partial(_inner, _LINES[name][0]), _LINES[name][1] + _OUT
        )
        for name in (*_IMAGES, *_POOLS)
    },
}
