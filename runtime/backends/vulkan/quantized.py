"""Quantized operators of the Vulkan delegate.

Activations are int8 with one scale, or one scale a row where it is chosen at run time; weights
are int8 with a scale for each output channel, or two 4-bit values in a byte with a scale for each
group.
Channels of scales, sums and biases are padded to a multiple of four.

Source: backends/vulkan/patterns (packing) and runtime/graph/ops/glsl (values) of release 1.5.1. The
package's own Python references differ where noted: they are not what its shaders compute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

_LOW, _HIGH = -128, 127
_MIDDLE = 8  # of the 4-bit range as it is stored


def quantized(x: Tensor, scale: float, zero: int) -> Tensor:
    """Return real values as int8."""
    return torch.clamp(torch.round(x * (1.0 / scale)) + zero, _LOW, _HIGH).to(torch.int8)


def dequantized(x: Tensor, scale: float, zero: int) -> Tensor:
    """Return the real values of int8."""
    return (x.float() - zero) * scale


def _activated(made: Tensor, activation: str) -> Tensor:
    return made.relu() if activation == "relu" else made


def _channels(weight: Tensor, scales: Tensor) -> Tensor:
    """Return the real weights, output channels first."""
    count = weight.shape[0]
    shape = (count, *([1] * (weight.dim() - 1)))
    return weight.float() * scales.reshape(-1)[:count].float().reshape(shape)


def _bias(bias: Tensor | None, count: int) -> Tensor | None:
    return None if bias is None else bias.reshape(-1)[:count].float()


def _linear_q8csw(
    x: Tensor,
    scale: float,
    zero: int,
    weight: Tensor,
    _sums: Tensor,
    scales: Tensor,
    bias: Tensor | None = None,
) -> Tensor:
    # the package's reference does not round a real input to int8; its kernels do
    held = quantized(x, scale, zero) if x.is_floating_point() else x
    given = dequantized(held, scale, zero)
    return F.linear(given, _channels(weight, scales), _bias(bias, weight.shape[0]))


def _q8ta_linear(  # noqa: PLR0913 - of the operator
    x: Tensor,
    scale: float,
    zero: int,
    weight: Tensor,
    sums: Tensor,
    scales: Tensor,
    out_scale: float,
    out_zero: int,
    bias: Tensor | None = None,
    activation: str = "none",
) -> Tensor:
    made = _linear_q8csw(x, scale, zero, weight, sums, scales, bias)
    return quantized(_activated(made, activation), out_scale, out_zero)


def _conv(
    unpack: Callable[[Tensor, Sequence[int], int, int], Tensor],
    *given: Any,  # noqa: ANN401
) -> Tensor:
    """Return a quantized convolution.

    Args:
        unpack: returns the weights as torch has them, from matrix, kernel size, input channels of
            a group and groups
        given: arguments of the operator
    """
    x, scale, zero, weight, _, scales, out_scale, out_zero, bias, kernel, stride, padding = given[
        :12
    ]
    *output_padding, dilation, groups, activation = given[12:]
    groups = int(groups)
    filters = unpack(weight, kernel, x.shape[1] // groups, groups)
    real = dequantized(x, scale, zero)
    if output_padding:
        count = filters.shape[1] * groups
        own = filters.float().reshape(groups, -1, *filters.shape[1:])
        own = own * scales.reshape(-1)[:count].float().reshape(groups, 1, -1, 1, 1)
        made = F.conv_transpose2d(
            real,
            own.reshape(filters.shape),
            _bias(bias, count),
            stride,
            padding,
            output_padding[0],
            groups,
            dilation,
        )
    else:
        own = _channels(filters, scales)
        made = F.conv2d(real, own, _bias(bias, own.shape[0]), stride, padding, dilation, groups)
    return quantized(_activated(made, activation), out_scale, out_zero)


def _matrix(weight: Tensor, kernel: Sequence[int], inputs: int, groups: int) -> Tensor:
    """Rows are output channels; the package's reference reads them with the channels outermost."""
    del groups
    high, wide = kernel
    rows = weight[:, : high * wide * inputs].reshape(-1, high, wide, inputs)
    return rows.permute(0, 3, 1, 2)


def _depthwise(weight: Tensor, kernel: Sequence[int], inputs: int, groups: int) -> Tensor:
    del kernel, inputs
    return weight.permute(2, 0, 1).unsqueeze(1)[:groups]


def _transposed(weight: Tensor, kernel: Sequence[int], inputs: int, groups: int) -> Tensor:
    high, wide = kernel
    rows = weight[:, : high * wide * inputs].reshape(groups, -1, high, wide, inputs)
    return rows.permute(0, 4, 1, 2, 3).reshape(groups * inputs, -1, high, wide)


def nibbles(packed: Tensor, *, high_first: bool = False) -> Tensor:
    """Return the signed 4-bit values of packed rows."""
    data = packed.view(torch.uint8) if packed.dtype is torch.int8 else packed
    pair = (data >> 4, data & 0x0F) if high_first else (data & 0x0F, data >> 4)
    return torch.stack(pair, -1).flatten(-2).to(torch.int16) - _MIDDLE


def groupwise(packed: Tensor, scales: Tensor, group: int, columns: int) -> Tensor:
    """Return the real weights of packed 4-bit rows; scales are [groups, rows]."""
    held = nibbles(packed)[:, :columns].float()
    own = scales.float().t()[: held.shape[0]].repeat_interleave(int(group), 1)
    return held * own[:, :columns]


def _linear_q4gsw(
    x: Tensor, weight: Tensor, scales: Tensor, group: int, bias: Tensor | None = None
) -> Tensor:
    real = groupwise(weight, scales, group, x.shape[-1])
    return F.linear(x.float(), real, _bias(bias, real.shape[0]))


def _linear_dq8ca_q4gsw(  # noqa: PLR0913 - of the operator
    x: Tensor,
    scale: Tensor,
    zero: Tensor,
    weight: Tensor,
    _sums: Tensor,
    scales: Tensor,
    group: int,
    bias: Tensor | None = None,
) -> Tensor:
    # the package's reference leaves the activations real; its kernels round them row by row
    shape = (*x.shape[:-1], 1)
    rows, zeros = scale.float().reshape(shape), zero.float().reshape(shape)
    held = torch.clamp(torch.round(x.float() / rows) + zeros, _LOW, _HIGH)
    return _linear_q4gsw((held - zeros) * rows, weight, scales, group, bias)


def _linear_q4gsw_backward(made: Tensor, weight: Tensor, scales: Tensor, group: int) -> Tensor:
    return made.float() @ groupwise(weight, scales, group, weight.shape[1] * 2)


def _linear_qcs4w(x: Tensor, weight: Tensor, scales: Tensor) -> Tensor:
    # the package's reference does not subtract the middle of the range; its shaders do
    return F.linear(x.float(), _channels(nibbles(weight, high_first=True), scales))


def _q4gsw_requant(latent: Tensor, scales: Tensor, group: int) -> Tensor:
    own = scales.float().t()[: latent.shape[0]].repeat_interleave(int(group), 1)
    own = own[:, : latent.shape[1]]
    held = torch.where(own != 0, torch.round(latent / own.where(own != 0, torch.ones(()))), 0.0)
    codes = (held.clamp(-_MIDDLE, _MIDDLE - 1).to(torch.int32) + _MIDDLE) & 0x0F
    codes = F.pad(codes, (0, codes.shape[1] % 2))
    return (codes[:, ::2] | codes[:, 1::2] << 4).to(torch.uint8)


def _embedding(held: Tensor, scales: Tensor, indices: Tensor) -> Tensor:
    own = scales.reshape(held.shape[0], -1)
    group = held.shape[1] // own.shape[1]
    return F.embedding(indices.long(), held.float() * own.float().repeat_interleave(group, 1))


def _embedding_q4gsw(
    weight: Tensor, scales: Tensor, group: int, indices: Tensor, is_linear_weight: bool = False
) -> Tensor:
    held = nibbles(weight, high_first=not is_linear_weight)
    columns = int(group) * (scales.shape[1] if scales.dim() > 1 else 1)
    return _embedding(held[:, :columns], scales, indices)


def _embedding_4bit(
    weight: Tensor,
    scales: Tensor,
    zeros: Tensor | None,
    _low: int,
    _high: int,
    indices: Tensor,
    _dtype: object = None,
) -> Tensor:
    held = nibbles(weight, high_first=True)
    if zeros is not None:
        own = zeros.reshape(held.shape[0], -1)
        held = held - own.repeat_interleave(held.shape[1] // own.shape[1], 1)
    return _embedding(held, scales, indices)


def _add(  # noqa: PLR0913 - of the operator
    a: Tensor,
    b: Tensor,
    a_scale: float,
    a_zero: int,
    b_scale: float,
    b_zero: int,
    out_scale: float,
    out_zero: int,
    alpha: float = 1.0,
) -> Tensor:
    made = dequantized(a, a_scale, a_zero) + alpha * dequantized(b, b_scale, b_zero)
    return quantized(made, out_scale, out_zero)


def _relu(x: Tensor, scale: float, zero: int, out_scale: float, out_zero: int) -> Tensor:
    return quantized(dequantized(x, scale, zero).relu(), out_scale, out_zero)


def _pixel_shuffle(
    x: Tensor, scale: float, zero: int, out_inverse: float, out_zero: int, factor: int
) -> Tensor:
    moved = F.pixel_shuffle(dequantized(x, scale, zero), int(factor))
    return torch.clamp(torch.round(moved * out_inverse) + out_zero, _LOW, _HIGH).to(torch.int8)


def _of(unpack: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return partial(_conv, unpack)


TABLE: dict[str, Callable[..., Any]] = {
    "et_vk.embedding_q4gsw.default": _embedding_q4gsw,
    "et_vk.linear_dq8ca_q4gsw.default": _linear_dq8ca_q4gsw,
    "et_vk.linear_q4gsw.default": _linear_q4gsw,
    "et_vk.linear_q4gsw_backward.default": _linear_q4gsw_backward,
    "et_vk.linear_q8ta_q8csw.default": _linear_q8csw,
    "et_vk.linear_qcs4w.default": _linear_qcs4w,
    "et_vk.q4gsw_requant.default": _q4gsw_requant,
    "et_vk.q8ta_add.default": _add,
    "et_vk.q8ta_conv2d.default": _of(_matrix),
    "et_vk.q8ta_conv2d_dw.default": _of(_depthwise),
    "et_vk.q8ta_conv2d_pw.default": _of(_matrix),
    "et_vk.q8ta_conv2d_transposed.default": _of(_transposed),
    "et_vk.q8ta_linear.default": _q8ta_linear,
    "et_vk.q8ta_linear_gemv.default": _q8ta_linear,
    "et_vk.q8ta_pixel_shuffle.default": _pixel_shuffle,
    "et_vk.q8ta_relu.default": _relu,
    "quantized_decomposed.embedding_4bit.dtype": _embedding_4bit,
}
